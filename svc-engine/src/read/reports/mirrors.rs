use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_mirror::{Diff, DiffQuestion, MirrorReader, MirrorReading, ReadError};
use svc_model::repository::CommitSha;

use crate::error::Error;

/// Maximum number of idle mirrors that stay open: each has a few processes.
const IDLE_MAX: usize = 16;

/// The mirrors that a report reads, from any thread. The most recently used ones stay open.
#[derive(Debug)]
pub(in crate::read) struct OpenMirrors<'m> {
    reading: Option<&'m MirrorReading>,
    deadline: Deadline,
    /// The most recently used one is last.
    idle: Mutex<Vec<OpenMirror>>,
    /// Where git complained. Without this, one unreadable repository would fill the log.
    complained: Mutex<HashSet<Lifetime>>,
    /// The repositories whose mirrors were asked for and do not exist.
    absent: Mutex<BTreeSet<Lifetime>>,
}

impl<'m> OpenMirrors<'m> {
    pub(super) fn new(reading: Option<&'m MirrorReading>, deadline: &Deadline) -> Self {
        Self {
            reading,
            deadline: deadline.clone(),
            idle: Mutex::default(),
            complained: Mutex::default(),
            absent: Mutex::default(),
        }
    }

    /// Returns the repositories whose mirrors were asked for and do not exist.
    pub(super) fn absent(&self) -> BTreeSet<Lifetime> {
        lock(&self.absent).clone()
    }

    /// Reads the mirror of a repository; `None` if there is none.
    pub(in crate::read) fn with<T>(
        &self,
        repository: &Lifetime,
        read: impl FnOnce(&mut OpenMirror) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let Some(mut mirror) = self.take(repository)? else {
            lock(&self.absent).insert(repository.clone());
            return Ok(None);
        };
        let read = read(&mut mirror);
        if let Some(complaint) = mirror.complaint.take() {
            let mut complained = lock(&self.complained);
            if complained.insert(repository.clone()) {
                tracing::warn!(mirror = %repository, complaint, "report.mirror_unreadable");
            }
        }
        let mut idle = lock(&self.idle);
        let oldest = (idle.len() == IDLE_MAX).then(|| idle.remove(0));
        idle.push(mirror);
        drop(idle);
        // Its processes end without holding up other threads.
        drop(oldest);
        read.map(Some)
    }

    fn take(&self, repository: &Lifetime) -> Result<Option<OpenMirror>, Error> {
        let mut idle = lock(&self.idle);
        if let Some(place) = idle
            .iter()
            .rposition(|mirror| mirror.repository == *repository)
        {
            return Ok(Some(idle.remove(place)));
        }
        drop(idle);
        let Some(reading) = self.reading else {
            return Ok(None);
        };
        let reader = reading.open(repository, &self.deadline)?;
        Ok(reader.map(|reader| OpenMirror {
            repository: repository.clone(),
            reader,
            complaint: None,
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The diff of one commit cannot be read. The reason goes to the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable;

/// An open mirror.
#[derive(Debug)]
pub(in crate::read) struct OpenMirror {
    repository: Lifetime,
    reader: MirrorReader,
    /// The last complaint of git.
    complaint: Option<String>,
}

impl OpenMirror {
    /// Reads from the mirror; `None` if that is impossible, which the caller counts as missing.
    pub(in crate::read) fn read<T>(
        &mut self,
        ask: impl FnOnce(&mut MirrorReader) -> Result<T, ReadError>,
    ) -> Result<Option<T>, Error> {
        let read = ask(&mut self.reader);
        self.readable(read)
    }

    /// Converts a result as [`read`](Self::read) does.
    pub(super) fn readable<T>(&mut self, read: Result<T, ReadError>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(ReadError::Declined(_)) => Ok(None),
            Err(ReadError::Git(complaint)) => {
                self.complaint = Some(complaint);
                Ok(None)
            }
            Err(error @ (ReadError::Passed(_) | ReadError::Folder(_))) => Err(error.into()),
        }
    }

    /// Reads the diffs of commits as [`MirrorReader::diffs`] does, and ends the process that wrote
    /// them. The caller counts commits that cannot be read.
    pub(super) fn diffs(
        &mut self,
        commits: &[CommitSha],
        question: DiffQuestion,
        mut each: impl FnMut(usize, Result<Option<Diff>, Unreadable>),
    ) -> Result<(), Error> {
        let mut failed = None;
        let ended = self.reader.diffs(commits, question, |at, diff| {
            let diff = diff.map_err(|error| {
                failed = Some(error);
                Unreadable
            });
            each(at, diff);
        });
        self.reader.end_diffs();
        self.readable(ended)?;
        match failed {
            Some(error) => self.readable::<()>(Err(error)).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the underlying reader, for callers that distinguish why something cannot be read.
    pub(super) const fn reader(&mut self) -> &mut MirrorReader {
        &mut self.reader
    }
}
