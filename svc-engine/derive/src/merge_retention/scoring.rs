use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, is_trimmed};
use svc_model::reports::ScoringSkip;
use svc_model::repository::CommitSha;

use super::{FILE_BYTES_MAX, Merge, MergeRetention, RetentionRow};
use crate::attribution::Attribution;
use crate::diff::CommitDiff;
use crate::fate::containment;
use crate::lifecycle::{self, FileScores};

/// An attributed file in exactly one merged pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedFile {
    /// The file, its call and its commit.
    pub attribution: Attribution,
    /// The observations of the Session at the commit, sorted.
    pub observation_ids: Vec<FactId>,
    /// The pull request.
    pub merge: Arc<Merge>,
}

/// A file at a commit, or why it cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAt {
    /// Its path and text.
    Text {
        /// Its path.
        path: String,
        /// Its text, see [`file_text`].
        text: String,
    },
    /// It is no longer at its path, and no file, or more than one, was renamed from there.
    PathUnresolved,
    /// Something other than a regular file is at its path.
    Absent,
    /// It contains a NUL.
    Binary,
    /// It is larger than [`FILE_BYTES_MAX`].
    Oversized,
    /// git did not return it.
    ReadFailed,
}

/// How much of the added text is left, from 0 to 1, and where it was searched for.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The path at the final head.
    pub head_path: String,
    /// The share left there.
    pub head: f64,
    /// The path at the commit that holds the merged work.
    pub merge_path: String,
    /// The share left there.
    pub merge: f64,
}

/// Returns what a commit adds to a file.
///
/// # Errors
///
/// [`ScoringSkip::SourceFileDiffAbsent`], [`ScoringSkip::SourceTextEmpty`].
pub fn source_text<'d>(diff: &'d CommitDiff, path: &str) -> Result<&'d str, ScoringSkip> {
    let mut sections = diff.files.iter().filter(|file| file.path == path);
    match (sections.next(), sections.next()) {
        (Some(file), None) if file.added.chars().all(is_trimmed) => {
            Err(ScoringSkip::SourceTextEmpty)
        }
        (Some(file), None) => Ok(&file.added),
        _ => Err(ScoringSkip::SourceFileDiffAbsent),
    }
}

/// Returns the new path of a file between two commits, given the old and new paths of their
/// renames; `None` unless it was renamed to exactly one path.
pub fn renamed_to<'r>(
    renames: impl IntoIterator<Item = (&'r [u8], &'r [u8])>,
    path: &str,
) -> Option<&'r [u8]> {
    // Paths from diffs are text, in which U+FFFD replaces invalid bytes.
    let is_from = |from: &[u8]| String::from_utf8_lossy(from) == path;
    let mut renames = renames.into_iter().filter(|(from, _)| is_from(from));
    match (renames.next(), renames.next()) {
        (Some((_, to)), None) => Some(to),
        _ => None,
    }
}

/// Returns the text of a file, decoded as the text of a diff is: CRLF is a line break, and bytes
/// that are not UTF-8 become U+FFFD.
pub fn file_text(path: String, bytes: &[u8]) -> FileAt {
    if bytes.contains(&0) {
        return FileAt::Binary;
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return FileAt::Oversized;
    }
    let text = String::from_utf8_lossy(bytes);
    FileAt::Text {
        path,
        text: text.replace("\r\n", "\n"),
    }
}

/// How much of the added text is left in a file at a commit, or why that is unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum TextRetention {
    /// The share that is left, from 0 to 1.
    Share {
        /// Its path.
        path: String,
        /// The share.
        share: f64,
    },
    /// It cannot be compared, for the first reason at the head and the second at the merge.
    Odd(ScoringSkip, ScoringSkip),
}

impl TextRetention {
    /// Returns the same result for a file at another path.
    #[must_use]
    pub fn at(self, path: String) -> Self {
        match self {
            Self::Share { share, .. } => Self::Share { path, share },
            odd @ Self::Odd(..) => odd,
        }
    }
}

/// Returns how much of the added text is left. Takes time proportional to both texts.
pub fn left(added: &str, file: &FileAt) -> TextRetention {
    match file {
        FileAt::Text { path, text } => TextRetention::Share {
            path: path.clone(),
            share: containment(added, text),
        },
        FileAt::PathUnresolved => TextRetention::Odd(
            ScoringSkip::HeadPathUnresolved,
            ScoringSkip::MergePathUnresolved,
        ),
        FileAt::Absent => {
            TextRetention::Odd(ScoringSkip::HeadFileAbsent, ScoringSkip::MergeFileAbsent)
        }
        FileAt::Binary => TextRetention::Odd(ScoringSkip::BinaryFile, ScoringSkip::BinaryFile),
        FileAt::Oversized => {
            TextRetention::Odd(ScoringSkip::FileOversized, ScoringSkip::FileOversized)
        }
        FileAt::ReadFailed => {
            TextRetention::Odd(ScoringSkip::FileReadFailed, ScoringSkip::FileReadFailed)
        }
    }
}

