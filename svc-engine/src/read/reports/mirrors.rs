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
    open: Vec<OpenMirror>,
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
    pub(super) fn of(&mut self, repository: &Lifetime) -> Result<Option<&mut OpenMirror>, Error> {
        let known = self.open.iter().position(|it| it.repository == *repository);
        let mirror = if let Some(place) = known {
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
            OpenMirror {
                repository: repository.clone(),
                reader,
                has_complained: false,
            }
        };
        self.open.push(mirror);
        Ok(self.open.last_mut())
    }
}

/// A mirror that is open.
#[derive(Debug)]
pub(super) struct OpenMirror {
    repository: Lifetime,
    reader: MirrorReader,
    /// Whether git complained. A repository that cannot be read would fill the log.
    has_complained: bool,
}

impl OpenMirror {
    /// Returns what is read of the mirror; nothing where it cannot be read, which is counted where it is
    /// missing.
    pub(super) fn read<T>(
        &mut self,
        ask: impl FnOnce(&mut MirrorReader) -> Result<T, ReadError>,
    ) -> Result<Option<T>, Error> {
        let read = ask(&mut self.reader);
        self.readable(read)
    }

    /// Returns what was read, as [`read`](Self::read) does.
    pub(super) fn readable<T>(&mut self, read: Result<T, ReadError>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(ReadError::Declined(_)) => Ok(None),
            Err(ReadError::Git(complaint)) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::warn!(mirror = %self.repository, complaint, "report.mirror_unreadable");
                }
                Ok(None)
            }
            Err(error @ (ReadError::Passed(_) | ReadError::Folder(_))) => Err(error.into()),
        }
    }

    /// Returns the mirror itself, where each reason for which it cannot be read has a name of its own.
    pub(super) const fn reader(&mut self) -> &mut MirrorReader {
        &mut self.reader
    }
}
