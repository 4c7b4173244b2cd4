//! The index: who follows the facts, and who reads it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Moment};

use rusqlite::Connection;
use svc_engine_fact::deadline::Cancellation;
use svc_engine_store::Store;
use svc_model::time::Instant;

use crate::changed_files::ChangedFiles;
use crate::directory::Directory;
use crate::error::IndexError;
use crate::file::{IndexState, SearchFile, open_reading};
use crate::follower::Follower;
use crate::lookup::{self, Found, IndexQuery, Lookup, PartPlace};

/// Open connections that are kept for the next query.
const READERS_KEPT: usize = 4;
/// How long the follower waits for news. Facts that another server stores arrive without any.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// The place of an index.
#[derive(Clone, Debug)]
pub enum SearchPlace {
    /// A file that this process has locked.
    Locked(Arc<SearchFile>),
    /// A file that is locked as soon as nobody else uses it.
    WhenFree(PathBuf),
}

/// What an index has, and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchStatus {
    /// Every fact that was captured by this moment is in it; `None` while it is being built.
    pub indexed_up_to: Option<Instant>,
    /// The number of distinct parts.
    pub indexed_parts: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Why it does not go on, in the words of its log, if it does not.
    pub obstacle: Option<String>,
    /// How long ago it last had everything; at most a pause while nothing arrives.
    pub lag: Duration,
}

impl SearchStatus {
    /// Returns whether everything was in it at some time.
    pub const fn is_complete(&self) -> bool {
        self.indexed_up_to.is_some()
    }
}

/// What the follower and the readers share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) file: Mutex<Option<Arc<SearchFile>>>,
    pub(crate) directory: RwLock<Arc<RwLock<Directory>>>,
    pub(crate) state: Mutex<IndexState>,
    pub(crate) obstacle: Mutex<Option<String>>,
    readers: Mutex<Vec<Connection>>,
    /// Changes with every new file.
    generation: AtomicU64,
    /// Whether a reader found the file damaged.
    pub(crate) is_damaged: AtomicBool,
    /// When the follower last had nothing left to do.
    caught_up: Mutex<Option<Moment>>,
    news: Mutex<bool>,
    arrived: Condvar,
    pub(crate) cancellation: Cancellation,
}

impl Shared {
    /// Returns whether there are news that nobody waited for.
    pub(crate) fn has_news(&self) -> bool {
        *lock(&self.news)
    }

    /// Closes the connections that are kept for queries.
    pub(crate) fn close_readers(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        lock(&self.readers).clear();
    }

