//! What reports remember is correct in every state of the store: with memories of other states, a
//! report is the same as without any.

use std::cell::RefCell;
use std::ops::Range;

use svc_model::limit::REPORT_FACTS_MAX;

use super::*;

/// Reports that remember, compared with reports that remember nothing.
struct Reports<'s> {
    stage: &'s Stage,
    forge: Option<&'s Forge>,
    sources: Sources,
    /// When the calls were observed; always before the report's boundary.
    cohort: Range<i64>,
    /// The reports so far.
    before: RefCell<Vec<[String; 2]>>,
}

impl<'s> Reports<'s> {
    fn of(stage: &'s Stage) -> Self {
        Self::with(stage, None)
    }

    /// Returns reports that read a mirror of a forge.
    fn with(stage: &'s Stage, forge: Option<&'s Forge>) -> Self {
        Self {
            stage,
            forge,
            sources: Self::fresh(forge),
            cohort: -600..4_000,
            before: RefCell::default(),
        }
    }

    fn fresh(forge: Option<&Forge>) -> Sources {
        let sources = Sources::new();
        if let Some(forge) = forge {
            sources.mirror(&forge.repository, 101);
        }
        sources
    }

    fn texts(&self, sources: &Sources, as_of: i64) -> [String; 2] {
        let cohort = at(self.cohort.start)..at(self.cohort.end.min(as_of));
        let request = ReportRequest {
            scope: ReportScope::new(cohort, at(as_of)).unwrap(),
        };
        let mut snapshot = self.stage.snapshot();
        let models = model_outcomes(&mut snapshot, sources.all(), &request).unwrap();
        let lifecycle = accepted_work_lifecycle(&mut snapshot, sources.all(), &request).unwrap();
        [
            serde_json::to_string(&models.report).unwrap(),
            serde_json::to_string(&lifecycle.report).unwrap(),
        ]
    }

    /// Checks the reports up to a boundary, and returns them.
    #[track_caller]
    fn check(&self, as_of: i64) -> [String; 2] {
        let expected = self.texts(&Self::fresh(self.forge), as_of);
        for _ in 0..2 {
            assert_eq!(self.texts(&self.sources, as_of), expected);
        }
        expected
    }

    /// Checks that the reports differ from all earlier ones.
    #[track_caller]
    fn check_new(&self) {
        let reports = self.check(9_000);
        assert!(!self.before.borrow().contains(&reports), "{reports:#?}");
        self.before.borrow_mut().push(reports);
    }
}

fn decided(number: u128, accepted: bool, call_id: &str) -> Append {
    let mut decided = decision(number);
    decided.accepted = accepted;
    decided.call_id = Some(call_id.to_owned());
    decided.captured_at = at(2_000);
    Append::DeveloperDecision(Box::new(decided))
}

fn edited(number: u128, call_id: &str) -> Append {
    let mut edited = edit(number, call_id);
    edited.captured_at = at(2_000);
    Append::EditObservation(Box::new(edited))
}

fn retried(number: u128, call_id: &str) -> Append {
    let mut retried = linkage(number, call_id, "again");
    retried.captured_at = at(2_000);
    Append::RetryLinkage(Box::new(retried))
}

/// A push of a commit, and the observation of Session `s` at it.
fn seen(number: u128, digit: char) -> [Append; 2] {
    let push = Push {
        repository: Some(repository(101)),
        after_sha: commit(digit),
        captured_at: at(2_000),
        ..push(number)
    };
    let seen = SessionCommitObservation {
        repository: Some(repository(101)),
        commit_sha: commit(digit),
        captured_at: at(2_001),
        ..observation(number + 1, id(number))
    };
    [pushed(push), observed(seen)]
}

#[rstest]
fn a_stored_hidden_or_released_fact_changes_a_remembered_report(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reports = Reports::of(&stage);
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        stage.call_with_answer(2, "t", GUESSED),
    ]);
    reports.check_new();
    stage.add([decided(11, true, "t1")]);
    reports.check_new();
    stage.add([edited(12, "t1")]);
    reports.check_new();
    stage.add(seen(13, 'c'));
    reports.check_new();
    stage.add([retried(15, "t1")]);
    reports.check_new();
    for (table, number) in [
        (FactTable::DeveloperDecisions, 11),
        (FactTable::EditObservations, 12),
        (FactTable::RetryLinkages, 15),
        (FactTable::SessionCommitObservations, 14),
        (FactTable::Pushes, 13),
    ] {
        stage.quarantine(table, id(number));
        reports.check(9_000);
        stage.release(table, id(number));
        reports.check(9_000);
    }
}

#[rstest]
fn each_report_counts_what_was_captured_by_its_as_of(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        stage.call_with_answer(2, "t", GUESSED),
    ]);
    stage.add([decided(11, true, "t1"), edited(12, "t1")]);
    stage.add(seen(13, 'c'));
    let mut retried = linkage(16, "t1", "later");
    retried.captured_at = at(5_000);
    stage.add([Append::RetryLinkage(Box::new(retried))]);
    let mut later = decision(15);
    later.call_id = Some("t2".to_owned());
    later.captured_at = at(5_000);
    stage.add([Append::DeveloperDecision(Box::new(later))]);
    for moments in [[9_000, 5_000, 4_999, 9_000], [3_000, 9_000, 5_000, 3_000]] {
        let reports = Reports::of(&stage);
        for as_of in moments {
            reports.check(as_of);
        }
        assert_ne!(reports.check(4_999), reports.check(5_000));
    }
}

