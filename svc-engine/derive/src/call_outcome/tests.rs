use svc_engine_fact::testing::builders::{at, commit, id};
use svc_model::ingest::CiResult;

use super::*;
use crate::cohort::world::{World, home, session};
use crate::merge_retention::ReachedFrom;
use crate::pull_requests::{CommitsOf, KnownPullRequest, PullRequests};

/// Pull request 7 of the first repository holds commits a and b, and was merged as e.
fn memberships(merge: Option<char>) -> Memberships {
    let known = KnownPullRequest {
        pr_number: 7,
        head_repositories: BTreeSet::new(),
        head_declined: None,
        heads: [commit('a'), commit('b')].into(),
        base_sha: commit('0'),
        base_branches: BTreeSet::new(),
        merge_commit_sha: merge.map(commit),
    };
    let commits = CommitsOf::from([(home(1), ['a', 'b', 'c'].map(commit).into())]);
    let unread = |_: &Lifetime, _: &CommitSha| -> ReachedFrom<'_> { Box::new(|_| None) };
    Memberships::new(
        &PullRequests::from([(home(1), vec![known])]),
        &commits,
        &[],
        &unread,
    )
}

fn outcomes(world: &World, memberships: &Memberships) -> CallOutcomes {
    outcomes_after(world, memberships, &[CiResult::Failed])
}

/// Derives them with these results of CI, each of its own run, at the merge.
fn outcomes_after(world: &World, memberships: &Memberships, merge: &[CiResult]) -> CallOutcomes {
    let mut of_merge = World::default();
    for (number, result) in (900..).zip(merge) {
        of_merge.run(number, 1, 'e', "CI", *result);
    }
    let merge_ci = CiResolution::new(&of_merge.attempts);
    // Pushes are numbered like the seconds at which they were received.
    let pushed_at = (0..9).map(|number| (id(number), at(i64::try_from(number).unwrap())));
    let inputs = OutcomeInputs {
        pushed_at: &pushed_at.collect(),
        memberships,
        merge_ci: &merge_ci,
        edit_owners: &world.owners,
    };
    world.derive(|evidence| derive(evidence, inputs))
}

#[test]
fn each_call_has_the_first_outcome_that_applies() {
    const KEPT: &str = "0123456789abc";
    type Make = fn(&mut World);
    let cases: [(&str, Make, Outcome); 12] = [
        ("nothing", |_| {}, Outcome::NoCommitEvidence),
        ("merged", |w| w.tie(1, 1, 'a', 8), Outcome::Merged),
        (
            "no pull request",
            |w| w.tie(1, 1, 'c', 8),
            Outcome::Committed,
        ),
        (
            "one of two",
            |w| {
                w.tie(1, 1, 'c', 8);
                w.tie(1, 1, 'b', 8);
            },
            Outcome::Merged,
        ),
        (
            "another repository",
            |w| w.tie(1, 2, 'a', 8),
            Outcome::Committed,
        ),
        ("kept", |w| w.edit(5, 1, KEPT, None), Outcome::EditsKept),
        (
            "kept in part",
            |w| {
                w.edit(5, 1, "", None);
                w.edit(6, 1, "0123456789", None);
            },
            Outcome::EditsKept,
        ),
        ("deleted", |w| w.edit(5, 1, "", None), Outcome::EditsDeleted),
        (
            "rejected",
            |w| w.decide(4, 1, false, true),
            Outcome::Rejected,
        ),
        (
            "rejected in part",
            |w| {
                w.decide(4, 1, false, true);
                w.decide(5, 1, true, false);
            },
            Outcome::NoCommitEvidence,
        ),
        (
            "refused by a rule",
            |w| w.decide(4, 1, false, false),
            Outcome::NoCommitEvidence,
        ),
        (
            "observed",
            |w| w.observe(3, 1, 1, 'c'),
            Outcome::SessionCommitted,
        ),
    ];
    for (what, make, expected) in cases {
        let mut world = World::default();
        world.call(1, "s1", Some("m"));
        world.call(2, "s2", Some("m"));
        make(&mut world);
        let found = outcomes(&world, &memberships(Some('e')));
        assert_eq!(found.calls[&id(1)].outcome, expected, "{what}");
        let other = &found.calls[&id(2)];
        assert_eq!(other.outcome, Outcome::NoCommitEvidence, "{what}");
    }
}

#[test]
fn an_open_pull_request_is_no_merge() {
    let mut world = World::default();
    world.call(1, "s1", None);
    world.tie(1, 1, 'a', 8);
    let found = outcomes(&world, &memberships(None));
    assert_eq!(found.calls[&id(1)].outcome, Outcome::Committed);
    let pull_request = found.commits[0].pull_request.as_ref().unwrap();
    assert_eq!((pull_request.pr_number, pull_request.is_merged), (7, false));
}

