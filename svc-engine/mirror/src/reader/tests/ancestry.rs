//! Which commits are ancestors of which.

use super::*;

/// Returns for each pair whether the first commit is the second or an ancestor of it.
fn are_ancestors(reader: &mut MirrorReader, pairs: &[(CommitSha, CommitSha)]) -> Vec<bool> {
    let commits = pairs.iter().map(|(ancestor, _)| ancestor);
    let tips = pairs.iter().map(|(_, descendant)| descendant);
    let ancestry = reader.ancestry(commits, tips).unwrap();
    let is_ancestor = |(ancestor, descendant): &(CommitSha, CommitSha)| {
        ancestry.of(ancestor).from(descendant) == Some(true)
    };
    pairs.iter().map(is_ancestor).collect()
}

#[test]
fn ancestry_and_reachability_are_answered_for_many_commits_at_once() {
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
    let answers = are_ancestors(&mut reader, &pairs);
    for (row, expected) in answers.chunks(7).zip(expected) {
        let row: String = row
            .iter()
            .map(|is_ancestor| if *is_ancestor { '1' } else { '0' })
            .collect();
        assert_eq!(row, expected);
    }
    let ancestry = reader.ancestry(&all, &all).unwrap();
    for (commit, expected) in all.iter().zip(expected) {
        let mark = |tip: &CommitSha| match ancestry.of(commit).from(tip) {
            Some(true) => '1',
            Some(false) => '0',
            None => '?',
        };
        let row: String = all.iter().map(mark).collect();
        assert_eq!(
            row,
            format!("{}?", &expected[..6]),
            "an absent tip is unknown"
        );
    }
    assert_eq!(ancestry.of(&all[0]).from(&sha(&"e".repeat(40))), None);
    let none = reader.ancestry(&[], &all[..1]).unwrap();
    assert_eq!(
        none.of(&all[0]).from(&all[0]),
        Some(false),
        "it was not asked about"
    );
    // The walk ends as soon as the answer is known, which is not a failure.
    let known = are_ancestors(&mut reader, &[pair(3, 3), pair(0, 1)]);
    assert_eq!(known, [true, true]);
    assert!(are_ancestors(&mut reader, &[]).is_empty());
}

/// Creates a history of this many commits and returns it. Each commit has up to three parents among
/// those shortly before it, and the times that `moment` gives.
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
fn the_commits_of_a_push_are_those_that_git_lists(#[case] moment: &dyn Fn(u64, u64) -> u64) {
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
fn a_push_with_a_missing_end_is_only_its_newer_commit() {
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
    // The mirror may later receive what it lacks.
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
fn a_damaged_history_answers_no_ancestry_question() {
    let stage = Stage::new();
    let [root, middle, tip] =
        ["root", "middle", "tip"].map(|message| sha(&stage.forge.commit(message)));
    stage.mirror();
    let path = stage.folder().path(&stage.lifetime);
    let packs = fs::read_dir(path.join("objects/pack")).unwrap();
    for file in packs.map(|file| file.unwrap().path()) {
        let aside = stage.root.path().join(file.file_name().unwrap());
        fs::rename(&file, &aside).unwrap();
        if aside.extension().is_some_and(|ending| ending == "pack") {
            let unpacked = std::process::Command::new("git")
                .args(["unpack-objects", "-q"])
                .current_dir(&path)
                .stdin(fs::File::open(&aside).unwrap())
                .status();
            assert!(unpacked.unwrap().success());
        }
    }
    let (folder, name) = middle.as_str().split_at(2);
    let object = path.join("objects").join(folder).join(name);
    let lost = stage.root.path().join("lost");
    fs::rename(&object, &lost).unwrap();
    let read = stage.open(&long()).ancestry([&root], [&tip]);
    assert!(matches!(read, Err(ReadError::Git(_))), "{read:?}");
    fs::rename(&lost, &object).unwrap();
    let read = stage.open(&long()).ancestry([&root], [&tip]).unwrap();
    assert_eq!(read.of(&root).from(&tip), Some(true));
}
