//! Follows the facts: new calls in the order in which they were stored, and what quarantine,
//! release and erasure change about stored ones.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_engine_store::{Snapshot, Store, tables_with_files};
use svc_model::facts::FactTable;
use svc_model::id::FactId;
use uuid::Uuid;

use crate::error::IndexError;
use crate::file::{self, IndexState, SearchFile};
use crate::index::{SearchPlace, Shared, lock};
use crate::writer::IndexWriter;

/// Calls of one transaction.
const CALLS_AT_ONCE: u64 = 256;
/// Rows of the quarantine log of one transaction.
const CHANGES_AT_ONCE: u64 = 1_000;
/// Facts with files that are read at once.
const FILES_AT_ONCE: u64 = 1_000;
/// How long one step may read the store.
const STEP_MAX: Duration = Duration::from_secs(60);
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
    shared: Arc<Shared>,
    file: Option<Arc<SearchFile>>,
    writer: Option<IndexWriter>,
}

impl Follower {
    pub(crate) fn new(place: SearchPlace, store: Arc<Store>, shared: Arc<Shared>) -> Self {
        Self {
            place,
            store,
            shared,
            file: None,
            writer: None,
        }
    }

    /// Follows until the index is stopped.
    pub(crate) fn run(mut self) {
        while !self.shared.cancellation.is_cancelled() {
            let step = catch_unwind(AssertUnwindSafe(|| self.step()));
            let step = match step {
                Ok(step) => step,
                Err(_) => {
                    tracing::error!("search.step_panicked");
                    self.writer = None;
                    Ok(Rest::Nothing)
                }
            };
            match step {
                Ok(Rest::Calls) => *lock(&self.shared.obstacle) = None,
                Ok(Rest::Nothing) => {
                    *lock(&self.shared.obstacle) = None;
                    self.shared.wait();
                }
                Err(error) => {
                    self.failed(&error);
                    self.shared.wait();
                }
            }
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

    fn step(&mut self) -> Result<Rest, IndexError> {
        let file = self.locked()?;
        let is_damaged = self.shared.is_damaged.swap(false, Ordering::AcqRel);
        if is_damaged || self.writer.is_some() && file.take_request() {
            tracing::info!(is_damaged, "search.index_is_built_anew");
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
        let rest = follow(writer, &mut snapshot)?;
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
fn follow(writer: &mut IndexWriter, snapshot: &mut Snapshot<'_>) -> Result<Rest, IndexError> {
    let erasure = snapshot.revisions()?.erasure;
    let is_erased = erasure != writer.state.erasure;
    writer.begin()?;
    let are_all = follow_changes(writer, snapshot)?;
    follow_files(writer, snapshot)?;
    let calls = snapshot.calls_after(writer.state.call_number, CALLS_AT_ONCE)?;
    writer.add_calls(snapshot, &calls)?;
    let is_last = (calls.len() as u64) < CALLS_AT_ONCE;
    if let Some(last) = calls.last() {
        writer.state.call_number = last.call_number;
        writer.state.call_id = FactId::parse(last.inference_call_id.as_str());
    }
    if is_last {
        writer.state.indexed_up_to = Some(snapshot.boundary(None)?);
    } else if let (Some(known), Some(last)) = (writer.state.indexed_up_to, calls.last()) {
        // Other facts of that moment may have been captured later.
        writer.state.indexed_up_to = Some(known.max(last.captured_at));
    }
    writer.commit()?;
    if is_erased {
        writer.overwrite_removed()?;
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
) -> Result<bool, IndexError> {
    let changes = snapshot.quarantine_after(writer.state.quarantine_revision, CHANGES_AT_ONCE)?;
    let mut sessions = BTreeSet::new();
    let files: Vec<FactTable> = tables_with_files().collect();
    for table in FactTable::ALL {
        if *table != FactTable::InferenceCalls && !files.contains(table) {
            continue;
        }
        let of_table = changes.iter().filter(|change| change.table == Some(*table));
        let ids: Vec<FactId> = of_table.map(|change| change.fact_id).collect();
        sessions.extend(snapshot.sessions_of_facts(*table, &ids)?);
    }
    let erasure = snapshot.revisions()?.erasure;
    if erasure != writer.state.erasure {
        sessions.extend(snapshot.erased_sessions_after(writer.state.erasure.revision)?);
    }
    for session in sessions {
        writer.renew_session(snapshot, session)?;
    }
    if let Some(last) = changes.last() {
        writer.state.quarantine_revision = last.revision;
        writer.state.quarantine_id = Some(last.quarantine_id);
    }
    writer.state.erasure = erasure;
    Ok((changes.len() as u64) < CHANGES_AT_ONCE)
}

/// Adds the files that new facts name.
fn follow_files(writer: &IndexWriter, snapshot: &mut Snapshot<'_>) -> Result<(), IndexError> {
    for table in tables_with_files() {
        let last = writer.followed_file(table.as_str())?;
        let mut last = last.map_or(Uuid::nil(), Uuid::from_bytes);
        let mut after = shortly_before(last);
        loop {
            let files = snapshot.files_after(table, FactId::new(after), FILES_AT_ONCE)?;
            writer.add_named_files(&files)?;
            let Some(end) = files.last().map(|file| file.fact_id.uuid()) else {
                break;
            };
            after = end;
            last = last.max(end);
            if (files.len() as u64) < FILES_AT_ONCE {
                break;
            }
        }
        writer.follow_file(table.as_str(), *last.as_bytes())?;
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
