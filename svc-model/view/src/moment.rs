//! Moments as people and agents write them: dates and ages.

use std::borrow::Cow;

use svc_model::time::Instant;

const MICROSECONDS: i64 = 1_000_000;

/// Returns whether a text has the form of a date: `2026-01-31`.
pub fn is_date(text: &str) -> bool {
    let form = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(form)
}

/// Returns midnight UTC in place of a date, and any other text as it is.
pub fn midnight(text: &str) -> Cow<'_, str> {
    if is_date(text) {
        Cow::Owned(format!("{text}T00:00:00Z"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the microseconds of an age: digits and a unit of s, m, h, d or w. An age that no moment
/// has is very long.
pub fn age(text: &str) -> Option<i64> {
    let (at, unit) = text.char_indices().last()?;
    let seconds: i64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &text[..at];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: i64 = digits.parse().unwrap_or(i64::MAX);
    Some(count.saturating_mul(seconds).saturating_mul(MICROSECONDS))
}

/// Returns the moment that lies an age in microseconds before another.
///
/// # Errors
///
/// What is expected, if that is no moment.
pub fn before(now: Instant, age: i64) -> Result<Instant, &'static str> {
    let then = now.microseconds().checked_sub(age);
    then.and_then(Instant::from_microseconds)
        .ok_or("must not be before 1970")
}
