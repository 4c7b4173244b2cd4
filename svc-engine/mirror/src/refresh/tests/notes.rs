//! Which notes are read, and when.

use super::*;

#[test]
fn both_kinds_of_notes_are_read_and_a_session_is_observed_once() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["both", "own"]);
    let note = r#"---
{"schema_version":"authorship/3.0.0","prompts":{},"sessions":{
 "s_1":{"agent_id":{"tool":"claude","id":"both"}},"s_2":{"agent_id":{"tool":"codex","id":"theirs"}}}}"#;
    service.forge.note("refs/notes/ai", &head, note);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(3, 0));
    let refs: BTreeSet<_> = service
        .observations()
        .into_iter()
        .map(|(_, session, _, notes)| (session, notes))
        .collect();
    let expected = [
        pair("both", NOTES),
        pair("own", NOTES),
        pair("theirs", "refs/notes/ai"),
    ];
    assert_eq!(refs, expected.into());
}

#[test]
fn notes_that_are_not_configured_are_not_read() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.notes = vec![NotesRef::GitAi];
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
}

#[test]
fn every_noted_commit_of_a_branch_is_observed_even_if_only_its_head_was_pushed() {
    let service = Service::start();
    let commits = service.forge.add_stamped(45, "old");
    // A new branch. The push itself shows only its head.
    service.push(ZEROS, &commits[44]);
    assert_eq!(service.refresh(), refreshed(45, 0));
    let expected: BTreeSet<_> = (1..)
        .zip(&commits)
        .map(|(number, commit)| pair(commit, &format!("old-{number}")))
        .collect();
    assert_eq!(service.seen(), expected);
}

#[test]
fn late_and_changed_notes_are_observed_with_the_next_push() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    let first = service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
    service.forge.stamp(&base, &["late"]);
    let next = service.forge.commit("next");
    let second = service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let observed = service.observations();
    let late = observed.first().unwrap();
    assert_eq!((late.0.as_str(), late.1.as_str()), (&*base, "late"));
    assert_eq!(late.2, second.to_string(), "the push that led to the note");
    assert_ne!(late.2, first.to_string());
    service.forge.stamp(&base, &["late", "later"]);
    service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(1, 1));
    assert!(service.seen().contains(&pair(&base, "later")));
}

#[test]
fn notes_may_arrive_before_their_branch() {
    let service = Service::start();
    let base = service.forge.commit("base");
    service.forge.push();
    service.forge.run(&["checkout", "-q", "-b", "feature"]);
    let commits: Vec<String> = (0..3)
        .map(|number| service.forge.commit(&number.to_string()))
        .collect();
    for commit in &commits {
        service
            .forge
            .stamp(commit, &[&format!("s{}", &commit[..7])]);
    }
    let forgotten = service.forge.commit("forgotten");
    service.forge.stamp(&forgotten, &["never"]);
    service.forge.run(&["push", "-q", "origin", NOTES]);
    // Another branch is refreshed in between.
    service.deliver(ZEROS, &base, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 0));
    let lifetime = Lifetime::Identified(repository(7));
    assert_eq!(
        service
            .refresher
            .jobs
            .deferred_notes(&lifetime)
            .unwrap()
            .len(),
        4
    );
    service.forge.run(&["reset", "-q", "--hard", &commits[2]]);
    service.forge.run(&["push", "-q", "origin", "feature"]);
    service.deliver(ZEROS, &commits[2], |push| {
        "refs/heads/feature".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh_all(), (1, 3));
    let seen: BTreeSet<String> = service
        .seen()
        .into_iter()
        .map(|(commit, _)| commit)
        .collect();
    assert_eq!(seen, commits.into_iter().collect());
    let left = service.refresher.jobs.deferred_notes(&lifetime).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].commit_sha.as_str(), forgotten);
}

#[rstest]
fn notes_beyond_the_budget_of_a_refresh_are_read_by_the_next_ones(
    #[values(1, 7, 8)] notes: usize,
    #[values(false, true)] changing: bool,
) {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.budget.notes = notes;
    })
    .unwrap();
    let commits = service.forge.add_stamped(20, "s");
    service.push(ZEROS, &commits[19]);
    let mut rounds = 0;
    while let Some(outcome) = service.refresh() {
        let RefreshOutcome::Refreshed { stored, more, .. } = outcome else {
            panic!("{outcome:?}");
        };
        rounds += 1;
        assert!(
            stored <= notes + 1,
            "the head of the push is a separate observation"
        );
        assert!(rounds < 60);
        // New notes arrive while the old ones are still being read.
        if changing && rounds == 2 {
            assert!(more);
            service.forge.run(&["reset", "-q", "--hard", "main"]);
            for commit in [&commits[0], &commits[10], &commits[19]] {
                service.forge.stamp(commit, &["changed"]);
            }
            service.forge.push();
        }
    }
    assert!(rounds > 2, "{rounds}");
    let mut expected: BTreeSet<_> = (1..)
        .zip(&commits)
        .map(|(number, commit)| pair(commit, &format!("s-{number}")))
        .collect();
    if changing {
        expected.extend([0, 10, 19].map(|place| pair(&commits[place], "changed")));
    }
    assert_eq!(service.seen(), expected);
}

