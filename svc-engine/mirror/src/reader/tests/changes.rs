//! A commit's changes are shown as git writes them.

use super::*;

#[test]
fn a_moved_file_is_one_file_and_a_merge_is_compared_with_its_first_parent() {
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
    let mut read = |commit: &CommitSha| {
        let diff = diff(&mut reader, commit, WHOLE).unwrap().unwrap();
        (diff.files, String::from_utf8(diff.bytes).unwrap())
    };
    let (files, renamed) = read(&moved);
    assert_eq!(files, 1);
    assert!(renamed.contains("rename from old name\nrename to caf\u{e9}\n"));
    let (files, merged) = read(&merge);
    assert_eq!(files, 1);
    assert!(merged.starts_with("diff --git a/side b/side\nnew file"));
}

#[test]
fn the_diff_of_git_yields_the_additions_of_a_commit() {
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
    // Without its folder, the entry would be removed again.
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
        let diff = diff(&mut reader, commit, WHOLE).unwrap();
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
fn attributes_of_the_repository_hide_no_file_from_diffs() {
    let stage = Stage::new();
    let hidden = stage.commit_files(&[(".gitattributes", b"* -diff\n"), ("a", b"seen\n")]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let diff = diff(&mut reader, &hidden, WHOLE).unwrap().unwrap();
    assert!(
        diff.bytes.ends_with(b"+seen\n"),
        "{}",
        diff.bytes.escape_ascii()
    );
}
