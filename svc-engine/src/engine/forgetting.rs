//! Drops what is cached from content that another process erased, even while there are no reads.

use std::sync::Weak;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::EngineState;
use super::execution::read_deadline;

/// The time between two checks. A read in between drops it too.
const INTERVAL: Duration = Duration::from_secs(5);

/// The thread that checks. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Forgetting {
    _stop: mpsc::Sender<()>,
}

impl Forgetting {
    pub(super) fn start(inner: Weak<EngineState>) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        // The thread owns nothing, so nobody has to join it.
        std::thread::Builder::new()
            .name("svc-forgetting".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let Some(inner) = inner.upgrade() else {
                        return;
                    };
                    inner.store.look_at_clock();
                    look(&inner);
                }
            })?;
        Ok(Self { _stop: stop })
    }
}

pub(super) fn look(inner: &EngineState) {
    let revisions = || inner.store.snapshot(&read_deadline())?.revisions();
    match revisions() {
        Ok(revisions) => inner.resources.settle(revisions.erasure),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "store.erasures_unseen");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use svc_engine_fact::clock::{Clock, Ids};
    use svc_engine_fact::testing::builders::{at, call, id};
    use svc_engine_store::testing::{Backend, TestStore};
    use svc_engine_store::{Append, ErasureOrder, ErasureSubject};
    use svc_model::endpoint::EvidenceReading;
    use svc_model::evidence::{EvidenceReadRequest, Reference, Side};
    use svc_model::facts::FactTable;
    use svc_model::id::{InferenceCallId, SessionId};
    use svc_model::problem::Decline;
    use svc_model::version::Version1;
    use uuid::Uuid;

    use super::*;
    use crate::engine::{Engine, EngineConfig};
    use crate::error::Error;
    use crate::read::{Answer as _, Reach, Repeats};

    #[rstest]
    fn the_memory_of_erased_content_is_dropped_even_if_no_request_comes(
        #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    ) {
        let Some(database) = TestStore::create(backend) else {
            return;
        };
        let org_id = svc_model::id::OrgId::new("acme").unwrap();
        let config = EngineConfig::new(database.url().clone(), org_id);
        let engine = Engine::open(&config, Clock::system(), Ids::random()).unwrap();
        let inner = &engine.0;
        let session_id = SessionId::new("s").unwrap();
        let fact = inner.store.encode(call(1).build(), at(0));
        let stored = inner
            .store
            .append_blocking(vec![Append::InferenceCall(Box::new(fact))]);
        assert_eq!(stored.unwrap().len(), 1);
        let read = || {
            let mut snapshot = inner.store.snapshot(&read_deadline()).unwrap();
            let request = EvidenceReadRequest {
                schema_version: Version1,
                session_id: session_id.clone(),
                references: vec![Reference {
                    inference_call_id: InferenceCallId::new(&id(1).to_string()).unwrap(),
                    side: Side::Input.into(),
                    message_index: 0,
                    part_index: 0,
                }],
                explain: false,
            };
            let mut reading = inner.reading(&mut snapshot, &Reach::All, Repeats::Once);
            EvidenceReading::answer(&mut reading, request)
        };
        assert_eq!(read().unwrap().schema_version, Version1);
        let content = Arc::downgrade(&inner.resources.latest_content());
        let memory = Arc::downgrade(&inner.resources.latest_report_memory());
        look(inner);
        assert!(content.upgrade().is_some() && memory.upgrade().is_some());

        let ledger = database.ledger("acme");
        let subject = ErasureSubject::Session(session_id.clone());
        let plan = ledger.plan_erasure(&subject, &read_deadline()).unwrap();
        let order = ErasureOrder {
            erasure_id: Uuid::from_u128(1),
            subject,
            reason: "because".to_owned(),
            recorded_at: at(1),
            client_id: "operator".to_owned(),
        };
        let erased = ledger.erase(plan, &order, &read_deadline(), &mut |_| {});
        assert_eq!(erased.unwrap().facts.get(FactTable::InferenceCalls), 1);
        look(inner);
        assert!(content.upgrade().is_none() && memory.upgrade().is_none());
        let refused = read();
        assert!(
            matches!(
                refused,
                Err(Error::Declined(Decline::ContentErased {
                    reference_index: 0
                }))
            ),
            "{refused:?}"
        );
        engine.close();
    }
}
