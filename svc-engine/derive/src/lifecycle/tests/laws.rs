//! What holds for every report, on random worlds.

use super::*;
use crate::cohort::world::assert_only_lost;

#[test]
fn a_report_does_not_depend_on_arrival_order_or_redeliveries() {
    for seed in 1..60 {
        let world = World::random(seed);
        let (first, second) = (
            world.lifecycle_report(),
            world.shuffled().lifecycle_report(),
        );
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn facts_outside_the_cohort_change_nothing() {
    for seed in 1..60 {
        let world = World::random(seed);
        let (first, second) = (
            world.lifecycle_report(),
            world.with_others().lifecycle_report(),
        );
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn every_population_adds_up() {
    for seed in 1..60 {
        let world = World::random(seed);
        let report = world.lifecycle_report();
        let work = &report.accepted_work;
        let skip = |skip| work.skips.get(skip);
        assert_eq!(
            work.attributed.count + skip(AcceptedWorkSkip::AttributionUnavailable),
            work.attributed.denominator
        );
        assert_eq!(
            work.attributed.denominator + skip(AcceptedWorkSkip::ContentErased),
            work.accepted_calls
        );
        assert_eq!(
            work.pull_request_membership.count
                + skip(AcceptedWorkSkip::PullRequestMembershipUnavailable),
            work.attributed.count
        );
        assert_eq!(
            work.ci_passed
                + work.ci_failed
                + skip(AcceptedWorkSkip::CiMissing)
                + skip(AcceptedWorkSkip::CiNonVerdict)
                + skip(AcceptedWorkSkip::AmbiguousCiVerdict),
            work.pull_request_membership.count
        );
        let edits = &report.edit_retention;
        assert_eq!(
            edits.unmodified + edits.partially_modified + edits.deleted,
            edits.observations
        );
        let merges = &report.merge_durability;
        assert_eq!(
            merges.unique_pull_request_membership + merges.membership.total(),
            merges.attributed_file_candidates
        );
        let sessions = &report.session_attrition;
        assert_eq!(
            sessions.committed + sessions.attribution_unavailable,
            sessions.eligible_sessions
        );
        for (dimension, skips) in [
            (Dimension::Model, &["missing_model"][..]),
            (Dimension::AgentHarness, &["multiple_agent_harnesses"]),
            (
                Dimension::Repository,
                &["missing_repository", "multiple_repositories"],
            ),
            (
                Dimension::Workflow,
                &["missing_workflow", "multiple_workflows"],
            ),
        ] {
            let placed: u64 = report
                .strata
                .iter()
                .filter(|stratum| stratum.dimension == dimension)
                .map(|stratum| stratum.accepted_calls)
                .sum();
            let skipped: u64 = report
                .stratum_skips
                .iter()
                .filter(|(skip, _)| skips.contains(&skip.as_str()))
                .map(|(_, count)| count)
                .sum();
            assert_eq!(placed + skipped, work.accepted_calls, "{dimension}");
        }
    }
}

/// Every rate of a report, as numerator and denominator.
fn rates(report: &LifecycleReport) -> Vec<(u64, u64)> {
    let work = &report.accepted_work;
    let stages = [
        work.attributed,
        work.pull_request_membership,
        work.ci_linked,
        work.ci_verdict,
    ];
    let stages = stages.iter().flat_map(|stage| {
        [
            (stage.count, stage.denominator),
            (stage.count, stage.initial_denominator),
        ]
    });
    let merges = &report.merge_durability;
    let members = merges.unique_pull_request_membership;
    let edits = &report.edit_retention;
    let sessions = &report.session_attrition;
    let rework = report
        .rework
        .iter()
        .map(|component| (component.count, component.denominator));
    let others = [
        (members, merges.attributed_file_candidates),
        (merges.scored_rows, members),
        (edits.derived_fates, edits.eligible),
        (sessions.committed, sessions.eligible_sessions),
    ];
    stages.chain(rework).chain(others).collect()
}

#[test]
fn an_erased_call_leaves_its_rates_and_never_becomes_a_failure() {
    for seed in 1..40 {
        let world = World::random(seed);
        let before = world.lifecycle_report();
        for call in world.calls.iter().filter(|call| !call.is_erased) {
            let mut erased = world.clone();
            erased.erase(call.inference_call_id);
            let after = erased.lifecycle_report();
            assert_only_lost(&rates(&before), &rates(&after), seed);
            // Counts that need no text stay.
            let facts = |report: &LifecycleReport| {
                let accepted = report.accepted_work.accepted_calls;
                let sessions = report.session_attrition.clone();
                (accepted, sessions, report.edit_retention.clone())
            };
            assert_eq!(facts(&before), facts(&after), "seed {seed}");
        }
    }
}

#[test]
fn missing_evidence_never_adds_a_negative() {
    let negatives = |world: &World| {
        let report = world.lifecycle_report();
        let rework: Vec<u64> = report
            .rework
            .iter()
            .map(|component| component.count)
            .collect();
        [
            report.edit_retention.deleted,
            report.session_attrition.abandoned,
            rework[0],
            rework[2],
            rework[3],
            rework[4],
        ]
    };
    for seed in 1..40 {
        let world = World::random(seed);
        let all = negatives(&world);
        let no_more = |without: &World| {
            let fewer = negatives(without);
            assert!(
                fewer.iter().zip(all).all(|(fewer, all)| *fewer <= all),
                "seed {seed}"
            );
        };
        for place in 0..world.decisions.len() {
            let mut without = world.clone();
            without.decisions.remove(place);
            no_more(&without);
        }
        for place in 0..world.edits.len() {
            let mut without = world.clone();
            without.edits.remove(place);
            no_more(&without);
        }
        for place in 0..world.edits.len() {
            let mut without = world.clone();
            without.edits.remove(place);
            without.erased_edits = 1;
            no_more(&without);
            let panel = without.lifecycle_report().edit_retention;
            let unique = world.lifecycle_report().edit_retention.observations;
            assert!(
                panel.observations >= unique,
                "seed {seed}: the observation is still counted"
            );
            let erased = FateSkip::ContentErased;
            assert_eq!(
                (panel.skips.get(erased), panel.coverage.missing.get(erased)),
                (1, 1)
            );
            let covered = panel.coverage.observed + panel.coverage.missing.total();
            assert_eq!(covered, panel.observations, "each is covered or missing");
            let fates = panel.unmodified + panel.partially_modified + panel.deleted;
            assert_eq!(
                (fates, panel.derived_fates + 1),
                (panel.derived_fates, panel.observations)
            );
            let whole = world.lifecycle_report().edit_retention.fate_rate;
            assert!(panel.fate_rate.is_none() || panel.fate_rate == whole);
        }
        for place in 0..world.observations.len() {
            let mut without = world.clone();
            without.observations.remove(place);
            no_more(&without);
        }
        let mut without = world.clone();
        without.attempts.clear();
        let report = without.lifecycle_report();
        assert_eq!(
            (report.accepted_work.ci_failed, report.rework[5].count),
            (0, 0)
        );
        let mut without = world.clone();
        without.observations.clear();
        assert_eq!(without.lifecycle_report().accepted_work.ci_failed, 0);
    }
}
