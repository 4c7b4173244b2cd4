use std::fmt;
use std::path::{Path, PathBuf};

use super::admission::FolderContents;
use super::disk;
use super::folder::Folder;
use super::{OutboxError, OutboxStatus, RefusedDelivery, status};

/// A view of the folder of an outbox. It only reads: it creates nothing, changes nothing and waits
/// for nothing. So it works while other programs are using the outbox, even if they keep it locked.
#[derive(Clone, Debug)]
pub struct OutboxView(Folder);

/// A program that is using an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxUser {
    /// What it is doing.
    pub work: OutboxWork,
    /// The id of its process; `None` if the system does not show it.
    pub process: Option<u32>,
}

/// What a program is doing with an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboxWork {
    /// It is adding a delivery, or opening the outbox. Nobody else can do so at the same time.
    Adding,
    /// It is sending, or waiting for something to send. Nobody else can send at the same time.
    Sending,
}

impl OutboxWork {
    /// Returns the work as a closed word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adding => "adding",
            Self::Sending => "sending",
        }
    }
}

impl fmt::Display for OutboxWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl OutboxView {
    /// Returns a view of the outbox in this folder.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Exposed`] if other users can enter the folder; [`OutboxError::Disk`] if there
    /// is no such folder.
    pub fn of(folder: impl Into<PathBuf>) -> Result<Self, OutboxError> {
        let folder = folder.into();
        disk::check_private(&folder)?;
        Ok(Self(Folder::at(folder)))
    }

    pub(super) fn new(folder: &Folder) -> Self {
        Self(folder.clone())
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Returns the status of the outbox. It reads little more than file names, so it takes only a
    /// moment.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn status(&self) -> Result<OutboxStatus, OutboxError> {
        let names = self.0.waiting()?;
        let waiting = FolderContents::of(&names);
        let refused = FolderContents::of(&self.0.refused()?);
        let oldest = names.first().and_then(|name| self.0.header(*name));
        Ok(OutboxStatus {
            waiting: waiting.deliveries,
            waiting_bytes: waiting.bytes,
            oldest_age: oldest.map(|header| status::age(header.put_at)),
            refused: refused.deliveries,
            refused_bytes: refused.bytes,
            stopped: self.0.stopped(),
        })
    }

    /// Returns the deliveries that the service refused, oldest first.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn refused(&self) -> Result<Vec<RefusedDelivery>, OutboxError> {
        let names = self.0.refused()?.into_iter();
        Ok(names.map(|name| self.0.refused_delivery(name)).collect())
    }

    /// Returns the programs that are using the outbox, as far as the system shows them. Linux shows
    /// the processes on most file systems. Elsewhere, it can only be seen whether somebody is
    /// adding a delivery.
    pub fn users(&self) -> Vec<OutboxUser> {
        let (writers, sender) = (self.0.writers(), self.0.sender());
        let user = |work| move |process| OutboxUser { work, process };
        let mut adding = disk::holders(&writers);
        if adding.is_empty() && disk::is_locked(&writers) {
            adding.push(None);
        }
        let adding = adding.into_iter().map(user(OutboxWork::Adding));
        // The lock of the sender is not tried: for a moment, others would take that for a sender.
        let sending = disk::holders(&sender).into_iter();
        adding
            .chain(sending.map(user(OutboxWork::Sending)))
            .collect()
    }
}
