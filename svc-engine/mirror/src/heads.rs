//! The heads of merged pull requests that a fetch did not bring.
//!
//! A forge shows the head of a pull request, even one from a fork, as `refs/pull/N/head`, and each
//! refresh fetches these refs. By then the ref may point elsewhere or be gone, although the forge
//! still has the merged commit. So each missing head is requested once by its id. The progress is
//! kept in the mirror itself. So a mirror that is created anew requests the heads again, and a head
//! that the forge lacks is not requested twice.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use svc_engine_fact::PullRequestMerge;
use svc_engine_fact::clock::later;
use svc_engine_fact::deadline::Passed;
use svc_engine_fact::private;
use svc_engine_store::StoreError;
use svc_model::id::FactId;
use svc_model::time::Instant;

use super::allowance::Allowance;
use super::bare::{Mirror, Object};
use super::folder::MirrorLock;
use super::git::GitError;
use super::object_id::ObjectId;
use super::remote::Remote;

/// The number of merges that one refresh checks, and of heads that it requests. The next refresh
/// continues.
pub(super) const MERGES_MAX: usize = 200;
const ASKED_MAX: usize = 8;
/// How many times fetching a head may fail, although the forge may have it, before the head is
/// given up. Otherwise the heads behind it would wait forever.
const TRIES_MAX: u32 = 3;
/// The file in the mirror, and its maximum bytes.
const FILE: &str = "svc-pull-requests";
const BYTES_MAX: u64 = 192;
/// The file's text for an absent id.
const NONE: &str = "-";
/// What git and its servers say about an object that the remote lacks or does not serve.
const LACKING: [&str; 3] = [
    "not our ref",
    "unadvertised object",
    "couldn't find remote ref",
];

/// What became of the heads that one refresh checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadCounts {
    /// Heads that were missing and have been fetched.
    pub(super) fetched: usize,
    /// Heads that the forge lacks.
    pub(super) absent: usize,
    /// Heads that could not be fetched.
    pub(super) failed: usize,
}

/// The progress through the merges of a mirror, in order of receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heads {
    /// The time of receipt of the next merge to check, or an earlier time.
    next: Instant,
    /// The last merge that was checked, among those received at that time.
    after: Option<FactId>,
    /// How many times fetching the next merge's head has failed.
    tries: u32,
    /// The head that is being requested. git may be stopped after the head has arrived but before
    /// its ref exists, so this head is requested again even if it is there.
    asking: Option<ObjectId>,
}

impl Heads {
    /// Reads a mirror's progress. Unreadable progress starts from the beginning.
    pub(super) fn of(mirror: &Path) -> Self {
        let read = || {
            let mut text = String::new();
            let file = fs::File::open(mirror.join(FILE)).ok()?;
            file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
            let mut fields = text.trim_end().split(' ');
            let heads = Self {
                next: Instant::from_microseconds(fields.next()?.parse().ok()?)?,
                after: match fields.next()? {
                    NONE => None,
                    id => Some(FactId::parse(id)?),
                },
                tries: fields.next()?.parse().ok()?,
                asking: match fields.next() {
                    Some(head) => Some(ObjectId::parse(head.as_bytes())?),
                    None => None,
                },
            };
            fields.next().is_none().then_some(heads)
        };
        read().unwrap_or(Self::from_the_start())
    }

    fn from_the_start() -> Self {
        Self {
            next: Instant::from_microseconds(0).expect("the first moment is one"),
            after: None,
            tries: 0,
            asking: None,
        }
    }

    fn write(self, mirror: &Path) -> io::Result<()> {
        let new: PathBuf = mirror.join(format!("{FILE}.new"));
        let (next, tries) = (self.next.microseconds(), self.tries);
        let after = self.after.map_or(NONE.to_owned(), |id| id.to_string());
        let asking = self.asking.map(|head| format!(" {head}"));
        let asking = asking.unwrap_or_default();
        // Left by a killed server, or put there by somebody else.
        drop(fs::remove_file(&new));
        private::write_new(&new, format!("{next} {after} {tries}{asking}\n").as_bytes())?;
        fs::rename(new, mirror.join(FILE))
    }

    fn behind(merge: &PullRequestMerge) -> Self {
        Self {
            next: merge.captured_at,
            after: Some(merge.merge_id),
            ..Self::from_the_start()
        }
    }

