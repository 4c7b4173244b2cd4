//! How reading ends: declined, cancelled, too late, or without its mirror.

use super::*;

#[test]
fn opening_an_absent_mirror_creates_nothing() {
    let stage = Stage::new();
    let git = Git::find(&long()).unwrap();
    let opened = MirrorReader::open(&git, &stage.folder(), &stage.lifetime, &long());
    assert!(opened.unwrap().is_none());
    assert_eq!(fs::read_dir(stage.root.path()).unwrap().count(), 0);
}

#[test]
fn one_process_per_kind_of_question_ends_with_the_reader() {
    let stage = Stage::new();
    let commits: Vec<CommitSha> = (0..30)
        .map(|number: u32| stage.commit_files(&[("a", number.to_string().as_bytes())]))
        .collect();
    stage.mirror();
    let mut reader = stage.open(&long());
    let programs = || {
        let mut programs = processes::in_folder(stage.root.path());
        programs.retain(|process| process.program == "git");
        programs
            .into_iter()
            .map(|process| process.id)
            .collect::<Vec<_>>()
    };
    let mut seen = Vec::new();
    for commit in &commits {
        assert!(diff(&mut reader, commit, WHOLE).unwrap().is_some());
        assert!(file(&mut reader, commit, "a", 9).unwrap().is_some());
        seen.extend(programs());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 2);
    drop(reader);
    assert!(processes::folder_is_left(stage.root.path()));
}

#[test]
fn too_large_an_answer_is_declined_and_the_next_question_is_answered() {
    let stage = Stage::new();
    let small = stage.commit_files(&[("small", b"x\n")]);
    // A line of 64 MB that differs, and one of 2 MB, which git still compares.
    let endless = stage.commit_files(&[("endless", &vec![b'x'; 64_000_000])]);
    let wide = stage.commit_files(&[("wide", &vec![b'y'; 2_000_000])]);
    let blob = stage.forge.run_with(&["hash-object", "-w", "--stdin"], "b");
    let entries = |count: u32| {
        let entry = |number| format!("100644 blob {blob}\tfile-{number:06}\0");
        (0..count).map(entry).collect::<String>()
    };
    let many = stage.commit_tree(Some(&small), &entries(100_000));
    let more = stage.commit_tree(Some(&small), &entries(100_001));
    let message = "m".repeat(2_000_000);
    let tree = format!("{small}^{{tree}}");
    let wordy = sha(&stage.forge.run_with(&["commit-tree", &tree], &message));
    stage
        .forge
        .run(&["update-ref", "refs/heads/wordy", wordy.as_str()]);
    stage.mirror();
    let mut reader = stage.open(&long());
    let start = Instant::now();
    let binary = diff(&mut reader, &endless, WHOLE).unwrap().unwrap();
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
        assert_eq!(declined(diff(&mut reader, commit, WHOLE)), expected);
        let next = diff(&mut reader, &small, WHOLE).unwrap().unwrap();
        assert_eq!(next.files, 1);
    }
    let endless = file(&mut reader, &endless, "endless", 1_000_000);
    assert_eq!(declined(endless), ReadDecline::TooLarge);
    let last = file(&mut reader, &many, "file-099999", 9);
    assert_eq!(last.unwrap().unwrap(), b"b");
    let more = file(&mut reader, &more, "file-100000", 9);
    assert_eq!(declined(more), ReadDecline::TooManyEntries);
    assert!(start.elapsed() < Duration::from_mins(1));
    // A diff that just meets the limits is complete.
    let exact = diff(&mut reader, &small, WHOLE).unwrap().unwrap();
    let question = |bytes_max| DiffQuestion {
        bytes_max,
        files_max: 1,
    };
    let again = diff(&mut reader, &small, question(exact.bytes.len()));
    assert_eq!(again.unwrap().unwrap(), exact);
    let less = diff(&mut reader, &small, question(exact.bytes.len() - 1));
    assert_eq!(declined(less), ReadDecline::TooLarge);
}

#[test]
fn reading_stops_at_its_deadline_and_when_cancelled() {
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
    // Somebody removes the mirror, and takes as long as the reader would wait.
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
fn a_mirror_removed_under_its_reader_is_an_error() {
    let stage = Stage::new();
    let commit = stage.commit_files(&[("a", b"x")]);
    stage.mirror();
    let mut reader = stage.open(&long());
    fs::remove_dir_all(stage.folder().path(&stage.lifetime)).unwrap();
    assert!(matches!(
        reader.commit(&commit),
        Err(ReadError::Git(_) | ReadError::Folder(_))
    ));
    // Each commit of a question gets an answer, even if git cannot be started.
    let mut answers = Vec::new();
    let commits = [commit.clone(), commit];
    let read = reader.diffs(&commits, WHOLE, |place, diff| answers.push((place, diff)));
    assert!(read.is_ok(), "{read:?}");
    assert!(
        matches!(
            answers[..],
            [(0, Err(ReadError::Git(_))), (1, Err(ReadError::Git(_)))]
        ),
        "{answers:?}"
    );
}
