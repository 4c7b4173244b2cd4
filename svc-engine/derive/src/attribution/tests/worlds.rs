//! In any world, the result is that of a slow and simple derivation.

use super::*;

/// The same rules, without any optimisation.
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
            .any(|call| within(call, 60) || (within(call, 10_080) && in_notes(call)))
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
                    let answer = set(&world.texts[&call.inference_call_id]);
                    let common = u32::try_from(wrote.intersection(&answer).count()).unwrap();
                    let either = u32::try_from(wrote.union(&answer).count()).unwrap();
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
                    .map(|scored| (AttributionSource::GitNotes, scored))
                    .or_else(|| guessed().map(|scored| (AttributionSource::Jaccard, scored)));
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

impl World {
    /// Derives again after erasing some calls, and returns these calls too.
    fn erase(&self, erased: &[bool]) -> (BTreeSet<FactId>, Attributions) {
        let calls = self.inputs.calls.iter().zip(erased);
        let erased =
            calls.filter_map(|(call, is_erased)| is_erased.then_some(call.inference_call_id));
        let erased: BTreeSet<FactId> = erased.collect();
        let mut without = self.clone();
        without.texts.retain(|call, _| !erased.contains(call));
        let mut texts = without.texts(minutes(1_000_000));
        for call in &erased {
            texts.erase(*call);
        }
        (erased, texts.attribute(&GO_ON).unwrap())
    }
}

/// A text that is one of a few bases, except for some words.
fn a_text() -> impl Strategy<Value = String> {
    let base = (0_u32..4, 1_u32..40);
    let other = prop::collection::vec(0_u32..60, 0..6);
    (base, other, 0_usize..8).prop_map(|((base, length), other, without)| {
        let common = (base * 10..base * 10 + length).skip(without);
        words(common.chain(other).collect::<BTreeSet<u32>>())
    })
}

prop_compose! {
    pub(super) fn a_world()(
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
    fn the_join_equals_a_comparison_of_every_pair(world in a_world()) {
        prop_assert_eq!(world.derive().rows, slowly(&world));
    }

    #[test]
    fn attributions_do_not_depend_on_arrival_order_or_redeliveries(world in a_world()) {
        let attributions = world.derive();
        let mut again = world.clone();
        again.inputs.calls.extend(world.inputs.calls.iter().rev().cloned());
        again.inputs.pushes.reverse();
        again.inputs.pushes.extend(world.inputs.pushes.first().cloned());
        again.inputs.notes.extend(world.inputs.notes.iter().rev().cloned());
        prop_assert_eq!(again.derive(), attributions);
    }

    #[test]
    fn memories_of_other_facts_do_not_change_attributions(
        world in a_world(),
        kept in prop::collection::vec(any::<bool>(), 140),
    ) {
        let mut memory = Remembered::default();
        prop_assert_eq!(world.recall(&mut memory), world.derive());
        prop_assert_eq!(world.recall(&mut memory), world.derive());
        // Some calls and notes are gone, and one call is new.
        let mut other = world.clone().call(900, 1, 15, &words(0..20));
        let mut kept = kept.into_iter().cycle();
        other.inputs.calls.retain(|_| kept.next() == Some(true));
        other.inputs.notes.retain(|_| kept.next() == Some(true));
        prop_assert_eq!(other.recall(&mut memory), other.derive());
        prop_assert_eq!(world.recall(&mut memory), world.derive());
    }

    #[test]
    fn after_an_erasure_a_noted_commit_is_still_noted_or_unsettled(
        world in a_world(),
        erased in prop::collection::vec(any::<bool>(), 120),
    ) {
        let before = world.derive();
        let (_, after) = world.erase(&erased);
        for (before, after) in before.commits.iter().zip(&after.commits) {
            let is_noted =
                |commit: &AssessedCommit| commit.source == Some(AttributionSource::GitNotes);
            prop_assert!(!is_noted(before) || is_noted(after) || !after.is_settled);
        }
    }

    #[test]
    fn an_erased_call_loses_its_rows_and_other_calls_keep_theirs(
        world in a_world(),
        erased in prop::collection::vec(any::<bool>(), 120),
    ) {
        let before = world.derive();
        let (erased, after) = world.erase(&erased);
        for row in &after.rows {
            prop_assert!(!erased.contains(&row.inference_call_id));
        }
        for row in before.rows.iter().filter(|row| !erased.contains(&row.inference_call_id)) {
            prop_assert!(after.rows.contains(row));
        }
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
                    let is_read = diff.malformed + diff.unsupported == 0;
                    without[1] += u64::from(code == 0 && is_read);
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
    fn facts_of_another_repository_or_time_do_not_change_attributions(world in a_world()) {
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