    /// Returns the time of receipt from which merges have to be checked.
    pub(super) fn from(self) -> Instant {
        self.next
    }

    /// Returns whether a merge, received at that time or later, has already been checked.
    fn is_behind(self, merge: &PullRequestMerge) -> bool {
        merge.captured_at == self.next && self.after.is_some_and(|after| merge.merge_id <= after)
    }

    /// Requests the missing heads of merges, given in order of receipt, and stores the progress.
    /// `asked` counts the results so far, even on an error.
    ///
    /// # Errors
    ///
    /// If git is stopped, or the mirror cannot be written.
    pub(super) fn fetch(
        mut self,
        mirror: &Mirror<'_>,
        merges: &[PullRequestMerge],
        remote: &Remote,
        lock: &MirrorLock,
        allowance: &Allowance,
        asked: &mut HeadCounts,
    ) -> Result<(), HeadsError> {
        let mut kept = self;
        let merges: Vec<&PullRequestMerge> = merges
            .iter()
            .filter(|merge| !self.is_behind(merge))
            .collect();
        if merges.is_empty() {
            // Whatever is stored from now on is received later.
            self.next = later(self.next, Duration::from_micros(1));
            self.after = None;
        }
        let heads: Vec<ObjectId> = merges
            .iter()
            .map(|merge| ObjectId::of(&merge.pull_request.head_sha))
            .collect();
        let objects = mirror.objects(&heads, allowance)?;
        for ((merge, head), object) in merges.into_iter().zip(heads).zip(objects) {
            let asking = if object != Object::Commit || self.asking == Some(head) {
                if asked.fetched + asked.absent == ASKED_MAX {
                    break;
                }
                let number = merge.pull_request.pr_number;
                self.asking = Some(head);
                self.keep(&mut kept, mirror)?;
                match mirror.fetch_head(remote, head, number, lock, allowance) {
                    Ok(()) => asked.fetched += 1,
                    Err(error) => {
                        mirror.sweep();
                        if error.is_stopped() {
                            // A forge that never answers would hold up all other work, again and
                            // again.
                            let is_late = allowance.left() == Err(Passed::Time.into());
                            self.tries += u32::from(is_late);
                            if self.tries == TRIES_MAX {
                                self = Self::behind(merge);
                            }
                            self.keep(&mut kept, mirror)?;
                            return Err(HeadsError::Prepare(error));
                        }
                        if error.mentions(&LACKING) {
                            asked.absent += 1;
                        } else {
                            asked.failed += 1;
                            self.tries += 1;
                            self.asking = None;
                            if self.tries < TRIES_MAX {
                                break;
                            }
                        }
                    }
                }
                None
            } else {
                // The requested head may come later in the list.
                self.asking
            };
            self = Self {
                asking,
                ..Self::behind(merge)
            };
        }
        self.keep(&mut kept, mirror)?;
        Ok(())
    }

    /// Stores the progress if it has changed.
    fn keep(self, kept: &mut Self, mirror: &Mirror<'_>) -> io::Result<()> {
        if self != *kept {
            self.write(&mirror.path)?;
            *kept = self;
        }
        Ok(())
    }
}

/// Why fetching heads stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeadsError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Prepare(super::bare::FetchError),
    #[error("the folder of the mirror cannot be written")]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_progress_is_read_back_and_anything_else_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let start = Heads::from_the_start();
        assert_eq!(Heads::of(folder.path()), start);
        for id in [None, Some("a".repeat(40)), Some("b".repeat(64))] {
            let later = Heads {
                next: Instant::from_microseconds(1_793_491_200_000_001).unwrap(),
                after: Some(FactId::new(uuid::Uuid::from_u128(7))),
                tries: 2,
                asking: id.map(|id| ObjectId::parse(id.as_bytes()).unwrap()),
            };
            later.write(folder.path()).unwrap();
            assert_eq!(Heads::of(folder.path()), later);
        }
        for odd in [
            "",
            "x",
            "1",
            "1 x",
            "1 - x",
            "1 2",
            "1 - 2 3",
            "-1 - 0",
            "99999999999999999999 - 0",
            "\u{0}",
        ] {
            fs::write(folder.path().join(FILE), odd).unwrap();
            assert_eq!(Heads::of(folder.path()), start, "{odd:?}");
        }
    }
}
