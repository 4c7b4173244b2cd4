use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> CommitDiff {
    CommitDiff::parse(text.as_bytes())
}

fn one(text: &str) -> FileDiff {
    let mut diff = parse(text);
    assert_eq!((diff.malformed, diff.unsupported), (0, 0), "{text}");
    assert_eq!(diff.files.len(), 1, "{text}");
    diff.files.remove(0)
}

/// A new file with these lines, each followed by its line break in the diff.
fn new_file(name: &str, lines: &[&str]) -> String {
    let added = lines.iter().map(|line| format!("+{line}\n"));
    let (added, count) = (added.collect::<Vec<_>>().concat(), lines.len());
    format!(
        "diff --git a/{name} b/{name}\nnew file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{count} @@\n{added}"
    )
}

fn skips(text: &str) -> (u64, u64) {
    let diff = parse(text);
    assert_eq!(diff.files, [], "{text}");
    (diff.malformed, diff.unsupported)
}

#[test]
fn added_lines_of_all_hunks_are_joined() {
    let file = one(
        "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,3 @@ fn main() {\n one\n-two\n+2\n+3\n@@ -9 +10,2 @@\n nine\n+ten @@ -1 +1 @@\n\\ No newline at end of file\n",
    );
    assert_eq!(file.path, "src/a.rs");
    assert_eq!(file.change, FileChange::Modified);
    assert_eq!(file.added, "2\n3\nten @@ -1 +1 @@");
}

#[test]
fn only_lf_and_crlf_break_lines() {
    let lines = ["a\r", "b\rc", "d\u{b}e\u{c}f\u{85}g\u{2028}h", "", "i\r\r"];
    let file = one(&new_file("a.py", &lines));
    assert_eq!(file.added, "a\nb\rc\nd\u{b}e\u{c}f\u{85}g\u{2028}h\n\ni\r");
    let last = new_file("a.py", &["a\r"]) + "\\ No newline at end of file\n";
    assert_eq!(one(&last).added, "a\r", "no line break follows the CR");
}

#[test]
fn invalid_utf_8_is_replaced() {
    let mut diff = new_file("a.py", &["x"]).into_bytes();
    let at = diff.len() - 2;
    diff.splice(at..at, [0xff, 0xe9]);
    assert_eq!(CommitDiff::parse(&diff).files[0].added, "\u{fffd}\u{fffd}x");
    let name = b"diff --git a/\xe9.py b/\xe9.py\nold mode 100644\nnew mode 100755\n";
    assert_eq!(CommitDiff::parse(name).files[0].path, "\u{fffd}.py");
}

#[test]
fn content_that_looks_like_a_diff_is_read_as_content() {
    let lines = [
        "diff --git a/x b/x",
        "--- a/x",
        "+++ b/x",
        "@@ -1 +1 @@",
        "\\ No",
    ];
    assert_eq!(one(&new_file("a", &lines)).added, lines.join("\n"));
}

#[test]
fn each_change_has_its_kind_and_path() {
    let deleted = "diff --git a/x b/x\ndeleted file mode 100644\nindex 1..0\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let renamed = "diff --git a/old name b/new b/x\nsimilarity index 90%\nrename from old name\nrename to new b/x\nindex 1..2 100644\n--- a/old name\t\n+++ b/new b/x\t\n@@ -1 +1 @@\n-x\n+y\n";
    let moved =
        "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\nold mode 100644\n";
    let empty = "diff --git a/e b/e\nnew file mode 100644\nindex 0..e\n";
    let mode = "diff --git a/a b/a b/a b/a\nold mode 100644\nnew mode 100755\n";
    let from = |path: &str| FileChange::Renamed {
        from: path.to_owned(),
    };
    for (text, path, change, added) in [
        (deleted, "x", FileChange::Deleted, ""),
        (renamed, "new b/x", from("old name"), "y"),
        (moved, "b", from("a"), ""),
        (empty, "e", FileChange::Added, ""),
        (mode, "a b/a", FileChange::Modified, ""),
    ] {
        let file = one(text);
        assert_eq!(
            (&*file.path, file.change, &*file.added),
            (path, change, added)
        );
    }
    let all = [deleted, renamed, moved, empty, mode].concat();
    assert_eq!(parse(&all).files.len(), 5);
}

