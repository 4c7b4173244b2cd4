//! Reports over all history.

use svc_model::facts::AgentHarness;
use svc_model::reports::{AttributionAlertKind, MembershipSkip, ScoringSkip};

use super::*;

const DAY: i64 = 24 * 60 * 60;
/// When the last push was received, which brought a commit without a note.
const LAST: i64 = 20 * DAY;

impl Forge {
    /// The facts of the forge, and of a push weeks later.
    fn facts_of_weeks(&self, stage: &Stage) -> Vec<Append> {
        let [base, _, _, merged] = &self.commits;
        let later = Push {
            repository: Some(repository(101)),
            before_sha: base.clone(),
            after_sha: merged.clone(),
            captured_at: at(LAST),
            ..push(31)
        };
        let call = call(32)
            .session("u")
            .observed(LAST - 60)
            .output(vec![text("assistant", NOTED)])
            .build();
        let mut facts = self.facts(stage);
        facts.push(pushed(later));
        facts.push(Append::InferenceCall(Box::new(
            stage.store.encode(call, at(LAST)),
        )));
        facts
    }
}

#[rstest]
fn the_last_week_is_compared_with_the_weeks_before_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts_of_weeks(&stage));
    let share = |as_of| attribution_share(&mut stage.snapshot(), sources.all(), as_of, 4).unwrap();
    let report = share(at(30 * DAY));
    let counts = |row: &svc_model::reports::AttributionShareRow| {
        (
            row.git_notes_attributed,
            row.jaccard_attributed,
            row.unattributed,
        )
    };
    assert_eq!(
        report.current.iter().map(counts).collect::<Vec<_>>(),
        [(0, 1, 0)]
    );
    assert_eq!(
        report.baseline.iter().map(counts).collect::<Vec<_>>(),
        [(1, 1, 0)]
    );
    assert_eq!(report.current[0].window_end, at(LAST));
    assert_eq!(report.current[0].window_start, at(LAST - 7 * DAY));
    assert_eq!(report.alerts[0].kind, AttributionAlertKind::ZeroShare);
    assert_eq!(report.min_cases_for_decline_verdict, 4);
    assert!(report.attribution_skips.is_empty());
    // At an earlier boundary, the push before it is the last one.
    let earlier = share(at(LAST - 1));
    assert_eq!(
        earlier.current.iter().map(counts).collect::<Vec<_>>(),
        [(1, 1, 0)]
    );
    assert_eq!((earlier.baseline, earlier.alerts), (vec![], vec![]));

    let all = Extent::all_until(at(30 * DAY));
    let models = model_report(&mut stage.snapshot(), sources.all(), &all).unwrap();
    let [row] = &models.attribution_share[..] else {
        panic!("{:?}", models.attribution_share);
    };
    assert_eq!(counts(row), (1, 2, 0));
    assert_eq!((row.window_start, row.window_end), (at(2_000), at(LAST)));
    assert_eq!(models.attribution_alerts, []);
    assert_eq!(models.rows[0].since_days, None);
}

#[rstest]
fn an_unreadable_commit_is_not_counted_as_lacking_a_note(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    stage.add(forge.facts_of_weeks(&stage));
    let share = || {
        let as_of = at(30 * DAY);
        attribution_share(&mut stage.snapshot(), sources.all(), as_of, 4).unwrap()
    };
    let without_mirror = share();
    assert_eq!(without_mirror.current, []);
    assert_eq!(without_mirror.baseline, []);
    assert_eq!(without_mirror.alerts, []);
    let absent = [(AttributionSkip::MirrorAbsent, 2)];
    assert_eq!(
        without_mirror.attribution_skips,
        absent.into_iter().collect()
    );

    sources.mirror(&forge.repository, 101);
    let before = share();
    let not_fetched = Push {
        repository: Some(repository(101)),
        after_sha: commit('7'),
        captured_at: at(LAST),
        ..push(34)
    };
    stage.add([pushed(not_fetched)]);
    let behind = share();
    assert_eq!(behind.current, before.current);
    assert_eq!(behind.baseline, before.baseline);
    let unavailable = [(AttributionSkip::CommitDiffUnavailable, 1)];
    assert_eq!(behind.attribution_skips, unavailable.into_iter().collect());
}

