//! Of which calls a commit could have been seen.

use super::worlds::a_world;
use super::*;

const NEAR: std::ops::RangeInclusive<i64> = -60..=10;
const WEEK: std::ops::RangeInclusive<i64> = -10_080..=10;

impl World {
    fn unobservable(&self) -> Vec<(u128, Unobservable)> {
        let unobservable = self.derive().unobservable.into_iter();
        unobservable
            .map(|(call, why)| (call.uuid().as_u128(), why))
            .collect()
    }

    /// A push whose commits are not known.
    fn unread_push(mut self, to: u32, number: u128, minute: i64, absence: MirrorAbsence) -> Self {
        self = self.push_to(to, number, minute, &[]);
        self.ranges.insert(id(number), None);
        if absence == MirrorAbsence::Lost {
            self.lost.insert(lifetime(to));
        }
        self
    }
}

#[test]
fn a_call_is_observable_only_within_reach_of_a_push_that_was_read() {
    let world = World::default().call(1, 1, 0, "x").call(2, 2, 200, "y");
    let never = Unobservable::NoPush;
    assert_eq!(world.unobservable(), [(1, never), (2, never)]);
    for minute in [-11, -10, 60, 61] {
        let read = world.clone().push(9, minute, &[1]).commit(1, "z");
        let expected = [(1, never), (2, never)];
        let is_near = (-10..=60).contains(&minute);
        assert_eq!(
            read.unobservable(),
            expected[usize::from(is_near)..],
            "{minute}"
        );
    }
}

#[test]
fn a_call_that_could_not_be_observed_has_the_reason_nearest_to_having_been() {
    let call = World::default().call(1, 1, 0, "x");
    let declined = {
        let mut world = call.clone().push(9, 5, &[]);
        world.inputs.pushes[0].repository = Err(RepositoryDecline::IdentityAbsent);
        world
    };
    let unmirrored = declined.clone().unread_push(2, 10, 5, MirrorAbsence::Never);
    let lost = unmirrored
        .clone()
        .unread_push(3, 11, 5, MirrorAbsence::Lost);
    let unread = lost.clone().push(12, 5, &[1, 2]);
    let mut malformed = unread.clone().commit(1, "x");
    let diff = malformed.diffs.get_mut(&(lifetime(1), sha(1))).unwrap();
    (diff.malformed, diff.files) = (1, Vec::new());
    let read = malformed.clone().files(1, 2, vec![]);
    let empty = lost.clone().push(12, 5, &[]);
    for (world, expected) in [
        (call, Some(Unobservable::NoPush)),
        (declined, Some(Unobservable::NoRepository)),
        (unmirrored, Some(Unobservable::NoMirror)),
        (lost, Some(Unobservable::LostMirrors)),
        (unread, Some(Unobservable::NoDiff)),
        (malformed, Some(Unobservable::NoDiff)),
        (read, None),
        (empty, None),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|why| (1, why)).collect();
        assert_eq!(world.unobservable(), expected);
    }
}

#[test]
fn a_call_of_a_noted_session_is_within_reach_of_a_push_for_a_week() {
    let world = World::default()
        .call(1, 1, 0, "x")
        .call(2, 2, 0, "y")
        .call(3, 3, 0, "z")
        .note(1, 1)
        .note_in(2, 1, 2)
        .push(9, 10_080, &[1])
        .unread_push(2, 10, 10_080, MirrorAbsence::Lost);
    let (never, lost) = (Unobservable::NoPush, Unobservable::LostMirrors);
    let unread = [(1, Unobservable::NoDiff), (2, lost), (3, never)];
    assert_eq!(world.unobservable(), unread);
    assert_eq!(world.clone().commit(1, "v").unobservable(), unread[1..]);
    let mut later = world;
    for push in &mut later.inputs.pushes {
        push.captured_at = minutes(10_081);
    }
    assert_eq!(later.unobservable(), [(1, never), (2, never), (3, never)]);
}

