//! Limits the rate of log lines that anybody could cause.
//!
//! Lines that anybody could cause are written every ten seconds at most, with the number that was
//! left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum time between two lines.
const APART: Duration = Duration::from_secs(10);

/// The limit for one kind of line.
#[derive(Debug)]
pub(crate) struct LogLimit(Mutex<LimitState>);

#[derive(Debug)]
struct LimitState {
    last: Option<Instant>,
    left_out: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(LimitState {
            last: None,
            left_out: 0,
        }))
    }

    /// Returns the number of lines that were left out since the last one, if another may be written
    /// now.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.last.is_some_and(|last| now < last + APART) {
            written.left_out += 1;
            return None;
        }
        written.last = Some(now);
        Some(std::mem::take(&mut written.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_log_lines_are_counted() {
        let limit = LogLimit::new();
        let start = Instant::now();
        assert_eq!(limit.due_at(start), Some(0));
        assert_eq!(limit.due_at(start), None);
        assert_eq!(limit.due_at(start + APART / 2), None);
        assert_eq!(limit.due_at(start + APART), Some(2));
        assert_eq!(limit.due_at(start + APART * 2), Some(0));
    }
}