#[test]
fn quoted_paths_are_read_as_git_writes_them() {
    let quoted = r#""b/\ttab \"q\" \\ \303\251 \001""#;
    let old = quoted.replacen("b/", "a/", 1);
    let text = format!(
        "diff --git {old} {quoted}\nnew file mode 100644\n--- /dev/null\n+++ {quoted}\n@@ -0,0 +1 @@\n+x\n"
    );
    assert_eq!(one(&text).path, "\ttab \"q\" \\ \u{e9} \u{1}");
    let text = "diff --git a/pl ain \"b/q\\n\"\nsimilarity index 100%\nrename from pl ain\nrename to \"q\\n\"\n";
    assert_eq!(one(text).path, "q\n");
    let text = "diff --git \"a/q\\n\" b/pl ain\nsimilarity index 100%\nrename from \"q\\n\"\nrename to pl ain\n";
    assert_eq!(one(text).path, "pl ain");
    for odd in ["\\x", "\\", "\\9", "\\40", "\"", "\\477"] {
        let text = format!("diff --git \"a/{odd}\" \"b/{odd}\"\nold mode 100644\n");
        assert_eq!(skips(&text), (0, 1), "{odd}");
    }
}

#[test]
fn sections_without_text_lines_are_unsupported() {
    for text in [
        "diff --git a/b b/b\nindex 1..2 100644\nBinary files a/b and b/b differ\n",
        "diff --git a/b b/b\nindex 1..2 100644\nGIT binary patch\nliteral 3\nabc\n",
        "diff --cc a\nindex 1,2..3\n--- a/a\n+++ b/a\n@@@ -1,1 -1,1 +1,1 @@@\n++x\n",
        "diff --combined a\n",
        "diff --git a/a b/b\nsimilarity index 100%\ncopy from a\ncopy to b\n",
        "diff --git a/m b/m\nnew file mode 160000\nindex 0..1\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit 1\n",
        "diff --git a/m b/m\nindex 1..2 160000\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
    ] {
        assert_eq!(skips(text), (0, 1), "{text}");
    }
}

#[test]
fn sections_that_violate_the_grammar_are_malformed() {
    let hunks =
        |hunks: &str| format!("diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n{hunks}");
    for text in [
        hunks("@@ -1 +1,2 @@\n x\n"),
        hunks("@@ -1 +1 @@\n x\n+y\n"),
        hunks("@@ -1 +1 @@\n x\n\n"),
        hunks("@@ -1 +1 @@\n\\ No newline at end of file\n x\n"),
        hunks("@@ -1 +1 @@\n x\n\\ No\n\\ No\n"),
        hunks("@@ -1,3 +1,3 @@\n x\n-y\n+z\n w\n@@ -3 +4 @@\n x\n"),
        hunks("@@ -1,3 +1,3 @@\n x\n-y\n+z\n w\n@@ -4 +3 @@\n x\n"),
        hunks("@@ -1,2 +1 @@\n x\n@@ -4 +3 @@\n x\n"),
        hunks("@@ -1 +99999999999999999999 @@\n x\n"),
        hunks("@@ -1 +18446744073709551615,2 @@\n+x\n+y\n"),
        hunks("@@ -1 +1 @\n x\n"),
        hunks("@@ 1 1 @@\n x\n"),
        hunks("@@ -a +1 @@\n x\n"),
        hunks("x\n"),
        hunks(""),
        "diff --git a/a b/b\nold mode 100644\nnew mode 100755\n".to_owned(),
        "diff --git a/a b/a\nsomething new\n".to_owned(),
        "diff --git a/a b/a\nold mode 1006444\n".to_owned(),
        "diff --git a/a b/a\n+++ b/a\n".to_owned(),
        "diff --git a/a b/a\n--- a/a\n".to_owned(),
        "diff --git a/a b/a\n@@ -1 +1 @@\n x\n".to_owned(),
        "diff --git a/a b/a\nrename from a\n".to_owned(),
        "diff --git a/a b/b\nrename from a\nrename to c\n".to_owned(),
        "diff --git a/a b/a\n--- a/a\n+++ b/c\n@@ -1 +1 @@\n-x\n+y\n".to_owned(),
        "diff --git a/a b/a\n--- a/a\n+++ c/a\n@@ -1 +1 @@\n-x\n+y\n".to_owned(),
        "diff --git a/a b/a\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+y\n".to_owned(),
        "diff --git a/a b/a\nnew file mode 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
            .to_owned(),
        "diff --git a b\n".to_owned(),
        "diff --git \n".to_owned(),
        "what is this\n+x\n".to_owned(),
    ] {
        assert_eq!(skips(&text), (1, 0), "{text}");
    }
}

