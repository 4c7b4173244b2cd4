use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use svc_model::repository::RepositoryName;

use super::*;
use crate::derive::diff::{CommitDiff, FileChange, FileDiff};
use crate::testing::builders::{at, id, repository};

/// A world in a few words, and what is derived of it.
#[derive(Clone, Debug, Default)]
struct World {
    inputs: Inputs,
    texts: BTreeMap<FactId, String>,
    ranges: BTreeMap<FactId, Option<Vec<CommitSha>>>,
    diffs: BTreeMap<(Lifetime, CommitSha), CommitDiff>,
}

/// What commits were tied to.
#[derive(Default)]
struct Remembered {
    key: ReachKey,
    tied: HashMap<(Lifetime, CommitSha, Reach), Arc<Tied>>,
}

fn lifetime(number: u32) -> Lifetime {
    Lifetime::Identified(repository(number))
}

fn sha(number: u32) -> CommitSha {
    CommitSha::new(&format!("{number:040x}")).unwrap()
}

fn session(number: u32) -> SessionId {
    SessionId::new(&format!("s{number}")).unwrap()
}

fn minutes(minutes: i64) -> Instant {
    at(minutes * 60)
}

fn added(path: &str, added: &str) -> FileDiff {
    FileDiff {
        path: path.to_owned(),
        change: FileChange::Modified,
        added: added.to_owned(),
    }
}

fn words(numbers: impl IntoIterator<Item = u32>) -> String {
    let words: Vec<String> = numbers.into_iter().map(|it| format!("w{it}")).collect();
    words.join(" ")
}

const GO_ON: fn() -> Result<(), Passed> = || Ok(());

impl World {
    fn call(mut self, number: u128, of: u32, minute: i64, text: &str) -> Self {
        self.inputs.calls.push(Call {
            inference_call_id: id(number),
            session_id: session(of),
            observed_at: minutes(minute),
        });
        self.texts.insert(id(number), text.to_owned());
        self
    }

    /// A push to repository 1 of these commits.
    fn push(self, number: u128, minute: i64, commits: &[u32]) -> Self {
        self.push_to(1, number, minute, commits)
    }

    fn push_to(mut self, to: u32, number: u128, minute: i64, commits: &[u32]) -> Self {
        self.inputs.pushes.push(Push {
            push_id: id(number),
            captured_at: minutes(minute),
            repository: Ok(lifetime(to)),
        });
        let commits = commits.iter().copied().map(sha).collect();
        self.ranges.insert(id(number), Some(commits));
        self
    }

    /// A commit of repository 1 that adds this text to `a.py`.
    fn commit(self, number: u32, text: &str) -> Self {
        self.files(1, number, vec![added("a.py", text)])
    }

    fn files(mut self, of: u32, number: u32, files: Vec<FileDiff>) -> Self {
        let diff = CommitDiff {
            files,
            ..CommitDiff::default()
        };
        self.diffs.insert((lifetime(of), sha(number)), diff);
        self
    }

    fn note(self, commit: u32, of: u32) -> Self {
        self.note_in(1, commit, of)
    }

    fn note_in(mut self, repository: u32, commit: u32, of: u32) -> Self {
        self.inputs.notes.push(Note {
            repository: lifetime(repository),
            commit_sha: sha(commit),
            session_id: session(of),
        });
        self
    }

    fn derive(&self) -> Attributions {
        self.derive_by(minutes(1_000_000))
    }

    fn derive_by(&self, as_of: Instant) -> Attributions {
        self.texts(as_of).attribute(&GO_ON).unwrap()
    }

    /// Derives with what is remembered of other worlds, and remembers what is derived.
    fn recall(&self, memory: &mut Remembered) -> Attributions {
        let Remembered { key, tied } = memory;
        let mut commits = self.commits(minutes(1_000_000));
        commits.recall(key, |repository, commit_sha, reach| {
            let place = (repository.clone(), commit_sha.clone(), reach);
            tied.get(&place).cloned()
        });
        let mut derived = self.texts_of(commits).attribute(&GO_ON).unwrap();
        for commit in derived.tied.drain(..) {
            let place = (commit.repository, commit.commit_sha, commit.reach);
            let before = tied.insert(place, commit.tied);
            assert_eq!(before, None, "what is remembered is not derived again");
        }
        derived
    }

