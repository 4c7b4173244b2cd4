use std::fmt;
use std::time::SystemTime;

use crate::id::is_trimmed;
use crate::json::Text;
use crate::limit::{EDIT_TEXT_BYTES_MAX, PATH_BYTES_MAX};
use crate::time::Instant;

/// When something happened, by the sender's clock. It is after 1970-01-01T00:00:00Z, because OTLP
/// uses that moment for an unknown time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime(Instant);

/// Why a moment cannot be the time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be after 1970-01-01T00:00:00Z and before 2262")]
pub struct EventTimeError;

impl EventTime {
    /// Returns the moment.
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// Returns the nanoseconds since 1970. They fit into an `i64` for every accepted moment.
    pub(super) fn nanoseconds(self) -> i64 {
        self.0.microseconds() * 1_000
    }
}

impl TryFrom<Instant> for EventTime {
    type Error = EventTimeError;
    fn try_from(instant: Instant) -> Result<Self, EventTimeError> {
        if instant.microseconds() > 0 {
            Ok(Self(instant))
        } else {
            Err(EventTimeError)
        }
    }
}

/// The time is cut off after the microseconds.
impl TryFrom<SystemTime> for EventTime {
    type Error = EventTimeError;
    fn try_from(time: SystemTime) -> Result<Self, EventTimeError> {
        let instant = Instant::try_from(time).map_err(|_| EventTimeError)?;
        instant.try_into()
    }
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The path of a file, as the agent wrote it: not blank, no NUL, at most [`PATH_BYTES_MAX`] bytes
/// of UTF-8. It is not trimmed, because white space may be part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// Why a text is not a [`FilePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilePathError {
    /// It is empty or blank.
    #[error("must not be blank")]
    Blank,
    /// It contains U+0000.
    #[error("must hold no NUL")]
    Nul,
    /// It is longer than [`PATH_BYTES_MAX`].
    #[error("must have at most 4096 bytes of UTF-8")]
    TooLong,
}

impl FilePath {
    /// Returns the path.
    ///
    /// # Errors
    ///
    /// See [`FilePathError`].
    pub fn new(path: impl Into<String>) -> Result<Self, FilePathError> {
        let path = path.into();
        if path.chars().all(is_trimmed) {
            Err(FilePathError::Blank)
        } else if path.contains('\0') {
            Err(FilePathError::Nul)
        } else if path.len() > PATH_BYTES_MAX {
            Err(FilePathError::TooLong)
        } else {
            Ok(Self(path))
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path without surrounding white space.
    pub(super) fn trimmed(&self) -> Self {
        Self(self.0.trim_matches(is_trimmed).to_owned())
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text of an edit or of a file: any text, including NUL and lone surrogates, of at most
/// [`EDIT_TEXT_BYTES_MAX`] bytes of UTF-8. A lone surrogate counts as one byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EditText(Text);

/// The error for a text that is too long for an event. The service would skip its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have at most {EDIT_TEXT_BYTES_MAX} bytes of UTF-8, and has {bytes}")]
pub struct EditTextError {
    /// The length of the text in bytes.
    pub bytes: usize,
}

impl EditText {
    /// Returns the text.
    ///
    /// # Errors
    ///
    /// If it is too long.
    pub fn new(text: impl Into<Text>) -> Result<Self, EditTextError> {
        let text = text.into();
        let bytes = text.len() - 2 * surrogates(&text);
        if bytes > EDIT_TEXT_BYTES_MAX {
            return Err(EditTextError { bytes });
        }
        Ok(Self(text))
    }

    /// Returns the text, in the form of captured values.
    pub const fn text(&self) -> &Text {
        &self.0
    }
}

/// Returns the number of lone surrogates. Each takes three bytes of generalised UTF-8.
fn surrogates(text: &Text) -> usize {
    if !text.has_surrogate() {
        return 0;
    }
    // In ordinary UTF-8, a byte of at most 9F follows the byte ED.
    let begins = |pair: &&[u8]| pair[0] == 0xed && pair[1] >= 0xa0;
    text.as_bytes().windows(2).filter(begins).count()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::json::Json;

    #[test]
    fn an_event_time_must_be_after_1970_begins() {
        let at = |microseconds| Instant::from_microseconds(microseconds).unwrap();
        assert_eq!(EventTime::try_from(at(0)), Err(EventTimeError));
        assert_eq!(EventTime::try_from(at(1)).unwrap().nanoseconds(), 1_000);
        let time = UNIX_EPOCH + Duration::from_nanos(1_783_454_255_424_123_999);
        let time = EventTime::try_from(time).unwrap();
        assert_eq!(time.nanoseconds(), 1_783_454_255_424_123_000);
        assert_eq!(time.to_string(), "2026-07-07T19:57:35.424123Z");
        for beyond in [
            UNIX_EPOCH,
            UNIX_EPOCH + Duration::from_nanos(999),
            UNIX_EPOCH - Duration::from_secs(1),
            UNIX_EPOCH + Duration::from_hours(24 * 366 * 292),
        ] {
            assert_eq!(EventTime::try_from(beyond), Err(EventTimeError));
        }
    }

    #[test]
    fn the_last_instant_has_its_nanoseconds() {
        let last = Instant::parse("2261-12-31T23:59:59.999999Z").unwrap();
        let nanoseconds = EventTime::try_from(last).unwrap().nanoseconds();
        assert_eq!(nanoseconds, 9_214_646_399_999_999_000);
    }

    #[test]
    fn a_path_is_kept_unchanged_or_refused() {
        assert_eq!(FilePath::new(" a b ").unwrap().as_str(), " a b ");
        assert_eq!(FilePath::new(" a b ").unwrap().trimmed().as_str(), "a b");
        for blank in ["", " \t", "\u{1f}\u{3000}"] {
            assert_eq!(FilePath::new(blank), Err(FilePathError::Blank));
        }
        assert_eq!(FilePath::new("a\0"), Err(FilePathError::Nul));
        assert!(FilePath::new("x".repeat(PATH_BYTES_MAX)).is_ok());
        let long = FilePath::new("x".repeat(PATH_BYTES_MAX + 1));
        assert_eq!(long, Err(FilePathError::TooLong));
    }

    #[test]
    fn a_text_is_counted_in_bytes_of_utf_8() {
        let most = EDIT_TEXT_BYTES_MAX;
        assert!(EditText::new("x".repeat(most)).is_ok());
        assert_eq!(
            EditText::new("\u{e9}".repeat(most / 2 + 1)),
            Err(EditTextError { bytes: most + 2 })
        );
        let lone = Json::parse(br#""\ud800 \udfff""#).unwrap();
        let lone = lone.as_text().unwrap();
        assert_eq!(surrogates(lone), 2);
        let mut bytes = "\u{d7ff}".repeat((most - 3) / 3).into_bytes();
        bytes.resize(most - 3, b'x');
        bytes.extend_from_slice(lone.as_bytes());
        let fits = Text::from_wtf8(bytes.clone()).unwrap();
        assert_eq!(EditText::new(&fits).unwrap().text(), &fits);
        bytes.push(b'x');
        let over = EditText::new(Text::from_wtf8(bytes).unwrap());
        assert_eq!(over, Err(EditTextError { bytes: most + 1 }));
    }
}