    /// Waits for news, for at most a pause, and returns whether there are some.
    pub(crate) fn wait(&self) -> bool {
        let mut news = lock(&self.news);
        if !*news && !self.cancellation.is_cancelled() {
            news = self
                .arrived
                .wait_timeout(news, PAUSE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        std::mem::take(&mut *news)
    }

    /// Notes that the index has everything.
    pub(crate) fn catch_up(&self) {
        *lock(&self.caught_up) = Some(Moment::now());
    }

    fn tell(&self) {
        *lock(&self.news) = true;
        self.arrived.notify_all();
    }

    /// Begins with another file: readers of the one before are closed.
    pub(crate) fn begin_file(&self, directory: Arc<RwLock<Directory>>, state: IndexState) {
        self.close_readers();
        *self
            .directory
            .write()
            .unwrap_or_else(PoisonError::into_inner) = directory;
        *lock(&self.state) = state;
        self.is_damaged.store(false, Ordering::Release);
    }

    pub(crate) fn directory(&self) -> Arc<RwLock<Directory>> {
        Arc::clone(&read(&self.directory))
    }

    /// Returns a connection, unless the file is not open yet.
    fn reader(&self) -> Result<Option<Connection>, IndexError> {
        if let Some(reader) = lock(&self.readers).pop() {
            return Ok(Some(reader));
        }
        let file = lock(&self.file).clone();
        file.map(|file| open_reading(file.path())).transpose()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// An index of everything that an organization's calls contain. It is a cache: deleting its file is
/// always safe. Dropping it stops its follower.
pub struct SearchIndex {
    shared: Arc<Shared>,
    started: Moment,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchIndex")
    }
}

impl SearchIndex {
    /// Starts to follow the facts of a store. `give_way` lowers the priority of the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        place: SearchPlace,
        store: &Arc<Store>,
        changed_files: Box<dyn ChangedFiles>,
        give_way: fn(),
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let store = Arc::clone(store);
        let follower = Follower::new(place, store, changed_files, Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("svc-search".to_owned())
            .spawn(move || {
                give_way();
                follower.run();
            })?;
        Ok(Self {
            shared,
            started: Moment::now(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns an index that follows the facts only when it is told to.
    #[cfg(feature = "testing")]
    pub fn still(
        place: SearchPlace,
        store: Arc<Store>,
        changed_files: Box<dyn ChangedFiles>,
    ) -> (Self, StillFollower) {
        let shared = Arc::new(Shared::default());
        let follower = Follower::new(place, store, changed_files, Arc::clone(&shared));
        let index = Self {
            shared,
            started: Moment::now(),
            thread: Mutex::default(),
        };
        (index, StillFollower(follower))
    }

    /// Says that facts have arrived.
    pub fn wake(&self) {
        self.shared.tell();
    }

    /// Stops the follower. It blocks.
    pub fn stop(&self) {
        self.shared.cancellation.cancel();
        self.shared.tell();
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("search.panicked");
        }
    }

    /// Returns how far the index is.
    pub fn status(&self) -> SearchStatus {
        let directory = self.shared.directory();
        let directory = read(&directory);
        SearchStatus {
            indexed_up_to: lock(&self.shared.state).indexed_up_to,
            indexed_parts: directory.parts(),
            bytes: lock(&self.shared.file)
                .as_ref()
                .map_or(0, |file| file.bytes()),
            obstacle: lock(&self.shared.obstacle).clone(),
            lag: lock(&self.shared.caught_up)
                .unwrap_or(self.started)
                .elapsed(),
        }
    }

    /// Opens the index for one query, which sees one state of it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn reading(&self) -> Result<IndexReading<'_>, IndexError> {
        let shared = &self.shared;
        let generation = shared.generation.load(Ordering::Acquire);
        let state = lock(&shared.state).clone();
        let connection = self.checked(shared.reader())?;
        if let Some(connection) = &connection {
            self.checked(connection.execute_batch("BEGIN").map_err(IndexError::from))?;
        }
        Ok(IndexReading {
            index: self,
            directory: shared.directory(),
            connection,
            generation,
            state,
        })
    }

    /// Notes that the file is damaged, so that the follower makes a new one.
    fn checked<T>(&self, result: Result<T, IndexError>) -> Result<T, IndexError> {
        if result.as_ref().is_err_and(IndexError::is_damage) {
            self.shared.is_damaged.store(true, Ordering::Release);
            self.shared.tell();
        }
        result
    }
}

impl Drop for SearchIndex {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Follows the facts when it is told to, for tests.
#[cfg(feature = "testing")]
pub struct StillFollower(Follower);

#[cfg(feature = "testing")]
impl fmt::Debug for StillFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StillFollower")
    }
}

#[cfg(feature = "testing")]
impl StillFollower {
    /// Follows the facts until nothing is left.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or the store cannot be read.
    pub fn follow(&mut self) -> Result<(), IndexError> {
        self.0.follow_all()
    }
}

/// One state of the index. An index whose file is not open yet is empty.
pub struct IndexReading<'i> {
    index: &'i SearchIndex,
    directory: Arc<RwLock<Directory>>,
    connection: Option<Connection>,
    generation: u64,
    /// How far the index had followed the facts, at least.
    pub state: IndexState,
}

impl fmt::Debug for IndexReading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexReading")
    }
}

impl IndexReading<'_> {
    /// Returns what matches a query.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn found(&self, query: &IndexQuery<'_>) -> Result<Found, IndexError> {
        let Some(connection) = &self.connection else {
            return Ok(Found::default());
        };
        let directory = read(&self.directory);
        let found = Lookup::new(connection, &directory, query).and_then(Lookup::found);
        self.index.checked(found)
    }

    /// Returns where parts stand in a Session, the earliest place first.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn places(&self, session: i64, parts: &[i64]) -> Result<Vec<PartPlace>, IndexError> {
        let Some(connection) = &self.connection else {
            return Ok(Vec::new());
        };
        let found = lookup::places(connection, session, parts);
        self.index.checked(found)
    }

    /// Returns the numbers of the Sessions that name a file whose path `is_asked`. `name` is the
    /// last step of the path.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn sessions_of_file(
        &self,
        name: &str,
        is_asked: impl Fn(&str) -> bool,
    ) -> Result<BTreeSet<i64>, IndexError> {
        let Some(connection) = &self.connection else {
            return Ok(BTreeSet::new());
        };
        let files = self.index.checked(lookup::files(connection, name))?;
        let files = files.into_iter().filter(|(_, path)| is_asked(path));
        Ok(files.map(|(session, _)| session).collect())
    }

    /// Returns the number of distinct parts in the index.
    pub fn parts(&self) -> u64 {
        read(&self.directory).parts()
    }
}

impl Drop for IndexReading<'_> {
    fn drop(&mut self) {
        let shared = &self.index.shared;
        let Some(connection) = self.connection.take() else {
            return;
        };
        if connection.execute_batch("ROLLBACK").is_err() {
            return;
        }
        let mut readers = lock(&shared.readers);
        let is_same = shared.generation.load(Ordering::Acquire) == self.generation;
        if is_same && readers.len() < READERS_KEPT {
            readers.push(connection);
        }
    }
}
