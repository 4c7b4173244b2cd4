//! The heads of merged pull requests that a fetch did not bring.
//!
//! A forge shows the head of a pull request, also one that came from a fork, as `refs/pull/N/head`, and
//! each refresh fetches these. By the time of a refresh the name may lead elsewhere, or nowhere, while
//! the forge still has the commit that was merged. So each head that is missing is asked for once, by
//! its id. How far that has come is kept in the mirror itself: a mirror that is made anew asks anew, and
//! a head that the forge does not have is not asked for again.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use svc_model::time::Instant;

use super::allowance::Allowance;
use super::bare::{Mirror, Object};
use super::folder::Locked;
use super::git::GitError;
use super::object_id::ObjectId;
use super::remote::Remote;
use crate::deadline::Passed;
use crate::fact::PullRequestMerge;
use crate::store::StoreError;

/// Merges that one refresh looks at, and heads that it asks for. The rest is for the next.
pub(super) const MERGES_MAX: usize = 200;
const ASKED_MAX: usize = 8;
/// Refreshes after which a head is given up that could not be fetched for another reason than that the
/// forge lacks it. The others behind it would wait for ever.
const TRIES_MAX: u32 = 3;
/// The file of the mirror, and its bytes at most.
const FILE: &str = "svc-pull-requests";
const BYTES_MAX: u64 = 128;
/// What git and its servers say of an object that the other side does not have, or does not give.
const LACKING: [&str; 3] = [
    "not our ref",
    "unadvertised object",
    "couldn't find remote ref",
];

/// What became of the heads that one refresh looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Heads that were missing and are there now.
    pub(super) fetched: usize,
    /// Heads that the forge does not have.
    pub(super) absent: usize,
    /// Heads that could not be fetched.
    pub(super) failed: usize,
}

/// How far the merges of a mirror have been looked at, in the order of their receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heads {
    /// When the first merge was received that is still to be looked at, or later.
    next: i64,
    /// How often that one could not be fetched.
    tries: u32,
    /// The head that is being asked for. Git may be ended once it has arrived and before it has its
    /// name, so it is asked for again, also when it is there.
    asking: Option<ObjectId>,
}

impl Heads {
    /// Reads how far a mirror has come. What cannot be read begins anew.
    pub(super) fn of(mirror: &Path) -> Self {
        let read = || {
            let mut text = String::new();
            let file = fs::File::open(mirror.join(FILE)).ok()?;
            file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
            let mut fields = text.trim_end().split(' ');
            let heads = Self {
                next: fields.next()?.parse().ok()?,
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

    const fn from_the_start() -> Self {
        Self {
            next: 0,
            tries: 0,
            asking: None,
        }
    }

    fn write(self, mirror: &Path) -> io::Result<()> {
        let new: PathBuf = mirror.join(format!("{FILE}.new"));
        let asking = self.asking.map(|head| format!(" {head}"));
        let asking = asking.unwrap_or_default();
        fs::write(&new, format!("{} {}{asking}\n", self.next, self.tries))?;
        fs::rename(new, mirror.join(FILE))
    }

    const fn behind(merge: &PullRequestMerge) -> Self {
        Self {
            next: merge.captured_at.microseconds() + 1,
            ..Self::from_the_start()
        }
    }

    /// Returns from when on merges are still to be looked at.
    pub(super) fn from(self) -> Option<Instant> {
        Instant::from_microseconds(self.next)
    }

    /// Asks for the missing heads of merges, which are in the order of their receipt, and remembers how
    /// far it has come. What became of those that were looked at is told in either case.
    ///
    /// # Errors
    ///
    /// When git is stopped, or the mirror cannot be written.
    pub(super) fn fetch(
        mut self,
        mirror: &Mirror<'_>,
        merges: &[PullRequestMerge],
        remote: &Remote,
        lock: &Locked,
        allowance: &Allowance,
        asked: &mut Asked,
    ) -> Result<(), HeadsError> {
        let mut kept = self;
        let heads: Vec<ObjectId> = merges
            .iter()
            .map(|merge| ObjectId::of(&merge.pull_request.head_sha))
            .collect();
        let objects = mirror.objects(&heads, allowance)?;
        for ((merge, head), object) in merges.iter().zip(heads).zip(objects) {
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
                            // A forge that never answers would hold up all others, again and again.
                            let is_late = allowance.left() == Err(Passed::Time.into());
                            self.tries += u32::from(is_late);
                            if self.tries == TRIES_MAX {
                                self = Self::behind(merge);
                            }
                            self.keep(&mut kept, mirror)?;
                            return Err(HeadsError::Prepare(error));
                        }
                        if error.says(&LACKING) {
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
                // The one that was being asked for may still come.
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

    /// Remembers how far it has come, unless that is kept already.
    fn keep(self, kept: &mut Self, mirror: &Mirror<'_>) -> io::Result<()> {
        if self != *kept {
            self.write(&mirror.path)?;
            *kept = self;
        }
        Ok(())
    }
}

/// Why heads were not asked for.
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
    fn what_was_written_is_read_and_anything_else_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let start = Heads::from_the_start();
        assert_eq!(Heads::of(folder.path()), start);
        for id in [None, Some("a".repeat(40)), Some("b".repeat(64))] {
            let later = Heads {
                next: 1_793_491_200_000_001,
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
            "1 2 3",
            "99999999999999999999 0",
            "\u{0}",
        ] {
            fs::write(folder.path().join(FILE), odd).unwrap();
            assert_eq!(Heads::of(folder.path()), start, "{odd:?}");
        }
        let before = Heads { next: -1, ..start };
        assert_eq!(before.from(), None);
    }
}
