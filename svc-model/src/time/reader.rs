//! Reads a date and a time with an offset.
//!
//! Libraries accept every form of ISO 8601 and more: without separators, with a comma, with the
//! name of a time zone. So this module checks the form, and leaves only the calendar to the
//! library.

use jiff::civil::{Date, Time};
use jiff::tz::Offset;

use super::{Instant, InstantError};

const MICROSECONDS: i64 = 1_000_000;

/// The letter case in which `T` and `Z` are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letters {
    /// Upper and lower case.
    Any,
    /// Upper case only.
    #[cfg(feature = "service")]
    UpperCase,
}

impl Letters {
    const fn separators(self) -> &'static [u8] {
        match self {
            Self::Any => b"Tt ",
            #[cfg(feature = "service")]
            Self::UpperCase => b"T ",
        }
    }

    const fn utc(self) -> &'static [u8] {
        match self {
            Self::Any => b"Zz",
            #[cfg(feature = "service")]
            Self::UpperCase => b"Z",
        }
    }
}

/// Reads `YYYY-MM-DD`, a separator, `HH:MM` with an optional `:SS` and a fraction of any length,
/// and an offset: `Z`, `+HH:MM` or `+HHMM`.
pub(super) fn read(text: &str, letters: Letters) -> Result<Instant, InstantError> {
    let mut rest = Rest(text.as_bytes());
    let date = rest.date().ok_or(InstantError::Malformed)?;
    if rest.is_empty() {
        return Err(InstantError::NoTime);
    }
    let (time, fraction) = rest.time(letters).ok_or(InstantError::Malformed)?;
    if rest.is_empty() {
        return Err(InstantError::NoOffset);
    }
    let offset = rest.offset(letters).filter(|_| rest.is_empty());
    let offset = offset.ok_or(InstantError::Malformed)?;
    let moment = Offset::UTC.to_timestamp(date.to_datetime(time));
    let seconds = moment.map_err(|_| InstantError::OutOfRange)?.as_second() - offset;
    Instant::from_microseconds(seconds * MICROSECONDS + fraction).ok_or(InstantError::OutOfRange)
}

/// The part of the text that has not been read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next byte, if it is one of these.
    fn take(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// Takes a digit.
    fn digit(&mut self) -> Option<u8> {
        self.take(b"0123456789").map(|digit| digit - b'0')
    }

    /// Takes a number of two digits.
    fn pair(&mut self) -> Option<i8> {
        let number = self.digit()? * 10 + self.digit()?;
        i8::try_from(number).ok()
    }

    fn date(&mut self) -> Option<Date> {
        let year = i16::from(self.pair()?) * 100 + i16::from(self.pair()?);
        self.take(b"-")?;
        let month = self.pair()?;
        self.take(b"-")?;
        Date::new(year, month, self.pair()?).ok()
    }

    /// Takes a separator and a time; returns its microseconds separately.
    fn time(&mut self, letters: Letters) -> Option<(Time, i64)> {
        self.take(letters.separators())?;
        let hour = self.pair()?;
        self.take(b":")?;
        let minute = self.pair()?;
        let (mut second, mut fraction) = (0, 0);
        if self.take(b":").is_some() {
            second = self.pair()?;
            if self.take(b".").is_some() {
                fraction = self.fraction()?;
            }
        }
        Some((Time::new(hour, minute, second, 0).ok()?, fraction))
    }

    /// Takes the digits of a fraction, in microseconds. Further digits are cut off.
    fn fraction(&mut self) -> Option<i64> {
        let mut unit = MICROSECONDS / 10;
        let mut fraction = i64::from(self.digit()?) * unit;
        while let Some(digit) = self.digit() {
            unit /= 10;
            fraction += i64::from(digit) * unit;
        }
        Some(fraction)
    }

    /// Takes an offset, in seconds.
    fn offset(&mut self, letters: Letters) -> Option<i64> {
        if self.take(letters.utc()).is_some() {
            return Some(0);
        }
        let sign = if self.take(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.pair()?;
        // Some writers omit the colon.
        let _ = self.take(b":");
        let minutes = self.pair()?;
        let is_offset = hours < 24 && minutes < 60;
        is_offset.then(|| sign * (i64::from(hours) * 60 + i64::from(minutes)) * 60)
    }
}
