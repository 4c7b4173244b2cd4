//! The one writer of the process: group commit.
//!
//! Whoever appends sends to one thread over a bounded channel. The thread takes what is waiting,
//! writes it as one transaction, and answers every sender after the commit. One disk flush then
//! serves all of them, and a sender that waits costs nothing but its place in the channel.

use std::fmt;
use std::sync::Mutex;
use std::thread::JoinHandle;

use svc_model::id::OrgId;
use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use super::append::{self, Afterwards, Outcome, Prepared, Transaction};
use super::claims::KnownClaims;
use super::connection::Connection;
use super::content::Encoder;

/// How often a transaction is tried that the database gives up for another.
const ATTEMPTS_MAX: usize = 4;
/// Deliveries that wait for the writer; one more waits with its sender.
const WAITING_MAX: usize = 256;
/// What one transaction weighs at most, unless one delivery weighs more: this many small rows.
const GROUP_WEIGHT_MAX: usize = 1_024;

type Answer = Result<Vec<Outcome>, StoreError>;

struct Delivery {
    facts: Vec<Prepared>,
    answer: oneshot::Sender<Answer>,
}

impl Delivery {
    fn weight(&self) -> usize {
        self.facts.iter().map(Prepared::weight).sum()
    }
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
            known_claims: KnownClaims::default(),
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
    pub(super) async fn append(&self, facts: Vec<Prepared>) -> Answer {
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
    pub(super) fn append_blocking(&self, facts: Vec<Prepared>) -> Answer {
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
    known_claims: KnownClaims,
}

impl Worker {
    fn run(&mut self, mut receiver: mpsc::Receiver<Delivery>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut weight = first.weight();
            let mut group = vec![first];
            while weight < GROUP_WEIGHT_MAX
                && let Ok(next) = receiver.try_recv()
            {
                weight += next.weight();
                group.push(next);
            }
            self.serve(group);
        }
    }

    fn serve(&mut self, group: Vec<Delivery>) {
        let all: Vec<&[Prepared]> = group
            .iter()
            .map(|delivery| delivery.facts.as_slice())
            .collect();
        match self.attempt(&all) {
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
                        .attempt(&[&delivery.facts])
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

    /// Writes a transaction, and again when the database gave it up for another server's.
    fn attempt(&mut self, group: &[&[Prepared]]) -> Result<Vec<Vec<Outcome>>, StoreError> {
        for _ in 1..ATTEMPTS_MAX {
            match self.transaction(group) {
                Err(error) if error.is_given_up() => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "store.transaction_given_up"
                    );
                }
                written => return written,
            }
        }
        self.transaction(group)
    }

    fn transaction(&mut self, group: &[&[Prepared]]) -> Result<Vec<Vec<Outcome>>, StoreError> {
        self.connection.reconnect()?;
        self.connection.begin_write()?;
        let mut transaction = Transaction {
            connection: &mut self.connection,
            org_id: &self.org_id,
            encoder: &self.encoder,
            known_claims: &self.known_claims,
            afterwards: Afterwards::default(),
        };
        let facts: Vec<&Prepared> = group.iter().copied().flatten().collect();
        let written = append::write(&mut transaction, &facts);
        let afterwards = transaction.afterwards;
        let committed = written.and_then(|outcomes| {
            self.connection.commit()?;
            Ok(outcomes)
        });
        match committed {
            Ok(outcomes) => {
                afterwards.run(&self.encoder, &mut self.known_claims);
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