#[rstest]
fn a_push_with_an_undetermined_repository_is_in_no_share_and_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let share = || {
        let as_of = at(30 * DAY);
        attribution_share(&mut stage.snapshot(), sources.all(), as_of, 4).unwrap()
    };
    // Two repositories have had the name by now, and a push without an identity names neither.
    let named = |number: u128, repository: Option<_>, day: i64| Push {
        repository,
        captured_at: at(day * DAY),
        ..push(number)
    };
    stage.add([
        pushed(named(11, Some(repository(101)), 1)),
        pushed(named(12, Some(repository(102)), 2)),
        pushed(named(13, None, 20)),
    ]);
    let unresolved = [(AttributionSkip::RepositoryIdentityUnresolved, 1)];
    assert_eq!(share().attribution_skips, unresolved.into_iter().collect());
}

#[rstest]
fn all_history_includes_sessions_without_a_call(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let mut alone = decision(33);
    alone.session_id = svc_model::id::SessionId::new("alone").unwrap();
    alone.captured_at = at(2_005);
    stage.add([Append::DeveloperDecision(Box::new(alone))]);
    let report = abandonment(&mut stage.snapshot(), &Extent::all_until(at(9_000))).unwrap();
    let sessions = report.accepted_session_outcomes.iter();
    let sessions: Vec<&str> = sessions
        .map(|session| session.session_id.as_str())
        .collect();
    assert_eq!(sessions, ["alone", "s"]);
    assert_eq!(report.as_of, Some(at(2_005)));
    let before = abandonment(&mut stage.snapshot(), &Extent::all_until(at(2_001))).unwrap();
    assert_eq!(
        (before.as_of, before.accepted_session_outcomes),
        (None, vec![])
    );

    let all = Extent::all_until(at(9_000));
    let all = lifecycle_report(&mut stage.snapshot(), sources.all(), &all).unwrap();
    assert_eq!(all.session_attrition.eligible_sessions, 2);
    let cohort = stage.lifecycle(&sources).unwrap().report;
    assert_eq!(cohort.session_attrition.eligible_sessions, 1);
    assert_eq!(all.merge_durability, cohort.merge_durability);
}

#[rstest]
fn the_as_of_of_the_sessions_is_the_last_fact_considered(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let decided = |number: u128, occurred: i64, captured: i64| {
        let mut decision = decision(number);
        (decision.occurred_at, decision.captured_at) = (at(occurred), at(captured));
        Append::DeveloperDecision(Box::new(decision))
    };
    let pushed_at = |number: u128, captured: i64| {
        pushed(Push {
            r#ref: format!("refs/heads/{number}"),
            captured_at: at(captured),
            ..push(number)
        })
    };
    let observed_at = |number: u128, observed: i64| {
        let call = call(number).session("s").observed(observed).build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(7_000))))
    };
    let as_of = |extent: &Extent| {
        let report = abandonment(&mut stage.snapshot(), extent).unwrap();
        let moments = report.accepted_session_outcomes.iter();
        assert!(
            moments
                .map(|session| Some(session.as_of))
                .all(|moment| moment == report.as_of)
        );
        report.as_of
    };
    let all = |until: i64| as_of(&Extent::all_until(at(until)));
    stage.add([pushed_at(1, 1_000)]);
    assert_eq!(all(9_000), None, "no decision");
    stage.add([decided(2, 1_900, 2_000)]);
    // Of another kind, and later than everything relevant to the decision.
    let mut edit = edit(3, "call");
    edit.captured_at = at(6_000);
    stage.add([Append::EditObservation(Box::new(edit))]);
    for asked in [2_000, 5_000, 6_000, 9_000] {
        assert_eq!(all(asked), Some(at(2_000)), "{asked}");
    }
    stage.add([observed_at(4, 3_000)]);
    assert_eq!(all(2_999), Some(at(2_000)));
    assert_eq!(all(9_000), Some(at(3_000)));
    stage.add([pushed_at(5, 8_000)]);
    assert_eq!(all(7_999), Some(at(3_000)));
    assert_eq!(all(9_000), Some(at(8_000)));
    let day = Extent::days_before(at(9_000), 1);
    assert_eq!(as_of(&day), Some(at(8_000)));
    // A sender's clock is ahead of the requested boundary.
    stage.add([decided(6, 20_000, 8_500)]);
    assert_eq!(all(9_000), Some(at(9_000)));
    assert_eq!(all(30_000), Some(at(20_000)));
}

