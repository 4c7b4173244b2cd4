//! Follows the facts: new calls in the order in which they were stored, and what quarantine,
//! release and erasure change about stored ones.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use svc_engine_fact::deadline::Deadline;
use svc_engine_store::{Snapshot, Store, tables_with_files};
use svc_model::facts::FactTable;
use svc_model::id::FactId;
use uuid::Uuid;

use crate::changed_files::{ChangedFiles, followed_tables};
use crate::error::IndexError;
use crate::file::{self, IndexState, SearchFile};
use crate::index::{SearchPlace, Shared, lock};
use crate::writer::IndexWriter;

/// Calls of one transaction.
const CALLS_AT_ONCE: u64 = 1_024;
/// Rows of the quarantine log of one transaction.
const CHANGES_AT_ONCE: u64 = 1_000;
/// Facts that are read at once.
const FACTS_AT_ONCE: u64 = 1_000;
/// Passages by which an index has to grow before its pieces are merged.
const GROWTH_MIN: i64 = 1_000;
/// How long the index waits for more news, once there are some.
const GATHERING: Duration = Duration::from_millis(100);
/// How long the index gives way after a step, while facts arrive.
const GIVEN_WAY_MAX: Duration = Duration::from_secs(1);
/// How long one step may read the store.
const STEP_MAX: Duration = Duration::from_mins(1);
/// How long the ids of facts that are stored at the same time may be apart, in milliseconds.
const APART_MILLISECONDS: u64 = 120_000;

/// What is left to do after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// More calls wait.
    Calls,
    /// Nothing.
    Nothing,
}

/// The thread that writes the index.
pub(crate) struct Follower {
    place: SearchPlace,
    store: Arc<Store>,
    changed_files: Box<dyn ChangedFiles>,
    shared: Arc<Shared>,
    file: Option<Arc<SearchFile>>,
    writer: Option<IndexWriter>,
    /// The next part when the log of changes was last emptied.
    emptied_at: i64,
    /// The next part when the pieces of the index were last merged.
    merged_at: i64,
}