#[test]
fn an_edit_whose_tool_call_several_calls_own_says_nothing() {
    let mut world = World::default();
    world.call(1, "s1", None);
    world.call(2, "s1", None);
    world.edit(5, 1, "0123456789abc", None);
    world.owners[1].call_id = "t1".to_owned();
    let found = outcomes(&world, &memberships(None));
    assert_eq!(found.calls[&id(1)].outcome, Outcome::NoCommitEvidence);
}

#[test]
fn the_commit_of_the_earliest_push_stands_for_a_call() {
    let mut world = World::default();
    world.call(1, "s1", None);
    world.tie(1, 1, 'a', 8);
    world.tie(1, 1, 'c', 8);
    world.tie(1, 1, 'b', 8);
    world.files[0].push_id = id(3);
    world.files[1].push_id = id(2);
    world.files[2].push_id = id(2);
    world.files[2].source = AttributionSource::GitNotes;
    let found = outcomes(&world, &memberships(Some('e')));
    let call = &found.calls[&id(1)];
    assert_eq!(found.commits[call.commit.unwrap()].commit_sha, commit('b'));
    assert_eq!(call.source, Some(AttributionSource::GitNotes));
    assert_eq!(call.commits.len(), 3);
}

#[test]
fn ci_says_what_it_says_of_the_commit_and_now_of_the_merge() {
    let mut world = World::default();
    world.call(1, "s1", None);
    world.call(2, "s1", None);
    world.call(3, "s3", None);
    world.tie(1, 1, 'a', 8);
    world.observe(10, 1, 1, 'a');
    world.run(20, 1, 'a', "CI", CiResult::Passed);
    let merged = outcomes(&world, &memberships(Some('e')));
    let open = outcomes(&world, &memberships(None));
    for (found, now) in [(&merged, Verdict::Failed), (&open, Verdict::Passed)] {
        let call = &found.calls[&id(1)];
        assert_eq!(
            found.verdict(Some(call), &session("s1")),
            Some(Verdict::Passed)
        );
        assert_eq!(found.verdict_now(call), Some(now));
        // Another call of the Session, which was observed at one commit.
        let other = &found.calls[&id(2)];
        assert_eq!(
            found.verdict(Some(other), &session("s1")),
            Some(Verdict::Passed)
        );
        assert_eq!(found.verdict_now(other), None);
        assert_eq!(found.verdict(None, &session("s3")), None);
    }
    world.observe(11, 1, 1, 'c');
    let several = outcomes(&world, &memberships(None));
    let other = &several.calls[&id(2)];
    assert_eq!(several.verdict(Some(other), &session("s1")), None);
}

#[test]
fn one_workflow_that_failed_makes_a_commit_red_unless_another_run_of_it_passed() {
    for (passed, now, failed) in [
        ("lint", Some(Verdict::Failed), vec!["test"]),
        ("test", None, vec![]),
    ] {
        let mut world = World::default();
        world.call(1, "s1", None);
        world.tie(1, 1, 'a', 8);
        world.observe(10, 1, 1, 'a');
        world.run(20, 1, 'a', "test", CiResult::Failed);
        world.run(21, 1, 'a', passed, CiResult::Passed);
        let found = outcomes(&world, &memberships(None));
        let call = &found.calls[&id(1)];
        assert_eq!(found.verdict(Some(call), &session("s1")), None);
        assert_eq!(found.verdict_now(call), now, "{passed}");
        let names = &found.commits[0].landed.failed_workflows;
        assert_eq!(names.iter().collect::<Vec<_>>(), failed);
    }
}

#[test]
fn runs_of_a_merge_that_contradict_each_other_leave_it_without_a_verdict() {
    let mut world = World::default();
    world.call(1, "s1", None);
    world.tie(1, 1, 'a', 8);
    world.run(20, 1, 'a', "CI", CiResult::Passed);
    for (merge, now) in [
        (&[][..], Some(Verdict::Passed)),
        (&[CiResult::Cancelled], Some(Verdict::Passed)),
        (&[CiResult::Failed], Some(Verdict::Failed)),
        (&[CiResult::Failed, CiResult::Passed], None),
    ] {
        let found = outcomes_after(&world, &memberships(Some('e')), merge);
        assert_eq!(found.verdict_now(&found.calls[&id(1)]), now, "{merge:?}");
    }
}

#[test]
fn acceptance_by_a_person_counts_before_that_by_a_rule() {
    let mut world = World::default();
    for call in 1..=3 {
        world.call(call, "s1", None);
    }
    world.decide(11, 1, true, false);
    world.decide(12, 2, true, false);
    world.decide(13, 2, true, true);
    world.decide(14, 3, false, true);
    let found = outcomes(&world, &memberships(None));
    let acceptance = |call| found.calls[&id(call)].acceptance;
    assert_eq!(acceptance(1), Some(Acceptance::Implicit));
    assert_eq!(acceptance(2), Some(Acceptance::Explicit));
    assert_eq!(acceptance(3), None);
}
