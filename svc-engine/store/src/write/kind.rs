//! What the writer asks of every kind of fact.

use svc_model::id::OrgId;
use svc_model::json::Json;
use svc_model::time::Instant;

use super::appending::Appending;
use super::outcome::Outcome;
use super::traces::Traces;
use crate::sql::error::StoreError;
use crate::table::row::Stamp;

/// A kind of fact: how it is prepared on the sender's thread and written by the writer.
pub(crate) trait Kind: Sized {
    /// The form that the writer takes.
    type Prepared;

    /// Returns the payload that preparing it compresses. A call is encoded already.
    fn raw(&self) -> Option<&Json> {
        None
    }

    /// Returns the cost of writing it, in units of a small row.
    fn weight(fact: &Self::Prepared) -> usize;

    /// Prepares it. Whatever costs more than writing it is done here.
    fn prepare(self: Box<Self>, org_id: &OrgId) -> Self::Prepared;

    /// Stores what can be stored before the organization's row is locked, because it has no capture
    /// time.
    fn stage(
        _appending: &mut Appending<'_, '_>,
        _facts: &[&Self::Prepared],
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Sets the capture time of a fact, and returns it.
    fn stamp(fact: &mut Self::Prepared, stamp: Stamp) -> Option<Instant>;

    /// Stores facts of this kind and returns the outcome of each.
    fn store(
        appending: &mut Appending<'_, '_>,
        facts: &[&Self::Prepared],
    ) -> Result<Vec<Outcome>, StoreError>;

    /// Adds what a stored fact leaves in other tables.
    fn trace<'a>(fact: &'a Self::Prepared, traces: &mut Traces<'a>);
}
