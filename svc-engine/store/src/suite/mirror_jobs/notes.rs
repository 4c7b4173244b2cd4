//! What a refresh leaves for the next one.

use super::*;

#[rstest]
fn deferred_notes_are_kept_for_the_next_refresh(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let note = |digit| DeferredNote {
        notes_ref: "refs/notes/svc".to_owned(),
        commit_sha: commit(digit),
    };
    let refresh = |deferred: &[DeferredNote], reached: &[DeferredNote], notes: &str, more, now| {
        let job = claim(&jobs, now).unwrap();
        let given_up = jobs.defer(&job.lifetime, deferred, 100, at(now));
        assert_eq!(given_up.unwrap(), 0);
        let end = JobEnd::Succeeded {
            done: waiting(&jobs, "own/repo"),
            notes: notes.to_owned(),
            reached: reached.to_vec(),
            remark: None,
            more,
        };
        assert!(jobs.end(&job, end, at(now)).unwrap());
    };
    let own = lifetime("own/repo");
    refresh(&[note('1'), note('2')], &[], "one", true, 0);
    assert_eq!(jobs.deferred_notes(&own).unwrap(), [note('1'), note('2')]);
    let job = claim(&jobs, 1).unwrap();
    assert_eq!(job.notes, "one");
    let back = JobEnd::PutBack {
        due_at: at(2),
        reason: Some("disk_reserve"),
    };
    jobs.end(&job, back, at(2)).unwrap();
    let shown = status(&store, 2).remove(0);
    assert_eq!(shown.last_failure.as_deref(), Some("disk_reserve"));
    assert_eq!(shown.attempts, 0);
    refresh(&[note('2'), note('3')], &[note('1')], "two", false, 3);
    assert_eq!(jobs.deferred_notes(&own).unwrap(), [note('2'), note('3')]);
    assert_eq!(jobs.deferred_notes(&lifetime("own/other")).unwrap(), []);
    assert_eq!(claim(&jobs, 1_000), None, "nothing is left to do");
}

#[rstest]
fn waiting_notes_are_bounded_and_the_oldest_are_dropped(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let note = |number: usize| DeferredNote {
        notes_ref: "refs/notes/svc".to_owned(),
        commit_sha: CommitSha::new(&format!("{number:040x}")).unwrap(),
    };
    deliver(&store, push(1));
    let own = lifetime("own/repo");
    for (second, numbers, expected) in [(0, 0..900, 0), (1, 900..1_050, 50), (2, 2_000..2_001, 1)] {
        let deferred: Vec<_> = numbers.map(note).collect();
        let given_up = jobs.defer(&own, &deferred, 1_000, at(second)).unwrap();
        assert_eq!(given_up, expected, "the number is reported");
    }
    let kept = jobs.deferred_notes(&own).unwrap();
    assert_eq!(kept.len(), 1_000);
    assert!(kept.contains(&note(1_049)) && kept.contains(&note(2_000)));
}
