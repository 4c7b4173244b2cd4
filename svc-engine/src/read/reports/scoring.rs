//! How much of attributed files is left in merged pull requests, reading many files at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use svc_engine_derive::diff::CommitDiff;
use svc_engine_derive::merge_retention::{
    FILE_BYTES_MAX, FileAt, FileScoring, JoinedFile, Scores, TextRetention, file_text, left,
    renamed_to, score, source_text,
};
use svc_engine_fact::Lifetime;
use svc_engine_fact::threads::at_once;
use svc_engine_mirror::{ObjectId, WantedFile};
use svc_model::reports::ScoringSkip;
use svc_model::repository::CommitSha;

use super::history::{History, QUESTION};
use super::memory::{ScoredCommit, ScoredFile};
use super::mirrors::{OpenMirror, Unreadable};
use crate::error::Error;

/// How many files are scored in one piece.
const FILES_AT_ONCE: usize = 1_024;
/// Maximum bytes of added text held for one piece, unless a single commit adds more.
const ADDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A file, and its index among those that are scored.
type Placed<'j> = (usize, &'j JoinedFile);

/// The results for some files.
#[derive(Default)]
struct Scored {
    files: Vec<(usize, Result<Scores, ScoringSkip>)>,
    /// The numbers of malformed and unsupported diff sections, by commit.
    sections: Vec<(CommitSha, u64, u64)>,
}

/// Scores every file, a few repositories at a time.
pub(super) fn score_all(joined: &mut FileScoring, history: &History<'_>) -> Result<(), Error> {
    let mut pieces: Vec<(&Lifetime, Vec<Placed<'_>>)> = Vec::new();
    for (place, file) in joined.files() {
        let repository = &file.attribution.repository;
        match pieces.last_mut() {
            Some((of, piece)) if *of == repository && piece.len() < FILES_AT_ONCE => {
                piece.push((place, file));
            }
            _ => pieces.push((repository, vec![(place, file)])),
        }
    }
    let scored = at_once(&pieces, |(repository, files)| {
        Scoring::of(history, repository, files)
    })?;
    let repositories = pieces.into_iter().map(|(repository, _)| repository.clone());
    let repositories: Vec<Lifetime> = repositories.collect();
    for (repository, scored) in repositories.iter().zip(scored) {
        for (commit, malformed, unsupported) in scored.sections {
            joined.count_sections(repository, &commit, malformed, unsupported);
        }
        for (place, scores) in scored.files {
            joined.add(place, scores);
        }
    }
    Ok(())
}

/// The files of one repository that are being scored.
struct Scoring<'s> {
    history: &'s History<'s>,
    repository: &'s Lifetime,
    scored: Scored,
}

/// A file at the head or at the merge: the mirror to search, and the commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Wanted<'s> {
    mirror: &'s Lifetime,
    /// The commit that the file comes from.
    from: &'s CommitSha,
    at: &'s CommitSha,
    path: &'s str,
}

/// A file whose text can be compared, with the text that was added to it.
struct Compared<'s> {
    place: usize,
    file: &'s JoinedFile,
    added: &'s str,
    head: Wanted<'s>,
    merge: Wanted<'s>,
}

