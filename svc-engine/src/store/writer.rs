//! The one writer of the process: group commit.
//!
//! Whoever appends sends to one thread over a bounded channel. The thread takes what is waiting,
//! writes it as one transaction, and answers every sender after the commit. One disk flush then
//! serves all of them, and a sender that waits costs nothing but its place in the channel.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::thread::JoinHandle;

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::problem::Code;
use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use super::connection::Connection;
use super::content::{ContentDigest, Encoded, Encoder};
use super::jobs::RefreshRequest;
use super::sessions::{Touch, Touched};
use super::table::Difference;
use crate::fact::{
    CiOutcome, DeveloperDecision, EditObservation, PullRequestMerge, PullRequestRevision, Push,
    RejectedEdit, RepositoryRename, RetryLinkage, SessionCommitObservation,
};

/// Deliveries that wait for the writer; one more waits with its sender.
const WAITING_MAX: usize = 256;
/// Facts of one transaction, at most, unless one delivery has more.
const GROUP_FACTS_MAX: usize = 128;

/// A kind of fact, as the writer sees it.
pub(super) trait Kind: Sized {
    /// Stores facts of this kind and says what became of each.
    fn store(
        transaction: &mut Transaction<'_>,
        facts: &[&Self],
    ) -> Result<Vec<Outcome>, StoreError>;

    /// Returns what a stored fact says of its Session.
    fn touch(&self) -> Option<Touch<'_>>;
}

/// Declares the kinds of fact, in the order in which a transaction writes them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        /// One fact that is to be stored.
        #[derive(Debug)]
        pub enum Append {
            $($(#[$doc])* $kind(Box<$fact>),)+
        }

        impl Append {
            /// Returns the table of the fact.
            pub fn table(&self) -> FactTable {
                match self {
                    $(Self::$kind(_) => FactTable::$table,)+
                }
            }
        }

        /// Writes facts, kind after kind, and says what became of each.
        fn write(
            transaction: &mut Transaction<'_>,
            facts: &[&Append],
        ) -> Result<Vec<Outcome>, StoreError> {
            let mut outcomes = vec![None; facts.len()];
            let mut touched = Touched::default();
            $({
                let (places, of_kind): (Vec<usize>, Vec<&$fact>) = facts
                    .iter()
                    .enumerate()
                    .filter_map(|(place, fact)| {
                        if let Append::$kind(fact) = fact { Some((place, &**fact)) } else { None }
                    })
                    .unzip();
                if !of_kind.is_empty() {
                    let stored = Kind::store(transaction, &of_kind)?;
                    for ((place, fact), outcome) in places.into_iter().zip(of_kind).zip(stored) {
                        if let (Outcome::Stored(_), Some(touch)) = (outcome, fact.touch()) {
                            touched.add(touch);
                        }
                        outcomes[place] = Some(outcome);
                    }
                }
            })+
            touched.write(transaction.connection, transaction.org_id)?;
            let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
            outcomes.ok_or(StoreError::NotStored)
        }
    };
}

kinds! {
    /// A model call.
    InferenceCall(Encoded) in InferenceCalls,
    /// What was decided about an edit.
    DeveloperDecision(DeveloperDecision) in DeveloperDecisions,
    /// What became of an applied edit.
    EditObservation(EditObservation) in EditObservations,
    /// A refused edit.
    RejectedEdit(RejectedEdit) in RejectedEdits,
    /// A refused edit that was tried again with success.
    RetryLinkage(RetryLinkage) in RetryLinkages,
    /// A push to a branch.
    Push(Push) in Pushes,
    /// That a pushed repository is to be fetched. It is no fact, but about one.
    RefreshRequest(RefreshRequest) in Pushes,
    /// A pull request as it was opened or changed.
    PullRequestRevision(PullRequestRevision) in PullRequestRevisions,
    /// A pull request as it was merged.
    PullRequestMerge(PullRequestMerge) in PullRequestMerges,
    /// A repository's change of name.
    RepositoryRename(RepositoryRename) in RepositoryRenames,
    /// The outcome of a CI run.
    CiOutcome(CiOutcome) in CiOutcomes,
    /// A link between a Session and a commit.
    SessionCommitObservation(SessionCommitObservation) in SessionCommitObservations,
}

/// What became of one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored(FactId),
    /// It was stored before, under this id.
    Redelivered(FactId),
    /// It was stored before. Of facts that no answer names, nobody asks under which id.
    Known,
    /// Its identity says otherwise than a stored fact.
    Conflict(Code),
}

type Answer = Result<Vec<Outcome>, StoreError>;

struct Delivery {
    facts: Vec<Append>,
    answer: oneshot::Sender<Answer>,
}

