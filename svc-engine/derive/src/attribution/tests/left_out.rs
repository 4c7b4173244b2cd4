//! Whatever is attributed to no call is counted once.

use super::*;

#[test]
fn a_file_within_reach_of_an_erased_call_is_not_reported_as_without_a_call() {
    let world = World::default()
        .call(1, 1, 0, "x y z")
        .call(2, 2, -1_000, "u v w")
        .push(9, 5, &[7, 8])
        .commit(7, "x y z")
        .commit(8, "u v w");
    let skipped = |world: &World, erased: &[u128]| {
        let mut texts = world.texts(minutes(1_000_000));
        for call in erased {
            texts.erase(id(*call));
            assert!(!texts.wants(id(*call)));
        }
        let attributions = texts.attribute(&GO_ON).unwrap();
        let of = |skip| attributions.skipped.get(skip);
        (
            attributions.rows.len(),
            of(AttributionSkip::NoMatch),
            of(AttributionSkip::ContentErased),
        )
    };
    assert_eq!(skipped(&world, &[]), (1, 1, 0));
    // A call whose answer was already added is not affected.
    assert_eq!(skipped(&world, &[1]), (1, 1, 0));
    let unread = |call: u128| {
        let mut world = world.clone();
        world.texts.remove(&id(call));
        world
    };
    assert_eq!(
        skipped(&unread(1), &[1]),
        (0, 0, 2),
        "it is within reach of both"
    );
    assert_eq!(skipped(&unread(1), &[]), (0, 2, 0));
    // The other call is from another day, and within reach only of the commit whose note names it.
    let noted = unread(2).note(8, 2);
    assert_eq!(skipped(&noted, &[2]), (1, 0, 1));
    assert_eq!(skipped(&unread(2), &[2]), (1, 1, 0));
}

#[test]
fn every_file_and_commit_without_a_row_is_counted_once() {
    let mut world = World::default()
        .call(1, 1, 0, "x y z")
        .push(9, 5, &[1, 2, 3, 4])
        .push(10, 5, &[5])
        .push(11, 5_000, &[6])
        .push(12, 6, &[7])
        .files(
            1,
            1,
            vec![
                added("a.py", "x y z"),
                added("b.py", "u"),
                added("c.py", "{}"),
            ],
        )
        .files(1, 2, vec![added("a.md", "x y z"), added("b.py", " ")])
        .files(1, 3, vec![])
        .commit(7, "x y z");
    world.ranges.insert(id(10), None);
    world.inputs.pushes[3].repository = Err(RepositoryDecline::IdentityUnresolved);
    let odd = CommitDiff {
        malformed: 2,
        unsupported: 3,
        files: Vec::new(),
    };
    world.diffs.insert((lifetime(1), sha(3)), odd);
    let attributions = world.derive();
    assert_eq!(attributions.rows.len(), 1);
    assert_eq!(attributions.commits.len(), 4);
    let unresolved = AttributionSkip::RepositoryIdentityUnresolved;
    let expected = [
        (AttributionSkip::NoInferenceCallCandidates, 1),
        (AttributionSkip::MirrorAbsent, 1),
        (unresolved, 1),
        (AttributionSkip::CommitDiffUnavailable, 1),
        // The commit with unreadable sections may have added code in them.
        (AttributionSkip::NoCodeDiff, 1),
        (AttributionSkip::MalformedDiffSection, 2),
        (AttributionSkip::UnsupportedDiffSection, 3),
        (AttributionSkip::NoMatch, 2),
    ];
    assert_eq!(attributions.skipped, Counts::from_iter(expected));
}

#[test]
fn a_commit_is_settled_by_a_note_or_if_everything_about_it_could_be_read() {
    let world = World::default()
        .call(1, 1, 0, "x y z")
        .call(2, 2, 0, "u v w")
        .push(9, 5, &[1, 2, 3, 4, 5])
        .note(1, 1)
        .commit(1, "x y z")
        .commit(2, "r s t")
        .files(1, 3, vec![])
        .files(1, 4, vec![added("a.py", "r s t")]);
    let mut malformed = world.clone();
    let diff = CommitDiff {
        malformed: 1,
        unsupported: 1,
        files: Vec::new(),
    };
    malformed.diffs.insert((lifetime(1), sha(3)), diff);
    let settled = |texts: Texts| {
        let commits = texts.attribute(&GO_ON).unwrap().commits;
        let settled = commits.iter().map(|commit| commit.is_settled);
        settled.collect::<Vec<_>>()
    };
    let late = minutes(1_000_000);
    // Nobody can read the last commit.
    assert_eq!(settled(world.texts(late)), [true, true, true, true, false]);
    assert_eq!(
        settled(malformed.texts(late)),
        [true, true, false, true, false]
    );
    let mut erased = world.clone();
    erased.texts.remove(&id(2));
    let mut texts = erased.texts(late);
    texts.erase(id(2));
    assert_eq!(settled(texts), [true, false, true, false, false]);
}

#[test]
fn a_guess_does_not_settle_a_commit_whose_noted_call_may_be_erased() {
    let world = World::default()
        .call(1, 1, 0, "x y z")
        .call(2, 2, 0, "x y z")
        .push(9, 5, &[1, 2])
        .note(1, 1)
        .commit(1, "x y z")
        .commit(2, "x y z");
    let mut erased = world.clone();
    erased.texts.remove(&id(1));
    let mut texts = erased.texts(minutes(1_000_000));
    texts.erase(id(1));
    let commits = texts.attribute(&GO_ON).unwrap().commits;
    let assessed: Vec<_> = commits
        .iter()
        .map(|commit| (commit.source, commit.is_settled))
        .collect();
    let guess = Some(AttributionSource::Jaccard);
    assert_eq!(assessed, [(guess, false), (guess, true)]);
}
