use std::io;
use std::path::{Path, PathBuf};

use svc_model::json::WriteError;

use crate::Error;

/// Why an outbox cannot do what it is asked. No text holds anything that was captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The delivery does not fit within the limits. Nothing was stored.
    #[error("the outbox is full: {deliveries} deliveries of {bytes} bytes")]
    Full {
        /// The deliveries that it holds, refused ones included.
        deliveries: u64,
        /// The bytes that they take.
        bytes: u64,
    },
    /// The delivery is over the cap of its route; the service would never take it.
    #[error("the delivery is over the cap of its route")]
    TooLarge,
    /// The delivery cannot be written: it holds a number that is not finite.
    #[error("the delivery holds a number that is not finite")]
    Unwritable(#[source] WriteError),
    /// Another sender works on this folder.
    #[error("another sender works on this outbox")]
    Busy,
    /// Sending has stopped until a person acts: the token is not accepted, or the URL is not that of
    /// a service. Everything that waited still waits.
    #[error("the outbox has stopped until a person acts")]
    Stopped(#[source] Error),
    /// Others may read the folder.
    #[error("others may read {}; make it private with chmod 700", path.display())]
    Exposed {
        /// The folder.
        path: PathBuf,
    },
    /// The disk does not do its part.
    #[error("cannot {action} {}", path.display())]
    Disk {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The runtime is shutting down and takes no more work.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

impl OutboxError {
    /// Returns what makes a failure of the disk one of this kind.
    pub(super) fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Disk {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<WriteError> for OutboxError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Budget => Self::TooLarge,
            WriteError::NonFinite
            | WriteError::Key
            | WriteError::Unreadable(_)
            | WriteError::Refused(_) => Self::Unwritable(error),
        }
    }
}
