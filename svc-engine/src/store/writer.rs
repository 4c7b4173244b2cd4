//! The one writer of the process: group commit.
//!
//! Every write is a command that is sent to one thread over a bounded channel. The thread takes all
//! waiting commands, writes them as one transaction, and answers every sender after the commit. So
//! one disk flush serves all of them, and a waiting sender costs only its place in the channel.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use svc_model::capture::CaptureTotals;
use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use tokio::sync::{mpsc, oneshot};

use super::append::{self, Afterwards, Appending, Outcome, PreparedDelivery};
use super::claims::KnownClaims;
use super::connection::Connection;
use super::content::Encoder;
use super::organization::{self, Moments};
use super::session_claims::KnownSessionClaims;
use super::sessions::Numbers;
use super::transaction::{self, Changed, Transaction, Unwritten};
use super::witness::{Epoch, Witness};
use super::{Obstacle, StoreError};
use crate::deadline::Deadline;

/// How often a transaction is tried if the database aborts it in favour of another.
const ATTEMPTS_MAX: usize = 4;
/// Commands that wait for the writer. Further commands wait with their senders.
const WAITING_MAX: usize = 256;
/// The maximum weight of a transaction, in small rows. A single delivery may weigh more.
const GROUP_WEIGHT_MAX: usize = 1_024;

/// What arrived but is not yet counted in the store, because it stored nothing.
#[derive(Debug, Default)]
pub(super) struct Uncounted(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    totals: CaptureTotals,
    /// What the writer has taken and not yet written.
    taken: CaptureTotals,
}

impl Uncounted {
    pub(super) fn add(&self, more: &CaptureTotals) {
        self.lock().totals.add(more);
    }

    /// Returns whether everything is counted in the store. What the writer has taken is not counted
    /// until it is committed.
    pub(super) fn is_empty(&self) -> bool {
        let waiting = self.lock();
        waiting.totals.is_empty() && waiting.taken.is_empty()
    }

    pub(super) fn totals(&self) -> CaptureTotals {
        self.lock().totals.clone()
    }

    fn take(&self) -> CaptureTotals {
        let mut waiting = self.lock();
        waiting.taken = std::mem::take(&mut waiting.totals);
        waiting.taken.clone()
    }

    /// Records that what was taken is committed, except for the counts that are left for later.
    fn committed(&self, later: Option<&CaptureTotals>) {
        let mut waiting = self.lock();
        waiting.taken = CaptureTotals::default();
        if let Some(later) = later {
            waiting.totals.add(later);
        }
    }

    /// Lets what was taken wait again, because nothing was written.
    fn put_back(&self) {
        let mut waiting = self.lock();
        let taken = std::mem::take(&mut waiting.taken);
        waiting.totals.add(&taken);
    }

