//! Whether the clock of this server can be believed.
//!
//! Facts are captured in order: a fact that was captured by a clock that was ahead takes all later
//! ones with it. So nothing is captured while the clock differs from the database server's by more
//! than a minute, or after it was set by more than a minute while the service ran. What it is
//! compared with for the latter also goes on while the machine sleeps. A virtual machine that was
//! paused, or a first synchronisation after the start, sets the clock rightly; so a clock that was
//! set is believed again once it has gone on evenly for ten minutes.

use std::sync::{Mutex, PoisonError};

use svc_engine_fact::clock::Clock;
use svc_model::time::Instant;

use crate::sql::clock_fault::{APART_MICROSECONDS_MAX, ClockFault, SECOND, compare};

/// How long a clock that was set must go on evenly.
const EVENLY_MICROSECONDS: i64 = 600 * SECOND;

/// A clock, and what it told before.
#[derive(Debug)]
pub(crate) struct ClockCheck {
    clock: Clock,
    state: Mutex<ClockState>,
}

/// Differences between the clock and the time that passed, in microseconds.
#[derive(Debug, Default)]
struct ClockState {
    believed: Option<i64>,
    set: Option<ClockSetting>,
}

/// That the clock was set.
#[derive(Clone, Copy, Debug)]
struct ClockSetting {
    difference: i64,
    /// The time that had passed when this was seen first.
    since: i64,
}

impl ClockCheck {
    /// Believes a clock as it is now.
    pub(crate) fn new(clock: Clock) -> Self {
        let check = Self {
            clock,
            state: Mutex::default(),
        };
        check.look();
        check
    }

    /// Checks the clock against itself and the database's.
    pub(crate) fn check(&self, database: Option<Instant>) -> Result<(), ClockFault> {
        let now = self.clock.now();
        match self.evenly(now) {
            None => Ok(()),
            Some(Err(fault)) => Err(fault),
            Some(Ok(())) => compare(now, database),
        }
    }

    /// Notes where the clock stands, so that it is known when it was set.
    pub(crate) fn look(&self) {
        // Whether it can be believed is asked when something is captured.
        let _ = self.evenly(self.clock.now());
    }

    /// Returns whether the clock has gone on evenly; `None` if nothing tells.
    fn evenly(&self, now: Instant) -> Option<Result<(), ClockFault>> {
        let passed = self.clock.passed_microseconds()?;
        let difference = now.microseconds() - passed;
        let is_near = |other: i64| (difference - other).abs() <= APART_MICROSECONDS_MAX;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let believed = *state.believed.get_or_insert(difference);
        if is_near(believed) {
            // Small corrections add up.
            *state = ClockState {
                believed: Some(difference),
                set: None,
            };
            return Some(Ok(()));
        }
        let set = state.set.filter(|set| is_near(set.difference));
        let set = set.unwrap_or(ClockSetting {
            difference,
            since: passed,
        });
        let fault = ClockFault::of_itself(difference - believed);
        if passed - set.since >= EVENLY_MICROSECONDS {
            tracing::warn!(%fault, "store.clock_believed_again");
            *state = ClockState {
                believed: Some(difference),
                set: None,
            };
            return Some(Ok(()));
        }
        if state.set.replace(set).is_none() {
            tracing::warn!(%fault, "store.clock_set");
        }
        Some(Err(fault))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const START: i64 = 1_793_491_200 * SECOND;

    /// A clock, how far it is ahead, and how much time has passed.
    fn clock() -> (ClockCheck, Arc<AtomicI64>, Arc<AtomicI64>) {
        let (ahead, passed) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(7)));
        let (a, p) = (Arc::clone(&ahead), Arc::clone(&passed));
        let q = Arc::clone(&passed);
        let now = move || {
            let now = START + a.load(Ordering::SeqCst) + p.load(Ordering::SeqCst);
            Instant::from_microseconds(now).unwrap()
        };
        let clock = Clock::of(now, move || q.load(Ordering::SeqCst));
        (ClockCheck::new(clock), ahead, passed)
    }

    #[test]
    fn a_clock_that_was_set_is_believed_when_it_is_right_again_or_goes_on_evenly() {
        for seconds in [3_600_i64, -86_400] {
            let (check, ahead, passed) = clock();
            let check = |moved: i64, after: i64| {
                ahead.store(moved * SECOND, Ordering::SeqCst);
                passed.fetch_add(after * SECOND, Ordering::SeqCst);
                check.check(None).map_err(|fault| fault.to_string())
            };
            assert_eq!(check(0, 90 * 86_400), Ok(()), "a machine that slept");
            assert_eq!(check(60, 1), Ok(()), "a small correction");
            let way = if seconds > 0 { "forward" } else { "back" };
            let by = seconds.abs();
            let message = format!("this clock was set {by} s {way} while the service ran");
            assert_eq!(check(60 + seconds, 1), Err(message.clone()));
            assert_eq!(check(60 + seconds, 599), Err(message.clone()));
            assert_eq!(check(60, 1), Ok(()), "right again");
            assert_eq!(check(60 + seconds, 599), Err(message.clone()));
            assert!(check(60 + 2 * seconds, 599).is_err(), "set once more");
            assert_eq!(check(60 + seconds, 599), Err(message));
            assert_eq!(check(60 + seconds, 600), Ok(()), "evenly");
            assert_eq!(check(60 + seconds, 1), Ok(()));
        }
    }

    #[test]
    fn a_clock_is_compared_with_the_databases() {
        let (check, ..) = clock();
        let check = |ahead: i64| {
            let database = START + 7 - ahead * SECOND;
            check
                .check(Instant::from_microseconds(database))
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(check(60), Ok(()));
        assert_eq!(check(-60), Ok(()));
        assert_eq!(
            check(61),
            Err("this clock is 61 s ahead of the database server's".to_owned())
        );
        assert_eq!(
            check(-3_600),
            Err("this clock is 3600 s behind the database server's".to_owned())
        );
    }
}
