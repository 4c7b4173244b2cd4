//! Commits, files, folders, names and links are read as they are in the mirror.

use super::*;

#[rstest::rstest]
fn commits_files_and_diffs_are_read(#[values("sha1", "sha256")] format: &str) {
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

    let read = |reader: &mut MirrorReader, path: &str| file(reader, &second, path, 100);
    let bytes = read(&mut reader, "src/a.rs").unwrap().unwrap();
    assert_eq!(bytes, b"one\n2\r\nlone\rCR\n\xff\xfe no text");
    assert_eq!(read(&mut reader, "b").unwrap().unwrap(), b"");
    for path in ["src", "src/b", "nothing", "b/x", "missing\n", "\n"] {
        assert_eq!(read(&mut reader, path).unwrap(), None, "{path:?}");
    }
    for path in [
        "",
        "/b",
        "./b",
        "src/../b",
        "b/",
        "a\0b",
        &"x".repeat(4_000),
    ] {
        let decline = declined(read(&mut reader, path));
        assert_eq!(decline, ReadDecline::Path, "{path}");
    }
    let large = file(&mut reader, &second, "src/a.rs", 5);
    assert_eq!(declined(large), ReadDecline::TooLarge);

    let changed = diff(&mut reader, &second, WHOLE).unwrap().unwrap();
    assert_eq!(changed.files, 1);
    assert!(
        changed
            .bytes
            .starts_with(b"diff --git a/src/a.rs b/src/a.rs\nindex ")
    );
    let tail = b"@@ -1,3 +1,4 @@\n one\n-two\r\n-lone\rcr\n+2\r\n+lone\rCR\n+\xff\xfe no text\n\\ No newline at end of file\n";
    assert!(
        changed.bytes.ends_with(tail),
        "{}",
        changed.bytes.escape_ascii()
    );
    let root = diff(&mut reader, &first, WHOLE).unwrap().unwrap();
    assert_eq!(
        root.files, 2,
        "the first commit is compared with an empty tree"
    );
    assert_eq!(diff(&mut reader, &absent, WHOLE).unwrap(), None);
}

#[test]
fn files_are_followed_through_renames() {
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
fn odd_names_links_and_submodules_are_read_as_plain_entries() {
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
        let read = file(&mut reader, &odd, name, 8).unwrap();
        assert_eq!(read.unwrap(), b"to/where", "{name:?}");
    }
    for name in ["link", "module", "nothing", "link/x", "-rf/x"] {
        assert_eq!(file(&mut reader, &odd, name, 8).unwrap(), None, "{name}");
    }
    let diff = diff(&mut reader, &odd, WHOLE).unwrap().unwrap();
    assert_eq!(diff.files, names.len() + 3, "and the file that is gone");
}