#[rstest]
fn an_erased_text_leaves_remembered_reports(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reports = Reports::of(&stage);
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        decided(11, true, "t1"),
    ]);
    stage.add([edited(12, "t1")]);
    reports.check_new();
    assert_eq!(stage.erase("s").facts.get(FactTable::EditObservations), 1);
    reports.check_new();
}

#[rstest]
fn facts_lost_by_setting_the_store_back_leave_remembered_reports(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reports = Reports::of(&stage);
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        stage.call_with_answer(2, "t", GUESSED),
    ]);
    reports.check_new();
    stage.database.back_up();
    stage.add([decided(11, true, "t1"), edited(12, "t1")]);
    stage.add(seen(13, 'c'));
    reports.check_new();
    stage.database.restore();
    let before = reports.before.borrow()[0].clone();
    assert_eq!(reports.check(9_000), before);
    // As many facts as were lost, and as many that touch the Session.
    stage.add([decided(21, false, "t1"), edited(22, "t2")]);
    stage.add(seen(23, 'd'));
    reports.check_new();
}

/// An outcome of a run at a commit of the forge.
fn ran(number: u128, run: &str, commit_sha: &CommitSha, seconds: i64) -> Append {
    ci(CiOutcome {
        commit_sha: commit_sha.clone(),
        result: CiResult::Failed,
        ..checked(number, run, Some(101), seconds)
    })
}

#[rstest]
fn a_stored_hidden_or_released_outcome_changes_a_remembered_report(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let forge = Forge::new();
    let [_, noted, guessed, _] = &forge.commits;
    let reports = Reports::with(&stage, Some(&forge));
    stage.add(forge.facts(&stage));
    reports.check_new();
    stage.add([ran(41, "other", noted, 2_100)]);
    reports.check_new();
    // The run that passed at one commit failed at another.
    let mut again = checked(42, "run", Some(101), 2_101);
    again.commit_sha = commit('f');
    again.run_attempt = Some(2);
    stage.add([ci(again)]);
    reports.check_new();
    for number in [42, 41, 14] {
        stage.quarantine(FactTable::CiOutcomes, id(number));
        reports.check(9_000);
        stage.release(FactTable::CiOutcomes, id(number));
        reports.check(9_000);
    }
    stage.add([ran(44, "later", guessed, 5_000)]);
    reports.check_new();
    assert_ne!(reports.check(4_999), reports.check(5_000));
    let passed = CiOutcome {
        commit_sha: guessed.clone(),
        result: CiResult::Passed,
        ..checked(46, "kept", Some(101), 5_002)
    };
    stage.add([ci(passed)]);
    reports.check_new();
    // The forge says under its signature that this run failed.
    let reported = reports.check(9_000);
    let proven = CiOutcome {
        commit_sha: guessed.clone(),
        signed: true,
        ..checked(47, "kept", Some(101), 5_003)
    };
    stage.add([ci(proven)]);
    assert_ne!(reports.check(9_000), reported);
    let until_then = reports.check(5_002);
    stage.quarantine(FactTable::CiOutcomes, id(47));
    reports.check(9_000);
    stage.release(FactTable::CiOutcomes, id(47));
    assert_ne!(
        reports.check(5_003),
        until_then,
        "until then the report answers"
    );
}

#[rstest]
fn a_late_call_or_one_sharing_an_id_changes_a_remembered_report(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reports = Reports::of(&stage);
    let taking = |number: u128, observed: i64| {
        let mut call = call(number).session("elsewhere").observed(observed).build();
        call.call_aliases = vec!["t1".to_owned()];
        Append::InferenceCall(Box::new(stage.store.encode(call, at(observed))))
    };
    stage.add([
        stage.call_with_answer(1, "s", NOTED),
        decided(11, true, "t1"),
    ]);
    reports.check_new();
    let alone = reports.check(9_000);
    stage.database.back_up();
    // Outside the cohort.
    stage.add([taking(2, 6_000)]);
    reports.check_new();
    assert_eq!(reports.check(5_999), reports.check(3_000));
    stage.quarantine(FactTable::InferenceCalls, id(2));
    reports.check(9_000);
    stage.release(FactTable::InferenceCalls, id(2));
    reports.check(9_000);
    stage.database.restore();
    assert_eq!(reports.check(9_000), alone);
    // This tells the writer what was lost, and the call is prepared again.
    stage.add([edited(12, "t9")]);
    reports.check_new();
    stage.add([taking(3, 2_000)]);
    reports.check_new();
    stage.add([stage.call_with_answer(4, "t", GUESSED)]);
    reports.check_new();
}

#[rstest]
fn later_captures_do_not_make_a_report_exceed_its_bounds(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let reports = Reports::of(&stage);
    stage.add([stage.call_with_answer(1, "s", NOTED)]);
    let decided = |number: usize, captured_at| {
        let mut decided = decision(100 + number as u128);
        // All on one call, because that many ids would be too many.
        decided.call_id = Some("t1".to_owned());
        decided.occurred_at = at(i64::try_from(number).unwrap());
        decided.captured_at = at(captured_at);
        Append::DeveloperDecision(Box::new(decided))
    };
    stage.add((0..REPORT_FACTS_MAX).map(|number| decided(number, 2_000)));
    reports.check(9_000);
    stage.add([decided(REPORT_FACTS_MAX, 8_000)]);
    for _ in 0..2 {
        reports.check(7_999);
        let refused = stage.lifecycle(&reports.sources).err();
        assert!(
            matches!(refused, Some(Error::ReportBound(ReportBound::Evidence))),
            "{refused:?}"
        );
    }
}
