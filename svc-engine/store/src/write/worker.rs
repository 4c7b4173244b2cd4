//! The writing thread: which commands form a transaction, what is tried again, and who gets which
//! answer.
//!
//! What fails because of the data is tried delivery by delivery. A database that is busy, full or
//! out of reach is not: it would fail as often as it is tried. After a lost connection, the
//! transaction is written once more on a new one; facts that are stored are found by their natural
//! keys. Other work is repeated only if it is certain that nothing was committed.
//!
//! A panic costs its group the transaction; the connection is opened again and the writer goes on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use svc_engine_fact::deadline::Deadline;
use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use tokio::sync::mpsc;

use super::append::PreparedDelivery;
use super::appending::{Afterwards, Appending, StagedCalls};
use super::claims::KnownClaims;
use super::clock_check::ClockCheck;
use super::command::Command;
use super::content::Encoder;
use super::session_claims::KnownSessionClaims;
use super::sessions::Numbers;
use super::transaction::{Changed, Moments, Transaction, Unwritten};
use super::uncounted::Uncounted;
use super::witness::{Epoch, Witness};
use super::{append, organization, transaction};
use crate::sql::connection::Connection;
use crate::sql::error::{Obstacle, StoreError};

/// How often a transaction is tried if the database aborts it in favour of another.
const ATTEMPTS_MAX: usize = 4;
/// The maximum weight of a transaction, in small rows. A single delivery may weigh more.
const GROUP_WEIGHT_MAX: usize = 1_024;

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// The database took it or refused it.
    Answered,
    /// The database gave no answer in time.
    Hung,
}

/// The receiving end of the channel, which writes.
pub(crate) struct Worker {
    connection: Connection,
    org_id: OrgId,
    moments: Moments,
    clock: Option<Arc<ClockCheck>>,
    encoder: Encoder,
    uncounted: Arc<Uncounted>,
    known_claims: KnownClaims,
    known_session_claims: KnownSessionClaims,
    /// The tables that were locked by somebody else when they were last written.
    locked: Vec<FactTable>,
    /// `None` before the first transaction.
    epoch: Option<Epoch>,
    /// The witness that the last transaction led to, if it is not known whether it was committed.
    unsettled: Option<Witness>,
    /// The obstacle that the last transaction met.
    obstacle: Arc<Mutex<Option<Obstacle>>>,
}

impl Worker {
    pub(crate) fn new(
        connection: Connection,
        org_id: OrgId,
        (moments, clock): (Moments, Option<Arc<ClockCheck>>),
        encoder: Encoder,
        uncounted: Arc<Uncounted>,
        obstacle: Arc<Mutex<Option<Obstacle>>>,
    ) -> Self {
        Self {
            connection,
            org_id,
            moments,
            clock,
            encoder,
            uncounted,
            known_claims: KnownClaims::default(),
            known_session_claims: KnownSessionClaims::default(),
            locked: Vec::new(),
            epoch: None,
            unsettled: None,
            obstacle,
        }
    }

    /// Writes what arrives, group by group, until the channel is closed and empty.
    pub(crate) fn run(&mut self, mut receiver: mpsc::Receiver<Command>) {
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
                // Those who wait now have waited as long. They learn it at once, and not one group
                // after another. Whoever comes later is a new attempt.
                for _ in 0..receiver.len() {
                    if let Ok(waiting) = receiver.try_recv() {
                        waiting.answer(Some(StoreError::NotStored));
                    }
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
                let mut served = Served::Answered;
                for command in group {
                    if served == Served::Hung {
                        command.answer(Some(StoreError::NotStored));
                    } else {
                        served = self.serve(vec![command]);
                    }
                }
                served
            }
            Some(error) => {
                // Whoever answers a sender logs it, once, with the sender's request.
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "store.append_failed"
                );
                let served = match error {
                    StoreError::Deadline | StoreError::Unreachable => Served::Hung,
                    _ => Served::Answered,
                };
                // The deadline is the writer's own: its senders did not ask for too much.
                let is_shared = group.len() > 1 || matches!(error, StoreError::Deadline);
                if is_shared {
                    let cause = Arc::new(error);
                    for command in group {
                        let cause = Arc::clone(&cause);
                        command.answer(Some(StoreError::TransactionFailed(cause)));
                    }
                } else if let Some(command) = group.pop() {
                    command.answer(Some(error));
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
                    let written =
                        |table: &FactTable| group.iter().any(|command| command.has(*table));
                    self.locked.retain(|table| !written(table));
                    return Ok(());
                }
                // A sender that delivers again finds what was committed.
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
            } else if error.is_given_up() || matches!(error, StoreError::SameCall) {
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
                // The next epoch is later than this one, even if it cannot begin now.
                previous => {
                    let next = Epoch::begin(transaction.connection, previous.as_ref())?;
                    previous.insert(next)
                }
            };
            transaction.witness = Some(epoch.witness());
            transaction.clock.clone_from(&self.clock);
            let mut appending = Appending {
                transaction,
                encoder: &self.encoder,
                known_claims: &self.known_claims,
                known_session_claims: &self.known_session_claims,
                epoch,
                table,
                locked: &self.locked,
                calls: StagedCalls::default(),
                session_numbers: Numbers::default(),
                afterwards: Afterwards::default(),
            };
            let outcomes = append::write(&mut appending, &mut deliveries)?;
            let Appending {
                transaction,
                afterwards,
                ..
            } = appending;
            // The work comes after the lock that everybody takes first, so nobody waits in a
            // circle.
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
                self.unsettled = self.epoch.as_ref().map(|epoch| epoch.witness().committed());
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
            // No row tells whether it was committed, because it stored no fact and counted nothing.
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

    /// Finds out whether the last transaction was committed, if that is not known. Returns whether
    /// it was unknown and committed.
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
