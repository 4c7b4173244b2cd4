//! The answers of calls, as sets of tokens.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use svc_engine_derive::attribution::{CodeTokens, Texts};
use svc_engine_store::{CohortCall, Snapshot, StoreError};
use svc_model::facts::FactTable;
use svc_model::id::SessionId;
use svc_model::limit::REPORT_CALL_BYTES_MAX;
use svc_model::problem::ReportBound;

use super::halves::look_up;
use super::memory::ReportMemory;
use crate::error::Error;
use crate::read::content::MessageContent;

/// How many calls' answers are read at once.
const CALLS_AT_ONCE: usize = 2_048;

/// The answers of calls.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    memory: &'a ReportMemory,
}

impl<'a> Answers<'a> {
    pub(super) const fn new(memory: &'a ReportMemory) -> Self {
        Self { memory }
    }

    /// Reads the answers of those calls whose texts are wanted, with at most `bytes_max` canonical
    /// bytes in total.
    pub(super) fn read(
        &self,
        snapshot: &mut Snapshot<'_>,
        texts: &mut Texts,
        calls: &[&CohortCall],
        bytes_max: u64,
    ) -> Result<(), Error> {
        let wanted = calls.iter().copied();
        let mut wanted: Vec<&CohortCall> = wanted
            .filter(|call| texts.wants(call.inference_call_id))
            .collect();
        wanted.sort_unstable_by_key(|call| (call.observed_at, call.inference_call_id));
        wanted.dedup_by_key(|call| call.inference_call_id);
        let sessions: BTreeSet<&SessionId> = wanted.iter().map(|call| &call.session_id).collect();
        let erased = snapshot.erased_facts(FactTable::InferenceCalls, sessions)?;
        wanted.retain(|call| {
            let is_erased = erased.contains_key(&call.inference_call_id);
            if is_erased {
                texts.erase(call.inference_call_id);
            }
            !is_erased
        });
        let mut bytes = 0_u64;
        for call in &wanted {
            let count = call.answer.byte_count;
            bytes = bytes.saturating_add(count);
            if count > REPORT_CALL_BYTES_MAX || bytes > bytes_max {
                return Err(ReportBound::Evidence.into());
            }
        }
        for calls in wanted.chunks(CALLS_AT_ONCE) {
            let tokens = self.tokens(snapshot, calls)?;
            for call in calls {
                let sets = call.answer.contents.iter().filter_map(|id| tokens.get(id));
                let sets: Vec<&CodeTokens> = sets.map(|set| &**set).collect();
                match sets[..] {
                    [set] => texts.add(call.inference_call_id, set)?,
                    _ => texts.add(call.inference_call_id, &CodeTokens::union(sets))?,
                }
            }
        }
        Ok(())
    }

    /// Returns the tokens of every content of these calls.
    fn tokens(
        &self,
        snapshot: &mut Snapshot<'_>,
        calls: &[&CohortCall],
    ) -> Result<HashMap<i64, Arc<CodeTokens>>, Error> {
        let ids = calls.iter().flat_map(|call| call.answer.contents.iter());
        let ids: BTreeSet<i64> = ids.copied().collect();
        let count = ids.len();
        let mut found = HashMap::with_capacity(count);
        let mut missing = Vec::new();
        for id in ids {
            match self.memory.answers.get(&id) {
                Some(tokens) => drop(found.insert(id, tokens)),
                None => missing.push(id),
            }
        }
        let read = look_up(snapshot, &missing, |snapshot, missing, take| {
            snapshot.content(missing, |content_id, bytes| {
                let message = MessageContent::decode(bytes)?.message;
                let tokens = Arc::new(CodeTokens::of_output(std::slice::from_ref(&message)));
                self.memory.answers.insert(content_id, Arc::clone(&tokens));
                take((content_id, tokens))
            })
        })?;
        found.extend(read);
        if found.len() < count {
            return Err(Error::Store(StoreError::Corrupt {
                table: "content",
                what: "content is missing",
            }));
        }
        Ok(found)
    }
}