    /// Adding cannot fail half-way, so a panic elsewhere does not corrupt the counts.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request to the writer.
enum Command {
    /// Facts. They are written together with the facts of others.
    Append(Append),
    /// Anything else. It is written after the facts.
    Work(Box<dyn Work>),
}

struct Append {
    delivery: PreparedDelivery,
    outcomes: Vec<Outcome>,
    answer: oneshot::Sender<Result<Vec<Outcome>, StoreError>>,
}

/// Work in the writer's transaction. It may be tried several times.
trait Work: Send {
    fn write(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError>;

    /// Answers the sender, after the transaction was committed or given up.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Asked<T, F> {
    work: F,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Work for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send,
{
    fn write(&mut self, transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
        self.result = Some((self.work)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match failure {
            None => self.result.ok_or(StoreError::NotStored),
            Some(error) => Err(error),
        };
        // If the sender is gone, nobody needs the answer.
        drop(self.answer.send(answer));
    }
}

impl Command {
    fn weight(&self) -> usize {
        match self {
            Self::Append(append) => append.delivery.weight(),
            Self::Work(_) => 1,
        }
    }

    /// Returns whether the command stores facts of a kind.
    fn has(&self, table: FactTable) -> bool {
        match self {
            Self::Append(append) => append.delivery.has(table),
            Self::Work(_) => false,
        }
    }

    /// Answers the sender, after the transaction was committed or given up.
    fn answer(self, failure: Option<StoreError>) {
        match self {
            Self::Append(append) => {
                let answer = match failure {
                    None => Ok(append.outcomes),
                    Some(error) => Err(error),
                };
                // If the sender is gone, nobody needs the answer.
                drop(append.answer.send(answer));
            }
            Self::Work(work) => work.answer(failure),
        }
    }
}

/// The sending end of the writer.
pub(super) struct Writer {
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
    pub(super) fn start(
        connection: Connection,
        org_id: OrgId,
        moments: Moments,
        encoder: Encoder,
        uncounted: Arc<Uncounted>,
        obstacle: Option<Obstacle>,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let obstacle = Arc::new(Mutex::new(obstacle));
        let mut worker = Worker {
            connection,
            org_id,
            moments,
            encoder,
            uncounted,
            known_claims: KnownClaims::default(),
            known_session_claims: KnownSessionClaims::default(),
            locked: Vec::new(),
            epoch: None,
            unsettled: None,
            obstacle: Arc::clone(&obstacle),
        };
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
    pub(super) async fn append(
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
    pub(super) fn append_blocking(
        &self,
        delivery: PreparedDelivery,
    ) -> Result<Vec<Outcome>, StoreError> {
        if delivery.is_empty() {
            return Ok(Vec::new());
        }
        let (command, answer) = appending(delivery);
        self.send_blocking(command, answer)
    }

    /// Does work in the writer's transaction and waits for the commit. The work may be tried several
    /// times.
    pub(super) async fn run<T: Send + 'static>(
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
    pub(super) fn run_blocking<T: Send + 'static>(
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
    pub(super) fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns what kept the last transaction from being written that only the operator of the database
    /// can remove.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many commands wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let sender = self.sender();
        sender.map_or(0, |sender| sender.max_capacity() - sender.capacity())
    }

    /// Returns whether commands are accepted.
    #[cfg(test)]
    pub(super) fn accepts(&self) -> bool {
        self.sender().is_ok()
    }

    /// Stops accepting commands, writes those that were accepted, and waits for the thread.
    pub(super) fn close(&self) {
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

fn appending(
    delivery: PreparedDelivery,
) -> (Command, oneshot::Receiver<Result<Vec<Outcome>, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let outcomes = Vec::new();
    let append = Append {
        delivery,
        outcomes,
        answer,
    };
    (Command::Append(append), answered)
}

fn working<T: Send + 'static>(
    work: impl FnMut(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
) -> (Command, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let work = Box::new(Asked {
        work,
        result: None,
        answer,
    });
    (Command::Work(work), answered)
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// The database took it or refused it.
    Answered,
    /// The database gave no answer in time.
    Hung,
}

struct Worker {
    connection: Connection,
    org_id: OrgId,
    moments: Moments,
    encoder: Encoder,
    uncounted: Arc<Uncounted>,
    known_claims: KnownClaims,
    known_session_claims: KnownSessionClaims,
    /// The tables that were locked by somebody else when they were last written.
    locked: Vec<FactTable>,
    /// Nothing before the first transaction.
    epoch: Option<Epoch>,
    /// What the last transaction led to, if it is not known whether the transaction was committed.
    unsettled: Option<Witness>,
    /// What the last transaction met.
    obstacle: Arc<Mutex<Option<Obstacle>>>,
}

impl Worker {
    fn run(&mut self, mut receiver: mpsc::Receiver<Command>) {
        while let Some(first) = receiver.blocking_recv() {
            let mut weight = first.weight();
            let mut group = vec![first];
            while weight < GROUP_WEIGHT_MAX
                && let Ok(next) = receiver.try_recv()
            {
                weight += next.weight();
                group.push(next);
            }
            if self.serve(group) == Served::Hung {
                // Those who wait have waited as long. They learn it now, and not one group after another.
                while let Ok(waiting) = receiver.try_recv() {
                    waiting.answer(Some(StoreError::NotStored));
                }
            }
        }
    }

    fn serve(&mut self, mut group: Vec<Command>) -> Served {
        let failure = self.write(&mut group).err();
        let failure = failure.map(|error| self.connection.explained(error));
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) =
            failure.as_ref().and_then(StoreError::obstacle);
        match failure {
            // One delivery must not make the others fail, so each is tried on its own. An error
            // that is not in the data would come back with every attempt.
            Some(error) if group.len() > 1 && error.is_of_data() => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "store.group_failed"
                );
                for command in group {
                    self.serve(vec![command]);
                }
                Served::Answered
            }
            Some(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "store.append_failed"
                );
                let served = match error {
                    StoreError::Deadline | StoreError::Unreachable => Served::Hung,
                    _ => Served::Answered,
                };
                // The deadline is the writer's. Its senders asked for no more than they may.
                let mut error = Some(error).filter(|it| !matches!(it, StoreError::Deadline));
                for command in group {
                    command.answer(error.take().or(Some(StoreError::NotStored)));
                }
                served
            }
            None => {
                for command in group {
                    command.answer(None);
                }
                Served::Answered
            }
        }
    }

    /// Writes a transaction, and tries again if the same transaction may then succeed: the database
    /// aborted it in favour of another server's, was set back, lost content to an erasure, or the
    /// connection was lost. Whatever is tried again was not committed.
    fn write(&mut self, group: &mut Vec<Command>) -> Result<(), StoreError> {
        let deadline = transaction::deadline();
        let (mut attempts, mut reconnected, mut set_back) = (1, false, false);
        loop {
            let table = Cell::new(None);
            let error = match self.attempt(group, &table, &deadline) {
                Ok(()) => {
                    let written = |table: &FactTable| group.iter().any(|it| it.has(*table));
                    self.locked.retain(|table| !written(table));
                    return Ok(());
                }
                // Whoever delivers again finds what was committed.
                Err(Unwritten::Unknown(error, ())) => return Err(error),
                Err(Unwritten::Nothing(error)) => error,
            };
            let again = if error.is_busy()
                && let Some(table) = table.get()
            {
                // A table that somebody has locked delays only those who need it.
                let all = std::mem::take(group).into_iter();
                let (delayed, others): (Vec<Command>, Vec<Command>) =
                    all.partition(|command| command.has(table));
                *group = others;
                for command in delayed {
                    command.answer(Some(StoreError::NotStored));
                }
                tracing::warn!(%table, "store.table_locked");
                if !self.locked.contains(&table) {
                    self.locked.push(table);
                }
                true
            } else if error.is_given_up() {
                attempts += 1;
                attempts <= ATTEMPTS_MAX
            } else if matches!(error, StoreError::Erased) {
                self.forget();
                attempts += 1;
                attempts <= ATTEMPTS_MAX
            } else if matches!(error, StoreError::SetBack) {
                self.forget();
                tracing::warn!("store.set_back");
                !std::mem::replace(&mut set_back, true)
            } else if matches!(error, StoreError::Unreachable) {
                // Connecting has just been tried.
                false
            } else if error.is_connection_lost() || !self.connection.is_usable() {
                !std::mem::replace(&mut reconnected, true) && self.connection.reopen().is_ok()
            } else {
                false
            };
            if !again {
                return Err(error);
            }
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "store.transaction_repeated"
            );
        }
    }

    /// Writes one transaction. A panic fails the commands of this group only.
    fn attempt(
        &mut self,
        group: &mut [Command],
        table: &Cell<Option<FactTable>>,
        deadline: &Deadline,
    ) -> Result<(), Unwritten<()>> {
        if group.is_empty() {
            return Ok(());
        }
        self.connection.reconnect().map_err(Unwritten::Nothing)?;
        let written = catch_unwind(AssertUnwindSafe(|| {
            self.transaction(group, table, deadline)
        }));
        written.unwrap_or_else(|_| {
            tracing::error!("store.writer_panicked");
            self.forget();
            self.uncounted.put_back();
            // The connection may be in any state, so it is replaced.
            drop(self.connection.rollback());
            if let Err(error) = self.connection.reopen() {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "store.reopen_failed"
                );
            }
            Err(Unwritten::Nothing(StoreError::NotStored))
        })
    }

