//! A read transaction. Everything in a reply comes from a single one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::threads;
use svc_engine_fact::{Lifetime, RepositoryClaim};
use svc_model::capture::CaptureTotals;
use svc_model::context::CommitMatch;
use svc_model::evidence::CallSummary;
use svc_model::facts::{
    CompatibilityDecision, CompatibilityEdit, FactCount, FactTable, FactTables, SessionFactTables,
};
use svc_model::id::{FactId, InferenceCallId, OrgId, SessionId};
use svc_model::limit::REPOSITORY_CLAIMS_MAX;
use svc_model::repository::{CommitAnchor, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant as Received;
use uuid::Uuid;

use super::bulk::{self, CallFilter, CallTally};
use super::calls::{self, CallContents, CallRow, CallScalars, ScanMeasure};
use super::clock_check::APART_MICROSECONDS_MAX;
use super::connection::Connection;
use super::content;
use super::error::corrupt;
use super::jobs::MirrorStatus;
use super::pool::{Lease, Pool};
use super::quarantine::LogEntry;
use super::value::{Row, Value};
use super::{
    StoreError, compatibility, counts, jobs, migrate, observations, organization, quarantine,
    repositories, sessions,
};

/// A read transaction over the facts of one organization, stopped at its deadline.
#[derive(Debug)]
pub struct Snapshot<'s> {
    pub(super) org_id: &'s OrgId,
    lease: Lease<'s>,
    deadline: Deadline,
    revisions: Option<Revisions>,
    /// A second connection that sees the same state, if there is one and nobody is using it.
    second: Arc<Mutex<Option<Lease<'s>>>>,
}

/// How far the logs had come that change answers about facts already stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    /// The high-water mark of the quarantine log; 0 when it is empty.
    pub quarantine: u64,
    /// The end of the erasure log.
    pub erasure: ErasureEnd,
}

/// The end of the erasure log. No two states of the log have the same end, even if the database was
/// set back and then continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureEnd {
    /// The revision of the last row; 0 when the log is empty.
    pub revision: u64,
    /// The id of that row's erasure.
    pub erasure_id: Option<Uuid>,
}

impl Revisions {
    /// Reads the revisions from a row of [`revisions!`].
    pub(super) fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            quarantine: row.count(0)?,
            erasure: ErasureEnd {
                revision: row.count(1)?,
                erasure_id: row
                    .optional_text(2)?
                    .as_deref()
                    .map(erasure_id)
                    .transpose()?,
            },
        })
    }
}

fn erasure_id(text: &str) -> Result<Uuid, StoreError> {
    Uuid::parse_str(text).map_err(|_| corrupt("erasure_log", "erasure_id"))
}

/// The index of the first further column of [`revisions!`].
pub(super) const AFTER_REVISIONS: usize = 3;

/// Selects how far the logs have come, and further columns: see [`Snapshot::read_revisions`].
macro_rules! revisions {
    ($($more:expr),*) => {
        concat!(
            "SELECT
            (SELECT COALESCE(MAX(quarantine_revision), 0) FROM quarantine_log WHERE org_id = $1),
            (SELECT COALESCE(MAX(erasure_revision), 0) FROM erasure_log WHERE (org_id || '') = $1),
            (SELECT erasure_id FROM erasure_log WHERE (org_id || '') = $1
                ORDER BY erasure_revision DESC LIMIT 1)",
            $($more),*
        )
    };
}
pub(super) use revisions;

/// A further column: the id of the last row of the quarantine log.
macro_rules! quarantine_end {
    () => {
        ", (SELECT quarantine_id FROM quarantine_log WHERE org_id = $1
            ORDER BY quarantine_revision DESC LIMIT 1)"
    };
}
pub(super) use quarantine_end;

const REVISIONS: &str = revisions!();
const QUARANTINE_END: &str = revisions!(quarantine_end!());