#[rstest]
fn a_decision_that_codex_reports_twice_counts_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let codex = |number: u128, file_path: &str| {
        let mut decision = decision(number);
        decision.agent_harness = AgentHarness::Codex;
        decision.call_id = Some("call".to_owned());
        decision.file_path = file_path.to_owned();
        Append::DeveloperDecision(Box::new(decision))
    };
    stage.add([codex(31, ""), codex(32, "src/a.rs")]);
    let report = abandonment(&mut stage.snapshot(), &Extent::all_until(at(9_000))).unwrap();
    let sessions = report.accepted_session_outcomes.iter();
    let accepted: Vec<u64> = sessions.map(|session| session.accepted_decisions).collect();
    assert_eq!(accepted, [1]);
}

/// A merge of a second pull request in the forge's repository; no mirror has its head.
fn later_merge() -> PullRequestMerge {
    let mut later = PullRequestMerge {
        merged_at: at(2_006),
        captured_at: at(2_006),
        ..merge(34)
    };
    later.pull_request.pr_number = 4_711;
    later.pull_request.repository = Some(repository(101));
    later.pull_request.head_repository = Some(repository(101));
    later.pull_request.head_repo = Some("own/repo".to_owned());
    later
}

#[rstest]
fn an_uncheckable_pull_request_is_named(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let read = |as_of| {
        let extent = Extent::all_until(at(as_of));
        merge_retention(&mut stage.snapshot(), sources.all(), &extent).unwrap()
    };
    let report = read(9_000);
    assert_eq!(report.scored_rows, 1);
    assert_eq!(report.unchecked_pull_requests, Some(vec![]));
    assert_eq!(report.explicit_accept_rows, 1);

    stage.add([Append::PullRequestMerge(Box::new(later_merge()))]);
    let report = read(9_000);
    let unchecked = report.unchecked_pull_requests.unwrap();
    assert_eq!(report.scored_rows, 0);
    assert_eq!(
        report.membership.get(MembershipSkip::AncestryCheckFailed),
        1
    );
    assert_eq!(unchecked.len(), 1);
    assert_eq!(unchecked[0].pr_numbers, [4_711]);
    assert!(unchecked[0].repository_identity.is_some());
    assert_eq!(read(2_005).scored_rows, 1);
}

/// Returns an outcome at a commit of a repository that cannot be determined.
fn nameless(number: u128, commit_sha: &CommitSha, pr_number: Option<i64>) -> Append {
    ci(CiOutcome {
        commit_sha: commit_sha.clone(),
        pr_number,
        ..checked(number, &format!("run {number}"), None, 2_010)
    })
}

