mod together;

use std::fs;
use std::slice::from_ref;
use std::time::{Duration, Instant};

use svc_model::id::OrgId;
use tempfile::TempDir;

use super::*;
use crate::derive::diff::{CommitDiff, FileChange};
use crate::testing::git::{Repository, git};
use crate::testing::processes;

/// A repository, and its mirror.
struct Stage {
    root: TempDir,
    forge: Repository,
    lifetime: Lifetime,
}

fn long() -> Deadline {
    Deadline::after(Duration::from_mins(2))
}

fn sha(text: &str) -> CommitSha {
    CommitSha::new(text).unwrap()
}

fn whole(renames: Renames) -> DiffQuestion {
    DiffQuestion {
        renames,
        merges: Merges::FirstParent,
        bytes_max: 1_000_000,
        files_max: 1_000,
    }
}

fn declined<T: std::fmt::Debug>(result: Result<T, ReadError>) -> ReadDecline {
    match result {
        Err(ReadError::Declined(decline)) => decline,
        other => panic!("{other:?}"),
    }
}

impl Stage {
    fn new() -> Self {
        Self::with("sha1")
    }

    fn with(format: &str) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            forge: Repository::create_with(format),
            lifetime: Lifetime::parse("own/name").unwrap(),
        }
    }

    fn folder(&self) -> MirrorFolder {
        MirrorFolder::new(self.root.path(), OrgId::new("acme").unwrap())
    }

    /// Mirrors what is in the work tree.
    fn mirror(&self) {
        let path = self.folder().path(&self.lifetime);
        let work = self.forge.folder().join("work");
        let arguments = ["clone", "-q", "--mirror", "--no-local"];
        let paths = [work.to_str().unwrap(), path.to_str().unwrap()];
        git(self.root.path(), &[&arguments[..], &paths].concat(), "");
    }

    fn open(&self, deadline: &Deadline) -> MirrorReader {
        let git = Git::find(&long()).unwrap();
        MirrorReader::open(&git, &self.folder(), &self.lifetime, deadline)
            .unwrap()
            .unwrap()
    }

    /// Commits these files, each a name and its bytes.
    fn commit_files(&self, files: &[(&str, &[u8])]) -> CommitSha {
        for (name, bytes) in files {
            let path = self.forge.folder().join("work").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        self.forge.run(&["add", "-A"]);
        sha(&self.forge.commit("files"))
    }

    /// Commits a tree of entries as `mktree` reads them.
    fn commit_tree(&self, parent: Option<&CommitSha>, entries: &str) -> CommitSha {
        let tree = self.forge.run_with(&["mktree", "-z", "--missing"], entries);
        let mut arguments = vec!["commit-tree", "-m", "tree"];
        arguments.extend(parent.iter().flat_map(|it| ["-p", it.as_str()]));
        arguments.push(&tree);
        let commit = self.forge.run(&arguments);
        self.forge.run(&[
            "update-ref",
            &format!("refs/heads/x{}", &commit[..9]),
            &commit,
        ]);
        sha(&commit)
    }
}

#[test]
fn a_mirror_that_is_absent_is_none_and_nothing_is_made_for_it() {
    let stage = Stage::new();
    let git = Git::find(&long()).unwrap();
    let opened = MirrorReader::open(&git, &stage.folder(), &stage.lifetime, &long());
    assert!(opened.unwrap().is_none());
    assert_eq!(fs::read_dir(stage.root.path()).unwrap().count(), 0);
}