impl Follower {
    pub(crate) fn new(
        place: SearchPlace,
        store: Arc<Store>,
        changed_files: Box<dyn ChangedFiles>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            place,
            store,
            changed_files,
            shared,
            file: None,
            writer: None,
            emptied_at: 0,
            merged_at: 0,
        }
    }

    /// Follows until the index is stopped.
    pub(crate) fn run(mut self) {
        while !self.shared.cancellation.is_cancelled() {
            let begun = Instant::now();
            let step = catch_unwind(AssertUnwindSafe(|| self.step()));
            let step = step.unwrap_or_else(|_| {
                tracing::error!("search.step_panicked");
                self.writer = None;
                Ok(Rest::Nothing)
            });
            match step {
                Ok(Rest::Calls) => {
                    *lock(&self.shared.obstacle) = None;
                    // Those who send come first: while they do, half of the time is theirs.
                    if self.shared.has_news() {
                        thread::sleep(begun.elapsed().min(GIVEN_WAY_MAX));
                    }
                }
                Ok(Rest::Nothing) => {
                    *lock(&self.shared.obstacle) = None;
                    self.shared.catch_up();
                    self.rest();
                }
                Err(error) => {
                    self.failed(&error);
                    self.shared.wait();
                }
            }
        }
        self.shared.close_readers();
        self.empty_log();
    }

    /// Waits for news, and a moment for more of them.
    fn rest(&mut self) {
        if self.shared.wait() {
            thread::sleep(GATHERING);
            return;
        }
        if let Err(error) = self.merge() {
            tracing::debug!(error = described(&error), "search.not_merged");
        }
        self.empty_log();
    }

    /// Merges the pieces of an index that has grown by a quarter, until there are news.
    fn merge(&mut self) -> Result<(), IndexError> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let next = writer.state.next_part;
        if next < self.merged_at + self.merged_at / 4 + GROWTH_MIN {
            return Ok(());
        }
        let mut is_first = true;
        while writer.merge(is_first)? {
            is_first = false;
            if self.shared.has_news() || self.shared.cancellation.is_cancelled() {
                return Ok(());
            }
        }
        self.merged_at = next;
        Ok(())
    }

    /// Empties the log of changes once nothing is written any more.
    fn empty_log(&mut self) {
        let Some(writer) = &self.writer else {
            return;
        };
        if self.emptied_at == writer.state.next_part {
            return;
        }
        self.emptied_at = writer.state.next_part;
        if let Err(error) = writer.empty_log() {
            tracing::debug!(error = described(&error), "search.log_kept");
        }
    }

    /// Notes why a step failed. What it wrote is lost, so everything is read anew.
    fn failed(&mut self, error: &IndexError) {
        self.writer = None;
        if self.shared.cancellation.is_cancelled() {
            return;
        }
        let text = described(error);
        let mut obstacle = lock(&self.shared.obstacle);
        if obstacle.as_deref() != Some(&text) {
            tracing::warn!(error = text, "search.not_followed");
        }
        *obstacle = Some(text);
        if error.is_damage() {
            self.shared.is_damaged.store(true, Ordering::Release);
        }
    }

    /// Follows until nothing is left.
    #[cfg(feature = "testing")]
    pub(crate) fn follow_all(&mut self) -> Result<(), IndexError> {
        loop {
            match self.step() {
                Ok(Rest::Calls) => {}
                Ok(Rest::Nothing) => return Ok(()),
                Err(error) => {
                    self.failed(&error);
                    return Err(error);
                }
            }
        }
    }

    fn step(&mut self) -> Result<Rest, IndexError> {
        let file = self.locked()?;
        let is_damaged = self.shared.is_damaged.swap(false, Ordering::AcqRel);
        let is_gone = self.writer.is_some() && !file.path().exists();
        if is_damaged || is_gone || self.writer.is_some() && file.take_request() {
            tracing::info!(is_damaged, is_gone, "search.index_is_built_anew");
            self.writer = None;
            file.remove()?;
        }
        if self.writer.is_none() {
            self.open(&file)?;
        }
        let deadline = Deadline::after(STEP_MAX).cancelled_by(&self.shared.cancellation.child());
        let store = Arc::clone(&self.store);
        let mut snapshot = store.snapshot(&deadline)?;
        if let Some(writer) = &self.writer
            && !is_of_store(&mut snapshot, &writer.state)?
        {
            tracing::info!("search.index_is_ahead_of_its_store");
            self.writer = None;
            file.remove()?;
            self.open(&file)?;
        }
        let Some(writer) = &mut self.writer else {
            return Err(IndexError::Closed);
        };
        let rest = follow(writer, &mut snapshot, &mut *self.changed_files)?;
        *lock(&self.shared.state) = writer.state.clone();
        Ok(rest)
    }

    /// Returns the file, once it is locked.
    fn locked(&mut self) -> Result<Arc<SearchFile>, IndexError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = match &self.place {
            SearchPlace::Locked(file) => Arc::clone(file),
            SearchPlace::WhenFree(path) => {
                Arc::new(SearchFile::lock(path).map_err(std::io::Error::other)?)
            }
        };
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }

    fn open(&mut self, file: &Arc<SearchFile>) -> Result<(), IndexError> {
        let (connection, state, directory) = file::open(file, self.store.org_id())?;
        let directory = Arc::new(RwLock::new(directory));
        *lock(&self.shared.file) = Some(Arc::clone(file));
        self.shared
            .begin_file(Arc::clone(&directory), state.clone());
        self.writer = Some(IndexWriter::new(connection, state, directory));
        Ok(())
    }
}