#[test]
fn a_bad_section_does_not_affect_the_others() {
    let good = new_file("a.py", &["x"]);
    let bad = "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n+y\n+z\n";
    let binary = "diff --git a/c b/c\nBinary files a/c and b/c differ\n";
    let diff = parse(&[&good, bad, &good, binary, &good].concat());
    assert_eq!(
        (diff.files.len(), diff.malformed, diff.unsupported),
        (3, 1, 1)
    );
    assert_eq!(parse(""), CommitDiff::default());
}

/// In quadratic time, this takes minutes.
#[test]
fn long_names_are_parsed() {
    let name = " b/a".repeat(500_000);
    let text = format!("diff --git a/{name} b/{name}\nold mode 100644\nnew mode 100755\n");
    assert_eq!(one(&text).path, name);
    let text = format!("diff --git a/{name} b/{name}x\nold mode 100644\nnew mode 100755\n");
    assert_eq!(skips(&text), (1, 0));
    let quoted = " \\\"b/".repeat(500_000);
    let text = format!("diff --git \"a/{quoted}\" \"b/{quoted}\"\nold mode 100644\n");
    assert_eq!(one(&text).path, " \"b/".repeat(500_000));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_a_panic(
        lines in prop::collection::vec(
            prop_oneof![
                Just(b"diff --git a/a b/a".to_vec()),
                Just(b"--- a/a".to_vec()),
                Just(b"+++ b/a".to_vec()),
                Just(b"@@ -1 +1 @@".to_vec()),
                Just(b"@@ -0,0 +1,2 @@".to_vec()),
                Just(b"new file mode 100644".to_vec()),
                Just(b"rename from \"a\\n\"".to_vec()),
                Just(b"\\ No newline".to_vec()),
                prop::collection::vec(any::<u8>(), 0..6),
                prop::collection::vec(prop::sample::select(b"+- \\\"a/b@,10\r".to_vec()), 0..12),
            ],
            0..30,
        )
    ) {
        let text = lines.join(&b'\n');
        let heads = text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"diff ")).count();
        let diff = CommitDiff::parse(&text);
        let sections = diff.files.len() as u64 + diff.malformed + diff.unsupported;
        prop_assert!(sections == heads as u64 || sections == heads as u64 + 1);
    }

    #[test]
    fn added_lines_are_read_back(
        lines in prop::collection::vec("[^\n\r]{0,20}", 1..20),
        name in "[a-z ]{1,8}",
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let name = name.trim();
        prop_assume!(!name.is_empty());
        let text = new_file(name, &lines);
        let file = one(&text);
        prop_assert_eq!(file.added, lines.join("\n"));
        prop_assert_eq!(file.path, name);
    }
}