#[test]
fn a_small_budget_of_bytes_or_sessions_still_makes_progress() {
    for (bytes, sessions) in [(1, 1_000), (1_000_000, 1)] {
        let service = Service::start_with(Backend::Sqlite, |config| {
            config.budget.bytes = bytes;
            config.budget.sessions = sessions;
        })
        .unwrap();
        let head = service.forge.commit("head");
        for number in 0..4 {
            let commit = service.forge.commit(&number.to_string());
            service
                .forge
                .stamp(&commit, &[&format!("a{number}"), &format!("b{number}")]);
        }
        service.push(ZEROS, &head);
        let (rounds, stored) = service.refresh_all();
        assert_eq!(stored, 8);
        assert!(rounds >= 4, "{rounds}");
    }
}

#[test]
fn malformed_notes_are_ignored_and_counted() {
    let service = Service::start();
    let head = service.forge.commit("head");
    let good = service.forge.commit("good");
    let large = service.forge.commit("large");
    service.forge.note(NOTES, &head, "reviewed by me");
    service.forge.stamp(&good, &["s"]);
    service
        .forge
        .note(NOTES, &large, &"x".repeat(10 * 1024 * 1024));
    service.push(ZEROS, &large);
    assert_eq!(
        service.refresh(),
        Some(RefreshOutcome::Refreshed {
            stored: 1,
            duplicates: 0,
            ignored: 2,
            more: false
        })
    );
    let status = service.status();
    assert_eq!(status.last_failure.as_deref(), Some("note_invalid"));
    assert!(status.last_success_at.is_some());
    service.deliver(ZEROS, &large, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 0), "they are reported once");
}

#[test]
fn a_note_without_new_sessions_yields_no_observation() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.note(NOTES, &head, r#"{"v":1,"sessions":[]}"#);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
    let long = "x".repeat(1_025);
    service
        .forge
        .note(NOTES, &head, &stamp(&[&long, " padded "]));
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    assert_eq!(service.seen(), [pair(&head, "padded")].into());
}

#[test]
fn a_refresh_reads_no_more_notes_than_its_budget_even_if_unreachable() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.budget.notes = 5;
    })
    .unwrap();
    let base = service.forge.commit("base");
    let mut commits = service.forge.add_stamped(22, "s");
    let back = format!("{base}:refs/heads/main");
    service.forge.run(&["push", "-q", "-f", "origin", &back]);
    service.deliver(ZEROS, &base, |_| {});
    let lifetime = Lifetime::Identified(repository(7));
    let waiting = || {
        let notes = service.refresher.jobs.deferred_notes(&lifetime).unwrap();
        let commits = notes.into_iter().map(|note| note.commit_sha.to_string());
        commits.collect::<Vec<_>>()
    };
    commits.sort();
    // Reading continues where it stopped, so each note is looked at once.
    for looked_at in [5, 10, 15, 20, 22] {
        let outcome = service.refresh();
        let more = matches!(outcome, Some(RefreshOutcome::Refreshed { more: true, .. }));
        assert_eq!(more, looked_at < 22, "{outcome:?}");
        assert_eq!(waiting(), commits[..looked_at]);
    }
    assert_eq!(service.refresh(), None);
}

#[test]
fn dropped_waiting_notes_are_reported() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.budget.waiting = 3;
    })
    .unwrap();
    let base = service.forge.commit("base");
    service.forge.add_stamped(5, "s");
    let back = format!("{base}:refs/heads/main");
    service.forge.run(&["push", "-q", "-f", "origin", &back]);
    service.deliver(ZEROS, &base, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 0));
    let status = service.status();
    assert_eq!(status.last_failure.as_deref(), Some("notes_given_up"));
    assert!(status.last_success_at.is_some());
    let lifetime = Lifetime::Identified(repository(7));
    let waiting = service.refresher.jobs.deferred_notes(&lifetime).unwrap();
    assert_eq!(waiting.len(), 3);
}
