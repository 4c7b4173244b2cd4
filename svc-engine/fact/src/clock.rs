//! The time and fresh ids: the only inputs that are neither sent nor stored.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use svc_model::time::Instant;
use uuid::{NoContext, Timestamp, Uuid};

/// Tells the time.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// The microseconds that passed, which nobody can set.
    passed: Option<Arc<dyn Fn() -> i64 + Send + Sync>>,
}

impl Clock {
    /// Returns the clock of the system. Before 1970 and after 2261 it stands still.
    pub fn system() -> Self {
        let now = || {
            let since = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            i64::try_from(since.as_micros())
                .ok()
                .and_then(Instant::from_microseconds)
                .unwrap_or(Instant::MAX)
        };
        Self::of(now, || {
            // The clocks that go on while the machine sleeps.
            #[cfg(target_os = "linux")]
            let steady = rustix::time::ClockId::Boottime;
            #[cfg(not(target_os = "linux"))]
            let steady = rustix::time::ClockId::Monotonic;
            let passed = rustix::time::clock_gettime(steady);
            passed.tv_sec.saturating_mul(1_000_000) + passed.tv_nsec / 1_000
        })
    }

    /// Returns a clock of its own, and the microseconds that passed by another that nobody can set.
    pub fn of(
        now: impl Fn() -> Instant + Send + Sync + 'static,
        passed: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            now: Arc::new(now),
            passed: Some(Arc::new(passed)),
        }
    }

    fn without_comparison(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            passed: None,
        }
    }

    /// Returns the clock of the system, set back by as many microseconds as this says. It is
    /// compared with no other clock.
    pub fn set_back(by: Arc<AtomicI64>) -> Self {
        let system = Self::system();
        Self::without_comparison(move || {
            let now = system.now();
            let set_back = now.microseconds() - by.load(Ordering::Relaxed);
            Instant::from_microseconds(set_back).unwrap_or(now)
        })
    }

    /// Returns a clock that starts at `first` and advances by one microsecond with every reading.
    /// It is compared with no other clock.
    pub fn ticking(first: Instant) -> Self {
        let next = AtomicU64::new(0);
        Self::without_comparison(move || {
            let ticks = next.fetch_add(1, Ordering::Relaxed);
            i64::try_from(ticks)
                .ok()
                .and_then(|ticks| first.microseconds().checked_add(ticks))
                .and_then(Instant::from_microseconds)
                .unwrap_or(first)
        })
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        (self.now)()
    }

    /// Returns the microseconds that passed since some moment, the machine's sleep included.
    /// `None` if this clock is compared with no other.
    pub fn passed_microseconds(&self) -> Option<i64> {
        self.passed.as_ref().map(|passed| passed())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Returns the instant this long after `now`.
pub fn later(now: Instant, wait: Duration) -> Instant {
    let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microseconds(now.microseconds().saturating_add(wait)).unwrap_or(now)
}

/// Generates fresh ids.
#[derive(Clone)]
pub struct Ids(Arc<dyn Fn() -> Uuid + Send + Sync>);

impl Ids {
    /// Returns random ids (version 4).
    pub fn random() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one source of fresh ids"
        )]
        Self(Arc::new(Uuid::new_v4))
    }

    /// Returns ids that begin with the time (version 7). Facts that are stored together are then
    /// close together in an index of ids; random ids would touch one page each.
    pub fn ordered(clock: Clock) -> Self {
        Self(Arc::new(move || {
            let now = clock.now().microseconds().unsigned_abs();
            let nanoseconds = u32::try_from(now % 1_000_000 * 1_000).unwrap_or_default();
            Uuid::new_v7(Timestamp::from_unix(
                NoContext,
                now / 1_000_000,
                nanoseconds,
            ))
        }))
    }

    /// Returns the ids 1, 2, 3 and so on.
    pub fn counting() -> Self {
        let next = AtomicU64::new(1);
        Self(Arc::new(move || {
            Uuid::from_u128(u128::from(next.fetch_add(1, Ordering::Relaxed)))
        }))
    }

    /// Returns a fresh id.
    pub fn fresh(&self) -> Uuid {
        (self.0)()
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_ids_sort_by_time_and_are_unique_within_an_instant() {
        let clock = |microseconds| {
            Clock::without_comparison(move || Instant::from_microseconds(microseconds).unwrap())
        };
        let (early, late) = (
            Ids::ordered(clock(1_793_491_200_123_456)),
            Ids::ordered(clock(1_793_491_200_124_000)),
        );
        let (first, second) = (early.fresh(), early.fresh());
        assert_eq!(first.get_version_num(), 7);
        assert_ne!(first, second);
        assert!(first.max(second) < late.fresh());
        assert!(first.to_string().starts_with("01a1"), "{first}");
    }
}