    fn transaction(
        &mut self,
        group: &mut [Command],
        table: &Cell<Option<FactTable>>,
        deadline: &Deadline,
    ) -> Result<(), Unwritten<()>> {
        self.settle(deadline).map_err(Unwritten::Nothing)?;
        if self.epoch.as_ref().is_some_and(Epoch::is_used_up) {
            self.forget();
        }
        let (mut appends, mut works) = (Vec::new(), Vec::new());
        for command in group {
            match command {
                Command::Append(append) => appends.push(append),
                Command::Work(work) => works.push(work),
            }
        }
        // The counts of deliveries that stored nothing are written with those that store something.
        let mut counted = self.uncounted.take();
        let mut deliveries: Vec<&mut PreparedDelivery> = Vec::with_capacity(appends.len());
        deliveries.extend(appends.iter_mut().map(|append| &mut append.delivery));
        let epoch = &mut self.epoch;
        let work = |transaction: &mut Transaction<'_>| {
            let epoch = match epoch {
                Some(kept) if !kept.is_over() => kept,
                // The next one is later than this one, also if it cannot begin now.
                previous => {
                    let next = Epoch::begin(transaction.connection, previous.as_ref())?;
                    previous.insert(next)
                }
            };
            transaction.witness = Some(epoch.witness());
            let mut appending = Appending {
                transaction,
                encoder: &self.encoder,
                known_claims: &self.known_claims,
                known_session_claims: &self.known_session_claims,
                epoch,
                table,
                locked: &self.locked,
                retained_calls: Vec::new(),
                session_numbers: Numbers::default(),
                afterwards: Afterwards::default(),
            };
            let outcomes = append::write(&mut appending, &mut deliveries)?;
            let Appending {
                transaction,
                afterwards,
                ..
            } = appending;
            // This comes after the lock that everybody takes first, so nobody waits in a circle.
            transaction.organization()?;
            for work in &mut works {
                work.write(transaction)?;
            }
            for (delivery, outcomes) in deliveries.iter().zip(&outcomes) {
                delivery.count(outcomes, &mut counted);
            }
            transaction.add_captured(&counted)?;
            Ok((outcomes, afterwards, counted))
        };
        let written = transaction::write(
            &mut self.connection,
            &self.org_id,
            self.moments,
            deadline,
            work,
        );
        let ((outcomes, afterwards, counted), changed) = match written {
            Ok(written) => written,
            Err(Unwritten::Unknown(error, written @ (_, Changed::Yes))) => {
                self.unsettled = self.epoch.as_ref().map(|it| it.witness().committed());
                let connected = self.connection.reconnect();
                match connected.and_then(|()| self.settle(deadline)) {
                    Ok(true) => written,
                    Ok(false) => return Err(Unwritten::Nothing(error)),
                    Err(_) => {
                        self.forget();
                        return Err(Unwritten::Unknown(error, ()));
                    }
                }
            }
            // No row tells of it, because it stored no fact and counted nothing.
            Err(Unwritten::Unknown(error, (_, Changed::No))) => {
                self.uncounted.put_back();
                return Err(Unwritten::Unknown(error, ()));
            }
            Err(Unwritten::Nothing(error)) => {
                self.uncounted.put_back();
                return Err(Unwritten::Nothing(error));
            }
        };
        let later = (changed == Changed::No).then_some(&counted);
        self.uncounted.committed(later);
        afterwards.log();
        // What is remembered from here on belongs to the witness of this commit.
        if changed == Changed::Yes {
            if let Some(epoch) = &mut self.epoch {
                epoch.committed();
            }
            afterwards.remember(
                &self.encoder,
                &mut self.known_claims,
                &mut self.known_session_claims,
            );
        }
        for (append, outcomes) in appends.iter_mut().zip(outcomes) {
            append.outcomes = outcomes;
        }
        Ok(())
    }

