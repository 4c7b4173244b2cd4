//! Which call a file is tied to.

use super::*;

#[test]
fn a_written_file_is_tied_to_the_call_that_wrote_it() {
    let text = "def alpha(x):\n    return x + 1\n\ndef beta(y):\n    return y * 2\n";
    let world = World::default()
        .call(1, 1, 0, &format!("a.py\n{text}"))
        .push(9, 5, &[7])
        .commit(7, text)
        .note(7, 1);
    let attributions = world.derive();
    assert_eq!(
        attributions.rows,
        [Attribution {
            repository: lifetime(1),
            commit_sha: sha(7),
            file_path: "a.py".to_owned(),
            inference_call_id: id(1),
            session_id: session(1),
            similarity: Similarity {
                common: 8,
                either: 10
            },
            source: AttributionSource::GitNotes,
            push_id: id(9),
        }]
    );
    assert!(is_exactly(attributions.rows[0].similarity.value(), 0.8));
    assert_eq!(
        attributions.commits,
        [AssessedCommit {
            repository: lifetime(1),
            commit_sha: sha(7),
            push_id: id(9),
            pushed_at: minutes(5),
            is_plausible: true,
            source: Some(AttributionSource::GitNotes),
            is_settled: true,
        }]
    );
    assert_eq!(attributions.skipped, Counts::default());
}

#[test]
fn a_guess_needs_a_score_of_seven_tenths_and_a_noted_call_three_tenths() {
    // All words of the call occur in the file, which has others too.
    let world = |of: u32, common: u32| {
        World::default()
            .call(1, 1, 0, &words(0..common))
            .push(9, 5, &[7])
            .commit(7, &words(0..of))
    };
    for (of, common, guessed, noted) in [
        (10, 7, true, true),
        (100, 70, true, true),
        (100, 69, false, true),
        (10, 3, false, true),
        (10, 2, false, false),
        (10, 10, true, true),
    ] {
        let guess = world(of, common).only();
        let source = guess.map(|(_, source, _)| source);
        assert_eq!(
            source,
            guessed.then_some(AttributionSource::Jaccard),
            "{common}/{of}"
        );
        let note = world(of, common).note(7, 1).only();
        let source = note.map(|(_, source, _)| source);
        assert_eq!(
            source,
            noted.then_some(AttributionSource::GitNotes),
            "{common}/{of}"
        );
        let expected = f64::from(common) / f64::from(of);
        assert!(note.is_none_or(|(_, _, score)| is_exactly(score, expected)));
    }
}

#[test]
fn a_noted_call_is_preferred_to_a_better_guess() {
    let world = World::default()
        .call(1, 1, 0, &words(0..4))
        .call(2, 2, 0, &words(0..10))
        .push(9, 5, &[7])
        .commit(7, &words(0..10))
        .note(7, 1);
    let (call, source, score) = world.only().unwrap();
    assert_eq!((call, source), (id(1), AttributionSource::GitNotes));
    assert!(is_exactly(score, 0.4));
    // If the noted Session is below its floor, the guess stands.
    let world = World::default()
        .call(1, 1, 0, &words(0..2))
        .call(2, 2, 0, &words(0..7))
        .push(9, 5, &[7])
        .commit(7, &words(0..10))
        .note(7, 1);
    let (call, source, score) = world.only().unwrap();
    assert_eq!((call, source), (id(2), AttributionSource::Jaccard));
    assert!(is_exactly(score, 0.7));
}

#[test]
fn calls_count_within_the_inclusive_time_windows_of_the_push() {
    let push_at = 20_000;
    let world = |minute: i64| {
        World::default()
            .call(1, 1, minute, "x y z")
            .push(9, push_at, &[7])
            .commit(7, "x y z")
    };
    for (offset, guessed, noted) in [
        (-60, true, true),
        (-61, false, true),
        (10, true, true),
        (11, false, false),
        (-10_080, false, true),
        (-10_081, false, false),
    ] {
        let world = world(push_at + offset);
        assert_eq!(world.only().is_some(), guessed, "{offset}");
        assert_eq!(world.clone().note(7, 1).only().is_some(), noted, "{offset}");
        let skipped = world.derive().skipped;
        let reason = AttributionSkip::NoInferenceCallCandidates;
        assert_eq!(skipped.get(reason), u64::from(!guessed), "{offset}");
    }
    assert_eq!(world(push_at).derive_by(minutes(push_at - 1)).rows, []);
    assert_eq!(world(push_at).derive_by(minutes(push_at)).rows.len(), 1);
}

#[test]
fn among_equal_scores_the_earliest_call_wins_and_then_the_smallest_id() {
    let world = World::default()
        .call(5, 1, 3, "x y z")
        .call(4, 2, 2, "z y x")
        .call(3, 1, 2, "x y z")
        .call(1, 1, 2, "x y z w")
        .push(9, 5, &[7])
        .commit(7, "x y z");
    assert_eq!(world.only().unwrap().0, id(3));
    assert_eq!(world.note(7, 2).only().unwrap().0, id(4));
}

#[test]
fn a_commit_belongs_to_the_first_push_that_brought_it() {
    let world = World::default()
        .call(1, 1, 100, "x y z")
        .call(2, 1, 0, "other")
        .push(8, 5, &[7])
        .push(9, 105, &[6, 7])
        .commit(6, "x y z")
        .commit(7, "x y z");
    let attributions = world.derive();
    assert_eq!(attributions.rows.len(), 1);
    assert_eq!(attributions.rows[0].commit_sha, sha(6));
    let pushes: Vec<_> = attributions
        .commits
        .iter()
        .map(|commit| commit.push_id)
        .collect();
    assert_eq!(pushes, [id(9), id(8)]);
    assert_eq!(attributions.skipped.get(AttributionSkip::NoMatch), 1);
    // The same commit in another repository is a different one.
    let other = world
        .push_to(2, 10, 105, &[7])
        .files(2, 7, vec![added("a.py", "x y z")]);
    assert_eq!(other.derive().rows.len(), 2);
}

#[test]
fn a_repository_known_only_by_name_is_attributed_too() {
    let named = Lifetime::Named(RepositoryName::new("own/name").unwrap());
    let mut world = World::default().call(1, 1, 0, "x y z").push(9, 5, &[1]);
    world.inputs.pushes[0].repository = Ok(named.clone());
    let diff = CommitDiff {
        files: vec![added("a.py", "x y z")],
        ..CommitDiff::default()
    };
    world.diffs.insert((named.clone(), sha(1)), diff);
    assert_eq!(world.derive().rows[0].repository, named);
}