#[rstest::rstest]
fn commits_files_folders_and_diffs_are_read(#[values("sha1", "sha256")] format: &str) {
    let stage = Stage::with(format);
    let first = stage.commit_files(&[("src/a.rs", b"one\ntwo\r\nlone\rcr\n"), ("b", b"")]);
    let second = stage.commit_files(&[("src/a.rs", b"one\n2\r\nlone\rCR\n\xff\xfe no text")]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let commit = reader.commit(&second).unwrap().unwrap();
    assert_eq!(commit.parents, std::slice::from_ref(&first));
    assert_eq!(commit.message, b"files\n");
    assert!(commit.authored_at.is_some() && commit.committed_at.is_some());
    assert_eq!(reader.commit(&commit.tree).unwrap(), None, "that is a tree");
    let absent = sha(&"f".repeat(first.as_str().len()));
    assert_eq!(reader.commit(&absent).unwrap(), None);

    let read = |reader: &mut MirrorReader, path: &str| reader.blob(&second, path.as_bytes(), 100);
    let bytes = read(&mut reader, "src/a.rs").unwrap().unwrap();
    assert_eq!(bytes, b"one\n2\r\nlone\rCR\n\xff\xfe no text");
    assert_eq!(read(&mut reader, "b").unwrap().unwrap(), b"");
    for path in [
        "src/b",
        "nothing",
        "b/x",
        "missing\n",
        "a\nb\nmissing",
        "\n",
    ] {
        assert_eq!(read(&mut reader, path).unwrap(), None, "{path:?}");
    }
    let is_declined = |reader: &mut MirrorReader, path: &str| declined(read(reader, path));
    assert_eq!(is_declined(&mut reader, "src"), ReadDecline::NotAFile);
    for path in [
        "",
        "/b",
        "./b",
        "src/../b",
        "b/",
        "a\0b",
        &"x".repeat(4_000),
    ] {
        assert_eq!(is_declined(&mut reader, path), ReadDecline::Path, "{path}");
    }
    assert_eq!(
        declined(reader.blob(&second, b"src/a.rs", 5)),
        ReadDecline::TooLarge
    );

    let names = |entries: Vec<TreeEntry>| -> Vec<(EntryKind, String)> {
        let name = |entry: TreeEntry| (entry.kind, String::from_utf8(entry.name).unwrap());
        entries.into_iter().map(name).collect()
    };
    let root = reader.tree_entries(&second, b"", 2).unwrap().unwrap();
    let expected = [(EntryKind::File, "b"), (EntryKind::Folder, "src")];
    assert_eq!(
        names(root),
        expected.map(|(kind, name)| (kind, name.to_owned()))
    );
    assert_eq!(
        declined(reader.tree_entries(&second, b"", 1)),
        ReadDecline::TooManyEntries
    );
    assert_eq!(
        declined(reader.tree_entries(&second, b"b", 9)),
        ReadDecline::NotAFolder
    );
    assert_eq!(reader.tree_entries(&second, b"no", 9).unwrap(), None);

    let diff = reader
        .diff(&second, whole(Renames::Detected))
        .unwrap()
        .unwrap();
    assert_eq!(diff.files, 1);
    assert!(
        diff.bytes
            .starts_with(b"diff --git a/src/a.rs b/src/a.rs\nindex ")
    );
    let tail = b"@@ -1,3 +1,4 @@\n one\n-two\r\n-lone\rcr\n+2\r\n+lone\rCR\n+\xff\xfe no text\n\\ No newline at end of file\n";
    assert!(diff.bytes.ends_with(tail), "{}", diff.bytes.escape_ascii());
    let root = reader.diff(&first, whole(Renames::Apart)).unwrap().unwrap();
    assert_eq!(
        root.files, 2,
        "the first of a history is compared with nothing"
    );
    assert_eq!(reader.diff(&absent, whole(Renames::Apart)).unwrap(), None);
    let back = reader.difference(&second, &first, whole(Renames::Apart));
    assert!(
        back.unwrap()
            .unwrap()
            .bytes
            .ends_with(b"+two\r\n+lone\rcr\n")
    );
    let same = reader.difference(&first, &first, whole(Renames::Apart));
    assert_eq!(same.unwrap().unwrap().files, 0);
}

#[test]
fn one_process_answers_all_questions_of_a_kind_and_ends_with_the_reader() {
    let stage = Stage::new();
    let commits: Vec<CommitSha> = (0..30)
        .map(|number: u32| stage.commit_files(&[("a", number.to_string().as_bytes())]))
        .collect();
    stage.mirror();
    let mut reader = stage.open(&long());
    let programs = || {
        let mut programs = processes::in_folder(stage.root.path());
        programs.retain(|it| it.program == "git");
        programs.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    let mut seen = Vec::new();
    for commit in &commits {
        assert!(
            reader
                .diff(commit, whole(Renames::Detected))
                .unwrap()
                .is_some()
        );
        assert!(reader.blob(commit, b"a", 9).unwrap().is_some());
        seen.extend(programs());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2);
    drop(reader);
    assert!(processes::folder_is_left(stage.root.path()));
}

#[test]
fn renames_and_merges_are_shown_as_asked() {
    let stage = Stage::new();
    let lines: Vec<String> = (0..40).map(|number| format!("line {number}\n")).collect();
    let text = lines.concat();
    stage.commit_files(&[("old name", text.as_bytes())]);
    stage.forge.run(&["mv", "old name", "caf\u{e9}"]);
    let moved = stage.commit_files(&[]);
    stage.forge.run(&["checkout", "-q", "-b", "side"]);
    stage.commit_files(&[("side", b"s\n")]);
    stage.forge.run(&["checkout", "-q", "main"]);
    stage.commit_files(&[("main", b"m\n")]);
    stage
        .forge
        .run(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let merge = sha(&stage.forge.run(&["rev-parse", "HEAD"]));
    stage.mirror();
    let mut reader = stage.open(&long());
    let mut diff = |commit: &CommitSha, renames| {
        let diff = reader.diff(commit, whole(renames)).unwrap().unwrap();
        (diff.files, String::from_utf8(diff.bytes).unwrap())
    };
    let (files, detected) = diff(&moved, Renames::Detected);
    assert_eq!(files, 1);
    assert!(detected.contains("rename from old name\nrename to caf\u{e9}\n"));
    assert_eq!(diff(&moved, Renames::Apart).0, 2);
    let (files, merged) = diff(&merge, Renames::Detected);
    assert_eq!(files, 1);
    assert!(merged.starts_with("diff --git a/side b/side\nnew file"));
    let unwanted = DiffQuestion {
        merges: Merges::Declined,
        ..whole(Renames::Detected)
    };
    assert_eq!(declined(reader.diff(&merge, unwanted)), ReadDecline::Merge);
}

#[test]
fn files_that_lie_elsewhere_are_followed() {
    let stage = Stage::new();
    let text = |of: &str| {
        (0..40)
            .map(|number| format!("{of} {number}\n"))
            .collect::<Vec<_>>()
            .concat()
    };
    let first = stage.commit_files(&[
        ("a", text("a").as_bytes()),
        ("old\tname", text("b").as_bytes()),
        ("same", b"same\n"),
        ("gone", b"gone\n"),
    ]);
    stage.forge.run(&["mv", "a", "svc-end\n"]);
    fs::create_dir(stage.forge.folder().join("work/caf\u{e9}")).unwrap();
    stage.forge.run(&["mv", "old\tname", "caf\u{e9}/new"]);
    stage.forge.run(&["rm", "-q", "gone"]);
    let half = text("b").replace("b 1", "c 1");
    let second = stage.commit_files(&[("caf\u{e9}/new", half.as_bytes()), ("new", b"new\n")]);
    let blob = stage.forge.run_with(&["hash-object", "-w", "--stdin"], "b");
    let entries = |name: &str| {
        let entry = |number: u32| format!("100644 blob {blob}\t{name}-{number:05}\0");
        (0..10_001).map(entry).collect::<Vec<_>>().concat()
    };
    let many = stage.commit_tree(None, &entries("one"));
    let moved = stage.commit_tree(None, &entries("other"));
    let long = format!("100644 blob {blob}\t{}\0", "x".repeat(4_000));
    let long = stage.commit_tree(None, &long);
    let short = stage.commit_tree(None, &format!("100644 blob {blob}\tx\0"));
    stage.mirror();
    let mut reader = stage.open(&Deadline::after(Duration::from_mins(2)));
    let rename = |from: &str, to: &str| Rename {
        from: from.as_bytes().to_vec(),
        to: to.as_bytes().to_vec(),
    };
    let expected = [
        rename("old\tname", "caf\u{e9}/new"),
        rename("a", "svc-end\n"),
    ];
    for _ in 0..2 {
        assert_eq!(reader.renames(&first, &second).unwrap().unwrap(), expected);
        assert_eq!(reader.renames(&first, &first).unwrap().unwrap(), []);
        let absent = sha(&"f".repeat(40));
        assert_eq!(reader.renames(&first, &absent).unwrap(), None);
        let declines = |reader: &mut MirrorReader, from, to| declined(reader.renames(from, to));
        assert_eq!(
            declines(&mut reader, &many, &moved),
            ReadDecline::TooManyFiles
        );
        assert_eq!(declines(&mut reader, &long, &short), ReadDecline::Path);
    }
}

#[test]
fn what_is_too_much_is_declined_and_the_next_question_is_answered() {
    let stage = Stage::new();
    let small = stage.commit_files(&[("small", b"x\n")]);
    // A line of 64 MB that differs, and one of 2 MB that git compares.
    let endless = stage.commit_files(&[("endless", &vec![b'x'; 64_000_000])]);
    let wide = stage.commit_files(&[("wide", &vec![b'y'; 2_000_000])]);
    let blob = stage.forge.run_with(&["hash-object", "-w", "--stdin"], "b");
    let entries: Vec<String> = (0..100_000)
        .map(|number| format!("100644 blob {blob}\tfile-{number:06}\0"))
        .collect();
    let entries = entries.concat();
    let many = stage.commit_tree(Some(&small), &entries);
    let message = "m".repeat(2_000_000);
    let tree = format!("{small}^{{tree}}");
    let wordy = sha(&stage.forge.run_with(&["commit-tree", &tree], &message));
    stage
        .forge
        .run(&["update-ref", "refs/heads/wordy", wordy.as_str()]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let start = Instant::now();
    for renames in [Renames::Detected, Renames::Apart] {
        let binary = reader.diff(&endless, whole(renames)).unwrap().unwrap();
        assert!(
            binary
                .bytes
                .ends_with(b"Binary files /dev/null and b/endless differ\n")
        );
        for (commit, expected) in [
            (&wide, ReadDecline::TooLarge),
            (&many, ReadDecline::TooManyFiles),
            (&wordy, ReadDecline::TooLarge),
        ] {
            assert_eq!(declined(reader.diff(commit, whole(renames))), expected);
            let next = reader.diff(&small, whole(renames)).unwrap().unwrap();
            assert_eq!(next.files, 1);
        }
    }
    let blob = reader.blob(&endless, b"endless", 1_000_000);
    assert_eq!(declined(blob), ReadDecline::TooLarge);
    let entries = reader.tree_entries(&many, b"", 10_000);
    assert_eq!(declined(entries), ReadDecline::TooLarge);
    let entries = reader.tree_entries(&many, b"", 100_000).unwrap().unwrap();
    assert_eq!(entries.len(), 100_000);
    assert!(start.elapsed() < Duration::from_mins(1));
    // A diff of exactly what is asked for is whole.
    let exact = reader.diff(&small, whole(Renames::Apart)).unwrap().unwrap();
    let question = |bytes_max| DiffQuestion {
        bytes_max,
        files_max: 1,
        ..whole(Renames::Apart)
    };
    let again = reader.diff(&small, question(exact.bytes.len())).unwrap();
    assert_eq!(again.unwrap(), exact);
    let less = reader.diff(&small, question(exact.bytes.len() - 1));
    assert_eq!(declined(less), ReadDecline::TooLarge);
}

#[test]
fn odd_names_links_and_other_repositories_are_only_entries() {
    let stage = Stage::new();
    let base = stage.commit_files(&[("a", b"x\n")]);
    let blob = stage
        .forge
        .run_with(&["hash-object", "-w", "--stdin"], "to/where");
    let names = [
        "-rf",
        "$(touch pwned)",
        "svc-end\n",
        "tab\tand\nline",
        "caf\u{e9}",
        "\u{202e}",
        ".gitattributes",
    ];
    let mut entries: Vec<String> = names
        .iter()
        .map(|name| format!("100644 blob {blob}\t{name}\0"))
        .collect();
    entries.push(format!("120000 blob {blob}\tlink\0"));
    entries.push(format!("160000 commit {}\tmodule\0", "c".repeat(40)));
    let odd = stage.commit_tree(Some(&base), &entries.concat());
    stage.mirror();
    let mut reader = stage.open(&long());
    for name in names {
        let read = reader.blob(&odd, name.as_bytes(), 100).unwrap();
        assert_eq!(read.unwrap(), b"to/where", "{name:?}");
    }
    assert_eq!(
        reader.blob(&odd, b"link", 100).unwrap().unwrap(),
        b"to/where"
    );
    assert_eq!(reader.blob(&odd, b"module", 100).unwrap(), None);
    for name in [&b"link"[..], b"module", b"nothing", b"link/x", b"-rf/x"] {
        assert_eq!(reader.regular_file(&odd, name, 100).unwrap(), None);
    }
    let regular = reader.regular_file(&odd, names[3].as_bytes(), 8).unwrap();
    assert_eq!(regular.unwrap(), b"to/where");
    assert_eq!(
        declined(reader.regular_file(&odd, b"-rf", 7)),
        ReadDecline::TooLarge
    );
    assert_eq!(
        declined(reader.regular_file(&odd, b"", 7)),
        ReadDecline::Path
    );
    assert_eq!(reader.blob(&odd, b"link/x", 100).unwrap(), None);
    let listed = reader.tree_entries(&odd, b"", 100).unwrap().unwrap();
    assert_eq!(listed.len(), names.len() + 2);
    let kind = |name: &[u8]| listed.iter().find(|it| it.name == name).unwrap().kind;
    assert_eq!(kind(b"link"), EntryKind::Link);
    assert_eq!(kind(b"module"), EntryKind::Repository);
    let diff = reader
        .diff(&odd, whole(Renames::Detected))
        .unwrap()
        .unwrap();
    assert_eq!(diff.files, names.len() + 3, "and the file that is gone");
}

#[test]
fn what_a_commit_adds_is_read_from_what_git_writes() {
    let stage = Stage::new();
    let lines: Vec<String> = (0..40).map(|number| format!("line {number}\n")).collect();
    let text = lines.concat();
    let base = stage.commit_files(&[
        ("gone.py", b"x\n"),
        ("mode.py", b"x\n"),
        ("old name.py", text.as_bytes()),
        ("type.py", b"x\n"),
        ("windows.py", b"a\r\nb\r\n"),
    ]);
    let work = stage.forge.folder().join("work");
    fs::remove_file(work.join("gone.py")).unwrap();
    fs::remove_file(work.join("type.py")).unwrap();
    std::os::unix::fs::symlink("mode.py", work.join("type.py")).unwrap();
    stage
        .forge
        .run(&["mv", "old name.py", "new b\t\"name\".py"]);
    stage.forge.run(&["update-index", "--chmod=+x", "mode.py"]);
    stage.forge.run(&["config", "core.fileMode", "false"]);
    // Without its folder the entry would be removed again.
    fs::create_dir(work.join("module")).unwrap();
    let module = format!("160000,{},module", "c".repeat(40));
    stage
        .forge
        .run(&["update-index", "--add", "--cacheinfo", &module]);
    let moved = text.replace("line 7\n", "line seven\n");
    let second = stage.commit_files(&[
        ("new b\t\"name\".py", moved.as_bytes()),
        ("windows.py", b"a\r\nb\r\nlone\rcr\r\nlast"),
        (
            "caf\u{e9} b/x.py",
            b"\xff--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/y b/y\n",
        ),
        ("binary.py", b"a\0b"),
        ("empty.py", b""),
    ]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let mut parse = |commit: &CommitSha| {
        let diff = reader.diff(commit, whole(Renames::Detected)).unwrap();
        CommitDiff::parse(&diff.unwrap().bytes)
    };
    let first = parse(&base);
    assert_eq!(
        (first.files.len(), first.malformed, first.unsupported),
        (5, 0, 0)
    );
    let diff = parse(&second);
    assert_eq!((diff.malformed, diff.unsupported), (0, 2));
    let renamed = FileChange::Renamed {
        from: "old name.py".to_owned(),
    };
    let mut files: Vec<_> = diff
        .files
        .into_iter()
        .map(|file| (file.path, file.change, file.added))
        .collect();
    files.sort_by(|left, right| (&left.0, &left.2).cmp(&(&right.0, &right.2)));
    let expected = [
        (
            "caf\u{e9} b/x.py",
            FileChange::Added,
            "\u{fffd}--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/y b/y",
        ),
        ("empty.py", FileChange::Added, ""),
        ("gone.py", FileChange::Deleted, ""),
        ("mode.py", FileChange::Modified, ""),
        ("new b\t\"name\".py", renamed, "line seven"),
        ("type.py", FileChange::Deleted, ""),
        ("type.py", FileChange::Added, "mode.py"),
        ("windows.py", FileChange::Modified, "lone\rcr\nlast"),
    ];
    let expected =
        expected.map(|(path, change, added)| (path.to_owned(), change, added.to_owned()));
    assert_eq!(files, expected);
}

#[test]
fn what_a_repository_says_of_its_files_hides_none() {
    let stage = Stage::new();
    let hidden = stage.commit_files(&[(".gitattributes", b"* -diff\n"), ("a", b"seen\n")]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let diff = reader
        .diff(&hidden, whole(Renames::Apart))
        .unwrap()
        .unwrap();
    assert!(
        diff.bytes.ends_with(b"+seen\n"),
        "{}",
        diff.bytes.escape_ascii()
    );
}

/// Returns of each pair whether the first is the second or an ancestor of it.
fn are_ancestors(reader: &mut MirrorReader, pairs: &[(CommitSha, CommitSha)]) -> Vec<bool> {
    let commits = pairs.iter().map(|(ancestor, _)| ancestor);
    let tips = pairs.iter().map(|(_, descendant)| descendant);
    let ancestry = reader.ancestry(commits, tips).unwrap();
    let is_ancestor = |(ancestor, descendant): &(CommitSha, CommitSha)| {
        ancestry.reaches(ancestor, descendant) == Some(true)
    };
    pairs.iter().map(is_ancestor).collect()
}

#[test]
fn ancestors_and_what_branches_reach_are_told_for_many_at_once() {
    let stage = Stage::new();
    let commit = |name: &str| sha(&stage.forge.commit(name));
    let (root, left) = (commit("root"), commit("left"));
    stage
        .forge
        .run(&["checkout", "-q", "-b", "right", root.as_str()]);
    let right = commit("right");
    stage.forge.run(&["checkout", "-q", "main"]);
    stage.forge.run(&["merge", "-q", "-m", "merge", "right"]);
    let merge = sha(&stage.forge.run(&["rev-parse", "HEAD"]));
    stage.forge.run(&["checkout", "-q", "--orphan", "alone"]);
    let alone = commit("alone");
    stage.forge.run(&["checkout", "-q", "-b", "gone"]);
    let gone = commit("gone");
    stage
        .forge
        .run(&["update-ref", "refs/pull/1/head", gone.as_str()]);
    stage.forge.run(&["checkout", "-q", "main"]);
    stage.forge.run(&["branch", "-q", "-D", "gone"]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let absent = sha(&"f".repeat(40));
    let all = [root, left, right, merge, alone, gone, absent];
    let expected = [
        "1111000", "0101000", "0011000", "0001000", "0000110", "0000010", "0000000",
    ];
    let pair = |ancestor: usize, of: usize| (all[ancestor].clone(), all[of].clone());
    let places = (0..7).flat_map(|ancestor| (0..7).map(move |of| (ancestor, of)));
    let pairs: Vec<_> = places.map(|(ancestor, of)| pair(ancestor, of)).collect();
    let told = are_ancestors(&mut reader, &pairs);
    for (row, expected) in told.chunks(7).zip(expected) {
        let row: String = row.iter().map(|it| if *it { '1' } else { '0' }).collect();
        assert_eq!(row, expected);
    }
    let ancestry = reader.ancestry(&all, &all).unwrap();
    for (commit, expected) in all.iter().zip(expected) {
        let told = |tip: &CommitSha| match ancestry.reaches(commit, tip) {
            Some(true) => '1',
            Some(false) => '0',
            None => '?',
        };
        let row: String = all.iter().map(told).collect();
        assert_eq!(
            row,
            format!("{}?", &expected[..6]),
            "an absent tip is unknown"
        );
    }
    assert_eq!(ancestry.reaches(&all[0], &sha(&"e".repeat(40))), None);
    let none = reader.ancestry(&[], &all[..1]).unwrap();
    assert_eq!(
        none.reaches(&all[0], &all[0]),
        Some(false),
        "it was not asked about"
    );
    // The walk ends as soon as the answer is known, and that is not a failure.
    let known = are_ancestors(&mut reader, &[pair(3, 3), pair(0, 1)]);
    assert_eq!(known, [true, true]);
    assert!(are_ancestors(&mut reader, &[]).is_empty());
    let reached = reader.reached(&all).unwrap();
    assert_eq!(reached, [true, true, true, true, true, false, false]);
    assert!(reader.reached(&[]).unwrap().is_empty());
}

/// Makes a history of so many commits, each with up to three parents among those shortly before it, at
/// moments that this gives, and returns it.
fn random_history(
    stage: &Stage,
    seed: u64,
    count: usize,
    moment: &dyn Fn(u64, u64) -> u64,
) -> Vec<CommitSha> {
    let mut state = seed;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut stream = String::new();
    for number in 1..=count as u64 {
        let time = 1_700_000_000 + moment(number, random(4));
        let branch = format!("refs/heads/b{number}");
        let head = format!("commit {branch}\nmark :{number}\ncommitter A <a@b.c> {time} +0000\n");
        stream += &head;
        stream += "data 1\nx\n";
        let mut parents: Vec<u64> = (0..=random(3))
            .map(|_| number.saturating_sub(1 + random(6)))
            .filter(|parent| *parent > 0)
            .collect();
        parents.sort_unstable();
        parents.dedup();
        for (place, parent) in parents.iter().rev().enumerate() {
            let word = if place == 0 { "from" } else { "merge" };
            stream.extend([word, " :", &parent.to_string(), "\n"]);
        }
        stream += "\n";
    }
    let marks = stage.root.path().join("marks");
    let export = format!("--export-marks={}", marks.display());
    stage
        .forge
        .run_with(&["fast-import", "--quiet", "--force", &export], &stream);
    let mut commits = vec![None; count];
    for line in fs::read_to_string(marks).unwrap().lines() {
        let (mark, id) = line.split_once(' ').unwrap();
        let mark: usize = mark.trim_start_matches(':').parse().unwrap();
        commits[mark - 1] = Some(sha(id));
    }
    commits.into_iter().flatten().collect()
}

#[rstest::rstest]
#[case::moments_of_their_own(&|number, _| number * 10)]
#[case::moments_in_common(&|number, _| number / 5)]
#[case::one_moment(&|_, _| 0)]
#[case::clocks_that_are_wrong(&|number, random| number * 10 + random * 40)]
fn a_push_brought_what_git_lists(#[case] moment: &dyn Fn(u64, u64) -> u64) {
    let stage = Stage::new();
    let commits = random_history(&stage, 88_172_645_463_325_252, 90, moment);
    assert_eq!(commits.len(), 90);
    stage.mirror();
    let mut reader = stage.open(&long());
    for after in (0..90).step_by(7) {
        for before in (0..90).step_by(5) {
            let (before, after) = (&commits[before], &commits[after]);
            let listed = stage.forge.run(&[
                "rev-list",
                "--max-count=20",
                after.as_str(),
                &format!("^{before}"),
            ]);
            let mut expected: Vec<CommitSha> = listed.lines().map(sha).collect();
            expected.reverse();
            if expected.is_empty() {
                expected.push(after.clone());
            }
            let range = |forced| PushRange {
                before,
                after,
                forced,
            };
            assert_eq!(reader.pushed(range(false)).unwrap().commits, expected);
            assert_eq!(reader.pushed(range(true)).unwrap().commits, from_ref(after));
        }
    }
}

#[test]
fn a_push_from_or_to_what_the_mirror_lacks_is_its_newer_end() {
    let stage = Stage::new();
    let commits: Vec<CommitSha> = (0..25)
        .map(|number: u32| sha(&stage.forge.commit(&number.to_string())))
        .collect();
    stage.mirror();
    let mut reader = stage.open(&long());
    let (zeros, absent) = (sha(&"0".repeat(40)), sha(&"f".repeat(40)));
    let mut pushed = |before: &CommitSha, after: &CommitSha| {
        let forced = false;
        let range = PushRange {
            before,
            after,
            forced,
        };
        let brought = reader.pushed(range).unwrap();
        (brought.commits, brought.is_final)
    };
    // What the mirror lacks it may come to have.
    let newer = |commit: &CommitSha, is_final| (vec![commit.clone()], is_final);
    assert_eq!(pushed(&zeros, &commits[9]), newer(&commits[9], true));
    assert_eq!(pushed(&absent, &commits[9]), newer(&commits[9], false));
    assert_eq!(pushed(&commits[0], &absent), newer(&absent, false));
    let all = |commits: &[CommitSha]| (commits.to_vec(), true);
    assert_eq!(pushed(&commits[0], &commits[24]), all(&commits[5..]));
    assert_eq!(pushed(&commits[20], &commits[24]), all(&commits[21..]));
    assert_eq!(pushed(&commits[9], &commits[9]), newer(&commits[9], true));
    assert_eq!(pushed(&commits[9], &commits[3]), newer(&commits[3], true));
}

#[test]
fn reading_ends_with_its_deadline_and_when_it_is_cancelled() {
    let stage = Stage::new();
    let commit = stage.commit_files(&[("a", b"x")]);
    stage.mirror();
    let deadline = long();
    let mut reader = stage.open(&deadline);
    assert!(reader.commit(&commit).unwrap().is_some());
    deadline.cancel();
    assert!(matches!(
        reader.commit(&commit),
        Err(ReadError::Passed(Passed::Cancelled))
    ));
    drop(reader);
    assert!(processes::folder_is_left(stage.root.path()));
    // Somebody removes the mirror for as long as the reader would wait.
    let folder = stage.folder();
    let lock = folder
        .lock(&stage.lifetime, &Allowance::until(long()))
        .unwrap();
    let mut reader = stage.open(&long());
    let wait = Allowance::until(Deadline::after(Duration::from_millis(80)));
    assert!(folder.remove(&stage.lifetime, &lock, &wait).is_err());
    assert!(
        reader.commit(&commit).unwrap().is_some(),
        "a reader goes first"
    );
}

#[test]
fn a_mirror_that_is_destroyed_under_its_reader_is_an_error_and_no_panic() {
    let stage = Stage::new();
    let commit = stage.commit_files(&[("a", b"x")]);
    stage.mirror();
    let mut reader = stage.open(&long());
    fs::remove_dir_all(stage.folder().path(&stage.lifetime)).unwrap();
    assert!(matches!(
        reader.commit(&commit),
        Err(ReadError::Git(_) | ReadError::Folder(_))
    ));
    let again = reader.diff(&commit, whole(Renames::Apart));
    assert!(matches!(
        again,
        Err(ReadError::Git(_) | ReadError::Folder(_))
    ));
}