impl<'s> Scoring<'s> {
    fn of(
        history: &'s History<'s>,
        repository: &'s Lifetime,
        files: &[Placed<'s>],
    ) -> Result<Scored, Error> {
        let mut scoring = Self {
            history,
            repository,
            scored: Scored::default(),
        };
        let heads = scoring.heads(files)?;
        let mut left: Vec<Placed<'s>> = Vec::new();
        for (placed, head) in files.iter().zip(&heads) {
            match head {
                Ok(_) if scoring.remembered(*placed) => {}
                _ => left.push(*placed),
            }
        }
        // Scores from memory were used only for files whose head and merge a mirror still has.
        let heads: HashMap<usize, Result<&'s Lifetime, ScoringSkip>> =
            files.iter().map(|(place, _)| *place).zip(heads).collect();
        while !left.is_empty() {
            let diffs = scoring.diffs(&left)?;
            let (now, later) = left
                .into_iter()
                .partition(|(_, file)| diffs.contains_key(&file.attribution.commit_sha));
            scoring.score(now, &diffs, &heads)?;
            left = later;
        }
        Ok(scoring.scored)
    }

    /// Takes the scores of a file from memory, if they are there.
    fn remembered(&mut self, (place, file): Placed<'_>) -> bool {
        let Some(known) = self.history.memory().scores.get(&key(file)) else {
            return false;
        };
        let commit = file.attribution.commit_sha.clone();
        let sections = (commit, known.malformed, known.unsupported);
        self.scored.sections.push(sections);
        self.scored.files.push((place, Ok(known.scores.clone())));
        true
    }

    /// Returns, for each file, the mirror that has the head of its pull request. A forge also shows
    /// the head in the target repository, even to those who cannot read the source repository.
    fn heads(&self, files: &[Placed<'s>]) -> Result<Vec<Result<&'s Lifetime, ScoringSkip>>, Error> {
        let merges = || files.iter().map(|(_, file)| &file.merge);
        let wanted: BTreeSet<&CommitSha> = merges()
            .flat_map(|merge| [&merge.merge_commit_sha, &merge.head_sha])
            .collect();
        let Some(held) = self.held(self.repository, &wanted)? else {
            return Ok(vec![Err(ScoringSkip::MirrorAbsent); files.len()]);
        };
        let mut elsewhere: BTreeMap<&'s Lifetime, BTreeSet<&CommitSha>> = BTreeMap::new();
        for merge in merges().filter(|merge| !held.contains(&merge.head_sha)) {
            if let Ok(repository) = &merge.head_repository {
                let wanted = elsewhere.entry(repository).or_default();
                wanted.insert(&merge.head_sha);
            }
        }
        let mut held_elsewhere = HashMap::new();
        for (repository, wanted) in &elsewhere {
            held_elsewhere.insert(*repository, self.held(repository, wanted)?);
        }
        Ok(files
            .iter()
            .map(|(_, file)| {
                let merge = &file.merge;
                let of_head = match &merge.head_repository {
                    Ok(repository) => repository,
                    Err(decline) => return Err((*decline).into()),
                };
                if !held.contains(&merge.merge_commit_sha) {
                    return Err(ScoringSkip::MergeCommitAbsent);
                }
                if held.contains(&merge.head_sha) {
                    return Ok(self.repository);
                }
                match held_elsewhere.get(of_head) {
                    Some(Some(held)) if held.contains(&merge.head_sha) => Ok(of_head),
                    Some(Some(_)) => Err(ScoringSkip::HeadCommitAbsent),
                    Some(None) | None => Err(ScoringSkip::MirrorAbsent),
                }
            })
            .collect())
    }

    /// Returns which of these commits a mirror has; `None` without a mirror.
    fn held<'c>(
        &self,
        repository: &Lifetime,
        wanted: &BTreeSet<&'c CommitSha>,
    ) -> Result<Option<BTreeSet<&'c CommitSha>>, Error> {
        let wanted: Vec<&CommitSha> = wanted.iter().copied().collect();
        self.history.mirrors.with(repository, |mirror| {
            let held = mirror.read(|reader| reader.holds(&wanted))?;
            let held = held.unwrap_or_else(|| vec![false; wanted.len()]);
            let held = wanted.iter().zip(held).filter(|(_, is_held)| *is_held);
            Ok(held.map(|(commit, _)| *commit).collect())
        })
    }

    /// Reads the diffs of the files' commits, as many as there is room for, but at least one.
    fn diffs(&mut self, files: &[Placed<'s>]) -> Result<HashMap<&'s CommitSha, Diff>, Error> {
        let commits: BTreeSet<&'s CommitSha> = files
            .iter()
            .map(|(_, file)| &file.attribution.commit_sha)
            .collect();
        let mut diffs = HashMap::new();
        let mut missing: Vec<&'s CommitSha> = Vec::new();
        for commit in commits {
            let place = (self.repository.clone(), commit.clone());
            match self.history.kept(&place) {
                Some(diff) => drop(diffs.insert(commit, Ok(Arc::clone(diff)))),
                None => missing.push(commit),
            }
        }
        if missing.is_empty() {
            return Ok(diffs);
        }
        let wanted: Vec<CommitSha> = missing.iter().map(|commit| (*commit).clone()).collect();
        let mut bytes = 0;
        let read = self.history.mirrors.with(self.repository, |mirror| {
            mirror.diffs(&wanted, QUESTION, |at, diff| {
                let diff = match diff {
                    Ok(Some(diff)) if bytes < ADDED_BYTES_MAX => {
                        let diff = CommitDiff::parse(&diff.bytes);
                        bytes += diff
                            .files
                            .iter()
                            .map(|file| file.added.len())
                            .sum::<usize>();
                        Ok(Arc::new(diff))
                    }
                    // There is no room left; it is read again with the rest.
                    Ok(Some(_)) => return,
                    Ok(None) => Err(ScoringSkip::SourceCommitAbsent),
                    Err(Unreadable) => Err(ScoringSkip::SourceDiffUnavailable),
                };
                diffs.insert(missing[at], diff);
            })
        })?;
        if read.is_none() {
            let absent = || Err(ScoringSkip::MirrorAbsent);
            diffs.extend(missing.iter().map(|commit| (*commit, absent())));
        }
        Ok(diffs)
    }

    /// Scores files whose diffs have been read.
    fn score(
        &mut self,
        files: Vec<Placed<'s>>,
        diffs: &HashMap<&'s CommitSha, Diff>,
        heads: &HashMap<usize, Result<&'s Lifetime, ScoringSkip>>,
    ) -> Result<(), Error> {
        for (commit, diff) in diffs {
            if let Ok(diff) = diff {
                let sections = ((*commit).clone(), diff.malformed, diff.unsupported);
                self.scored.sections.push(sections);
            }
        }
        let mut compared: Vec<Compared<'_>> = Vec::new();
        for (place, file) in files {
            let attribution = &file.attribution;
            let diff = &diffs[&attribution.commit_sha];
            match prepared(place, file, diff, &heads[&place], self.repository) {
                Ok(file) => compared.push(file),
                Err(skip) => self.scored.files.push((place, Err(skip))),
            }
        }
        let mut of_mirrors: BTreeMap<&Lifetime, BTreeSet<Wanted<'_>>> = BTreeMap::new();
        for file in &compared {
            for wanted in [file.head, file.merge] {
                of_mirrors.entry(wanted.mirror).or_default().insert(wanted);
            }
        }
        let mut found: HashMap<Wanted<'_>, FoundAt> = HashMap::new();
        for (mirror, wanted) in of_mirrors {
            let wanted: Vec<Wanted<'_>> = wanted.into_iter().collect();
            let places = self
                .history
                .mirrors
                .with(mirror, |mirror| find(mirror, &wanted))?;
            let places =
                places.unwrap_or_else(|| vec![FoundAt::odd(FileAt::ReadFailed); wanted.len()]);
            found.extend(wanted.into_iter().zip(places));
        }
        let lefts = self.compare(&compared, &found)?;
        for (file, [head, merge]) in compared.iter().zip(lefts) {
            let scores = score(head, merge);
            if let (Ok(scores), Ok(diff)) = (&scores, &diffs[&file.file.attribution.commit_sha]) {
                let known = Arc::new(ScoredCommit {
                    scores: scores.clone(),
                    malformed: diff.malformed,
                    unsupported: diff.unsupported,
                });
                self.history.memory().scores.insert(key(file.file), known);
            }
            self.scored.files.push((file.place, scores));
        }
        Ok(())
    }

    /// Reads each distinct text once, and compares it with everything that was added to it.
    fn compare(
        &self,
        compared: &[Compared<'_>],
        found: &HashMap<Wanted<'_>, FoundAt>,
    ) -> Result<Vec<[TextRetention; 2]>, Error> {
        let unread = || left("", &FileAt::ReadFailed);
        let mut lefts: Vec<[TextRetention; 2]> =
            compared.iter().map(|_| [unread(), unread()]).collect();
        let mut users: BTreeMap<(&Lifetime, ObjectId), Users> = BTreeMap::new();
        for (at, file) in compared.iter().enumerate() {
            for (side, wanted) in [file.head, file.merge].into_iter().enumerate() {
                match &found[&wanted] {
                    FoundAt {
                        content: Ok(content),
                        ..
                    } => {
                        let users = users.entry((wanted.mirror, *content)).or_default();
                        users.push((at, side));
                    }
                    FoundAt {
                        content: Err(odd), ..
                    } => lefts[at][side] = left("", odd),
                }
            }
        }
        let mut of_mirrors: BTreeMap<&Lifetime, Vec<(ObjectId, Users)>> = BTreeMap::new();
        for ((mirror, content), users) in users {
            let contents = of_mirrors.entry(mirror).or_default();
            contents.push((content, users));
        }
        for (mirror, contents) in of_mirrors {
            let ids: Vec<ObjectId> = contents.iter().map(|(id, _)| *id).collect();
            self.history.mirrors.with(mirror, |mirror| {
                let mut failed = None;
                let ended = mirror
                    .reader()
                    .contents_of(&ids, FILE_BYTES_MAX, |place, bytes| {
                        let file = match bytes {
                            Ok(bytes) => file_text(String::new(), bytes),
                            Err(error) => {
                                failed = Some(error);
                                FileAt::ReadFailed
                            }
                        };
                        let mut known: Option<(&str, TextRetention)> = None;
                        for (at, side) in &contents[place].1 {
                            let compared = &compared[*at];
                            let wanted = [compared.head, compared.merge][*side];
                            // The head and the merge mostly have the same text.
                            let result = match known.take() {
                                Some((added, result)) if added == compared.added => result,
                                _ => left(compared.added, &file),
                            };
                            lefts[*at][*side] = result.clone().at(found[&wanted].path_of(wanted));
                            known = Some((compared.added, result));
                        }
                    });
                mirror.readable(ended)?;
                match failed {
                    Some(error) => mirror.readable::<()>(Err(error)).map(drop),
                    None => Ok(()),
                }
            })?;
        }
        Ok(lefts)
    }
}

/// The files that are compared with a text, and whether as the head (0) or the merge (1).
type Users = Vec<(usize, usize)>;

/// The diff of a commit, or why there is none.
type Diff = Result<Arc<CommitDiff>, ScoringSkip>;

/// Returns what is compared for a file, or the first reason why nothing is.
fn prepared<'s>(
    place: usize,
    file: &'s JoinedFile,
    diff: &'s Diff,
    head: &Result<&'s Lifetime, ScoringSkip>,
    repository: &'s Lifetime,
) -> Result<Compared<'s>, ScoringSkip> {
    let (attribution, merge) = (&file.attribution, &file.merge);
    if let Err(decline) = &merge.head_repository {
        return Err((*decline).into());
    }
    if let Err(skip @ (ScoringSkip::MirrorAbsent | ScoringSkip::SourceCommitAbsent)) = diff {
        return Err(*skip);
    }
    let head = (*head)?;
    let added = match diff {
        Ok(diff) => source_text(diff, &attribution.file_path)?,
        Err(skip) => return Err(*skip),
    };
    let wanted = |mirror, at| Wanted {
        mirror,
        from: &attribution.commit_sha,
        at,
        path: &attribution.file_path,
    };
    Ok(Compared {
        place,
        file,
        added,
        head: wanted(head, &merge.head_sha),
        merge: wanted(repository, &merge.merge_commit_sha),
    })
}

/// Where a file was found, or why it was not.
#[derive(Clone)]
struct FoundAt {
    /// Its path, if it was moved.
    moved: Option<Vec<u8>>,
    content: Result<ObjectId, FileAt>,
}

impl FoundAt {
    const fn odd(why: FileAt) -> Self {
        Self {
            moved: None,
            content: Err(why),
        }
    }

    fn path_of(&self, wanted: Wanted<'_>) -> String {
        match &self.moved {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => wanted.path.to_owned(),
        }
    }
}

/// Finds files of commits at later commits, where they may have been moved.
fn find(mirror: &mut OpenMirror, wanted: &[Wanted<'_>]) -> Result<Vec<FoundAt>, Error> {
    let files: Vec<WantedFile<'_>> = wanted
        .iter()
        .map(|wanted| WantedFile {
            commit: wanted.at,
            path: wanted.path.as_bytes(),
        })
        .collect();
    let Some(places) = mirror.read(|reader| reader.find_files(&files))? else {
        return Ok(vec![FoundAt::odd(FileAt::ReadFailed); wanted.len()]);
    };
    let mut found = Vec::with_capacity(wanted.len());
    for (wanted, content) in wanted.iter().zip(places) {
        found.push(match content {
            Ok(Some(content)) => FoundAt {
                moved: None,
                content: Ok(content),
            },
            Ok(None) => find_moved(mirror, *wanted)?,
            Err(error) => {
                mirror.readable::<()>(Err(error))?;
                FoundAt::odd(FileAt::ReadFailed)
            }
        });
    }
    Ok(found)
}

fn find_moved(mirror: &mut OpenMirror, wanted: Wanted<'_>) -> Result<FoundAt, Error> {
    let renames = mirror.read(|reader| reader.renames(wanted.from, wanted.at))?;
    let Some(renames) = renames.flatten() else {
        return Ok(FoundAt::odd(FileAt::PathUnresolved));
    };
    let pairs = renames
        .iter()
        .map(|rename| (rename.from.as_slice(), rename.to.as_slice()));
    let Some(to) = renamed_to(pairs, wanted.path) else {
        return Ok(FoundAt::odd(FileAt::PathUnresolved));
    };
    let file = WantedFile {
        commit: wanted.at,
        path: to,
    };
    let found = mirror.read(|reader| reader.find_files(&[file]))?;
    let content = match found.and_then(|mut found| found.pop()) {
        Some(Ok(Some(content))) => Ok(content),
        Some(Ok(None)) => Err(FileAt::Absent),
        Some(Err(error)) => {
            mirror.readable::<()>(Err(error))?;
            Err(FileAt::ReadFailed)
        }
        None => Err(FileAt::ReadFailed),
    };
    Ok(FoundAt {
        moved: Some(to.to_vec()),
        content,
    })
}

fn key(file: &JoinedFile) -> ScoredFile {
    ScoredFile {
        commit: ObjectId::of(&file.attribution.commit_sha),
        path: file.attribution.file_path.clone(),
        head: ObjectId::of(&file.merge.head_sha),
        merge: ObjectId::of(&file.merge.merge_commit_sha),
    }
}