/// The sending end of the writer.
pub(super) struct Writer {
    sender: Mutex<Option<mpsc::Sender<Delivery>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Starts the writer on a thread of its own.
    pub(super) fn start(
        connection: Connection,
        org_id: OrgId,
        encoder: Encoder,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let mut worker = Worker {
            connection,
            org_id,
            encoder,
        };
        let thread = std::thread::Builder::new()
            .name("svc-writer".to_owned())
            .spawn(move || worker.run(receiver))?;
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Appends facts and waits for the commit.
    pub(super) async fn append(&self, facts: Vec<Append>) -> Answer {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let sender = self.sender()?;
        let (answer, received) = oneshot::channel();
        sender
            .send(Delivery { facts, answer })
            .await
            .map_err(|_| StoreError::Closed)?;
        drop(sender);
        received.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Appends facts and waits for the commit, on a thread that may be blocked.
    pub(super) fn append_blocking(&self, facts: Vec<Append>) -> Answer {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let sender = self.sender()?;
        let (answer, received) = oneshot::channel();
        sender
            .blocking_send(Delivery { facts, answer })
            .map_err(|_| StoreError::Closed)?;
        drop(sender);
        received.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    fn sender(&self) -> Result<mpsc::Sender<Delivery>, StoreError> {
        let sender = self.sender.lock().ok().and_then(|sender| sender.clone());
        sender.ok_or(StoreError::Closed)
    }

    /// Stops to accept, writes what was accepted, and waits for the thread.
    pub(super) fn close(&self) {
        if let Ok(mut sender) = self.sender.lock() {
            sender.take();
        }
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            // The thread has caught its own panics; there is nothing to add here.
            drop(thread.join());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

struct Worker {
    connection: Connection,
    org_id: OrgId,
    encoder: Encoder,
}

impl Worker {
    fn run(&mut self, mut receiver: mpsc::Receiver<Delivery>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut facts = first.facts.len();
            let mut group = vec![first];
            while facts < GROUP_FACTS_MAX
                && let Ok(next) = receiver.try_recv()
            {
                facts += next.facts.len();
                group.push(next);
            }
            self.serve(group);
        }
    }

    fn serve(&mut self, group: Vec<Delivery>) {
        let all: Vec<&[Append]> = group
            .iter()
            .map(|delivery| delivery.facts.as_slice())
            .collect();
        match self.transaction(&all) {
            Ok(outcomes) => {
                for (delivery, outcomes) in group.into_iter().zip(outcomes) {
                    // A sender that went away has no use for the answer.
                    drop(delivery.answer.send(Ok(outcomes)));
                }
            }
            // One delivery must not take the others down: each is tried on its own.
            Err(error) if group.len() > 1 && self.connection.is_usable() => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "store.group_failed"
                );
                for delivery in group {
                    let answer = self
                        .transaction(&[&delivery.facts])
                        .map(|outcomes| outcomes.into_iter().flatten().collect());
                    drop(delivery.answer.send(answer));
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "store.append_failed"
                );
                let mut group = group.into_iter();
                if let Some(delivery) = group.next() {
                    drop(delivery.answer.send(Err(error)));
                }
                for delivery in group {
                    drop(delivery.answer.send(Err(StoreError::NotStored)));
                }
            }
        }
    }

    fn transaction(&mut self, group: &[&[Append]]) -> Result<Vec<Vec<Outcome>>, StoreError> {
        self.connection.reconnect()?;
        self.connection.begin_write()?;
        let mut transaction = Transaction {
            connection: &mut self.connection,
            org_id: &self.org_id,
            encoder: &self.encoder,
            fresh: HashMap::new(),
            differences: Vec::new(),
        };
        let facts: Vec<&Append> = group.iter().copied().flatten().collect();
        let committed = write(&mut transaction, &facts).and_then(|outcomes| {
            transaction.connection.commit()?;
            Ok(outcomes)
        });
        match committed {
            Ok(outcomes) => {
                for (digest, content_id) in transaction.fresh {
                    self.encoder.remember(digest, content_id);
                }
                for difference in transaction.differences {
                    difference.log();
                }
                let mut outcomes = outcomes.into_iter();
                Ok(group
                    .iter()
                    .map(|facts| outcomes.by_ref().take(facts.len()).collect())
                    .collect())
            }
            Err(error) => {
                if let Err(error) = self.connection.rollback() {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "store.rollback_failed"
                    );
                }
                Err(error)
            }
        }
    }
}

/// The transaction that is being written, and what is done once it is committed.
pub(super) struct Transaction<'t> {
    pub(super) connection: &'t mut Connection,
    pub(super) org_id: &'t OrgId,
    pub(super) encoder: &'t Encoder,
    /// The content that it stored.
    pub(super) fresh: HashMap<ContentDigest, i64>,
    /// The redeliveries that say otherwise than what is stored.
    pub(super) differences: Vec<Difference>,
}
