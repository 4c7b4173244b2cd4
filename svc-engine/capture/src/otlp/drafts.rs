//! Facts of log records until they have the records that they keep.

use svc_engine_fact::DeveloperDecision;
use svc_model::ingest::LogEvent;
use svc_model::json::{Json, NodeBudget, Object};

use super::decided::DecisionDraft;
use super::kept::{Keeper, KeptRecords};
use super::{CapturedLogs, LogsError, raw};
use crate::Receipt;
use crate::model_call::ModelCall;
use svc_messages::MessagesError;

/// The facts that do not have their records yet.
#[derive(Debug)]
pub(super) struct Drafts {
    pub(super) decided: Vec<DecisionDraft>,
    /// Each with the index of its record.
    pub(super) called: Vec<(usize, Box<ModelCall>)>,
}

impl Drafts {
    /// Gives facts the records that they keep.
    pub(super) fn keep(
        self,
        records: Vec<(usize, Object)>,
        receipt: Receipt<'_>,
        memory: &NodeBudget,
        captured: &mut CapturedLogs,
    ) -> Result<(), LogsError> {
        let Self { decided, called } = self;
        let records = records.into_iter().map(|(_, record)| Json::Object(record));
        let by_decisions = decided.iter().map(|(_, kept)| *kept);
        let by_calls = called.iter().map(|(place, _)| KeptRecords::only(*place));
        let mut keeper = Keeper::new(records, by_decisions.chain(by_calls));
        let decisions = decided.into_iter();
        captured
            .decisions
            .extend(decisions.map(|(decision, kept)| DeveloperDecision {
                raw: keeper.raw(kept),
                ..decision
            }));
        for (place, mut call) in called {
            call.raw = raw::payload(keeper.raw(KeptRecords::only(place)));
            match call.capture(receipt, memory) {
                Ok(made) => {
                    captured.report.degradation += made.degradation;
                    captured.report.redactions += made.redactions;
                    captured.calls.push(made.call);
                }
                Err(MessagesError::InvalidIdentity) => {
                    captured.report.unmade(LogEvent::GenAiInference);
                }
                Err(MessagesError::TooLarge) => return Err(LogsError::TooLarge),
            }
        }
        Ok(())
    }
}
