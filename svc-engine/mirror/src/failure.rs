use std::fmt;

use svc_engine_fact::deadline::Passed;

use super::allowance::StopReason;
use super::bare::PrepareError;
use super::folder::LockError;
use super::git::GitError;
use super::remote::RemoteError;

/// Why a mirror is behind its pushes. The closed words are for the log and the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorFailure {
    /// git could not fetch, or could not read what it fetched.
    FetchFailed,
    /// The job took longer than it may.
    FetchTimeout,
    /// The mirror has settings or files that this service did not write and that git would obey.
    MirrorAltered,
    /// Mirrors may not be fetched from this clone URL.
    CloneUrlRefused,
    /// The name belongs to another repository, or to several.
    NameAmbiguous,
    /// Malformed notes were ignored. The others were read.
    NoteInvalid,
    /// Less disk space is free than the reserve requires.
    DiskReserve,
    /// Too many notes were waiting for a branch to reach their commits, so the oldest were dropped.
    NotesGivenUp,
    /// The store did not answer a query or a write of the refresh.
    StoreFailed,
}

impl MirrorFailure {
    /// Every failure.
    const ALL: [Self; 9] = [
        Self::FetchFailed,
        Self::FetchTimeout,
        Self::MirrorAltered,
        Self::CloneUrlRefused,
        Self::NameAmbiguous,
        Self::NoteInvalid,
        Self::DiskReserve,
        Self::NotesGivenUp,
        Self::StoreFailed,
    ];

    /// Returns the failure that a word names, or `None` if the word is from a later version.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|failure| failure.as_str() == word)
    }

    /// Returns what an operator can do about it. `refresh` is the command that refreshes the
    /// mirror.
    pub fn mend(self, refresh: &str) -> String {
        let mend = match self {
            Self::FetchFailed => {
                return format!("fetch it again, and see what git says: {refresh}");
            }
            Self::FetchTimeout => {
                return format!("give the first fetch more time: {refresh} --deadline 3600");
            }
            Self::MirrorAltered => {
                return format!(
                    "see who else can write to the folder of the mirrors, remove the folder of this \
                     mirror, then fetch it anew: {refresh}"
                );
            }
            Self::CloneUrlRefused => {
                return format!(
                    "the clone URL must be https, http, ssh or git, with a host in \
                     SVC_ALLOWED_CLONE_HOSTS of the service; when it is: {refresh}; a folder on \
                     this machine, such as the demo's repository: SVC_DEV_MODE=true {refresh}"
                );
            }
            Self::NameAmbiguous => {
                "several repositories have had this name: have the forge send their numbers"
            }
            Self::NoteInvalid => "write notes with svc alone: the malformed ones were ignored",
            Self::DiskReserve => "free some space on the disk of the mirrors",
            Self::NotesGivenUp => "push the branches whose commits the notes name",
            Self::StoreFailed => "look at the store: svc db status",
        };
        mend.to_owned()
    }

    /// Returns the failure's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FetchFailed => "fetch_failed",
            Self::FetchTimeout => "fetch_timeout",
            Self::MirrorAltered => "mirror_altered",
            Self::CloneUrlRefused => "clone_url_refused",
            Self::NameAmbiguous => "name_ambiguous",
            Self::NoteInvalid => "note_invalid",
            Self::DiskReserve => "disk_reserve",
            Self::NotesGivenUp => "notes_given_up",
            Self::StoreFailed => "store_failed",
        }
    }
}

impl fmt::Display for MirrorFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Setback {
    /// The attempt must not be repeated.
    Refused(MirrorFailure, String),
    /// The attempt may be repeated, after growing pauses.
    Failed(MirrorFailure, String),
    /// The job waits for disk space.
    NoSpace,
    /// Another process is using the mirror.
    Taken,
    /// The service is stopping.
    Cancelled,
}

impl From<StopReason> for Setback {
    fn from(stopped: StopReason) -> Self {
        match stopped {
            StopReason::Passed(Passed::Time) => {
                Self::Failed(MirrorFailure::FetchTimeout, stopped.to_string())
            }
            StopReason::Passed(Passed::Cancelled) => Self::Cancelled,
            StopReason::DiskReserve => Self::NoSpace,
        }
    }
}

impl From<GitError> for Setback {
    fn from(error: GitError) -> Self {
        match error.stopped() {
            Some(stopped) => stopped.into(),
            None if error.lacked_space() => Self::NoSpace,
            None if error.is_altered() => {
                Self::Failed(MirrorFailure::MirrorAltered, error.complaint())
            }
            None => Self::Failed(MirrorFailure::FetchFailed, error.complaint()),
        }
    }
}

impl From<PrepareError> for Setback {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Git(error) => error.into(),
            PrepareError::Folder(error) => folder(&error),
        }
    }
}

impl From<LockError> for Setback {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Taken => Self::Taken,
            LockError::Stopped(stopped) => stopped.into(),
            LockError::Folder(error) => folder(&error),
        }
    }
}

fn folder(error: &std::io::Error) -> Setback {
    use std::io::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    ) {
        return Setback::NoSpace;
    }
    let detail = format!("the folder of the mirrors: {}", error.kind());
    Setback::Failed(MirrorFailure::FetchFailed, detail)
}

impl From<RemoteError> for Setback {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Refused(refusal) => {
                Self::Refused(MirrorFailure::CloneUrlRefused, refusal.to_string())
            }
            // The name may resolve later.
            RemoteError::Unresolved(_) => {
                Self::Failed(MirrorFailure::FetchFailed, error.to_string())
            }
            RemoteError::Stopped(stopped) => stopped.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_maps_back_to_its_failure() {
        for failure in MirrorFailure::ALL {
            assert_eq!(MirrorFailure::of_word(failure.as_str()), Some(failure));
        }
        assert_eq!(MirrorFailure::of_word("fetch_postponed"), None);
    }
}
