//! Facts that are stored, hidden and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::testing::builders::{
    at, call, call_half, commit_claim, decision, edit, id, linkage, merge, observation, outcome,
    push, rejection, rename, repository, revision, text, usage,
};
use svc_engine_fact::{
    CallKey, CallKeyKind, HalfSide, InferenceCall, RawPayload, SessionContinuation,
};
use svc_model::facts::{FactCount, FactTable};
use svc_model::id::{FactId, SessionId};
use svc_model::json::Json;
use svc_model::spend::PriceFormat;
use uuid::Uuid;

use super::TestStore;
use crate::backup::hexadecimal;
use crate::{
    Append, ArrivedHalf, Delivery, ErasureOrder, ErasureSubject, NewPriceTable, NewQuarantineEntry,
    Outcome, QuarantineAction, Store,
};

/// Returns the Session with this id.
pub fn session(text: &str) -> SessionId {
    SessionId::new(text).expect("a Session id")
}

/// Appends inference calls as one delivery.
pub fn append(store: &Store, calls: Vec<InferenceCall>) -> Vec<Outcome> {
    let facts: Vec<Append> = calls
        .into_iter()
        .map(|call| Append::InferenceCall(Box::new(store.encode(call, at(0)))))
        .collect();
    store.append_now(facts).expect("stored facts")
}

/// Appends facts of one kind, as one delivery.
pub fn append_all<F>(store: &Store, kind: fn(Box<F>) -> Append, facts: Vec<F>) -> Vec<Outcome> {
    let facts: Vec<Append> = facts.into_iter().map(|fact| kind(Box::new(fact))).collect();
    store.append_now(facts).expect("stored facts")
}

/// Appends one fact as its own delivery.
pub fn append_one<F>(store: &Store, kind: fn(Box<F>) -> Append, fact: F) -> Outcome {
    append_all(store, kind, vec![fact])[0]
}

/// Quarantines or releases a fact.
pub fn set(database: &TestStore, table: FactTable, fact_id: FactId, action: QuarantineAction) {
    let entry = entry(table, &fact_id.to_string(), action);
    let receipts = database
        .ledger("acme")
        .quarantine(&[entry])
        .expect("a receipt");
    assert!(receipts[0].target_found, "{table} {fact_id}");
}

/// Returns the number of facts of a kind.
pub fn count(store: &Store, table: FactTable) -> FactCount {
    store
        .snapshot_now()
        .fact_counts()
        .expect("counts")
        .get(table)
}

/// Returns an entry of the quarantine log.
pub fn entry(table: FactTable, fact_id: &str, action: QuarantineAction) -> NewQuarantineEntry {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NewQuarantineEntry {
        quarantine_id: Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()),
        table,
        fact_id: fact_id.to_owned(),
        action,
        reason: "because".to_owned(),
        recorded_at: at(0),
        client_id: "operator".to_owned(),
    }
}

