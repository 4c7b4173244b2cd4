use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use svc_model::ingest::event::EventTime;
use svc_model::time::Instant;

use super::DeliveryId;
use crate::Error;

/// What an [`Outbox`](super::Outbox) holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxStatus {
    /// Deliveries that wait to be sent.
    pub waiting: u64,
    /// Bytes of their files.
    pub waiting_bytes: u64,
    /// How long the oldest of them has been waiting.
    pub oldest_age: Option<Duration>,
    /// Deliveries that the service refused.
    pub refused: u64,
    /// Bytes of their files.
    pub refused_bytes: u64,
    /// Why sending has stopped until a person acts: since the last attempt of any program on this
    /// folder, and until the next one that succeeds.
    pub stopped: Option<Reason>,
}

/// A delivery that the service refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedDelivery {
    /// Its name.
    pub id: DeliveryId,
    /// Its file: a line about the delivery, then the body that was sent.
    pub path: PathBuf,
    /// Why it was refused; nothing when somebody removed the note of it.
    pub reason: Option<Reason>,
}

/// Why the service did not take a delivery. It holds nothing that was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reason {
    /// The kind of the failure as one closed word: see [`ErrorKind::code`](crate::ErrorKind::code).
    pub code: String,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The failure in words.
    pub message: String,
    /// When it was answered.
    pub at: Instant,
}

impl Reason {
    /// The word for a file that is not as it was written.
    pub(super) const DAMAGED: &str = "damaged_file";

    pub(super) fn of(error: &Error) -> Self {
        Self {
            code: error.kind().code().to_owned(),
            status: error.status(),
            message: error.to_string(),
            at: now(),
        }
    }

    pub(super) fn damaged() -> Self {
        Self {
            code: Self::DAMAGED.to_owned(),
            status: None,
            message: "the file is not as it was written".to_owned(),
            at: now(),
        }
    }
}

/// Returns the present. A clock that is set before 1970 must not lose a delivery, and counts as 1970.
pub(super) fn now() -> Instant {
    const BEGINNING: Instant = Instant::from_microseconds(0).expect("1970 is in range");
    EventTime::try_from(SystemTime::now()).map_or(BEGINNING, EventTime::instant)
}
