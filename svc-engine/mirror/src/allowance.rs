//! What a piece of work may use: time, until it is cancelled, and disk space.

use std::path::{Path, PathBuf};
use std::time::Duration;

use svc_engine_fact::deadline::{Deadline, Passed};

/// Why a piece of work was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StopReason {
    /// Its deadline has passed, or it was cancelled.
    #[error(transparent)]
    Passed(#[from] Passed),
    /// Less disk space is free than the reserve requires.
    #[error("less space is free than is kept in reserve")]
    DiskReserve,
}

/// What a piece of work may use.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    deadline: Deadline,
    reserve: Option<(PathBuf, u64)>,
}

impl Allowance {
    /// Allows the work to use everything until a deadline.
    pub(super) fn until(deadline: Deadline) -> Self {
        Self {
            deadline,
            reserve: None,
        }
    }

    /// Stops the work when fewer than this many bytes are free at a path.
    #[must_use]
    pub(super) fn keeping_free(mut self, path: &Path, bytes: u64) -> Self {
        self.reserve = Some((path.to_owned(), bytes));
        self
    }

    /// Returns the same allowance, ending at the latest after this much time.
    #[must_use]
    pub(super) fn within(&self, time: Duration) -> Self {
        Self {
            deadline: self.deadline.within(time),
            ..self.clone()
        }
    }

    /// Returns the remaining time.
    ///
    /// # Errors
    ///
    /// If the work must stop.
    pub(super) fn left(&self) -> Result<Duration, StopReason> {
        let Some(left) = self.deadline.remaining() else {
            // The deadline may have passed between the two checks.
            self.deadline.check()?;
            return Err(Passed::Time.into());
        };
        match &self.reserve {
            Some((path, bytes)) if free_space(path).is_some_and(|free| free < *bytes) => {
                Err(StopReason::DiskReserve)
            }
            _ => Ok(left),
        }
    }
}

/// Returns the bytes that this process may still write at a path or its nearest existing parent;
/// `None` if the system does not report it.
pub fn free_space(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|folder| folder.exists())?;
    let space = rustix::fs::statvfs(existing).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_ends_with_its_deadline_or_its_free_space() {
        let folder = tempfile::tempdir().unwrap();
        let deadline = Deadline::after(Duration::from_mins(1));
        let long = Allowance::until(deadline.clone());
        assert!(long.left().unwrap() > Duration::from_secs(50));
        let none = long.within(Duration::ZERO);
        assert_eq!(none.left(), Err(StopReason::Passed(Passed::Time)));
        let room = long.clone().keeping_free(&folder.path().join("a/b"), 1);
        assert!(room.left().is_ok());
        let no_room = long.keeping_free(folder.path(), u64::MAX);
        assert_eq!(no_room.left(), Err(StopReason::DiskReserve));
        deadline.cancel();
        assert_eq!(room.left(), Err(StopReason::Passed(Passed::Cancelled)));
    }
}
