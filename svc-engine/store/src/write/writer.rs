//! The one writer of the process: group commit.
//!
//! Every write is a command that is sent to one thread over a bounded channel. The thread takes all
//! waiting commands, writes them as one transaction, and answers every sender after the commit. So
//! one disk flush serves all of them, and a waiting sender costs only its place in the channel.
//!
//! The group is what was waiting while the last one was written, so it grows with the load and
//! never delays a lone sender: up to 128 calls or 1,024 small facts.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use svc_model::id::OrgId;
use tokio::sync::{mpsc, oneshot};

use super::append::PreparedDelivery;
use super::clock_check::ClockCheck;
use super::command::{Command, appending, working};
use super::content::Encoder;
use super::outcome::Outcome;
use super::transaction::{Moments, Transaction};
use super::uncounted::Uncounted;
use super::worker::Worker;
use crate::sql::connection::Connection;
use crate::sql::error::{Obstacle, StoreError};

/// Commands that wait for the writer. Further commands wait with their senders.
const WAITING_MAX: usize = 256;

/// The sending end of the writer.
pub(crate) struct Writer {
    sender: Mutex<Option<mpsc::Sender<Command>>>,
    obstacle: Arc<Mutex<Option<Obstacle>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Starts the writer on a thread of its own.
    pub(crate) fn start(
        connection: Connection,
        org_id: OrgId,
        moments: (Moments, Option<Arc<ClockCheck>>),
        encoder: Encoder,
        uncounted: Arc<Uncounted>,
        obstacle: Option<Obstacle>,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let obstacle = Arc::new(Mutex::new(obstacle));
        let mut worker = Worker::new(
            connection,
            org_id,
            moments,
            encoder,
            uncounted,
            Arc::clone(&obstacle),
        );
        let thread = std::thread::Builder::new()
            .name("svc-writer".to_owned())
            .spawn(move || worker.run(receiver))?;
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            obstacle,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Appends a delivery and waits for the commit.
    pub(crate) async fn append(
        &self,
        delivery: PreparedDelivery,
    ) -> Result<Vec<Outcome>, StoreError> {
        if delivery.is_empty() {
            return Ok(Vec::new());
        }
        let (command, answer) = appending(delivery);
        let sender = self.sender()?;
        let sent = sender.send(command).await;
        sent.map_err(|_| StoreError::Closed)?;
        drop(sender);
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Appends a delivery and waits for the commit, on a thread that may block.
    pub(crate) fn append_blocking(
        &self,
        delivery: PreparedDelivery,
    ) -> Result<Vec<Outcome>, StoreError> {
        if delivery.is_empty() {
            return Ok(Vec::new());
        }
        let (command, answer) = appending(delivery);
        self.send_blocking(command, answer)
    }

    /// Does work in the writer's transaction and waits for the commit. The work may be tried
    /// several times.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (command, answer) = working(work);
        let sender = self.sender()?;
        let sent = sender.send(command).await;
        sent.map_err(|_| StoreError::Closed)?;
        drop(sender);
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Like [`Writer::run`], on a thread that may block.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (command, answer) = working(work);
        self.send_blocking(command, answer)
    }

    fn send_blocking<T>(
        &self,
        command: Command,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let sender = self.sender()?;
        let sent = sender.blocking_send(command);
        sent.map_err(|_| StoreError::Closed)?;
        drop(sender);
        answer.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    fn sender(&self) -> Result<mpsc::Sender<Command>, StoreError> {
        let sender = self.sender.lock().ok().and_then(|sender| sender.clone());
        sender.ok_or(StoreError::Closed)
    }

    /// Returns whether the writing thread still runs.
    pub(crate) fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns what kept the last transaction from being written, if only the operator of the
    /// database can remove it.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many commands wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let sender = self.sender();
        sender.map_or(0, |sender| sender.max_capacity() - sender.capacity())
    }

    /// Returns whether commands are accepted.
    #[cfg(test)]
    pub(crate) fn accepts(&self) -> bool {
        self.sender().is_ok()
    }

    /// Stops accepting commands, writes those that were accepted, and waits for the thread.
    pub(crate) fn close(&self) {
        if let Ok(mut sender) = self.sender.lock() {
            sender.take();
        }
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            // The thread has caught its own panics, so there is nothing to add here.
            drop(thread.join());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}
