//! Whether something that comes again and again has fallen silent.

use svc_model::time::Instant;

/// How many times longer than usual a silence is before it is told.
pub(crate) const TIMES: i64 = 10;
/// Fewer arrivals have no usual time between them.
pub(crate) const ARRIVALS_MIN: usize = 5;
/// A silence that is shorter is never told: an evening or a weekend is none.
pub(crate) const MICROSECONDS_MIN: i64 = 3 * 24 * 60 * 60 * 1_000_000;

/// A silence that is longer than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the last arrival was.
    pub since: Instant,
    /// The usual time between two arrivals, in seconds.
    pub usual_seconds: u64,
}

/// Returns the silence after these arrivals, if it is longer than usual: the median of the times
/// between them. Their order does not matter.
pub fn after_arrivals(mut arrivals: Vec<Instant>, now: Instant) -> Option<Silence> {
    if arrivals.len() < ARRIVALS_MIN {
        return None;
    }
    arrivals.sort_unstable();
    let mut gaps: Vec<i64> = arrivals
        .windows(2)
        .map(|pair| pair[1].microseconds() - pair[0].microseconds())
        .collect();
    gaps.sort_unstable();
    silence(*arrivals.last()?, gaps[gaps.len() / 2], now)
}

/// Returns the silence after a number of arrivals of which only the first and the last moment are
/// known, if it is longer than usual: their average distance.
pub fn after_count(first: Instant, last: Instant, arrivals: u64, now: Instant) -> Option<Silence> {
    let arrivals = i64::try_from(arrivals).ok()?;
    if arrivals < i64::try_from(ARRIVALS_MIN).ok()? {
        return None;
    }
    let span = last.microseconds().saturating_sub(first.microseconds());
    silence(last, span.max(0) / (arrivals - 1), now)
}

fn silence(since: Instant, usual: i64, now: Instant) -> Option<Silence> {
    let silent = now.microseconds().saturating_sub(since.microseconds());
    let is_unusual = silent >= MICROSECONDS_MIN && silent / TIMES > usual;
    is_unusual.then(|| Silence {
        since,
        usual_seconds: u64::try_from(usual / 1_000_000).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::at;

    use super::*;

    const HOUR: i64 = 60 * 60;
    const DAY: i64 = 24 * HOUR;

    #[test]
    fn a_silence_is_told_if_it_is_ten_times_longer_than_usual_and_three_days() {
        let hourly = || (0..5).map(|number| at(number * HOUR)).collect::<Vec<_>>();
        let last = 4 * HOUR;
        for (arrivals, now, usual) in [
            (hourly(), last + 3 * DAY, Some(3_600)),
            (hourly(), last + 3 * DAY - 1, None),
            (hourly()[1..].to_vec(), last + 30 * DAY, None),
            // Usually once a day: ten days are not longer than ten times that.
            (
                (0..9).map(|number| at(number * DAY)).collect(),
                18 * DAY,
                None,
            ),
            (
                (0..9).map(|number| at(number * DAY)).collect(),
                18 * DAY + 10,
                Some(86_400),
            ),
            (Vec::new(), 30 * DAY, None),
        ] {
            let silence = after_arrivals(arrivals.clone(), at(now));
            let told = silence.map(|silence| silence.usual_seconds);
            assert_eq!(told, usual, "{arrivals:?} {now}");
        }
        let since = after_arrivals(hourly(), at(30 * DAY)).unwrap().since;
        assert_eq!(since, at(last));
    }

    #[test]
    fn an_average_tells_as_much_as_a_median() {
        let told = |count, now| after_count(at(0), at(4 * HOUR), count, at(now));
        assert_eq!(told(5, 4 * HOUR + 3 * DAY).unwrap().usual_seconds, 3_600);
        assert_eq!(told(4, 4 * HOUR + 3 * DAY), None);
        assert_eq!(told(5, DAY), None);
    }
}
