//! Retries: when a request is sent again, and the pause before it.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// How often a request is retried, and after which pause.
///
/// The pause doubles with each retry, from [`RetryPolicy::FIRST_PAUSE`] up to
/// [`RetryPolicy::LONGEST_PAUSE`]. Up to half of it is left out at random, so that many clients do
/// not retry at the same time. If the service asks for a longer pause (`Retry-After` in seconds),
/// that one is taken. Every pause counts towards the client's timeout: if too little time is left,
/// the failure is returned at once.
///
/// Whether a request is retried at all depends on the error and the route, not on the policy; see
/// [`Error::is_retryable`](crate::Error::is_retryable) and [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    retries: u32,
    first_pause: Duration,
    longest_pause: Duration,
    jitter: Jitter,
}

impl RetryPolicy {
    /// The default number of retries, after the first attempt.
    pub const RETRIES: u32 = 3;
    /// The default pause before the first retry, at most.
    pub const FIRST_PAUSE: Duration = Duration::from_millis(200);
    /// The default longest pause, unless the service asks for a longer one.
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

    /// Returns a policy without retries.
    pub fn none() -> Self {
        Self {
            retries: 0,
            ..Self::default()
        }
    }

    /// Sets the number of retries, after the first attempt.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Sets the pause before the first retry, and the longest pause.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self {
            first_pause: first,
            longest_pause: longest,
            ..self
        }
    }

    /// Sets the source of randomness: a function that returns numbers from 0 to 1.
    #[must_use]
    pub fn jitter(self, fraction: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self {
            jitter: Jitter(Arc::new(fraction)),
            ..self
        }
    }

    /// Returns the pause after this many failed attempts; nothing if there is no further attempt.
    pub(crate) fn pause(&self, attempts: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempts > self.retries {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let whole = self
            .first_pause
            .saturating_mul(doubled)
            .min(self.longest_pause);
        let fraction = (self.jitter.0)().clamp(0.0, 1.0);
        let pause = whole.mul_f64(0.5 + fraction / 2.0);
        Some(asked.map_or(pause, |asked| asked.max(pause)))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: Self::RETRIES,
            first_pause: Self::FIRST_PAUSE,
            longest_pause: Self::LONGEST_PAUSE,
            jitter: Jitter(Arc::new(random_fraction)),
        }
    }
}

/// A source of numbers from 0 to 1.
#[derive(Clone)]
struct Jitter(Arc<dyn Fn() -> f64 + Send + Sync>);

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jitter")
    }
}

/// Returns a random number from 0 to 1. It only spreads retries over time, so the random keys of
/// the standard library's hasher are good enough.
fn random_fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// Parses a `Retry-After` header in seconds. The form with a date is ignored, because it would need
/// a clock that agrees with that of the service.
pub(crate) fn retry_after(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(fraction: f64) -> RetryPolicy {
        RetryPolicy::default()
            .pauses(Duration::from_millis(100), Duration::from_millis(300))
            .jitter(move || fraction)
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = (1..=4)
            .map(|attempts| policy(1.0).pause(attempts, None))
            .collect();
        let milliseconds = |pause| Some(Duration::from_millis(pause));
        assert_eq!(
            pauses,
            [
                milliseconds(100),
                milliseconds(200),
                milliseconds(300),
                None
            ]
        );
    }

    #[test]
    fn up_to_half_of_a_pause_is_random() {
        assert_eq!(policy(0.0).pause(1, None), Some(Duration::from_millis(50)));
        assert_eq!(policy(0.5).pause(1, None), Some(Duration::from_millis(75)));
        assert_eq!(policy(7.0).pause(1, None), Some(Duration::from_millis(100)));
        for _ in 0..1_000 {
            assert!((0.0..=1.0).contains(&random_fraction()));
        }
    }

    #[test]
    fn a_retry_waits_at_least_as_long_as_the_service_asks() {
        let asked = Duration::from_secs(2);
        assert_eq!(policy(1.0).pause(1, Some(asked)), Some(asked));
        assert_eq!(
            policy(1.0).pause(1, Some(Duration::ZERO)),
            Some(Duration::from_millis(100))
        );
        assert_eq!(policy(1.0).pause(4, Some(asked)), None);
    }

    #[test]
    fn a_policy_without_retries_has_no_pause() {
        assert_eq!(RetryPolicy::none().pause(1, None), None);
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        assert_eq!(retry_after(" 3 "), Some(Duration::from_secs(3)));
        assert_eq!(retry_after("Fri, 20 Nov 2026 10:00:00 GMT"), None);
        assert_eq!(retry_after("-1"), None);
    }
}