/// Returns how much is left at the head and at the merge.
///
/// # Errors
///
/// The first reason why that is unknown: paths before what is at them, the head before the merge,
/// NUL before size.
pub fn score(head: TextRetention, merge: TextRetention) -> Result<Scores, ScoringSkip> {
    const ORDER: [ScoringSkip; 7] = [
        ScoringSkip::HeadPathUnresolved,
        ScoringSkip::MergePathUnresolved,
        ScoringSkip::HeadFileAbsent,
        ScoringSkip::MergeFileAbsent,
        ScoringSkip::BinaryFile,
        ScoringSkip::FileOversized,
        ScoringSkip::FileReadFailed,
    ];
    let reasons = match (head, merge) {
        (
            TextRetention::Share {
                path: head_path,
                share: head,
            },
            TextRetention::Share {
                path: merge_path,
                share: merge,
            },
        ) => {
            return Ok(Scores {
                head_path,
                head,
                merge_path,
                merge,
            });
        }
        (TextRetention::Odd(head, _), TextRetention::Odd(_, merge)) => [Some(head), Some(merge)],
        (TextRetention::Odd(head, _), TextRetention::Share { .. }) => [Some(head), None],
        (TextRetention::Share { .. }, TextRetention::Odd(_, merge)) => [None, Some(merge)],
    };
    let first = ORDER
        .into_iter()
        .find(|reason| reasons.contains(&Some(*reason)));
    Err(first.unwrap_or(ScoringSkip::FileReadFailed))
}

/// Files of merged pull requests while they are being scored.
#[derive(Clone, Debug)]
pub struct FileScoring {
    result: MergeRetention,
    /// In the order of rows; `None` once scored or skipped.
    files: Vec<Option<JoinedFile>>,
    /// The commits whose sections were counted.
    read: BTreeSet<(Lifetime, CommitSha)>,
}

impl FileScoring {
    pub(super) fn new(mut result: MergeRetention, mut files: Vec<JoinedFile>) -> Self {
        files.sort_by(order);
        let joined = files.iter().map(|file| lifecycle::LifecycleFile {
            inference_call_id: file.attribution.inference_call_id,
            session_id: file.attribution.session_id.clone(),
            scores: None,
        });
        result.joined = joined.collect();
        result.joined_pull_requests = pull_requests(files.iter().map(|file| &*file.merge));
        Self {
            result,
            files: files.into_iter().map(Some).collect(),
            read: BTreeSet::new(),
        }
    }

    /// Returns the files whose texts are needed, each with its index, grouped by pull request and
    /// then by commit.
    pub fn files(&self) -> impl Iterator<Item = (usize, &JoinedFile)> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(place, file)| Some((place, file.as_ref()?)))
    }

    /// Counts the sections of a commit's diff that could not be read, once per commit.
    pub fn count_sections(
        &mut self,
        repository: &Lifetime,
        commit_sha: &CommitSha,
        malformed: u64,
        unsupported: u64,
    ) {
        if self.read.insert((repository.clone(), commit_sha.clone())) {
            let skipped = &mut self.result.skipped;
            skipped.add(ScoringSkip::MalformedDiffSection, malformed);
            skipped.add(ScoringSkip::UnsupportedDiffSection, unsupported);
        }
    }

    /// Takes the scores of the file at an index, or why it has none. Does nothing if there is no
    /// such file or it was taken before.
    pub fn add(&mut self, place: usize, scores: Result<Scores, ScoringSkip>) {
        let Some(file) = self.files.get_mut(place).and_then(Option::take) else {
            return;
        };
        match scores {
            Ok(scores) => {
                self.result.joined[place].scores = Some(FileScores {
                    head: scores.head,
                    merge: scores.merge,
                });
                self.result.rows.push(RetentionRow {
                    attribution: file.attribution,
                    observation_ids: file.observation_ids,
                    merge: file.merge,
                    scores,
                });
            }
            Err(skip) => self.result.skipped.add(skip, 1),
        }
    }

    /// Returns the result. Files that were not added count as unreadable.
    pub fn finish(mut self) -> MergeRetention {
        let unread = self.files().count() as u64;
        self.result.skipped.add(ScoringSkip::FileReadFailed, unread);
        let mut result = self.result;
        result.rows.sort_by(|left, right| {
            row_key(&left.attribution, &left.merge).cmp(&row_key(&right.attribution, &right.merge))
        });
        result.scored_pull_requests = pull_requests(result.rows.iter().map(|row| &*row.merge));
        result
    }
}

fn order(left: &JoinedFile, right: &JoinedFile) -> Ordering {
    row_key(&left.attribution, &left.merge).cmp(&row_key(&right.attribution, &right.merge))
}

/// Returns the sort key of a row.
fn row_key<'r>(file: &'r Attribution, merge: &Merge) -> impl Ord + use<'r> {
    (
        &file.repository,
        merge.pr_number,
        &file.commit_sha,
        &file.file_path,
        file.inference_call_id,
    )
}

fn pull_requests<'m>(merges: impl Iterator<Item = &'m Merge>) -> u64 {
    let numbers: BTreeSet<(&Lifetime, i64)> = merges
        .map(|merge| (&merge.repository, merge.pr_number))
        .collect();
    numbers.len() as u64
}
