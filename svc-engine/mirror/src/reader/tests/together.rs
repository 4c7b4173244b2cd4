//! Questions that are asked in bulk get the same answers as when asked one by one.

use super::*;

#[rstest::rstest]
fn diffs_are_the_same_one_by_one_and_in_a_batch(#[values("sha1", "sha256")] format: &str) {
    let stage = Stage::with(format);
    let mut commits = Vec::new();
    for number in 0..120 {
        let text = format!("line {number}\n").repeat(number * 7 + 1);
        let name = format!("folder-{}/file-{}", number % 3, number % 10);
        commits.push(stage.commit_files(&[(&name, text.as_bytes())]));
        match number {
            // Larger than the limit, in the middle.
            60 => commits.push(stage.commit_files(&[("wide", &vec![b'y'; 2_000_000])])),
            // Absent from the mirror.
            61 => commits.push(sha(&"a".repeat(commits[0].as_str().len()))),
            _ => {}
        }
    }
    stage.mirror();
    let (mut together, mut alone) = (stage.open(&long()), stage.open(&long()));
    let mut answers: Vec<Option<Result<Option<Diff>, ReadError>>> = Vec::new();
    answers.resize_with(commits.len(), || None);
    let read = together.diffs(&commits, WHOLE, |place, diff| {
        assert!(answers[place].replace(diff).is_none(), "answered once");
    });
    read.unwrap();
    for (commit, answer) in commits.iter().zip(answers) {
        let expected = diff(&mut alone, commit, WHOLE);
        match (answer.expect("an answer"), expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(answer, expected),
            (answer, expected) => assert_eq!(declined(answer), declined(expected)),
        }
    }
    together.end_diffs();
    together
        .diffs(&[], WHOLE, |_, _| panic!("nothing"))
        .unwrap();
}

#[test]
fn files_are_the_same_one_by_one_and_in_a_batch() {
    let stage = Stage::new();
    let first = stage.commit_files(&[
        ("a", b"one\n"),
        ("x/y/z", b"deep\n"),
        ("x/large", &[b'l'; 9_000]),
        ("x/y.z", b"beside\n"),
    ]);
    std::os::unix::fs::symlink("a", stage.forge.folder().join("work/link")).unwrap();
    let second = stage.commit_files(&[("a", b"two\n")]);
    stage.mirror();
    let absent = sha(&"b".repeat(40));
    let paths = [
        "a", "x/y/z", "x/large", "x/y.z", "link", "x", "x/y", "a/b", "none", "x/none/z", "",
        "../a", "x//y",
    ];
    let commits = [&first, &second, &absent];
    let wanted: Vec<WantedFile<'_>> = commits
        .iter()
        .flat_map(|commit| {
            paths.iter().map(|path| WantedFile {
                commit,
                path: path.as_bytes(),
            })
        })
        .collect();
    let (mut together, mut alone) = (stage.open(&long()), stage.open(&long()));
    let found = together.find_files(&wanted).unwrap();
    let ids: Vec<ObjectId> = found
        .iter()
        .filter_map(|object| *object.as_ref().ok()?)
        .collect();
    let mut contents = Vec::new();
    let read = together.contents_of(&ids, 8_000, |_, bytes| {
        contents.push(match bytes {
            // The beginning of the large one, whose length shows that there is more.
            Ok(bytes) if bytes.len() > 8_000 => {
                assert_eq!(bytes, [b'l'; 8_001]);
                Err(ReadError::Declined(ReadDecline::TooLarge))
            }
            bytes => bytes.map(<[u8]>::to_vec),
        });
    });
    read.unwrap();
    let mut contents = contents.into_iter();
    for (wanted, found) in wanted.iter().zip(found) {
        let path = std::str::from_utf8(wanted.path).unwrap();
        let expected = file(&mut alone, wanted.commit, path, 8_000);
        let answer = match found {
            Ok(Some(_)) => contents.next().expect("a content").map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match (answer, expected) {
            (Ok(answer), Ok(expected)) => assert_eq!(answer, expected),
            (answer, expected) => assert_eq!(declined(answer), declined(expected)),
        }
    }
    let held = together.holds(&[&first, &absent, &second]).unwrap();
    assert_eq!(held, [true, false, true]);
}

#[test]
fn the_commits_of_a_push_are_the_same_after_preparation() {
    let stage = Stage::new();
    let name = |number: usize| format!("file-{number}");
    let commits: Vec<CommitSha> = (0..40)
        .map(|number| stage.commit_files(&[(&name(number), b"x\n")]))
        .collect();
    stage.mirror();
    let (zeros, absent) = (sha(&"0".repeat(40)), sha(&"c".repeat(40)));
    let ends = [
        (&commits[3], &commits[9], false),
        (&commits[0], &commits[39], false),
        (&commits[9], &commits[3], false),
        (&zeros, &commits[5], false),
        (&absent, &commits[5], false),
        (&commits[3], &commits[9], true),
        (&commits[7], &absent, false),
    ];
    let push = |(before, after, forced): (&'_ CommitSha, &'_ CommitSha, bool)| {
        (before.clone(), after.clone(), forced)
    };
    let ends: Vec<_> = ends.into_iter().map(push).collect();
    let ranges: Vec<PushRange<'_>> = ends
        .iter()
        .map(|(before, after, forced)| PushRange {
            before,
            after,
            forced: *forced,
        })
        .collect();
    let (mut prepared, mut alone) = (stage.open(&long()), stage.open(&long()));
    prepared.prepare(ranges.iter().copied()).unwrap();
    for range in ranges {
        assert_eq!(
            prepared.pushed(range).unwrap(),
            alone.pushed(range).unwrap()
        );
    }
}
