//! Reads a date and a time with an offset.
//!
//! Libraries accept every form of ISO 8601 and more: without separators, with a comma, with the
//! name of a time zone. So this module checks the form, and leaves only the calendar to the
//! library.

use jiff::civil::{Date, Time};
use jiff::tz::Offset;

use super::{Instant, InstantError};

const MICROSECONDS: i64 = 1_000_000;

/// The standard that a text follows, each with the liberties that its writers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    /// `T` and `Z` in either case.
    Rfc3339,
    /// `T` and `Z` in upper case only; an offset may be hours alone.
    #[cfg(feature = "service")]
    Iso8601,
}

impl Standard {
    const fn separators(self) -> &'static [u8] {
        match self {
            Self::Rfc3339 => b"Tt ",
            #[cfg(feature = "service")]
            Self::Iso8601 => b"T ",
        }
    }

    const fn utc(self) -> &'static [u8] {
        match self {
            Self::Rfc3339 => b"Zz",
            #[cfg(feature = "service")]
            Self::Iso8601 => b"Z",
        }
    }

    const fn needs_minutes_of_offset(self) -> bool {
        match self {
            Self::Rfc3339 => true,
            #[cfg(feature = "service")]
            Self::Iso8601 => false,
        }
    }
}

/// Reads `YYYY-MM-DD`, a separator, `HH:MM` with an optional `:SS` and a fraction of any length,
/// and an offset: `Z`, `+HH:MM` or `+HHMM`; in ISO 8601 also `+HH`.
pub(super) fn read(text: &str, standard: Standard) -> Result<Instant, InstantError> {
    let mut rest = Rest(text.as_bytes());
    let date = rest.date().ok_or(InstantError::Malformed)?;
    if rest.is_empty() {
        return Err(InstantError::NoTime);
    }
    let (time, fraction) = rest.time(standard).ok_or(InstantError::Malformed)?;
    if rest.is_empty() {
        return Err(InstantError::NoOffset);
    }
    let offset = rest.offset(standard).filter(|_| rest.is_empty());
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
    fn time(&mut self, standard: Standard) -> Option<(Time, i64)> {
        self.take(standard.separators())?;
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
    fn offset(&mut self, standard: Standard) -> Option<i64> {
        if self.take(standard.utc()).is_some() {
            return Some(0);
        }
        let sign = if self.take(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.pair()?;
        let minutes = if self.is_empty() && !standard.needs_minutes_of_offset() {
            0
        } else {
            // Some writers omit the colon.
            let _ = self.take(b":");
            self.pair()?
        };
        let is_offset = hours < 24 && minutes < 60;
        is_offset.then(|| sign * (i64::from(hours) * 60 + i64::from(minutes)) * 60)
    }
}
