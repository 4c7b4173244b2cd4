//! The suite of the queries: every case runs on SQLite and on PostgreSQL.

use std::cell::Cell;

use rstest::rstest;
use svc_engine_fact::testing::builders::{
    at, call, commit, decision, edit, id, linkage, merge, name, observation, outcome, push,
    rejection, rename, repository, revision,
};
use svc_engine_fact::{CiOutcome, Push, SessionCommitObservation};
use svc_engine_store::testing::{Backend, TestStore};
use svc_engine_store::{
    Append, Ledger, NewQuarantineEntry, Outcome, QuarantineAction, Snapshot, Store,
};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, RunId, SessionId};
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::problem::{Decline, QueryFault, SessionBound};
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeRecord, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, LifetimeIdentity, PageLimit, RepositorySelector, RunName,
    RunUrl, SessionAnswer, SessionDossier, SessionDossierRequest,
};
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;
use uuid::Uuid;

use super::*;
use crate::error::Error;

/// Opens a stage, or ends the case if the backend is skipped.
macro_rules! stage {
    ($backend:expr) => {
        match Stage::open($backend) {
            Some(stage) => stage,
            None => return,
        }
    };
}

// These use the macro, so they come after it.
mod commits;
mod context_limits;
mod exports;
mod failures;
mod granting;
mod inferred;
mod links;
mod listing;
mod outcomes;
mod overview;
mod reports;
mod search;
mod sessions;
mod set_back;
mod signed;
mod spend;
mod worlds;

/// A store, and an operator who acts on it.
struct Stage {
    store: Store,
    ledger: Ledger,
    entries: Cell<u128>,
    // Last, so that the database is dropped when nothing uses it any more.
    database: TestStore,
}

impl Stage {
    fn open(backend: Backend) -> Option<Self> {
        let database = TestStore::create(backend)?;
        Some(Self {
            store: database.open("acme"),
            ledger: database.ledger("acme"),
            entries: Cell::new(1),
            database,
        })
    }

    /// Stores facts, all of which must be new.
    fn add(&self, facts: impl IntoIterator<Item = Append>) {
        let facts: Vec<Append> = facts.into_iter().collect();
        let outcomes = self.store.append_now(facts).unwrap();
        let new =
            |outcome: &Outcome| matches!(outcome, Outcome::Stored(_) | Outcome::Superseding(_));
        assert!(outcomes.iter().all(new), "{outcomes:?}");
    }

    fn calls(&self, session: &str, numbers: std::ops::Range<u128>) {
        let facts = numbers.map(|number| {
            let call = call(number).session(session).build();
            Append::InferenceCall(Box::new(self.store.encode(call, at(0))))
        });
        self.add(facts);
    }

    /// Returns whether the fact is stored.
    fn mark(&self, table: FactTable, fact_id: FactId, action: QuarantineAction) -> bool {
        let number = self.entries.replace(self.entries.get() + 1);
        let entry = NewQuarantineEntry {
            quarantine_id: Uuid::from_u128(number),
            table,
            fact_id: fact_id.to_string(),
            action,
            reason: "because".to_owned(),
            recorded_at: at(0),
            client_id: "operator".to_owned(),
        };
        let receipts = self.ledger.quarantine(&[entry]).unwrap();
        receipts[0].target_found
    }

    fn quarantine(&self, table: FactTable, fact_id: FactId) {
        assert!(self.mark(table, fact_id, QuarantineAction::Quarantine));
    }

    fn release(&self, table: FactTable, fact_id: FactId) {
        assert!(self.mark(table, fact_id, QuarantineAction::Release));
    }

    fn snapshot(&self) -> Snapshot<'_> {
        self.store.snapshot_of_two_now()
    }

    fn outcome(&self, request: &CiOutcomeRequest) -> Result<Option<CiOutcomeRecord>, Error> {
        ci_outcome(&mut self.snapshot(), request).map(|answer| answer.outcome)
    }

    fn failures(&self, request: &CiFailuresRequest) -> Result<CiFailures, Error> {
        ci_failures(
            &mut self.snapshot(),
            &CursorKey::derive(b"a secret"),
            request,
        )
    }

    fn session(&self, session: &str) -> Result<SessionAnswer, Error> {
        let request = SessionDossierRequest {
            session_id: SessionId::new(session).unwrap(),
            explain: false,
        };
        let mut snapshot = self.snapshot();
        let now = snapshot.boundary(None).unwrap();
        session_dossier(&mut snapshot, request, now)
    }

    fn dossier(&self, session: &str) -> SessionDossier {
        self.session(session)
            .unwrap()
            .dossier()
            .expect("it is known")
    }

    fn commit(&self, request: CommitRequest) -> Result<CommitEvidence, Error> {
        let memory = ReportMemory::new(0);
        let sources = ReportSources {
            mirrors: None,
            memory: &memory,
        };
        let mut snapshot = self.snapshot();
        let now = snapshot.boundary(None).unwrap();
        commit_evidence(&mut snapshot, sources, request, now)
    }
}

/// An outcome in a repository, received after this many seconds.
fn checked(number: u128, run: &str, identity: Option<u32>, seconds: i64) -> CiOutcome {
    CiOutcome {
        repository: identity.map(repository),
        result: CiResult::Failed,
        captured_at: at(seconds),
        ..outcome(number, run)
    }
}

fn ci(outcome: CiOutcome) -> Append {
    Append::CiOutcome(Box::new(outcome))
}

/// A push of commit `c`, and the observation of Session `s` at it, in one repository.
fn delivered(number: u128, identity: Option<u32>) -> (Push, SessionCommitObservation) {
    let push = Push {
        repository: identity.map(repository),
        after_sha: commit('c'),
        ..push(number)
    };
    let observation = SessionCommitObservation {
        repository: identity.map(repository),
        commit_sha: commit('c'),
        ..observation(number + 1, id(number))
    };
    (push, observation)
}

fn pushed(push: Push) -> Append {
    Append::Push(Box::new(push))
}

fn observed(observation: SessionCommitObservation) -> Append {
    Append::SessionCommitObservation(Box::new(observation))
}

fn by_name(text: &str) -> RepositorySelector {
    RepositorySelector::named(name(text))
}

fn by_identity(number: u32) -> RepositorySelector {
    RepositorySelector::identified(repository(number))
}

fn is_declined<T: std::fmt::Debug>(result: &Result<T, Error>, decline: &Decline) {
    assert!(
        matches!(result, Err(Error::Declined(found)) if found == decline),
        "{result:?}"
    );
}

fn is_faulted<T: std::fmt::Debug>(result: &Result<T, Error>, fault: QueryFault) {
    assert!(
        matches!(result, Err(Error::Query(found)) if *found == fault),
        "{result:?}"
    );
}

fn is_bounded<T: std::fmt::Debug>(result: &Result<T, Error>, bound: SessionBound) {
    assert!(
        matches!(result, Err(Error::SessionBound(found)) if *found == bound),
        "{result:?}"
    );
}
