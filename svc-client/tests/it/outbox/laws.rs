//! Every delivery that was put is acknowledged or set aside. It is never lost, and it is never sent
//! again after it was acknowledged, except after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use svc_client::testing::{Answer, FakeServer, Received};
use svc_client::{Client, Outbox};

use super::{call, client, event, files_ending, number, open, outbox, run};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reply {
    Acknowledge,
    Refuse(u16),
    Fail(u16),
    Close,
    Portal,
    Stop(u16),
}

#[derive(Clone, Debug)]
enum Step {
    PutCall,
    PutRun,
    PutEvent,
    Drain(Vec<Reply>),
    /// As [`Step::Drain`], but the machine fails before the removals are on disk.
    DrainAndCrash(Vec<Reply>),
    Reopen,
    Restore,
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        6 => Just(Reply::Acknowledge),
        2 => prop::sample::select(vec![400, 409, 413, 422]).prop_map(Reply::Refuse),
        2 => prop::sample::select(vec![408, 429, 500, 502, 503]).prop_map(Reply::Fail),
        1 => Just(Reply::Close),
        1 => Just(Reply::Portal),
        1 => prop::sample::select(vec![301, 401, 403, 404]).prop_map(Reply::Stop),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let replies = || prop::collection::vec(reply(), 0..6);
    prop_oneof![
        5 => Just(Step::PutCall),
        2 => Just(Step::PutRun),
        2 => Just(Step::PutEvent),
        3 => replies().prop_map(Step::Drain),
        1 => replies().prop_map(Step::DrainAndCrash),
        1 => Just(Step::Reopen),
        1 => Just(Step::Restore),
    ]
}

impl Reply {
    fn answer(self) -> Answer {
        match self {
            Self::Acknowledge => Answer::stored(),
            Self::Refuse(status) | Self::Fail(status) | Self::Stop(status) => {
                Answer::text(status, "")
            }
            Self::Close => Answer::closed(),
            Self::Portal => Answer::text(200, "<html>"),
        }
    }
}

/// What was put, and what the peer has received of it.
#[derive(Default)]
struct Seen {
    put: usize,
    bodies: BTreeMap<usize, Vec<u8>>,
    acknowledged: BTreeSet<usize>,
    refused: BTreeSet<usize>,
}

impl Seen {
    /// Checks one pass: what was sent, and how it was answered.
    fn look(&mut self, received: &[Received], replies: &[Reply]) -> Result<(), TestCaseError> {
        let sent: Vec<_> = received.iter().map(number).collect();
        prop_assert!(
            sent.is_sorted_by(|a, b| a < b),
            "the order is kept: {sent:?}"
        );
        for (index, (number, request)) in sent.iter().zip(received).enumerate() {
            let first = self
                .bodies
                .entry(*number)
                .or_insert_with(|| request.body.clone());
            prop_assert_eq!(&request.body, first, "every attempt sends the same bytes");
            prop_assert!(
                !self.acknowledged.contains(number),
                "{} was acknowledged",
                number
            );
            match replies.get(index) {
                Some(Reply::Acknowledge) => {
                    self.acknowledged.insert(*number);
                    self.refused.remove(number);
                }
                Some(Reply::Refuse(_)) => {
                    self.refused.insert(*number);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The service of one case, and its client.
struct Peer {
    server: FakeServer,
    client: Client,
    received: usize,
}

impl Peer {
    /// Sends what is waiting to a service that gives these answers and no others.
    async fn drain(
        &mut self,
        outbox: &Outbox,
        replies: &[Reply],
        seen: &mut Seen,
    ) -> Result<(), TestCaseError> {
        self.server
            .answer(replies.iter().map(|reply| reply.answer()));
        outbox.drain(&self.client).await.unwrap();
        let received = self.server.received().split_off(self.received);
        self.received += received.len();
        seen.look(&received, replies)
    }
}

/// Returns the waiting files, with their contents.
fn waiting(outbox: &Outbox) -> Vec<(PathBuf, Vec<u8>)> {
    files_ending(outbox.folder(), ".delivery")
        .into_iter()
        .map(|name| {
            let path = outbox.folder().join(name);
            let content = fs::read(&path).unwrap();
            (path, content)
        })
        .collect()
}

async fn hold(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (_folder, mut outbox) = outbox();
    let server = FakeServer::start([]);
    let client = client(&server);
    let mut peer = Peer {
        server,
        client,
        received: 0,
    };
    let mut seen = Seen::default();
    for step in steps {
        match step {
            Step::PutCall => {
                outbox.put(call(seen.put)).await.unwrap();
                seen.put += 1;
            }
            Step::PutRun => {
                outbox.put(run(seen.put)).await.unwrap();
                seen.put += 1;
            }
            Step::PutEvent => {
                outbox.put(&event(seen.put)).await.unwrap();
                seen.put += 1;
            }
            Step::Drain(replies) => peer.drain(&outbox, &replies, &mut seen).await?,
            Step::DrainAndCrash(replies) => {
                let before = waiting(&outbox);
                let acknowledged = seen.acknowledged.clone();
                peer.drain(&outbox, &replies, &mut seen).await?;
                let refused = outbox.folder().join("refused");
                for (path, content) in before {
                    if refused.join(path.file_name().unwrap()).exists() {
                        continue;
                    }
                    fs::write(path, content).unwrap();
                }
                // After the crash, nothing shows that these were acknowledged.
                seen.acknowledged = acknowledged;
                outbox = open(outbox.folder());
            }
            Step::Reopen => outbox = open(outbox.folder()),
            Step::Restore => {
                outbox.restore_refused().unwrap();
                seen.refused.clear();
            }
        }
        let status = outbox.status().unwrap();
        let refused = u64::try_from(seen.refused.len()).unwrap();
        prop_assert_eq!(status.refused, refused);
    }
    // The service works again, so everything that waits is acknowledged.
    let rest = vec![Reply::Acknowledge; seen.put];
    peer.drain(&outbox, &rest, &mut seen).await?;
    prop_assert_eq!(outbox.status().unwrap().waiting, 0);
    let ended: BTreeSet<_> = seen.acknowledged.union(&seen.refused).copied().collect();
    let everything: BTreeSet<_> = (0..seen.put).collect();
    let sent: BTreeSet<_> = seen.bodies.keys().copied().collect();
    prop_assert_eq!(&sent, &everything);
    prop_assert!(seen.acknowledged.is_disjoint(&seen.refused));
    prop_assert_eq!(&ended, &everything, "every delivery has an outcome");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_delivery_is_lost_or_sent_again_after_its_receipt(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(hold(steps))?;
    }
}
