//! The limit on answers to wrong tokens.
//!
//! The correct token always signs in, however many wrong ones others send: it is random and long,
//! so a limit would protect nothing, and would let strangers keep the operator out. Only the number
//! of attempts is kept.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of wrong tokens in a row before their answers are limited.
const TRIES: u32 = 10;
/// The time until another attempt is allowed.
const PAUSE: Duration = Duration::from_secs(6);

/// The time at which all attempts are available again. Each attempt postpones it by a pause.
#[derive(Default)]
pub(super) struct Attempts(Mutex<Option<Instant>>);

impl Attempts {
    /// Takes an attempt, or returns the time until the next one.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut full = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = full.map_or(now, |full| full.max(now)) + PAUSE;
        let early = (after - now).saturating_sub(PAUSE * TRIES);
        if !early.is_zero() {
            return Err(early);
        }
        *full = Some(after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_run_out_and_come_back_one_by_one() {
        let attempts = Attempts::default();
        let now = Instant::now();
        for _ in 0..TRIES {
            attempts.take(now).unwrap();
        }
        assert_eq!(attempts.take(now), Err(PAUSE));
        assert!(attempts.take(now + PAUSE / 2).is_err());
        assert!(attempts.take(now + PAUSE).is_ok());
        assert!(attempts.take(now + PAUSE).is_err());
    }
}
