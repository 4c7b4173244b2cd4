//! What calls answered, as sets of tokens.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use svc_model::limit::REPORT_CALL_BYTES_MAX;
use svc_model::problem::ReportBound;

use super::memory::ReportMemory;
use crate::derive::attribution::{Texts, TokenSet};
use crate::error::Error;
use crate::read::content::Content;
use crate::store::{Answer, Snapshot};

/// Calls whose answers are read at once.
const CALLS_AT_ONCE: usize = 512;

/// What calls answered.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    memory: &'a ReportMemory,
}

impl<'a> Answers<'a> {
    pub(super) const fn new(memory: &'a ReportMemory) -> Self {
        Self { memory }
    }

    /// Reads the answers that are wanted: so many canonical bytes of all at most.
    pub(super) fn read(
        &self,
        snapshot: &mut Snapshot<'_>,
        texts: &mut Texts,
        bytes_max: u64,
    ) -> Result<(), Error> {
        let mut bytes = 0_u64;
        for calls in texts.wanted().chunks(CALLS_AT_ONCE) {
            let mut answers: Vec<Answer> = Vec::with_capacity(calls.len());
            snapshot.answers_of_calls(calls, |answer| {
                answers.push(answer);
                Ok(())
            })?;
            for answer in &answers {
                bytes = bytes.saturating_add(answer.byte_count);
                if answer.byte_count > REPORT_CALL_BYTES_MAX || bytes > bytes_max {
                    return Err(ReportBound::Evidence.into());
                }
            }
            let tokens = self.tokens(snapshot, &answers)?;
            for answer in &answers {
                let sets = answer.contents.iter().filter_map(|id| tokens.get(id));
                let sets: Vec<&TokenSet> = sets.map(|set| &**set).collect();
                match sets[..] {
                    [one] => texts.add(answer.inference_call_id, one)?,
                    _ => texts.add(answer.inference_call_id, &TokenSet::union(sets))?,
                }
            }
        }
        Ok(())
    }

    fn tokens(
        &self,
        snapshot: &mut Snapshot<'_>,
        answers: &[Answer],
    ) -> Result<HashMap<i64, Arc<TokenSet>>, Error> {
        let ids: HashSet<i64> = answers
            .iter()
            .flat_map(|answer| answer.contents.iter().copied())
            .collect();
        let mut found = HashMap::with_capacity(ids.len());
        let mut missing = Vec::new();
        for id in ids {
            match self.memory.answers.get(&id) {
                Some(tokens) => drop(found.insert(id, tokens)),
                None => missing.push(id),
            }
        }
        missing.sort_unstable();
        snapshot.content(&missing, |id, bytes| {
            let message = Content::decode(&bytes)?.message;
            let tokens = Arc::new(TokenSet::of_output(std::slice::from_ref(&message)));
            self.memory.answers.insert(id, Arc::clone(&tokens));
            found.insert(id, tokens);
            Ok(())
        })?;
        Ok(found)
    }
}
