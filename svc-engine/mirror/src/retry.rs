//! How long a failed job waits before it is repeated.

use std::time::Duration;

use uuid::Uuid;

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(5);
/// The longest wait.
const LONGEST: Duration = Duration::from_hours(1);
/// After this many failures in a row, a job waits for the next delivery. Reaching that takes some
/// hours, longer than the usual outage of a forge.
const ATTEMPTS_MAX: u64 = 20;

/// Returns the pause after this many failures in a row; `None` after the last one.
///
/// The pause doubles and is shortened by up to half at random, so that jobs that failed together
/// are not repeated together.
pub(super) fn wait(failures: u64, chance: Uuid) -> Option<Duration> {
    if failures >= ATTEMPTS_MAX {
        return None;
    }
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings.min(31)).unwrap_or(u32::MAX);
    let whole = FIRST.saturating_mul(factor).min(LONGEST);
    let (_, low) = chance.as_u64_pair();
    let share = u32::try_from(low % 1_024).unwrap_or_default();
    Some(whole.saturating_sub(whole / 2 * share / 1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour_and_then_end() {
        let longest = |failures| wait(failures, Uuid::nil()).unwrap().as_secs();
        let waits: Vec<u64> = (1..12).map(longest).collect();
        assert_eq!(
            waits,
            [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]
        );
        assert_eq!(longest(ATTEMPTS_MAX - 1), 3_600);
        assert_eq!(wait(ATTEMPTS_MAX, Uuid::nil()), None);
        assert_eq!(wait(u64::MAX, Uuid::nil()), None);
    }

    #[test]
    fn jitter_shortens_a_wait_by_at_most_half() {
        for number in 0..2_000 {
            let waited = wait(3, Uuid::from_u128(number)).unwrap();
            assert!(waited <= Duration::from_secs(20), "{waited:?}");
            assert!(waited > Duration::from_secs(10), "{waited:?}");
        }
        assert_ne!(wait(1, Uuid::from_u128(1)), wait(1, Uuid::from_u128(500)));
    }
}
