use std::io;
use std::path::{Path, PathBuf};

use svc_model::json::WriteError;

use crate::Error;

/// Why an outbox operation failed. No message contains captured content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// With the delivery, the outbox would exceed its [limits](super::OutboxLimits). The delivery
    /// was not kept. Send what is waiting, remove what was refused, or raise the limits; then put
    /// the delivery again.
    #[error(
        "the delivery was not kept: with it, the outbox would exceed its limits; it holds \
         {deliveries} deliveries of {bytes} bytes; make room, or raise the limits"
    )]
    Full {
        /// The number of deliveries in the outbox, including refused ones and without this one.
        deliveries: u64,
        /// The total size of their files in bytes.
        bytes: u64,
    },
    /// The delivery exceeds the cap of its route, so the service would never accept it. It was not
    /// kept.
    #[error("the delivery was not kept: it exceeds the cap of its route")]
    TooLarge,
    /// The delivery contains something that JSON cannot express, usually a number that is not
    /// finite. It was not kept. The source of the error says what it is: leave it out, or replace
    /// it by a text.
    #[error(
        "the delivery was not kept: it contains something that JSON cannot express, such as a \
         number that is not finite"
    )]
    Unwritable(#[source] WriteError),
    /// The outbox was locked by others for [`Outbox::PATIENCE`](super::Outbox::PATIENCE): by other
    /// programs, or by threads of this one that wait for them. A delivery that was to be put was
    /// not kept, and an outbox that was to be opened was not opened. Try again.
    #[error("other programs have kept the outbox locked, so nothing was added to it; try again")]
    Locked,
    /// Another sender is using this folder. Only [`Outbox::drain`](super::Outbox::drain) fails with
    /// this error. It has sent nothing, and all deliveries are still waiting.
    #[error("another sender is using this outbox")]
    Busy,
    /// Sending has stopped until a person acts: the token is not accepted, or the URL is not that
    /// of a service. All deliveries are still waiting.
    #[error("sending is paused: this needs attention")]
    Stopped(#[source] Error),
    /// Other users can enter the folder.
    #[error("other users can read {}; make it private with chmod 700", path.display())]
    Exposed {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The folder belongs to another user, who could put deliveries or links into it.
    #[error("{} belongs to another user; name a folder of your own", path.display())]
    Foreign {
        /// The path of the folder.
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
    /// The runtime is shutting down, so nothing was done.
    #[error("the runtime is shutting down, so nothing was done")]
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
