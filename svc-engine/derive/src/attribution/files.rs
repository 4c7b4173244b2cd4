use std::collections::BTreeSet;
use std::sync::Arc;

use svc_model::id::is_trimmed;

use super::CodeTokens;
use crate::diff::CommitDiff;

/// Suffixes of code paths.
const CODE_SUFFIXES: [&str; 21] = [
    ".py", ".ts", ".js", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".scala", ".rb", ".php",
    ".cs", ".cpp", ".c", ".h", ".tf", ".hcl", ".sql", ".sh", ".bash",
];
/// Parts of the paths of generated files.
const GENERATED: [&str; 6] = [
    "package-lock.json",
    "yarn.lock",
    "poetry.lock",
    "uv.lock",
    ".min.js",
    ".min.css",
];

/// The tokens that a commit adds to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTokens {
    /// The path.
    pub path: String,
    /// The tokens of the added lines.
    pub tokens: Arc<CodeTokens>,
}

/// The part of a commit's diff that Attribution needs: the code files to which it adds something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitFiles {
    /// The files, each path once.
    pub files: Vec<FileTokens>,
    /// Sections that break the grammar, or whose path an earlier section has.
    pub malformed: u64,
    /// Sections that tell nothing about added lines.
    pub unsupported: u64,
}

impl CommitFiles {
    /// Returns the files of a diff.
    pub fn of(diff: &CommitDiff) -> Self {
        let mut files = Self {
            malformed: diff.malformed,
            unsupported: diff.unsupported,
            files: Vec::new(),
        };
        let mut paths = BTreeSet::new();
        for file in &diff.files {
            if !is_code(&file.path) || file.added.chars().all(is_trimmed) {
                continue;
            }
            if !paths.insert(&file.path) {
                files.malformed += 1;
                continue;
            }
            files.files.push(FileTokens {
                path: file.path.clone(),
                tokens: Arc::new(CodeTokens::of_text(&file.added)),
            });
        }
        files
    }

    /// Returns roughly how many bytes it takes, for a cache.
    pub fn bytes(&self) -> usize {
        let file =
            |file: &FileTokens| size_of::<FileTokens>() + file.path.len() + 8 * file.tokens.len();
        size_of::<Self>() + self.files.iter().map(file).sum::<usize>()
    }
}

/// Returns whether a path is that of code written by a person or an agent.
pub fn is_code(path: &str) -> bool {
    let is_code = CODE_SUFFIXES.iter().any(|suffix| path.ends_with(suffix));
    is_code && !GENERATED.iter().any(|part| path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{FileChange, FileDiff};

    #[test]
    fn code_is_recognised_by_its_file_extension() {
        for path in ["a.py", "x/y.bash", "A.tsx", ".rs", "a b.sql", "min.js"] {
            assert!(is_code(path), "{path}");
        }
        for path in [
            "a.PY",
            "a.md",
            "Makefile",
            "py",
            "a.pyc",
            "package-lock.json",
            "package-lock.json/a.py",
            "x.min.js",
            "uv.lock.rs",
            "a.py ",
            "",
        ] {
            assert!(!is_code(path), "{path}");
        }
    }

    #[test]
    fn only_files_that_add_code_are_scored() {
        let file = |path: &str, added: &str| FileDiff {
            path: path.to_owned(),
            change: FileChange::Modified,
            added: added.to_owned(),
        };
        let diff = CommitDiff {
            files: vec![
                file("a.py", "x = 1"),
                file("b.py", " \n\t\u{a0}\u{1f}"),
                file("c.md", "text"),
                file("d.rs", "{}"),
                file("a.py", "again"),
            ],
            malformed: 2,
            unsupported: 1,
        };
        let files = CommitFiles::of(&diff);
        let paths: Vec<&str> = files.files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["a.py", "d.rs"]);
        assert_eq!(*files.files[0].tokens, CodeTokens::of_text("x 1"));
        assert!(files.files[1].tokens.is_empty());
        assert_eq!((files.malformed, files.unsupported), (3, 1));
        assert!(files.bytes() > 24);
    }
}
