//! What is read of pull requests.

use super::*;

#[test]
fn a_pull_request_is_read_from_its_ref_and_between_its_ends() {
    let stage = Stage::new();
    let commit = |name: &str| sha(&stage.forge.commit(name));
    let base = commit("base");
    stage.forge.run(&["checkout", "-q", "-b", "work"]);
    let (one, two) = (commit("one"), commit("two"));
    stage
        .forge
        .run(&["update-ref", "refs/pull/7/head", two.as_str()]);
    stage.forge.run(&["checkout", "-q", "main"]);
    let other = commit("other");
    stage.mirror();
    let mut reader = stage.open(&long());
    assert_eq!(reader.pull_request_head(7).unwrap(), Some(two.clone()));
    assert_eq!(reader.pull_request_head(8).unwrap(), None);
    let mut beyond = |heads: &[&CommitSha], commits_max| {
        let heads: Vec<CommitSha> = heads.iter().copied().cloned().collect();
        reader.reached_beyond(&heads, from_ref(&other), commits_max)
    };
    let both = vec![one.clone(), two.clone()];
    assert_eq!(beyond(&[&two], 2).unwrap(), Some(both.clone()));
    assert_eq!(beyond(&[&two, &one], 9).unwrap(), Some(both));
    assert_eq!(beyond(&[&two], 1).unwrap(), None);
    assert_eq!(beyond(&[&base], 1).unwrap(), Some(Vec::new()));
    let absent = sha(&"f".repeat(40));
    let read = reader.commits(&[two.clone(), absent.clone(), one]).unwrap();
    let messages = read.iter().map(|commit| {
        let commit = commit.as_ref()?;
        Some(String::from_utf8_lossy(&commit.message).into_owned())
    });
    let expected = [Some("two\n"), None, Some("one\n")];
    assert!(messages.eq(expected.map(|message| message.map(str::to_owned))));
    let between = reader.diff_between(&base, &absent, WHOLE).unwrap();
    assert_eq!(between, None);
}

#[test]
fn two_commits_are_compared_wherever_they_are() {
    let stage = Stage::new();
    let work = stage.forge.folder().join("work");
    let write = |name: &str, text: &str| {
        fs::write(work.join(name), text).unwrap();
        stage.forge.run(&["add", "-A"]);
        sha(&stage.forge.commit(name))
    };
    let base = sha(&stage.forge.commit("base"));
    write("a", "a\n");
    let last = write("b", "b\n");
    stage.mirror();
    let mut reader = stage.open(&long());
    let diff = reader.diff_between(&base, &last, WHOLE).unwrap().unwrap();
    assert_eq!(diff.files, 2);
    let none = reader.diff_between(&last, &last, WHOLE).unwrap().unwrap();
    assert_eq!((none.files, none.bytes.len()), (0, 0));
    let narrow = DiffQuestion {
        files_max: 1,
        ..WHOLE
    };
    let declined = reader.diff_between(&base, &last, narrow);
    assert!(matches!(
        declined,
        Err(ReadError::Declined(ReadDecline::TooManyFiles))
    ));
    assert!(reader.diff_between(&base, &last, WHOLE).unwrap().is_some());
}