/// Returns an error with its causes.
fn described(error: &IndexError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Returns whether an index was made from this store, and the store was not set back behind it.
fn is_of_store(snapshot: &mut Snapshot<'_>, state: &IndexState) -> Result<bool, IndexError> {
    if state.call_id.is_some() && snapshot.call_id_at(state.call_number)? != state.call_id {
        return Ok(false);
    }
    if state.quarantine_id.is_some()
        && snapshot.quarantine_id_at(state.quarantine_revision)? != state.quarantine_id
    {
        return Ok(false);
    }
    let erasure = snapshot.revisions()?.erasure;
    Ok(erasure.revision > state.erasure.revision || erasure == state.erasure)
}

/// Follows the store by one transaction.
fn follow(
    writer: &mut IndexWriter,
    snapshot: &mut Snapshot<'_>,
    changed_files: &mut dyn ChangedFiles,
) -> Result<Rest, IndexError> {
    let erasure = snapshot.revisions()?.erasure;
    let is_erased = erasure != writer.state.erasure;
    writer.begin()?;
    let are_all = follow_changes(writer, snapshot, changed_files)?;
    follow_files(writer, snapshot)?;
    follow_commits(writer, snapshot, changed_files)?;
    let next = snapshot.calls_after(writer.state.call_number, CALLS_AT_ONCE)?;
    writer.add_calls(snapshot, &next.calls)?;
    let is_last = next.rows < CALLS_AT_ONCE;
    if let Some((number, id)) = next.last {
        writer.state.call_number = number;
        writer.state.call_id = Some(id);
    }
    if is_last {
        writer.state.indexed_up_to = Some(snapshot.boundary(None)?);
    } else if let (Some(known), Some(last)) = (writer.state.indexed_up_to, next.calls.last()) {
        // Other facts of that moment may have been captured later.
        writer.state.indexed_up_to = Some(known.max(last.captured_at));
    }
    writer.commit()?;
    if is_erased {
        // Only then are the words gone from the file, and the erasure is followed.
        writer.overwrite_removed()?;
        writer.state.erasure = erasure;
        writer.begin()?;
        writer.commit()?;
    }
    Ok(if is_last && are_all {
        Rest::Nothing
    } else {
        Rest::Calls
    })
}

/// Follows the logs of quarantine and of erasures. Returns whether nothing is left of them.
fn follow_changes(
    writer: &mut IndexWriter,
    snapshot: &mut Snapshot<'_>,
    changed_files: &mut dyn ChangedFiles,
) -> Result<bool, IndexError> {
    let changes = snapshot.quarantine_after(writer.state.quarantine_revision, CHANGES_AT_ONCE)?;
    let mut sessions = BTreeSet::new();
    for table in followed_tables() {
        let of_table = changes.iter().filter(|change| change.table == Some(table));
        let ids: Vec<FactId> = of_table.filter_map(|change| change.fact_id).collect();
        sessions.extend(snapshot.sessions_of_facts(table, &ids)?);
    }
    let erasure = snapshot.revisions()?.erasure;
    if erasure != writer.state.erasure {
        sessions.extend(snapshot.erased_sessions_after(writer.state.erasure.revision)?);
    }
    for session in sessions {
        writer.renew_session(snapshot, session, changed_files)?;
    }
    if let Some(last) = changes.last() {
        writer.state.quarantine_revision = last.revision;
        writer.state.quarantine_id = Some(last.quarantine_id);
    }
    Ok((changes.len() as u64) < CHANGES_AT_ONCE)
}

/// Adds the files that new facts name.
fn follow_files(writer: &IndexWriter, snapshot: &mut Snapshot<'_>) -> Result<(), IndexError> {
    for table in tables_with_files() {
        follow_table(writer, table, |after| {
            let page = snapshot.files_after(table, after, FACTS_AT_ONCE)?;
            writer.add_named_files(snapshot, &page.items)?;
            Ok((page.last, page.rows))
        })?;
    }
    Ok(())
}

/// Adds the files of the commits at which Sessions were newly observed.
fn follow_commits(
    writer: &IndexWriter,
    snapshot: &mut Snapshot<'_>,
    changed_files: &mut dyn ChangedFiles,
) -> Result<(), IndexError> {
    follow_table(writer, FactTable::SessionCommitObservations, |after| {
        let page = snapshot.observed_commits_after(after, FACTS_AT_ONCE)?;
        writer.add_commits(snapshot, &page.items, changed_files)?;
        Ok((page.last, page.rows))
    })
}

/// Reads the facts of a kind from the last one on that is in the index.
fn follow_table(
    writer: &IndexWriter,
    table: FactTable,
    mut read: impl FnMut(FactId) -> Result<(Option<FactId>, u64), IndexError>,
) -> Result<(), IndexError> {
    let known = writer.followed_fact(table.as_str())?;
    let mut last = known.map_or(Uuid::nil(), Uuid::from_bytes);
    let mut after = shortly_before(last);
    loop {
        let (end, rows) = read(FactId::new(after))?;
        let Some(end) = end.map(FactId::uuid) else {
            break;
        };
        after = end;
        last = last.max(end);
        if rows < FACTS_AT_ONCE {
            break;
        }
    }
    if known != Some(*last.as_bytes()) {
        writer.follow_fact(table.as_str(), *last.as_bytes())?;
    }
    Ok(())
}

/// Returns an id from shortly before another. Ids begin with the moment at which they were made, and
/// a fact may be stored behind one that was made after it.
fn shortly_before(id: Uuid) -> Uuid {
    let number = id.as_u128();
    let moment = number >> 80;
    let earlier = moment.saturating_sub(u128::from(APART_MILLISECONDS));
    Uuid::from_u128(earlier << 80)
}
