//! The results of tool calls, which decisions about the same calls look up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use svc_model::json::Text;

use super::logged::{ExportedRecord, trimmed};

/// The results of one agent's tool calls, from anywhere in an export.
///
/// A result belongs to a decision about the same call and, if both name a Session, of the same
/// Session. If there are several, the last counts. Each result is read only once, however many
/// decisions it belongs to, because it may be as large as a request.
#[derive(Debug)]
pub(super) struct Results<'r, T> {
    by_call: HashMap<(&'r str, Option<&'r str>), &'r ExportedRecord<'r>>,
    read: HashMap<usize, T>,
}

impl<'r, T> Results<'r, T> {
    pub(super) fn new() -> Self {
        Self {
            by_call: HashMap::new(),
            read: HashMap::new(),
        }
    }

    /// Adds a result. Without a call id, it belongs to no decision.
    pub(super) fn add(
        &mut self,
        call: Option<&'r Text>,
        session: Option<&'r Text>,
        result: &'r ExportedRecord<'r>,
    ) {
        let text = |text: &'r Text| trimmed(text).filter(|text| !text.is_empty());
        if let Some(call) = call.and_then(text) {
            self.by_call.insert((call, session.and_then(text)), result);
        }
    }

    /// Returns the index of the result of a call, and what `read` returns for it.
    pub(super) fn find(
        &mut self,
        call: &str,
        session: &str,
        read: impl FnOnce(&ExportedRecord<'r>) -> T,
    ) -> Option<(usize, &T)> {
        let same = self.by_call.get(&(call, Some(session)));
        let any = self.by_call.get(&(call, None));
        let result = same
            .into_iter()
            .chain(any)
            .max_by_key(|result| result.place)?;
        let read = match self.read.entry(result.place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read(result)),
        };
        Some((result.place, read))
    }
}