/// The same rules, call by call and push by push.
fn slowly(world: &World) -> BTreeMap<FactId, Unobservable> {
    let mut pushes: Vec<&Push> = world.inputs.pushes.iter().collect();
    pushes.sort_by_key(|push| (push.captured_at, push.push_id));
    let is_within = |call: &Call, push: &Push, window: &std::ops::RangeInclusive<i64>| {
        let after = call.observed_at.microseconds() - push.captured_at.microseconds();
        window.contains(&(after / 60_000_000))
    };
    let is_noted = |call: &Call, repository: &Lifetime, commit: Option<&CommitSha>| {
        world.inputs.notes.iter().any(|note| {
            note.repository == *repository
                && note.session_id == call.session_id
                && commit.is_none_or(|commit| note.commit_sha == *commit)
        })
    };
    let is_read = |repository: &Lifetime, commit: &CommitSha| {
        let diff = world.diffs.get(&(repository.clone(), commit.clone()));
        diff.is_some_and(|diff| diff.malformed == 0)
    };
    let mut found: BTreeMap<FactId, BTreeSet<Option<Unobservable>>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for push in pushes {
        let mut say = |call: &Call, why: Option<Unobservable>| {
            let of_call = found.entry(call.inference_call_id).or_default();
            of_call.insert(why);
        };
        let near = |call: &&Call| is_within(call, push, &NEAR);
        let near: Vec<&Call> = world.inputs.calls.iter().filter(near).collect();
        let Ok(repository) = &push.repository else {
            for call in near {
                say(call, Some(Unobservable::NoRepository));
            }
            continue;
        };
        let week = |call: &&Call| is_within(call, push, &WEEK) && is_noted(call, repository, None);
        let week: Vec<&Call> = world.inputs.calls.iter().filter(week).collect();
        if near.is_empty() && week.is_empty() {
            continue;
        }
        let Some(commits) = &world.ranges[&push.push_id] else {
            let why = world.absence(repository).into();
            near.iter()
                .chain(&week)
                .for_each(|call| say(call, Some(why)));
            continue;
        };
        let unless = |is_read: bool| (!is_read).then_some(Unobservable::NoDiff);
        let any_read = commits.iter().any(|commit| is_read(repository, commit));
        let why = unless(any_read || commits.is_empty());
        for call in near {
            say(call, why);
        }
        for commit in commits {
            if known.insert((repository, commit)) {
                let noted = week
                    .iter()
                    .filter(|call| is_noted(call, repository, Some(commit)));
                noted.for_each(|call| say(call, unless(is_read(repository, commit))));
            }
        }
    }
    let all = world.inputs.calls.iter().filter_map(|call| {
        let call = call.inference_call_id;
        let nearest = found.get(&call).and_then(BTreeSet::first).copied();
        Some((call, nearest.unwrap_or(Some(Unobservable::NoPush))?))
    });
    all.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_could_be_observed_equals_a_look_at_every_pair(
        mut world in a_world(),
        fates in prop::collection::vec(0_u32..6, 8),
        lost in any::<bool>(),
    ) {
        for (push, fate) in world.inputs.pushes.iter_mut().zip(fates) {
            match fate {
                0 => push.repository = Err(RepositoryDecline::IdentityAbsent),
                1 | 2 => {
                    world.ranges.insert(push.push_id, None);
                }
                _ => {}
            }
        }
        if lost {
            world.lost.insert(lifetime(2));
        }
        let attributions = world.derive();
        let unobservable: BTreeMap<FactId, Unobservable> =
            attributions.unobservable.iter().copied().collect();
        prop_assert_eq!(unobservable.len(), attributions.unobservable.len());
        for row in &attributions.rows {
            prop_assert!(!unobservable.contains_key(&row.inference_call_id));
        }
        prop_assert_eq!(unobservable, slowly(&world));
    }
}
