//! How long a piece of work may go on, and what stops it earlier.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a piece of work was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Its deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// It was called off.
    #[error("it was called off")]
    CalledOff,
    /// Less space is free than is kept in reserve.
    #[error("less space is free than is kept in reserve")]
    DiskReserve,
}

/// Calls work off. Cloning gives another handle to the same switch.
#[derive(Clone, Debug, Default)]
pub struct CallOff(Arc<AtomicBool>);

impl CallOff {
    /// Calls the work off, for good.
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work is called off.
    pub fn is_called_off(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a piece of work may take.
#[derive(Clone, Debug)]
pub struct Allowance {
    deadline: Instant,
    call_off: CallOff,
    reserve: Option<(PathBuf, u64)>,
}

impl Allowance {
    /// Returns an allowance of so much time, from now.
    pub fn of(time: Duration, call_off: CallOff) -> Self {
        Self {
            deadline: Instant::now() + time,
            call_off,
            reserve: None,
        }
    }

    /// Keeps so many bytes free at a path while the work goes on.
    #[must_use]
    pub fn keeping_free(mut self, path: &Path, bytes: u64) -> Self {
        self.reserve = Some((path.to_owned(), bytes));
        self
    }

    /// Returns the same allowance with at most so much time, from now.
    #[must_use]
    pub fn at_most(&self, time: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + time),
            ..self.clone()
        }
    }

    /// Returns how much time is left.
    ///
    /// # Errors
    ///
    /// When the work must stop.
    pub fn left(&self) -> Result<Duration, Stopped> {
        if self.call_off.is_called_off() {
            return Err(Stopped::CalledOff);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stopped::Deadline);
        }
        match &self.reserve {
            Some((path, bytes)) if free_space(path).is_some_and(|free| free < *bytes) => {
                Err(Stopped::DiskReserve)
            }
            _ => Ok(left),
        }
    }
}

/// Returns how many bytes a path has free for this process, or its nearest parent that exists;
/// nothing when the system does not say.
pub fn free_space(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|folder| folder.exists())?;
    let space = rustix::fs::statvfs(existing).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_on_until_something_stops_it() {
        let call_off = CallOff::default();
        let folder = tempfile::tempdir().unwrap();
        let long = Allowance::of(Duration::from_mins(1), call_off.clone());
        assert!(long.left().unwrap() > Duration::from_secs(50));
        let none = Allowance::of(Duration::ZERO, call_off.clone());
        assert_eq!(none.left(), Err(Stopped::Deadline));
        let room = long.clone().keeping_free(&folder.path().join("a/b"), 1);
        assert!(room.left().is_ok());
        let no_room = long.keeping_free(folder.path(), u64::MAX);
        assert_eq!(no_room.left(), Err(Stopped::DiskReserve));
        call_off.now();
        assert_eq!(room.left(), Err(Stopped::CalledOff));
    }
}
