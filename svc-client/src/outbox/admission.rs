//! Admits deliveries to the queue within the limits.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::disk::{self, LockedFile, NewFile};
use super::folder::{Folder, PartialFile};
use super::name::{DeliveryId, Name};
use super::{OutboxError, OutboxLimits};

/// How often a writer tries to take the lock.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Admits the deliveries of all processes, one at a time.
///
/// The file `writers` contains the next place in the queue. If it still contains what this process
/// wrote into it, nobody else has added anything, so the folder contains no more than before and
/// need not be read. Otherwise a queue of thousands would be read again for each delivery that is
/// added.
#[derive(Debug)]
pub(super) struct Admission {
    shared: Mutex<AdmissionState>,
    /// Wakes a thread that waits for its turn after another turn has ended.
    turn_ended: Condvar,
    /// How long a caller waits for other threads and other processes, together.
    patience: Duration,
}

/// What the threads of this process share.
#[derive(Debug, Default)]
struct AdmissionState {
    /// Whether some thread has its turn. The mutex itself is held only for a moment, because
    /// waiting for a mutex has no time limit.
    taken: bool,
    known: Option<KnownFolder>,
}

/// The turn of one thread. It ends when this is dropped.
#[derive(Debug)]
struct Turn<'a> {
    admission: &'a Admission,
    known: Option<KnownFolder>,
}

#[derive(Clone, Copy, Debug)]
struct KnownFolder {
    next: u64,
    held: FolderContents,
}

/// An upper bound for what a folder contains. Deliveries that were sent in the meantime still
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderContents {
    pub(super) deliveries: u64,
    pub(super) bytes: u64,
}

impl Admission {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            shared: Mutex::default(),
            turn_ended: Condvar::new(),
            patience,
        }
    }

    /// Returns until when a caller waits that begins to wait now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Gives a delivery its place and its file.
    ///
    /// A place is taken before the file is written, and several writers write their files at the
    /// same time, so the files may be completed in another order.
    pub(super) fn admit(
        &self,
        folder: &Folder,
        limits: OutboxLimits,
        id: DeliveryId,
        bytes: u64,
        deadline: Instant,
    ) -> Result<PartialFile, OutboxError> {
        let mut turn = self.turn(deadline)?;
        let path = folder.writers();
        let mut writers = lock(&path, deadline)?;
        let stored = read_next(&mut writers, &path)?;
        let mut now = match turn.known.take() {
            Some(known) if Some(known.next) == stored => known,
            _ => count(folder, stored)?,
        };
        if !now.held.has_room(limits, bytes) {
            now = count(folder, stored)?;
            if !now.held.has_room(limits, bytes) {
                return Err(OutboxError::Full {
                    deliveries: now.held.deliveries,
                    bytes: now.held.bytes,
                });
            }
        }
        let partial = folder.create(Name {
            sequence: now.next,
            bytes,
            id,
        })?;
        let next = now.next.saturating_add(1);
        write_next(&mut writers, &path, next)?;
        turn.known = Some(KnownFolder {
            next,
            held: now.held.with(bytes),
        });
        Ok(partial)
    }

    /// Removes what crashed writers left behind.
    pub(super) fn clean(&self, folder: &Folder) -> Result<(), OutboxError> {
        // A file that was created but not locked yet would look abandoned.
        self.alone(folder, || {
            for name in folder.partial()? {
                folder.remove_abandoned(name)?;
            }
            Ok(())
        })
    }

    /// Changes the folder while nobody adds a delivery. What it contains is counted anew afterwards.
    pub(super) fn alone<T>(
        &self,
        folder: &Folder,
        work: impl FnOnce() -> Result<T, OutboxError>,
    ) -> Result<T, OutboxError> {
        let deadline = self.deadline();
        let mut turn = self.turn(deadline)?;
        turn.known = None;
        let _writers = lock(&folder.writers(), deadline)?;
        work()
    }

    /// Waits for the other threads of this process, until the deadline.
    fn turn(&self, deadline: Instant) -> Result<Turn<'_>, OutboxError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .turn_ended
            .wait_timeout_while(self.hold(), left, |shared| shared.taken);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.taken {
            return Err(OutboxError::Locked);
        }
        shared.taken = true;
        Ok(Turn {
            admission: self,
            known: shared.known.take(),
        })
    }

    fn hold(&self) -> MutexGuard<'_, AdmissionState> {
        // After a panic, nothing may be known about the folder. That is always a valid state.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut shared = self.admission.hold();
        shared.taken = false;
        shared.known = self.known.take();
        drop(shared);
        self.admission.turn_ended.notify_one();
    }
}