    fn commits(&self, as_of: Instant) -> Commits {
        let plan = Plan::new(self.inputs.clone(), as_of);
        plan.with_ranges(|_, push| self.ranges[&push].clone())
    }

    /// Returns the last step, with all that was asked for.
    fn texts(&self, as_of: Instant) -> Texts {
        self.texts_of(self.commits(as_of))
    }

    fn texts_of(&self, mut commits: Commits) -> Texts {
        let wanted: Vec<(Lifetime, CommitSha)> = commits
            .wanted()
            .into_iter()
            .flat_map(|(repository, shas)| {
                shas.into_iter()
                    .map(move |sha| (repository.clone(), sha.clone()))
            })
            .collect();
        for wanted in wanted {
            if let Some(diff) = self.diffs.get(&wanted) {
                let files = CommitFiles::of(diff);
                commits.add(&wanted.0, &wanted.1, &files).unwrap();
            }
        }
        let mut texts = commits.with_files();
        for (call, text) in &self.texts {
            if texts.wants(*call) {
                texts.add(*call, &TokenSet::of_text(text)).unwrap();
            }
        }
        texts
    }

    /// Returns the call of the only row, its source and its score, if there is one.
    fn only(&self) -> Option<(FactId, AttributionSource, f64)> {
        let mut rows = self.derive().rows;
        assert!(rows.len() <= 1, "{rows:?}");
        let row = rows.pop()?;
        Some((row.inference_call_id, row.source, row.similarity.value()))
    }
}

fn is_exactly(value: f64, expected: f64) -> bool {
    value.to_bits() == expected.to_bits()
}

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
        }]
    );
    assert_eq!(attributions.skipped, Counts::default());
}