/// Stores facts of every kind that refer to each other.
pub fn filled(database: &TestStore) -> Store {
    let store = database.open("acme");
    let question =
        "a long question that every call of this Session repeats, so that it is kept once. ";
    let conversation = |number: u128, session_id: &str| {
        let mut call = call(number)
            .session(session_id)
            .model_call(&format!("model-{number}"))
            .input(vec![
                text("system", "be brief"),
                text("user", &question.repeat(3)),
            ])
            .output(vec![text("assistant", &format!("answer {number}"))])
            .raw(RawPayload::from(
                Json::parse(br#"{"kept":"as it came","n":1.10}"#).expect("it is possible"),
            ))
            .build();
        call.call_aliases = vec![format!("alias-{number}"), format!("other-{number}")];
        call.keys = vec![
            CallKey::new(CallKeyKind::Response, format!("msg_{number}")),
            CallKey::new(CallKeyKind::Request, format!("req_{number}")),
        ];
        call
    };
    append(
        &store,
        vec![
            conversation(1, "s"),
            conversation(2, "s"),
            conversation(3, "t"),
        ],
    );
    append_one(&store, Append::DeveloperDecision, decision(10));
    append_one(&store, Append::EditObservation, edit(11, "c"));
    append_one(&store, Append::RejectedEdit, rejection(12, "c"));
    append_one(&store, Append::RetryLinkage, linkage(13, "c", "d"));
    append_one(&store, Append::UsageReceipt, usage(21));
    append_one(&store, Append::Push, push(14));
    append_one(&store, Append::PullRequestRevision, revision(15));
    append_one(&store, Append::PullRequestMerge, merge(16));
    append_one(&store, Append::RepositoryRename, rename(17, repository(7)));
    append_one(&store, Append::CiOutcome, outcome(18, "r"));
    append_one(
        &store,
        Append::SessionCommitObservation,
        observation(19, id(14)),
    );
    let body = Json::parse(br#"{"messages":[{"role":"user","content":"left"}]}"#);
    let body = body
        .ok()
        .and_then(Json::into_object)
        .expect("it is possible");
    let continuation = SessionContinuation {
        session_id: session("t"),
        continues_session_id: session("s"),
        last: None,
        observed_at: at(9),
        received_at: at(9),
    };
    let reported = Delivery {
        continuations: vec![continuation],
        claims: vec![commit_claim(22, "abcdef1")],
        halves: vec![ArrivedHalf {
            half: call_half(23, "s", HalfSide::Request, body),
            due_at: at(1_000),
        }],
        ..Delivery::default()
    };
    store.append_now(reported).expect("it is possible");
    set(
        database,
        FactTable::Pushes,
        id(14),
        QuarantineAction::Quarantine,
    );
    let ahead = entry(
        FactTable::CiOutcomes,
        &id(77).to_string(),
        QuarantineAction::Quarantine,
    );
    database
        .ledger("acme")
        .quarantine(&[ahead])
        .expect("it is possible");
    append_one(&database.open("other"), Append::Push, push(20));
    for sql in [
        "INSERT INTO mirror_jobs (org_id, mirror, repo, due_at_us, attempts, notes)
            VALUES ('acme', 'o/r', 'o/r', 5, 1, 'none')",
        "INSERT INTO mirror_deliveries SELECT 'acme', 'o/r', push_id, 'o/r', 'https://h/o/r', 5
            FROM pushes WHERE org_id = 'other'",
        "INSERT INTO mirror_deferred_notes VALUES ('acme', 'o/r', 'refs/notes/svc', 'c', 5)",
        "INSERT INTO grant_log
            (grant_id, org_id, token, action, session_id, reason, recorded_at_us, client_id)
            VALUES ('g', 'acme', 'ann', 'add', 's', 'because', 5, 'operator')",
        "INSERT INTO grants_in_force VALUES ('ann', 'acme', 1)",
    ] {
        assert_eq!(database.change(sql), 1);
    }
    let prices = price_table(1, br#"{"m":{"input_cost_per_token":0}}"#);
    store.load_price_table_now(prices).expect("it is possible");
    append(&store, vec![call(5).session("gone").build()]);
    let subject = ErasureSubject::Session(session("gone"));
    let ledger = database.ledger("acme");
    let deadline = Deadline::after(Duration::from_mins(1));
    let plan = ledger
        .plan_erasure(&subject, &deadline)
        .expect("it is possible");
    let order = erasure_order(&subject);
    ledger
        .erase(plan, &order, &deadline, &mut |_| {})
        .expect("it is possible");
    store
}

/// Returns a price table of a file, which was received a second later than the one before it.
pub fn price_table(number: u8, file: &[u8]) -> NewPriceTable {
    NewPriceTable {
        price_table_id: Uuid::from_u128(number.into()),
        format: PriceFormat::Litellm,
        name: format!("prices-{number}.json"),
        digest: hexadecimal(&Sha256::digest(file)),
        loaded_at: at(number.into()),
        models: 3,
        ignored: 4,
        file: file.to_vec(),
    }
}

pub fn erasure_order(subject: &ErasureSubject) -> ErasureOrder {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ErasureOrder {
        erasure_id: Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()),
        subject: subject.clone(),
        reason: "because".to_owned(),
        recorded_at: at(9),
        client_id: "operator".to_owned(),
    }
}
