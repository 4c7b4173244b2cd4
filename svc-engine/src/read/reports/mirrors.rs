use crate::deadline::Deadline;
use crate::error::Error;
use crate::fact::Lifetime;
use crate::mirror::{MirrorReader, MirrorReading, ReadError};

/// Mirrors that are open at once: each has a few programs that read.
const OPEN_MAX: usize = 8;

/// The mirrors that a report reads. Those that were used last stay open.
#[derive(Debug)]
pub(super) struct OpenMirrors<'m> {
    reading: Option<&'m MirrorReading>,
    deadline: Deadline,
    /// The one that was used last is the last.
    open: Vec<(Lifetime, MirrorReader)>,
}

impl<'m> OpenMirrors<'m> {
    pub(super) fn new(reading: Option<&'m MirrorReading>, deadline: &Deadline) -> Self {
        Self {
            reading,
            deadline: deadline.clone(),
            open: Vec::new(),
        }
    }

    /// Returns the mirror of a repository; nothing when there is none.
    pub(super) fn of(&mut self, repository: &Lifetime) -> Result<Option<&mut MirrorReader>, Error> {
        let known = self.open.iter().position(|(it, _)| it == repository);
        let entry = if let Some(place) = known {
            self.open.remove(place)
        } else {
            let Some(reading) = self.reading else {
                return Ok(None);
            };
            let Some(reader) = reading.open(repository, &self.deadline)? else {
                return Ok(None);
            };
            if self.open.len() == OPEN_MAX {
                self.open.remove(0);
            }
            (repository.clone(), reader)
        };
        self.open.push(entry);
        Ok(self.open.last_mut().map(|(_, reader)| reader))
    }
}

/// Returns what was read of a repository; nothing where it cannot be read. That is logged where
/// nobody expects it, and is counted where it is missing.
pub(super) fn readable<T>(
    repository: &Lifetime,
    read: Result<T, ReadError>,
) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ReadError::Declined(reason)) => {
            tracing::debug!(mirror = %repository, reason = reason.as_str(), "report.declined");
            Ok(None)
        }
        Err(ReadError::Git(complaint)) => {
            tracing::warn!(mirror = %repository, complaint, "report.mirror_unreadable");
            Ok(None)
        }
        Err(error @ (ReadError::Passed(_) | ReadError::Folder(_))) => Err(error.into()),
    }
}
