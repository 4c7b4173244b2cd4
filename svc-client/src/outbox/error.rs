use std::io;
use std::path::{Path, PathBuf};

use svc_model::json::WriteError;

use crate::Error;

/// Why an outbox operation failed. No message contains captured content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The delivery does not fit within the limits. Nothing was stored.
    #[error("the outbox is full: {deliveries} deliveries of {bytes} bytes")]
    Full {
        /// The deliveries in the outbox, including refused ones.
        deliveries: u64,
        /// Their size in bytes.
        bytes: u64,
    },
    /// The delivery exceeds the cap of its route; the service would never accept it.
    #[error("the delivery exceeds the cap of its route")]
    TooLarge,
    /// The delivery cannot be written, because it contains a number that is not finite.
    #[error("the delivery contains a number that is not finite")]
    Unwritable(#[source] WriteError),
    /// Another sender is using this folder.
    #[error("another sender is using this outbox")]
    Busy,
    /// Sending has stopped until a person acts: the token is not accepted, or the URL is not that
    /// of a service. All deliveries are still waiting.
    #[error("the outbox has stopped until a person acts")]
    Stopped(#[source] Error),
    /// Other users can read the folder.
    #[error("other users can read {}; make it private with chmod 700", path.display())]
    Exposed {
        /// The folder.
        path: PathBuf,
    },
    /// A disk operation failed.
    #[error("cannot {action} {}", path.display())]
    Disk {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The runtime is shutting down.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

impl OutboxError {
    /// Returns a function that converts an I/O error.
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
