//! How much is requested, and how much work is done.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

#[test]
fn only_the_needed_pushes_commits_and_answers_are_requested() {
    let world = World::default()
        .call(1, 1, 0, "x")
        .call(2, 1, 1_000, "x")
        .call(3, 2, 5_000, "x")
        .push(9, 5, &[1])
        .push(10, 1_005, &[2])
        .push(11, 3_000, &[3])
        .push_to(2, 12, 3_000, &[3])
        .push_to(2, 13, 90_000, &[4])
        .note(3, 1);
    let plan = Plan::new(world.inputs.clone(), minutes(1_000_000));
    let pushes: Vec<_> = plan.pushes().map(|(_, push)| push).collect();
    assert_eq!(pushes, [id(9), id(10), id(11)]);
    let mut commits =
        plan.with_ranges(|_, push| world.ranges[&push].clone().ok_or(MirrorAbsence::Never));
    let wanted = commits.wanted();
    assert_eq!(wanted[&lifetime(1)], [&sha(1), &sha(2), &sha(3)]);
    assert_eq!(wanted.len(), 1);
    let files = CommitFiles::of(&CommitDiff {
        files: vec![added("a.py", "x")],
        ..CommitDiff::default()
    });
    commits.add(&lifetime(1), &sha(1), &files).unwrap();
    commits.add(&lifetime(1), &sha(1), &files).unwrap();
    commits.add(&lifetime(2), &sha(1), &files).unwrap();
    let mut texts = commits.clone().with_files();
    let wanted = |texts: &Texts| [1, 2].map(|call| texts.wants(id(call)));
    assert_eq!(wanted(&texts), [true, false]);
    texts.add(id(1), &CodeTokens::of_text("x")).unwrap();
    texts.add(id(1), &CodeTokens::of_text("y")).unwrap();
    texts.add(id(2), &CodeTokens::of_text("x")).unwrap();
    let attributions = texts.attribute(&GO_ON).unwrap();
    assert_eq!(attributions.rows.len(), 1);
    commits.add(&lifetime(1), &sha(3), &files).unwrap();
    assert_eq!(wanted(&commits.with_files()), [true, true]);
}

#[test]
fn a_remembered_commit_is_reused_while_the_same_calls_are_within_reach() {
    let world = World::default()
        .call(1, 1, 0, "x y z")
        .call(2, 2, -5_000, "x y z")
        .push(9, 5, &[7])
        .commit(7, "x y z");
    let mut memory = Remembered::default();
    let mut is_recalled = |world: World| {
        let count = memory.tied.len();
        world.recall(&mut memory);
        memory.tied.len() == count
    };
    assert!(!is_recalled(world.clone()));
    assert!(is_recalled(world.clone()));
    // A call out of reach changes nothing, and neither does the note of a Session without calls.
    assert!(is_recalled(world.clone().call(3, 1, 100, "x y z")));
    assert!(!is_recalled(world.clone().call(3, 2, -10, "")));
    assert!(is_recalled(world.clone().note(7, 3)));
    assert!(!is_recalled(world.clone().note(7, 1)));
    assert!(!is_recalled(world.clone().note(7, 2)));
    assert!(!is_recalled(world.clone().note(7, 1).note(7, 2)));
    assert!(is_recalled(world.note(7, 2)));
}

#[test]
fn scoring_stops_at_the_deadline() {
    let world = World::default()
        .call(1, 1, 0, "x")
        .push(9, 5, &[1])
        .commit(1, "x");
    let texts = || {
        let plan = Plan::new(world.inputs.clone(), minutes(1_000_000));
        let mut commits =
            plan.with_ranges(|_, push| world.ranges[&push].clone().ok_or(MirrorAbsence::Never));
        let files = CommitFiles::of(&world.diffs[&(lifetime(1), sha(1))]);
        commits.add(&lifetime(1), &sha(1), &files).unwrap();
        commits.with_files()
    };
    let asked = AtomicU32::new(0);
    let count = || {
        asked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    assert!(texts().attribute(&count).is_ok());
    for last in 0..asked.into_inner() {
        let asked = AtomicU32::new(0);
        let check = || match asked.fetch_add(1, Ordering::Relaxed) {
            before if before < last => Ok(()),
            _ => Err(Passed::Cancelled),
        };
        assert_eq!(
            texts().attribute(&check),
            Err(AttributionError::Passed(Passed::Cancelled))
        );
    }
}

#[test]
fn an_attribution_over_its_work_limit_is_refused_as_a_whole() {
    let mut world = World::default().push(9, 5, &[1]).note(1, 1);
    for call in 0..100_u32 {
        // Each shares half of its words with the file.
        let text = words((0..20).chain(1_000 + call * 20..1_000 + (call + 1) * 20));
        world = world.call(u128::from(call), 1, 0, &text);
    }
    let world = world.commit(1, &words(0..30));
    let texts = || world.texts(minutes(1_000_000));
    assert!(texts().attribute_within(&GO_ON, 10_000).is_ok());
    let files = (0..2).map(|place| added(&format!("{place}.py"), &words(0..30)));
    let world = world.files(1, 1, files.collect());
    let refused = world.texts(minutes(1_000_000)).attribute_within(&GO_ON, 0);
    assert_eq!(refused, Err(AttributionError::TooMuch));
}

#[test]
fn similar_calls_and_files_are_not_compared_pair_by_pair() {
    // Every call repeats the same words and adds one of its own; so does every file, and some share
    // it.
    let mut world = World::default();
    for call in 0..4_000_u32 {
        let text = words((0..60).chain([1_000 + call]));
        world = world.call(u128::from(call), call % 7, i64::from(call % 60), &text);
    }
    for push in 0..100_u32 {
        world = world.push(100_000 + u128::from(push), 60, &[push]);
        let file = |place: u32| {
            let own = 1_000 + (push * 20 + place) * 3;
            added(&format!("{place:02}.py"), &words((0..60).chain([own])))
        };
        world = world.files(1, push, (0..20).map(file).collect());
        if push % 2 == 0 {
            world = world.note(push, 3);
        }
    }
    let start = std::time::Instant::now();
    let rows = world.derive().rows;
    assert_eq!(rows.len(), 2_000);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    let whole = rows
        .iter()
        .filter(|row| is_exactly(row.similarity.value(), 1.0));
    // For a noted commit, only the calls of one Session count.
    let shares = |push: u32, place: u32| {
        let call = (push * 20 + place) * 3;
        call < 4_000 && (push % 2 == 1 || call % 7 == 3)
    };
    let files = (0..100).flat_map(|push| (0..20).map(move |place| (push, place)));
    let expected = files.filter(|(push, place)| shares(*push, *place)).count();
    assert_eq!(whole.count(), expected);
}
