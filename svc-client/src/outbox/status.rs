use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use svc_model::ingest::event::EventTime;
use svc_model::time::Instant;

use super::DeliveryId;
use crate::Error;

/// The status of an [`Outbox`](super::Outbox).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxStatus {
    /// The number of deliveries that are waiting to be sent.
    pub waiting: u64,
    /// The total size of their files in bytes.
    pub waiting_bytes: u64,
    /// How long the oldest of them has been waiting; `None` if none is waiting.
    pub oldest_age: Option<Duration>,
    /// The number of deliveries that the service refused.
    pub refused: u64,
    /// The total size of their files in bytes.
    pub refused_bytes: u64,
    /// Why sending has stopped until a person acts; `None` if it has not. It is set by the last
    /// attempt of any program on this folder, and cleared by the next success.
    pub stopped: Option<Reason>,
}

/// A delivery that the service refused permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// The path of its file: one line about the delivery, then the body.
    pub path: PathBuf,
    /// Why it was refused; `None` if the note was removed.
    pub reason: Option<Reason>,
}

/// Why a delivery was set aside, or why sending has stopped. It contains no captured content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reason {
    /// The kind of failure as a closed word: an [`ErrorKind::code`](crate::ErrorKind::code),
    /// `damaged_file`, or [`Reason::UNSIGNED`].
    pub code: String,
    /// The status of the answer; `None` if there was no answer, or if it was a success.
    pub status: Option<u16>,
    /// The error message.
    pub message: String,
    /// When it was recorded.
    pub at: Instant,
}

impl Reason {
    /// The word for a damaged file.
    pub(super) const DAMAGED: &str = "damaged_file";
    /// The word for a delivery that no key of the outbox has [signed](super::Outbox::signed).
    pub const UNSIGNED: &str = "unsigned";

    pub(super) fn of(error: &Error) -> Self {
        Self {
            code: error.kind().code().to_owned(),
            status: error.status(),
            message: error.to_string(),
            at: now(),
        }
    }

    pub(super) fn damaged() -> Self {
        Self::local(Self::DAMAGED, "the file is damaged")
    }

    pub(super) fn unsigned() -> Self {
        Self::local(
            Self::UNSIGNED,
            "it was put with another token or by somebody else, so it was not sent",
        )
    }

    fn local(code: &str, message: &str) -> Self {
        Self {
            code: code.to_owned(),
            status: None,
            message: message.to_owned(),
            at: now(),
        }
    }
}

/// Returns the current time. A clock before 1970 must not lose a delivery, so such a time counts as
/// 1970.
pub(super) fn now() -> Instant {
    const BEGINNING: Instant = Instant::from_microseconds(0).expect("1970 is in range");
    EventTime::try_from(SystemTime::now()).map_or(BEGINNING, EventTime::instant)
}

/// Returns the time since a moment, which is never negative.
pub(super) fn age(instant: Instant) -> Duration {
    let since = u64::try_from(instant.microseconds()).unwrap_or(0);
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH + Duration::from_micros(since))
        .unwrap_or_default()
}