/// An outcome leaves open the pull request that it names, and only all history asks every outcome.
#[rstest]
fn an_outcome_of_an_unknown_repository_leaves_open_what_it_names_over_all_history(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let [_, noted, _, merged] = &forge.commits;
    let read = |extent: &Extent| {
        let retention = merge_retention(&mut stage.snapshot(), sources.all(), extent).unwrap();
        let lifecycle = lifecycle_report(&mut stage.snapshot(), sources.all(), extent).unwrap();
        let accepted = lifecycle.accepted_work.ci_passed;
        (retention, lifecycle.merge_durability, accepted)
    };
    let (all, cohort) = (Extent::all_until(at(9_000)), Extent::from(&request().scope));
    let known = [read(&all), read(&cohort)];
    assert_eq!((known[0].0.scored_rows, known[1].2), (1, 1));
    stage.add([nameless(41, noted, None)]);
    assert_eq!(
        [read(&all), read(&cohort)],
        known,
        "no pull request is named"
    );
    stage.add([
        nameless(42, merged, Some(77)),
        nameless(43, noted, Some(77)),
    ]);
    assert_eq!(read(&cohort), known[1]);
    let (open, panel, _) = read(&all);
    assert_eq!(open.scored_rows, 0);
    let unknown = [(MembershipSkip::AncestryCheckFailed, 1)];
    assert_eq!(open.membership, unknown.into_iter().collect());
    let unchecked = open.unchecked_pull_requests.unwrap();
    assert_eq!(unchecked.len(), 1);
    assert_eq!(unchecked[0].pr_numbers, [77], "what the outcomes name");
    let skip = ScoringSkip::RepositoryIdentityUnresolved;
    assert_eq!(open.scoring_skips.get(skip), 2);
    assert_eq!(panel.scoring_skips.get(skip), 2);
    assert_eq!(panel.coverage.missing, panel.scoring_skips);
}

/// A push, its observation, a revision, two merges and an outcome that name a repository by a name
/// that an identified one has.
#[rstest]
fn facts_of_an_unknown_repository_count_where_they_were_searched(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let (mut legacy, mut seen) = delivered(51, None);
    (legacy.captured_at, seen.captured_at) = (at(2_020), at(2_021));
    let [mut merged, mut later] = [merge(53), merge(54)];
    (merged.pull_request.pr_number, later.pull_request.pr_number) = (8, 9);
    later.merged_at = at(9_001);
    let mut open = revision(55);
    open.pull_request.pr_number = 10;
    stage.add([
        pushed(legacy),
        observed(seen),
        Append::PullRequestMerge(Box::new(merged)),
        Append::PullRequestMerge(Box::new(later)),
        Append::PullRequestRevision(Box::new(open)),
        nameless(56, &forge.commits[1], None),
    ]);
    let why = RepositoryDecline::IdentityUnresolved;
    for (extent, [scoring, attribution, assembly]) in [
        (Extent::all_until(at(9_000)), [3, 2, 3]),
        (Extent::from(&request().scope), [1, 1, 2]),
    ] {
        let retention = merge_retention(&mut stage.snapshot(), sources.all(), &extent).unwrap();
        let lifecycle = lifecycle_report(&mut stage.snapshot(), sources.all(), &extent).unwrap();
        let models = model_report(&mut stage.snapshot(), sources.all(), &extent).unwrap();
        assert_eq!(retention.scoring_skips.get(why.into()), scoring);
        assert_eq!(retention.attribution_skips.get(why.into()), attribution);
        let panel = &lifecycle.merge_durability;
        assert_eq!(panel.scoring_skips.get(why.into()), scoring);
        assert_eq!(panel.coverage.missing, panel.scoring_skips);
        let skipped = &lifecycle.repository_skipped;
        assert_eq!(skipped.attribution_sources.get(why), attribution);
        assert_eq!(skipped.session_observations.get(why), 1);
        let skipped = &models.repository_skipped;
        assert_eq!(skipped.assembly_sources.get(why), assembly);
        assert_eq!(skipped.push_sources.get(why), 1);
        assert!(skipped.ci_outcomes.is_empty());
        assert_eq!(models.ci_skipped.source_outcomes.get(why), 1);
    }
}