impl FolderContents {
    pub(super) fn of(names: &[Name]) -> Self {
        names
            .iter()
            .fold(Self::default(), |held, name| held.with(name.bytes))
    }

    fn with(self, bytes: u64) -> Self {
        Self {
            deliveries: self.deliveries.saturating_add(1),
            bytes: self.bytes.saturating_add(bytes),
        }
    }

    fn has_room(self, limits: OutboxLimits, bytes: u64) -> bool {
        let after = self.with(bytes);
        after.deliveries <= limits.deliveries && after.bytes <= limits.bytes
    }
}

/// Counts what the folder contains. The next place is after all of it, even if the file with the
/// next place was lost.
fn count(folder: &Folder, stored: Option<u64>) -> Result<KnownFolder, OutboxError> {
    let mut names = folder.waiting()?;
    names.extend(folder.partial()?);
    names.extend(folder.refused()?);
    let last = names.iter().map(|name| name.sequence).max();
    let behind = last.map_or(0, |last| last.saturating_add(1));
    Ok(KnownFolder {
        next: behind.max(stored.unwrap_or(0)),
        held: FolderContents::of(&names),
    })
}

/// Takes the lock of the writers, until the deadline.
fn lock(path: &Path, deadline: Instant) -> Result<LockedFile, OutboxError> {
    loop {
        let file = disk::private_file(path, NewFile::WhenAbsent)?;
        if let Some(locked) = LockedFile::try_new(file, path)? {
            return Ok(locked);
        }
        if Instant::now() >= deadline {
            return Err(OutboxError::Locked);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Returns the next place; nothing if the file is new or was damaged.
fn read_next(file: &mut File, path: &Path) -> Result<Option<u64>, OutboxError> {
    let mut text = Vec::new();
    file.take(64)
        .read_to_end(&mut text)
        .map_err(OutboxError::disk("read", path))?;
    Ok(str::from_utf8(&text)
        .ok()
        .and_then(|text| text.trim_end().parse().ok()))
}

/// Writes the next place over the last one, which has the same length. It need not survive a power
/// failure: after one, no process knows the last place, so each of them counts.
fn write_next(file: &mut File, path: &Path, next: u64) -> Result<(), OutboxError> {
    file.rewind()
        .and_then(|()| file.write_all(format!("{next:020}\n").as_bytes()))
        .map_err(OutboxError::disk("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_not_kept_while_another_program_keeps_the_outbox_locked() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(parent.path().join("outbox")).unwrap();
        let admission = Admission::new(Duration::ZERO);
        let admit = || {
            let (limits, id) = (OutboxLimits::default(), DeliveryId::fresh());
            admission.admit(&folder, limits, id, 1, admission.deadline())
        };
        let other = lock(&folder.writers(), Instant::now()).unwrap();
        assert!(matches!(admit(), Err(OutboxError::Locked)));
        assert!(matches!(admission.clean(&folder), Err(OutboxError::Locked)));
        assert_eq!(folder.partial().unwrap(), []);
        drop(other);
        assert!(admit().is_ok());
    }

    #[test]
    fn threads_waiting_for_the_same_lock_share_one_timeout() {
        const THREADS: u32 = 16;
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(parent.path().join("outbox")).unwrap();
        let patience = Duration::from_millis(300);
        let admission = Admission::new(patience);
        let admit = || {
            let (limits, id) = (OutboxLimits::default(), DeliveryId::fresh());
            admission.admit(&folder, limits, id, 1, admission.deadline())
        };
        let other = lock(&folder.writers(), Instant::now()).unwrap();
        let start = Instant::now();
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..THREADS).map(|_| scope.spawn(admit)).collect();
            for thread in waiting {
                let admitted = thread.join().unwrap();
                assert!(matches!(admitted, Err(OutboxError::Locked)));
            }
        });
        // One after another, they would take sixteen times as long.
        assert!(start.elapsed() < patience * THREADS / 2);
        drop(other);
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..THREADS).map(|_| scope.spawn(admit)).collect();
            for thread in waiting {
                assert!(thread.join().unwrap().is_ok());
            }
        });
    }
}
