use std::collections::{BTreeSet, HashSet};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use svc_model::repository::CommitSha;

use crate::deadline::Deadline;
use crate::error::Error;
use crate::fact::Lifetime;
use crate::mirror::{Diff, DiffQuestion, MirrorReader, MirrorReading, ReadError};

/// Mirrors that stay open when nobody reads them: each has a few programs.
const IDLE_MAX: usize = 16;
/// Threads of one report that read mirrors.
const THREADS_MAX: usize = 4;

/// The mirrors that a report reads, for any number of threads. Those that were used last stay open.
#[derive(Debug)]
pub(super) struct OpenMirrors<'m> {
    reading: Option<&'m MirrorReading>,
    deadline: Deadline,
    /// The one that was used last is the last.
    idle: Mutex<Vec<OpenMirror>>,
    /// Where git complained. A repository that cannot be read would fill the log.
    complained: Mutex<HashSet<Lifetime>>,
    /// The repositories whose mirrors were asked for and are not there.
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

    /// Returns the repositories whose mirrors were asked for and are not there.
    pub(super) fn absent(&self) -> BTreeSet<Lifetime> {
        lock(&self.absent).clone()
    }

    /// Reads the mirror of a repository; nothing when there is none.
    pub(super) fn with<T>(
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
        // Its programs end while others go on.
        drop(oldest);
        read.map(Some)
    }

    fn take(&self, repository: &Lifetime) -> Result<Option<OpenMirror>, Error> {
        let mut idle = lock(&self.idle);
        if let Some(place) = idle.iter().rposition(|it| it.repository == *repository) {
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

/// The diff of one commit cannot be read. The reason is for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable;

/// A mirror that is open.
#[derive(Debug)]
pub(super) struct OpenMirror {
    repository: Lifetime,
    reader: MirrorReader,
    /// What git complained of last.
    complaint: Option<String>,
}

impl OpenMirror {
    /// Returns what is read of the mirror; nothing where it cannot be read, which is counted where it is
    /// missing.
    pub(super) fn read<T>(
        &mut self,
        ask: impl FnOnce(&mut MirrorReader) -> Result<T, ReadError>,
    ) -> Result<Option<T>, Error> {
        let read = ask(&mut self.reader);
        self.readable(read)
    }

    /// Returns what was read, as [`read`](Self::read) does.
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

    /// Reads the diffs of commits, as [`MirrorReader::diffs`] does, and ends what wrote them. What cannot
    /// be read of one commit is counted where it is missing.
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

    /// Returns the mirror itself, where each reason for which it cannot be read has a name of its own.
    pub(super) const fn reader(&mut self) -> &mut MirrorReader {
        &mut self.reader
    }
}

/// Does something with each of several things, a few at a time, and returns what came of each in their
/// order.
pub(super) fn at_once<T: Sync, R: Send, E: Send>(
    things: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(THREADS_MAX).min(things.len());
    if threads <= 1 {
        return things.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let span = tracing::Span::current();
    let some = || {
        let _entered = span.enter();
        let mut done = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else {
                break;
            };
            let result = work(thing);
            if result.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            done.push((place, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        // Where the system has no thread left, those that run do the work of the others.
        let running =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, some).ok());
        let running: Vec<_> = running.collect();
        let mut done = some();
        for thread in running {
            match thread.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_once_comes_back_in_order() {
        let things: Vec<u32> = (0..100).collect();
        let doubled: Result<Vec<u32>, ()> = at_once(&things, |thing| Ok(thing * 2));
        assert_eq!(doubled, Ok((0..100).map(|thing| thing * 2).collect()));
        assert_eq!(
            at_once(&[], |thing: &u32| Err::<(), u32>(*thing)),
            Ok(vec![])
        );
    }

    #[test]
    fn one_failure_ends_everything() {
        let things: Vec<u32> = (0..100).collect();
        let failed = at_once(&things, |thing| match thing {
            7 => Err(*thing),
            _ => Ok(()),
        });
        assert_eq!(failed, Err(7));
    }
}