impl<'s> Snapshot<'s> {
    pub(super) fn open(
        pool: &'s Pool,
        org_id: &'s OrgId,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            org_id,
            lease: pool.begin_read(deadline)?,
            deadline: deadline.clone(),
            revisions: None,
            second: Arc::default(),
        })
    }

    /// Opens a snapshot over two connections, if two are available: see [`both`](Self::both).
    pub(super) fn open_twice(
        pool: &'s Pool,
        org_id: &'s OrgId,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        let (lease, second) = pool.begin_read_twice(deadline)?;
        Ok(Self {
            org_id,
            lease,
            deadline: deadline.clone(),
            revisions: None,
            second: Arc::new(Mutex::new(second)),
        })
    }

    /// Reads two things at once, each over its own connection to the same state, or one after the
    /// other if only one connection is available.
    pub fn both<A, B: Send>(
        &mut self,
        one: impl FnOnce(&mut Self) -> A,
        other: impl FnOnce(&mut Self) -> B + Send,
    ) -> (A, B) {
        let Some(lease) = self.second().take() else {
            return (one(self), other(self));
        };
        let mut beside = Self {
            org_id: self.org_id,
            lease,
            deadline: self.deadline.clone(),
            revisions: self.revisions,
            second: Arc::clone(&self.second),
        };
        let other = move || {
            let read = other(&mut beside);
            let Self { lease, second, .. } = beside;
            *second.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
            read
        };
        threads::both(|| one(self), other)
    }

    fn second(&self) -> MutexGuard<'_, Option<Lease<'s>>> {
        self.second.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the organization.
    pub const fn org_id(&self) -> &'s OrgId {
        self.org_id
    }

    /// Fails once the deadline has passed or the read was cancelled. Long derivations call this
    /// between steps.
    ///
    /// # Errors
    ///
    /// [`StoreError::Deadline`].
    pub fn check_deadline(&self) -> Result<(), StoreError> {
        Ok(self.deadline.check()?)
    }

    /// Returns the deadline of the read.
    pub const fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Returns the connection unless the deadline has passed, so that a read of many statements
    /// begins none after it.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        self.check_deadline()?;
        Ok(&mut self.lease)
    }

    /// Returns how far the quarantine log and the erasure log had come. The store is asked only
    /// once.
    ///
    /// # Errors
    ///
    /// If the store gives no answer before the deadline. This holds for every method here.
    pub fn revisions(&mut self) -> Result<Revisions, StoreError> {
        if let Some(revisions) = self.revisions {
            return Ok(revisions);
        }
        let keys = [self.org_id.as_str().into()];
        self.read_revisions(REVISIONS, &keys, |_| Ok(()))?;
        Ok(self.revisions.unwrap_or_default())
    }

    /// Runs a statement of [`revisions!`], and returns what its further columns say.
    pub(super) fn read_revisions<T: Default>(
        &mut self,
        statement: &'static str,
        keys: &[Value<'_>],
        more: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = self
            .connection()?
            .first(statement, keys, |row| Ok((Revisions::of(row)?, more(row)?)))?;
        let (revisions, more) = found.unwrap_or_default();
        self.learn_revisions(revisions);
        Ok(more)
    }

    /// Keeps the revisions that a statement of [`revisions!`] read.
    pub(super) const fn learn_revisions(&mut self, revisions: Revisions) {
        self.revisions = Some(revisions);
    }

    /// Returns the high-water mark of the quarantine log; 0 when it is empty.
    pub fn quarantine_revision(&mut self) -> Result<u64, StoreError> {
        Ok(self.revisions()?.quarantine)
    }

    /// Returns the id of the last row of the quarantine log; `None` if the log is empty. No two
    /// rows have the same id, even after the database was set back, so the id stands for the whole
    /// log. This also learns the [`revisions`](Self::revisions).
    pub fn quarantine_log_end(&mut self) -> Result<Option<String>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.read_revisions(QUARANTINE_END, &keys, |row| {
            row.optional_text(AFTER_REVISIONS)
        })
    }

    /// Returns the latest rows of the quarantine log, before a revision if one is given, oldest
    /// first, and the total number of rows.
    pub fn quarantine_log(
        &mut self,
        rows_max: u64,
        before: Option<u64>,
    ) -> Result<(Vec<LogEntry>, u64), StoreError> {
        let org_id = self.org_id;
        quarantine::log(self.connection()?, org_id, rows_max, before)
    }

    /// Returns how many calls match a filter, quarantined ones included.
    pub fn call_tally(&mut self, filter: &CallFilter) -> Result<CallTally, StoreError> {
        let org_id = self.org_id;
        bulk::tally(self.connection()?, org_id, filter)
    }

    /// Returns when the last fact was captured, if that is more than a minute after `now`. A server
    /// whose clock was ahead takes its organization with it: until that moment, facts are captured
    /// a microsecond after one another, and ranges of capture time that end now leave them out.
    pub fn captured_ahead_of(&mut self, now: Received) -> Result<Option<Received>, StoreError> {
        let org_id = self.org_id;
        let last = organization::captured_at(self.connection()?, org_id)?;
        let ahead = last.microseconds().saturating_sub(now.microseconds());
        Ok((ahead > APART_MICROSECONDS_MAX).then_some(last))
    }

    /// Returns the bound of a question that was asked for. A question up to now is about everything
    /// that is stored. So while the last fact was captured ahead of `now`, a bound that is not a
    /// minute before `now` means the minute of that fact, which does not move with every fact.
    pub fn bound(&mut self, asked: Received, now: Received) -> Result<Received, StoreError> {
        const MINUTE: i64 = APART_MICROSECONDS_MAX;
        if asked.microseconds() < now.microseconds() - MINUTE {
            return Ok(asked);
        }
        let last = self.captured_ahead_of(now)?;
        let end = last.and_then(|last| {
            let minutes = last.microseconds() / MINUTE;
            Received::from_microseconds((minutes + 1) * MINUTE)
        });
        Ok(end.map_or(asked, |end| end.max(asked)))
    }

    /// Returns the moment up to which a question is answered: the requested one, but no later than
    /// the last stored fact. Nothing stored later was captured by then, so only quarantine and
    /// erasure change the answer up to that moment.
    pub fn boundary(&mut self, as_of: Option<Received>) -> Result<Received, StoreError> {
        let org_id = self.org_id;
        let last = organization::captured_at(self.connection()?, org_id)?;
        Ok(as_of.map_or(last, |as_of| as_of.min(last)))
    }

    /// Returns whether any fact names the Session.
    pub fn session_known(&mut self, session_id: &SessionId) -> Result<bool, StoreError> {
        let org_id = self.org_id;
        sessions::known(self.connection()?, org_id, session_id)
    }

    /// Returns those of these Sessions that a fact names, the one with the latest fact first, and
    /// Sessions of one moment by their ids.
    pub fn latest_first<'i>(
        &mut self,
        sessions: &'i [SessionId],
    ) -> Result<Vec<&'i SessionId>, StoreError> {
        let org_id = self.org_id;
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        let times = sessions::last_observed(self.connection()?, org_id, &keys)?;
        let known = sessions.iter();
        let known = known.filter_map(|session| Some((*times.get(session.as_str())?, session)));
        let mut known: Vec<(i64, &SessionId)> = known.collect();
        known.sort_unstable_by_key(|(time, session)| (std::cmp::Reverse(*time), *session));
        Ok(known.into_iter().map(|(_, session)| session).collect())
    }

    /// Returns the marks of these Sessions, except those that no fact names. As long as a Session's
    /// mark is unchanged, so are its facts.
    pub fn marks_of_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<String, i64>, StoreError> {
        let org_id = self.org_id;
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        sessions::marks(self.connection()?, org_id, &keys)
    }

    /// Returns what arrived, by source, as far as it is counted in the store.
    pub fn capture_totals(&mut self) -> Result<CaptureTotals, StoreError> {
        let org_id = self.org_id;
        organization::captured(self.connection()?, org_id)
    }

    /// Returns how many Sessions are known.
    pub fn session_count(&mut self) -> Result<u64, StoreError> {
        let org_id = self.org_id;
        Ok(organization::counts(self.connection()?, org_id)?.0)
    }

    /// Returns the counts of every kind of fact.
    pub fn fact_counts(&mut self) -> Result<FactTables, StoreError> {
        let org_id = self.org_id;
        Ok(organization::counts(self.connection()?, org_id)?.1)
    }

    /// Returns whether the schema has a table. An older schema may lack one.
    pub fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        migrate::has_table(self.connection()?, name)
    }

    /// Returns the counts of the facts of a Session.
    pub fn session_fact_counts(
        &mut self,
        session_id: &SessionId,
    ) -> Result<SessionFactTables, StoreError> {
        let org_id = self.org_id;
        counts::session_facts(self.connection()?, org_id, session_id)
    }

    /// Returns the counts of some kinds of fact of a Session, in their order. Each kind must name a
    /// Session.
    pub fn session_fact_counts_of<const KINDS: usize>(
        &mut self,
        session_id: &SessionId,
        kinds: [FactTable; KINDS],
    ) -> Result<[FactCount; KINDS], StoreError> {
        let org_id = self.org_id;
        counts::of_session(self.connection()?, org_id, session_id, kinds)
    }

    /// Returns the counts of one kind of fact of a Session.
    pub fn session_fact_count(
        &mut self,
        session_id: &SessionId,
        table: FactTable,
    ) -> Result<FactCount, StoreError> {
        let org_id = self.org_id;
        let [count] = counts::of_session(self.connection()?, org_id, session_id, [table])?;
        Ok(count)
    }

    /// Returns the number and size of the visible calls of a Session.
    pub fn call_measure(&mut self, session_id: &SessionId) -> Result<ScanMeasure, StoreError> {
        let org_id = self.org_id;
        calls::measure(self.connection()?, org_id, session_id)
    }

    /// Returns the visible calls of a Session by observation time, then id.
    pub fn call_summaries(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallSummary>, StoreError> {
        let org_id = self.org_id;
        calls::summaries(self.connection()?, org_id, session_id)
    }

    /// Returns the scalars of the visible calls of a Session, in the same order.
    pub fn call_scalars(&mut self, session_id: &SessionId) -> Result<Vec<CallScalars>, StoreError> {
        let org_id = self.org_id;
        calls::scalars(self.connection()?, org_id, session_id)
    }

    /// Returns the contents of the visible calls of a Session, in the same order.
    pub fn call_contents(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallContents>, StoreError> {
        let org_id = self.org_id;
        calls::contents(self.connection()?, org_id, session_id)
    }

    /// Returns the output contents of the visible calls of a Session, in the same order.
    pub fn call_outputs(&mut self, session_id: &SessionId) -> Result<Vec<Vec<i64>>, StoreError> {
        let org_id = self.org_id;
        calls::outputs(self.connection()?, org_id, session_id)
    }

    /// Returns a call if it belongs to this Session and is visible. The answer is the same for a
    /// call that is absent, quarantined, or of another organization or Session.
    pub fn call(
        &mut self,
        session_id: &SessionId,
        inference_call_id: &InferenceCallId,
    ) -> Result<Option<CallRow>, StoreError> {
        let org_id = self.org_id;
        calls::one(self.connection()?, org_id, session_id, inference_call_id)
    }

    /// Returns the raw payload of a call as it was captured, with credentials redacted. No route
    /// returns it.
    pub fn call_raw(&mut self, inference_call_id: FactId) -> Result<Option<Vec<u8>>, StoreError> {
        let org_id = self.org_id;
        calls::raw(self.connection()?, org_id, inference_call_id)
    }

    /// Returns the canonical bytes of contents in all.
    pub fn content_bytes(&mut self, content_ids: &[i64]) -> Result<u64, StoreError> {
        content::bytes(self.connection()?, content_ids)
    }

    /// Calls `each` with the id and the canonical bytes of every content, in any order.
    pub fn content(
        &mut self,
        content_ids: &[i64],
        each: impl FnMut(i64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        content::read(self.connection()?, content_ids, each)
    }

    /// Returns the visible decisions of a Session by time, then id.
    pub fn decisions(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CompatibilityDecision>, StoreError> {
        let org_id = self.org_id;
        compatibility::decisions(self.connection()?, org_id, session_id)
    }

    /// Returns the visible edit observations of a Session by time, then id.
    pub fn edit_observations(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CompatibilityEdit>, StoreError> {
        let org_id = self.org_id;
        compatibility::edits(self.connection()?, org_id, session_id)
    }

    /// Returns the observed link between a Session and a commit, if it and its push are visible.
    pub fn commit_match(
        &mut self,
        session_id: &SessionId,
        anchor: &CommitAnchor,
    ) -> Result<Option<CommitMatch>, StoreError> {
        let org_id = self.org_id;
        observations::commit_match(self.connection()?, org_id, session_id, anchor)
    }

    /// Returns the claims that visible facts received by the boundary prove: those on these names,
    /// those of the repositories that have one of these names, and those of these repositories.
    /// They are distinct and sorted. If there are more than [`REPOSITORY_CLAIMS_MAX`], one more
    /// than that is returned.
    pub fn repository_claims(
        &mut self,
        names: &BTreeSet<RepositoryName>,
        repositories: &BTreeSet<RepositoryIdentity>,
        boundary: Received,
    ) -> Result<Vec<RepositoryClaim>, StoreError> {
        let org_id = self.org_id;
        repositories::claims(
            self.connection()?,
            org_id,
            names,
            repositories,
            boundary,
            REPOSITORY_CLAIMS_MAX,
        )
    }

    /// Returns whether a visible fact that was received by the boundary has this repository name
    /// and no identity.
    pub fn is_repository_named(
        &mut self,
        name: &RepositoryName,
        boundary: Received,
    ) -> Result<bool, StoreError> {
        let org_id = self.org_id;
        repositories::is_named(self.connection()?, org_id, name, boundary)
    }

    /// Returns when the last visible push of a repository was received.
    pub fn last_push_at(&mut self, lifetime: &Lifetime) -> Result<Option<Received>, StoreError> {
        let org_id = self.org_id;
        jobs::last_push_at(self.connection()?, org_id, lifetime)
    }

    /// Returns the jobs of the mirrors as they stand at a moment, by repository.
    pub fn mirrors(&mut self, now: Received) -> Result<Vec<MirrorStatus>, StoreError> {
        let org_id = self.org_id;
        jobs::list(self.connection()?, org_id, now)
    }
}

#[cfg(test)]
impl Snapshot<'_> {
    /// Returns a visible fact, with all its members.
    pub(crate) fn fact<F: super::table::Record>(
        &mut self,
        fact_id: FactId,
    ) -> Result<Option<F>, StoreError> {
        let org_id = self.org_id;
        let keys = [org_id.as_str().into(), fact_id.into()];
        let by_id = format!("{} AND f.{} = $2", F::TABLE.select, F::TABLE.members[0]);
        self.connection()?.first(&by_id, &keys, |row| {
            F::read(&mut super::column::Columns::of(
                row,
                F::TABLE.name,
                F::TABLE.members,
            ))
        })
    }
}
