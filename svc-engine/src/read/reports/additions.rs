//! What commits add to files, most of which is added more than once.
//!
//! A pull request brings its files with its own commits, and again with the commit that merges
//! them. What a diff adds to a file follows from the file's content before and after. So git is
//! asked only for the diffs of commits that bring something new.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::attribution::{CodeTokens, CommitFiles, FileTokens, is_code};
use svc_engine_derive::diff::{CommitDiff, FileChange};
use svc_engine_mirror::{ChangeKind, ChangedFile, ObjectId};

/// The contents of a file before and after.
type Contents = (ObjectId, ObjectId);

/// What is added between two contents, known from a diff.
#[derive(Debug)]
enum Addition {
    /// Nobody has looked, because the file was not code.
    Unseen,
    /// Nothing but whitespace.
    Nothing,
    /// Text with these tokens.
    Tokens(Arc<CodeTokens>),
}

/// What is known about additions between contents.
#[derive(Debug, Default)]
pub(super) struct Additions(HashMap<Contents, Addition, RandomState>);

impl Additions {
    /// Learns what a diff adds, given the changes that it shows.
    pub(super) fn learn(
        &mut self,
        changes: &[ChangedFile],
        diff: &CommitDiff,
        files: &CommitFiles,
    ) {
        // It is unknown which sections could not be read.
        if diff.malformed + diff.unsupported > 0 {
            return;
        }
        let changes: HashMap<&[u8], &ChangedFile> = changes
            .iter()
            .map(|change| (&*change.path, change))
            .collect();
        let tokens = files.files.iter().map(|file| (&*file.path, &file.tokens));
        let tokens: HashMap<&str, &Arc<CodeTokens>> = tokens.collect();
        for file in &diff.files {
            let Some(change) = changes.get(file.path.as_bytes()) else {
                continue;
            };
            // A renamed file is compared with a file at another path.
            let is_same = match file.change {
                FileChange::Added => change.kind == ChangeKind::Added,
                FileChange::Modified => change.kind == ChangeKind::Modified,
                FileChange::Deleted => change.kind == ChangeKind::Deleted,
                FileChange::Renamed { .. } => false,
            };
            if is_same {
                let known = self.0.entry(change.contents);
                let known = known.or_insert(Addition::Unseen);
                if matches!(known, Addition::Unseen) && is_code(&file.path) {
                    *known = match tokens.get(&*file.path) {
                        Some(tokens) => Addition::Tokens(Arc::clone(tokens)),
                        None => Addition::Nothing,
                    };
                }
            }
        }
    }

    /// Returns the files of a commit, if what it adds to each is known.
    pub(super) fn of(&self, changes: &[ChangedFile]) -> Option<CommitFiles> {
        let mut files = CommitFiles::default();
        for change in changes {
            let added = self.0.get(&change.contents)?;
            let path = str::from_utf8(&change.path).ok()?;
            if !is_code(path) || change.kind == ChangeKind::Deleted {
                continue;
            }
            match added {
                Addition::Unseen => return None,
                Addition::Nothing => {}
                Addition::Tokens(tokens) => files.files.push(FileTokens {
                    path: path.to_owned(),
                    tokens: Arc::clone(tokens),
                }),
            }
        }
        Some(files)
    }
}

/// Splits the indices of commits: those with a change that no earlier commit has, or whose changes
/// are unknown; and the rest.
pub(super) fn split(commits: &[Option<Vec<ChangedFile>>]) -> (Vec<usize>, Vec<usize>) {
    let mut seen: HashSet<Contents, RandomState> = HashSet::default();
    (0..commits.len()).partition(|place| match &commits[*place] {
        None => true,
        Some(changes) => {
            let mut is_new = may_move(changes);
            for change in changes {
                is_new |= change.kind == ChangeKind::Other || seen.insert(change.contents);
            }
            is_new
        }
    })
}

/// Returns whether any of these files may be a renamed version of another.
fn may_move(changes: &[ChangedFile]) -> bool {
    let any = |kind| changes.iter().any(|change| change.kind == kind);
    any(ChangeKind::Added) && any(ChangeKind::Deleted)
}

#[cfg(test)]
mod tests {
    use svc_model::repository::CommitSha;

    use super::*;

    fn content(digit: char) -> ObjectId {
        ObjectId::of(&CommitSha::new(&digit.to_string().repeat(40)).unwrap())
    }

    fn change(kind: ChangeKind, before: char, after: char, path: &str) -> ChangedFile {
        ChangedFile {
            kind,
            contents: (content(before), content(after)),
            path: path.into(),
        }
    }

    fn diff(path: &str, added: &str) -> CommitDiff {
        let lines = added.replace('\n', "\n+");
        let count = added.lines().count();
        let text = format!(
            "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n\
             @@ -0,0 +1,{count} @@\n+{lines}\n"
        );
        let diff = CommitDiff::parse(text.as_bytes());
        assert_eq!((diff.files.len(), diff.malformed), (1, 0), "{text}");
        diff
    }

    fn learnt(change: &ChangedFile, diff: &CommitDiff) -> Additions {
        let mut additions = Additions::default();
        let changes = std::slice::from_ref(change);
        additions.learn(changes, diff, &CommitFiles::of(diff));
        additions
    }

    #[test]
    fn known_additions_between_two_contents_are_reused() {
        use ChangeKind::{Deleted, Modified};
        let learnt = learnt(&change(Modified, '1', '2', "a.rs"), &diff("a.rs", "let x"));
        let elsewhere = [change(Modified, '1', '2', "b.rs")];
        let files = learnt.of(&elsewhere).unwrap();
        assert_eq!(files, CommitFiles::of(&diff("b.rs", "let x")));
        let of_no_code = learnt.of(&[change(Modified, '1', '2', "b.md")]).unwrap();
        assert_eq!(of_no_code, CommitFiles::default());
        for unknown in [
            change(Modified, '2', '1', "a.rs"),
            change(Modified, '1', '3', "a.rs"),
            change(Deleted, '2', '0', "a.rs"),
        ] {
            assert_eq!(learnt.of(&[elsewhere[0].clone(), unknown]), None);
        }
    }

    #[test]
    fn additions_that_were_not_read_are_unknown() {
        use ChangeKind::{Added, Modified};
        let in_code = [change(Modified, '1', '2', "a.rs")];
        let text = learnt(&change(Modified, '1', '2', "a.md"), &diff("a.md", "let x"));
        assert_eq!(text.of(&in_code), None);
        let mut odd = diff("a.rs", "let x");
        odd.unsupported = 1;
        assert_eq!(learnt(&in_code[0], &odd).of(&in_code), None);
        let mut moved = diff("a.rs", "let x");
        moved.files[0].change = FileChange::Renamed {
            from: "b.rs".to_owned(),
        };
        let added = change(Added, '0', '2', "a.rs");
        assert_eq!(learnt(&added, &moved).of(&[added]), None);
    }

    #[test]
    fn only_commits_with_new_changes_are_requested() {
        use ChangeKind::{Added, Deleted, Modified, Other};
        let one = || change(Added, '0', '1', "a");
        let two = || change(Modified, '1', '2', "b");
        let commits = [
            Some(vec![one()]),
            Some(vec![one(), two()]),
            Some(vec![two(), one()]),
            None,
            Some(vec![one(), change(Other, '1', '2', "c")]),
            Some(vec![change(Deleted, '2', '0', "d")]),
            Some(vec![one(), change(Deleted, '2', '0', "d")]),
            Some(Vec::new()),
        ];
        assert_eq!(split(&commits), (vec![0, 1, 3, 4, 5, 6], vec![2, 7]));
    }
}