#[rstest]
fn ancestry_is_remembered_once_every_head_is_there(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (forge, sources) = (Forge::new(), Sources::new());
    sources.mirror(&forge.repository, 101);
    stage.add(forge.facts(&stage));
    let extent = Extent::all_until(at(9_000));
    let read = || merge_retention(&mut stage.snapshot(), sources.all(), &extent).unwrap();
    let hits = || {
        let uses = sources.memory.uses().into_iter();
        uses.filter(|(kind, _)| *kind == "ancestries")
            .map(|(_, used)| used.hits)
            .sum::<u64>()
    };
    let first = read();
    assert_eq!((first.scored_rows, hits()), (1, 0));
    assert_eq!(read(), first);
    assert_eq!(hits(), 1);

    let head = forge.repository.commit("later");
    let mut merge = later_merge();
    merge.pull_request.head_sha = CommitSha::new(&head).unwrap();
    merge.pull_request.base_sha = forge.commits[0].clone();
    stage.add([Append::PullRequestMerge(Box::new(merge))]);
    for _ in 0..2 {
        let membership = read().membership;
        assert_eq!(membership.get(MembershipSkip::AncestryCheckFailed), 1);
    }
    sources.fetch(101);
    for expected in [1, 2] {
        assert_eq!(read().scored_rows, 1);
        assert_eq!(hits(), expected);
    }
}

#[rstest]
fn all_history_counts_pushes_without_a_candidate_call(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sources = Sources::new();
    let late = Push {
        repository: Some(repository(101)),
        captured_at: at(LAST),
        ..push(11)
    };
    stage.add([pushed(late)]);
    let skipped = |as_of| {
        let extent = Extent::all_until(at(as_of));
        let report = merge_retention(&mut stage.snapshot(), sources.all(), &extent).unwrap();
        serde_json::to_value(report.attribution_skips).unwrap()
    };
    let one = serde_json::json!({"no_inference_call_candidates": 1});
    assert_eq!(skipped(LAST + DAY), one, "no call at all");
    assert_eq!(skipped(LAST - 1), serde_json::json!({}), "no push yet");
    stage.add([stage.call_with_answer(1, "s", NOTED)]);
    assert_eq!(skipped(LAST + DAY), one, "a call from long before");
}

#[rstest]
fn a_window_counts_pushes_whose_calls_were_observed_outside_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const AS_OF: i64 = 10 * DAY;
    let stage = stage!(backend);
    let sources = Sources::new();
    let pushed_at = |number: u128, captured_at: i64| {
        pushed(Push {
            repository: Some(repository(101)),
            r#ref: format!("refs/heads/{number}"),
            captured_at: at(captured_at),
            ..push(number)
        })
    };
    // A call may be observed ten minutes after its push, so the window of pushes begins that much
    // earlier.
    let start = AS_OF - 5 * DAY - 600;
    stage.add([
        pushed_at(11, start - 1),
        pushed_at(12, start),
        pushed_at(13, AS_OF - 4 * DAY),
        pushed_at(14, AS_OF - 60),
        pushed_at(15, AS_OF),
        pushed_at(16, AS_OF + 1),
    ]);
    let skipped = || {
        let extent = Extent::days_before(at(AS_OF), 5);
        let report = merge_retention(&mut stage.snapshot(), sources.all(), &extent).unwrap();
        serde_json::to_value(report.attribution_skips).unwrap()
    };
    let none = serde_json::json!({"no_inference_call_candidates": 4});
    assert_eq!(skipped(), none, "no call at all");
    let late = call(21).session("s").observed(AS_OF - 61).build();
    stage.add([Append::InferenceCall(Box::new(
        stage.store.encode(late, at(AS_OF - 30)),
    ))]);
    let some = serde_json::json!({"no_inference_call_candidates": 2, "mirror_absent": 2});
    assert_eq!(skipped(), some, "two pushes come after the only call");
}
