//! The store suite: every case runs on SQLite and on PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use rstest::rstest;
use svc_engine_fact::InferenceCall;
use svc_engine_fact::clock::Clock;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::testing::builders::{
    at, call, commit, commit_claim, decision, edit, id, linkage, merge, name, observation, outcome,
    push, rejection, rename, repository, revision, text, usage,
};
use svc_model::capture::CaptureTotals;
use svc_model::evidence::{Message, Part};
use svc_model::facts::{FactCount, FactTable};
use svc_model::grant::{GrantAction, TokenName};
use svc_model::id::{FactId, InferenceCallId, OrgId, SessionId};
use svc_model::json::{Json, Object, Text};
use svc_model::problem::Code;
use svc_model::repository::CommitAnchor;
use uuid::Uuid;

use super::*;
use crate::pack::column::Columns;
use crate::sql::connection::Connection;
use crate::sql::pool::Pool;
use crate::table::kind;
use crate::table::record::Record;
use crate::testing::{
    Backend, TestStore, append, append_all, append_one, count, entry, erasure_order, filled,
    plan_check, run_sql, session, set,
};
use crate::write::{content, transaction};

/// Returns a database, or returns from the test if the backend is skipped.
macro_rules! database {
    ($backend:expr) => {
        match TestStore::create($backend) {
            Some(database) => database,
            None => return,
        }
    };
}

// These use the macro, so they follow it.
mod appending;
mod backups;
mod bulk_quarantine;
mod call_halves;
mod call_keys;
mod cohorts;
mod commit_claims;
mod continued_calls;
mod erased_bytes;
mod erasures;
mod every_kind;
mod faults;
mod grants;
mod history;
mod inference_calls;
mod log_facts;
mod lost_answers;
mod many_grants;
mod mirror_jobs;
mod order_and_counts;
mod plans;
mod prices;
mod reading;
mod reports;
mod repository_claims;
mod repository_facts;
mod schema;
mod set_back;
mod signed_outcomes;
mod visibility;

impl Snapshot<'_> {
    /// Returns a visible fact, with all its members.
    fn fact<F: Record>(&mut self, fact_id: FactId) -> Result<Option<F>, StoreError> {
        let org_id = self.org_id;
        let keys = [org_id.as_str().into(), fact_id.into()];
        let by_id = format!("{} AND f.{} = $2", F::TABLE.select, F::TABLE.members[0]);
        self.connection()?.first(&by_id, &keys, |row| {
            F::read(&mut Columns::of(row, F::TABLE.name, F::TABLE.members))
        })
    }
}

/// Any text, including NUL, surrogates and characters that JSON escapes.
fn any_text() -> impl Strategy<Value = Text> {
    proptest::collection::vec(
        prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            Just(vec![0]),
            Just(vec![0xed, 0xa0, 0x80]),
            Just(b"\\\"\n".to_vec()),
        ],
        0..40,
    )
    .prop_filter_map("generalised UTF-8", |pieces| {
        Text::from_wtf8(pieces.concat())
    })
}

/// The canonical messages of a call's input and output.
type Sides = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn messages(store: &Store, session_id: &str) -> Vec<Sides> {
    let mut snapshot = store.snapshot_now();
    let calls = snapshot.call_contents(&session(session_id)).unwrap();
    let mut bytes = std::collections::HashMap::new();
    let ids: Vec<i64> = calls
        .iter()
        .flat_map(|call| call.input.iter().chain(call.output.iter()))
        .collect();
    snapshot
        .content(&ids, |content_id, content| {
            bytes.insert(content_id, content.to_vec());
            Ok(())
        })
        .unwrap();
    let side = |ids: &IdList| ids.iter().map(|id| bytes[&id].clone()).collect::<Vec<_>>();
    calls
        .iter()
        .map(|call| (side(&call.input), side(&call.output)))
        .collect()
}
