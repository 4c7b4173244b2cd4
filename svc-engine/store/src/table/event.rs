//! Events of a Session's timeline: which columns of a fact they show. Content and users are not
//! even read.

use svc_model::query::TimelineEvent;

use crate::pack::column::Columns;
use crate::sql::error::StoreError;

/// How a fact of a Session is read as an event.
#[derive(Debug)]
pub(crate) struct Event {
    /// The columns, the id first.
    pub(crate) columns: &'static [&'static str],
    /// Reads them.
    pub(crate) read: fn(&mut Columns<'_>) -> Result<TimelineEvent, StoreError>,
}

/// Reads the path of a file; an empty one counts as absent.
pub(super) fn file_path(columns: &mut Columns<'_>) -> Result<Option<String>, StoreError> {
    let path: String = columns.next()?;
    Ok(Some(path).filter(|path| !path.is_empty()))
}