#[test]
fn a_guess_needs_seven_tenths_and_a_note_three() {
    // The call has all its words of the file, which has others beside them.
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
fn a_noted_call_goes_before_a_better_guess() {
    let world = World::default()
        .call(1, 1, 0, &words(0..4))
        .call(2, 2, 0, &words(0..10))
        .push(9, 5, &[7])
        .commit(7, &words(0..10))
        .note(7, 1);
    let (call, source, score) = world.only().unwrap();
    assert_eq!((call, source), (id(1), AttributionSource::GitNotes));
    assert!(is_exactly(score, 0.4));
    // Where the noted Session wrote less than its floor, the guess stands.
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
fn calls_count_within_the_windows_of_the_push_both_ends_included() {
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
fn of_equal_calls_the_earliest_wins_then_the_smallest_id() {
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
    let pushes: Vec<_> = attributions.commits.iter().map(|it| it.push_id).collect();
    assert_eq!(pushes, [id(9), id(8)]);
    assert_eq!(attributions.skipped.get(AttributionSkip::NoMatch), 1);
    // In another repository the same commit is another.
    let other = world
        .push_to(2, 10, 105, &[7])
        .files(2, 7, vec![added("a.py", "x y z")]);
    assert_eq!(other.derive().rows.len(), 2);
}

#[test]
fn a_file_that_an_erased_call_may_have_written_is_not_without_one() {
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
    // A call whose answer was taken already says what it says.
    assert_eq!(skipped(&world, &[1]), (1, 1, 0));
    let unread = |call: u128| {
        let mut world = world.clone();
        world.texts.remove(&id(call));
        world
    };
    assert_eq!(skipped(&unread(1), &[1]), (0, 0, 2), "it is near both");
    assert_eq!(skipped(&unread(1), &[]), (0, 2, 0));
    // The other is of another day, and within reach only of the commit whose note names it.
    let noted = unread(2).note(8, 2);
    assert_eq!(skipped(&noted, &[2]), (1, 0, 1));
    assert_eq!(skipped(&unread(2), &[2]), (1, 1, 0));
}

#[test]
fn whatever_has_no_row_is_counted_once() {
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
        (AttributionSkip::NoCodeDiff, 2),
        (AttributionSkip::MalformedDiffSection, 2),
        (AttributionSkip::UnsupportedDiffSection, 3),
        (AttributionSkip::NoMatch, 2),
    ];
    assert_eq!(attributions.skipped, Counts::from_iter(expected));
}

#[test]
fn only_what_is_needed_is_asked_for() {
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
    let mut commits = plan.with_ranges(|_, push| world.ranges[&push].clone());
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
    texts.add(id(1), &TokenSet::of_text("x")).unwrap();
    texts.add(id(1), &TokenSet::of_text("y")).unwrap();
    texts.add(id(2), &TokenSet::of_text("x")).unwrap();
    let attributions = texts.attribute(&GO_ON).unwrap();
    assert_eq!(attributions.rows.len(), 1);
    commits.add(&lifetime(1), &sha(3), &files).unwrap();
    assert_eq!(wanted(&commits.with_files()), [true, true]);
}

#[test]
fn a_commit_is_recalled_while_the_same_calls_are_within_its_reach() {
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
    // Nothing reaches these calls, nor is the note of a Session that has one.
    assert!(is_recalled(world.clone().call(3, 1, 100, "x y z")));
    assert!(!is_recalled(world.clone().call(3, 2, -10, "")));
    assert!(is_recalled(world.clone().note(7, 3)));
    assert!(!is_recalled(world.clone().note(7, 1)));
    assert!(!is_recalled(world.clone().note(7, 2)));
    assert!(!is_recalled(world.clone().note(7, 1).note(7, 2)));
    assert!(is_recalled(world.note(7, 2)));
}

#[test]
fn scoring_ends_when_it_must() {
    let world = World::default()
        .call(1, 1, 0, "x")
        .push(9, 5, &[1])
        .commit(1, "x");
    let texts = || {
        let plan = Plan::new(world.inputs.clone(), minutes(1_000_000));
        let mut commits = plan.with_ranges(|_, push| world.ranges[&push].clone());
        let files = CommitFiles::of(&world.diffs[&(lifetime(1), sha(1))]);
        commits.add(&lifetime(1), &sha(1), &files).unwrap();
        commits.with_files()
    };
    let asked = Cell::new(0_u32);
    let count = || {
        asked.set(asked.get() + 1);
        Ok(())
    };
    assert!(texts().attribute(&count).is_ok());
    for last in 0..asked.get() {
        let left = Cell::new(last);
        let check = || {
            let after = left.get().checked_sub(1).ok_or(Passed::Cancelled)?;
            left.set(after);
            Ok(())
        };
        assert_eq!(
            texts().attribute(&check),
            Err(AttributionError::Passed(Passed::Cancelled))
        );
    }
}

#[test]
fn more_work_than_is_taken_is_refused_as_a_whole() {
    let mut world = World::default().push(9, 5, &[1]).note(1, 1);
    for call in 0..100_u32 {
        // All share half of their words with the file.
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
fn a_legacy_repository_is_one_too() {
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

#[test]
fn calls_and_files_that_are_all_alike_take_no_time_for_each_pair() {
    // Every call repeats the same words and one of its own; every file too, and some share it.
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
    // Of the noted commits only the calls of one Session count.
    let shares = |push: u32, place: u32| {
        let call = (push * 20 + place) * 3;
        call < 4_000 && (push % 2 == 1 || call % 7 == 3)
    };
    let files = (0..100).flat_map(|push| (0..20).map(move |place| (push, place)));
    let expected = files.filter(|(push, place)| shares(*push, *place)).count();
    assert_eq!(whole.count(), expected);
}

/// The rules once more, without any haste.
fn slowly(world: &World) -> Vec<Attribution> {
    let set =
        |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_owned).collect() };
    let mut pushes = world.inputs.pushes.clone();
    pushes.sort_by_key(|push| (push.captured_at, push.push_id));
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for push in &pushes {
        let repository = push.repository.clone().unwrap();
        let within = |call: &Call, before: i64| {
            let minutes =
                (call.observed_at.microseconds() - push.captured_at.microseconds()) / 60_000_000;
            (-before..=10).contains(&minutes)
        };
        let in_notes = |call: &Call| {
            let of =
                |note: &Note| note.repository == repository && note.session_id == call.session_id;
            world.inputs.notes.iter().any(of)
        };
        let calls = &world.inputs.calls;
        if !calls
            .iter()
            .any(|it| within(it, 60) || (within(it, 10_080) && in_notes(it)))
        {
            continue;
        }
        for commit in world.ranges[&push.push_id].iter().flatten() {
            if !seen.insert((repository.clone(), commit.clone())) {
                continue;
            }
            let Some(diff) = world.diffs.get(&(repository.clone(), commit.clone())) else {
                continue;
            };
            for file in &diff.files {
                let wrote = set(&file.added);
                let score = |call: &Call| {
                    let said = set(&world.texts[&call.inference_call_id]);
                    let common = u32::try_from(wrote.intersection(&said).count()).unwrap();
                    let either = u32::try_from(wrote.union(&said).count()).unwrap();
                    Similarity { common, either }
                };
                let best = |floor: Similarity, counts: &dyn Fn(&Call) -> bool| {
                    calls
                        .iter()
                        .filter(|call| counts(call))
                        .map(|call| (score(call), call))
                        .filter(|(score, _)| score.common > 0 && *score >= floor)
                        .min_by_key(|(score, call)| {
                            let score = std::cmp::Reverse(*score);
                            (score, call.observed_at, call.inference_call_id)
                        })
                };
                let is_noted = |call: &Call| {
                    let note = Note {
                        repository: repository.clone(),
                        commit_sha: commit.clone(),
                        session_id: call.session_id.clone(),
                    };
                    within(call, 10_080) && world.inputs.notes.contains(&note)
                };
                let noted = best(NOTE_FLOOR, &is_noted);
                let guessed = || best(GUESS_FLOOR, &|call| within(call, 60));
                let found = noted
                    .map(|it| (AttributionSource::GitNotes, it))
                    .or_else(|| guessed().map(|it| (AttributionSource::Jaccard, it)));
                if let Some((source, (similarity, call))) = found {
                    rows.push(Attribution {
                        repository: repository.clone(),
                        commit_sha: commit.clone(),
                        file_path: file.path.clone(),
                        inference_call_id: call.inference_call_id,
                        session_id: call.session_id.clone(),
                        similarity,
                        source,
                        push_id: push.push_id,
                    });
                }
            }
        }
    }
    rows.sort_by(|left, right| {
        let key = |row: &Attribution| {
            (
                row.repository.clone(),
                row.commit_sha.clone(),
                row.file_path.clone(),
            )
        };
        key(left).cmp(&key(right))
    });
    rows
}

/// A text that is one of a few bases but for some words.
fn a_text() -> impl Strategy<Value = String> {
    let base = (0_u32..4, 1_u32..40);
    let other = prop::collection::vec(0_u32..60, 0..6);
    (base, other, 0_usize..8).prop_map(|((base, length), other, without)| {
        let common = (base * 10..base * 10 + length).skip(without);
        words(common.chain(other).collect::<BTreeSet<u32>>())
    })
}

prop_compose! {
    fn a_world()(
        span in prop::sample::select(vec![30_i64, 200, 30_000]),
        calls in 1_usize..120,
        pushes in 1_usize..8,
    )(
        calls in prop::collection::vec((0_u32..5, 0..span, a_text()), calls),
        pushes in prop::collection::vec(
            (1_u32..3, 0..span, prop::collection::btree_set(0_u32..12, 1..5)), pushes),
        commits in prop::collection::vec(
            (1_u32..3, 0_u32..12, prop::collection::vec(a_text(), 0..4)), 0..20),
        notes in prop::collection::vec((1_u32..3, 0_u32..12, 0_u32..6), 0..8),
    ) -> World {
        let mut world = World::default();
        for (number, (of, minute, text)) in (1_u128..).zip(calls) {
            world = world.call(number, of, minute, &text);
        }
        for (number, (to, minute, commits)) in (1_000_u128..).zip(pushes) {
            let commits: Vec<u32> = commits.into_iter().collect();
            world = world.push_to(to, number, minute, &commits);
        }
        for (of, number, texts) in commits {
            let file = |(place, text): (usize, String)| added(&format!("{place}.py"), &text);
            let files = texts.into_iter().enumerate().map(file).collect();
            world = world.files(of, number, files);
        }
        for (repository, commit, of) in notes {
            world = world.note_in(repository, commit, of);
        }
        world
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_join_finds_what_comparing_everything_finds(world in a_world()) {
        prop_assert_eq!(world.derive().rows, slowly(&world));
    }

    #[test]
    fn neither_the_order_of_arrival_nor_a_redelivery_changes_anything(world in a_world()) {
        let attributions = world.derive();
        let mut again = world.clone();
        again.inputs.calls.extend(world.inputs.calls.iter().rev().cloned());
        again.inputs.pushes.reverse();
        again.inputs.pushes.extend(world.inputs.pushes.first().cloned());
        again.inputs.notes.extend(world.inputs.notes.iter().rev().cloned());
        prop_assert_eq!(again.derive(), attributions);
    }

    #[test]
    fn what_is_remembered_of_another_world_changes_nothing(
        world in a_world(),
        kept in prop::collection::vec(any::<bool>(), 140),
    ) {
        let mut memory = Remembered::default();
        prop_assert_eq!(world.recall(&mut memory), world.derive());
        prop_assert_eq!(world.recall(&mut memory), world.derive());
        // Some calls and notes are not there any more, and one is new.
        let mut other = world.clone().call(900, 1, 15, &words(0..20));
        let mut kept = kept.into_iter().cycle();
        other.inputs.calls.retain(|_| kept.next() == Some(true));
        other.inputs.notes.retain(|_| kept.next() == Some(true));
        prop_assert_eq!(other.recall(&mut memory), other.derive());
        prop_assert_eq!(world.recall(&mut memory), world.derive());
    }

    #[test]
    fn every_file_and_commit_is_counted_exactly_once(world in a_world()) {
        let attributions = world.derive();
        let skipped = |reason| attributions.skipped.get(reason);
        let mut files = 0;
        let mut without = [0, 0];
        for commit in &attributions.commits {
            match world.diffs.get(&(commit.repository.clone(), commit.commit_sha.clone())) {
                None => without[0] += 1,
                Some(diff) => {
                    let code = CommitFiles::of(diff).files.len() as u64;
                    without[1] += u64::from(code == 0);
                    files += code;
                }
            }
        }
        prop_assert_eq!(skipped(AttributionSkip::CommitDiffUnavailable), without[0]);
        prop_assert_eq!(skipped(AttributionSkip::NoCodeDiff), without[1]);
        let rows = attributions.rows.len() as u64;
        prop_assert_eq!(rows + skipped(AttributionSkip::NoMatch), files);
    }

    #[test]
    fn what_another_repository_or_time_holds_changes_nothing(world in a_world()) {
        let attributions = world.derive();
        let more = world
            .clone()
            .call(900, 1, 500_000, &words(0..20))
            .push_to(7, 901, 500_000, &[90])
            .files(7, 90, vec![added("x.py", &words(0..20))])
            .note_in(7, 90, 1);
        let mut with_more = more.derive();
        with_more.rows.retain(|row| row.repository != lifetime(7));
        with_more.commits.retain(|commit| commit.repository != lifetime(7));
        prop_assert_eq!(with_more, attributions);
    }
}