    /// Finds out whether the last transaction was committed, if that is not known. Returns whether it was
    /// unknown and committed.
    fn settle(&mut self, deadline: &Deadline) -> Result<bool, StoreError> {
        let Some(witness) = self.unsettled else {
            return Ok(false);
        };
        self.connection.begin_write(deadline)?;
        let committed = organization::is_committed(&mut self.connection, &self.org_id, witness);
        // The transaction has changed nothing.
        drop(self.connection.rollback());
        let committed = committed?;
        self.unsettled = None;
        if committed {
            self.uncounted.committed(None);
        } else {
            self.uncounted.put_back();
        }
        Ok(committed)
    }

    /// Forgets everything remembered about the database, and continues under a new epoch.
    fn forget(&mut self) {
        self.encoder.known().forget();
        self.known_claims = KnownClaims::default();
        self.known_session_claims = KnownSessionClaims::default();
        if let Some(epoch) = &mut self.epoch {
            epoch.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_model::capture::CaptureSource;
    use svc_model::time::Instant;

    use super::*;

    #[test]
    fn what_is_being_written_is_not_counted_yet() {
        let at = Instant::from_microseconds(1).unwrap();
        let delivery = CaptureTotals::delivery(CaptureSource::Gateway, at);
        let uncounted = Uncounted::default();
        assert!(uncounted.is_empty());
        uncounted.take();
        assert!(uncounted.is_empty());
        uncounted.add(&delivery);
        uncounted.take();
        assert!(!uncounted.is_empty());
        uncounted.put_back();
        assert!(!uncounted.is_empty());
        uncounted.take();
        uncounted.committed(Some(&delivery));
        assert_eq!(uncounted.totals(), delivery);
        uncounted.take();
        uncounted.committed(None);
        assert!(uncounted.is_empty());
    }
}
