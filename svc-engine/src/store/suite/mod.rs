//! The store suite: every case runs on SQLite and on PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use proptest::prelude::*;
use rstest::rstest;
use svc_model::evidence::{Message, Part};
use svc_model::facts::{FactCount, FactTable};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::json::{Json, Object, Text};
use svc_model::problem::Code;
use svc_model::repository::{CommitAnchor, CommitSha};
use uuid::Uuid;

use super::*;
use crate::testing::builders::{at, call, id, outcome, repository, text};
use crate::testing::{Backend, TestStore};

/// Returns a database, or ends the case where the backend is skipped.
macro_rules! database {
    ($backend:expr) => {
        match TestStore::create($backend) {
            Some(database) => database,
            None => return,
        }
    };
}

// After the macro, which they use.
mod appending;
mod bulk_quarantine;
mod inference_calls;
mod mirror_jobs;
mod schema;
mod visibility;

fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn append(store: &Store, calls: Vec<InferenceCall>) -> Vec<Outcome> {
    let facts = calls
        .into_iter()
        .map(|call| Append::InferenceCall(Box::new(store.encode(call, at(0)))))
        .collect();
    store.append_now(facts).unwrap()
}

fn append_outcomes(store: &Store, outcomes: Vec<crate::fact::CiOutcome>) -> Vec<Outcome> {
    let facts = outcomes
        .into_iter()
        .map(|it| Append::CiOutcome(Box::new(it)))
        .collect();
    store.append_now(facts).unwrap()
}

fn entry(table: FactTable, fact_id: &str, action: QuarantineAction) -> NewQuarantineEntry {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NewQuarantineEntry {
        quarantine_id: Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()),
        table,
        fact_id: fact_id.to_owned(),
        action,
        reason: "because".to_owned(),
        recorded_at: at(0),
    }
}

/// The canonical messages of a call: its input and its output.
type Sides = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn messages(store: &Store, session_id: &str) -> Vec<Sides> {
    let mut snapshot = store.snapshot_now();
    let calls = snapshot.call_contents(&session(session_id)).unwrap();
    let mut bytes = std::collections::HashMap::new();
    let ids: Vec<i64> = calls
        .iter()
        .flat_map(|call| [&call.input, &call.output])
        .flatten()
        .copied()
        .collect();
    snapshot
        .content(&ids, |id, content| {
            bytes.insert(id, content);
            Ok(())
        })
        .unwrap();
    let side = |ids: &[i64]| ids.iter().map(|id| bytes[id].clone()).collect::<Vec<_>>();
    calls
        .iter()
        .map(|call| (side(&call.input), side(&call.output)))
        .collect()
}
