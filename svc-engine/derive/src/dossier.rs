//! The order of a Session's events, and what was not captured.

use std::cmp::Ordering;

use svc_model::facts::{FactCount, SessionFactTables};
use svc_model::query::{EventCount, EventCoverage, Gap, TimelineEvent};

/// How many observed deliveries a Session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliveries {
    /// Commits.
    pub commits: usize,
    /// Pushes that end at one of these commits.
    pub pushes: usize,
    /// CI outcomes of these commits.
    pub ci_outcomes: usize,
}

/// Returns the counts of events, with quarantined ones counted separately.
pub fn coverage(tables: SessionFactTables) -> EventCoverage {
    let count = |count: FactCount| EventCount {
        total: count.total,
        visible: count.visible,
        quarantined: count.total - count.visible,
    };
    EventCoverage {
        inference_calls: count(tables.inference_calls),
        developer_decisions: count(tables.developer_decisions),
        edit_observations: count(tables.edit_observations),
        rejected_edits: count(tables.rejected_edits),
        retry_linkages: count(tables.retry_linkages),
        usage_receipts: (!tables.usage_receipts.is_zero()).then(|| count(tables.usage_receipts)),
    }
}

/// Returns what was not captured, in the order of [`Gap::ALL`]. Without a commit, its pushes and CI
/// outcomes are not missing.
pub fn gaps(coverage: &EventCoverage, deliveries: Deliveries) -> Vec<Gap> {
    let observed = |gap: &Gap| match gap {
        Gap::NoInferenceCalls => coverage.inference_calls.visible > 0,
        Gap::NoDeveloperDecisions => coverage.developer_decisions.visible > 0,
        Gap::NoEditObservations => coverage.edit_observations.visible > 0,
        Gap::NoRejectedEdits => coverage.rejected_edits.visible > 0,
        Gap::NoRetryLinkages => coverage.retry_linkages.visible > 0,
        Gap::NoCommit => deliveries.commits > 0,
        Gap::NoPushes => deliveries.commits == 0 || deliveries.pushes > 0,
        Gap::NoCiOutcomes => deliveries.commits == 0 || deliveries.ci_outcomes > 0,
    };
    Gap::ALL
        .iter()
        .copied()
        .filter(|gap| !observed(gap))
        .collect()
}

/// Orders events by time, then by kind as text, then by id.
pub fn order(first: &TimelineEvent, second: &TimelineEvent) -> Ordering {
    let key = |event: &TimelineEvent| (event.occurred_at(), event.event_type(), event.fact_id());
    key(first).cmp(&key(second))
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, id};
    use svc_model::facts::AgentHarness;

    use super::*;

    const NONE: Deliveries = Deliveries {
        commits: 0,
        pushes: 0,
        ci_outcomes: 0,
    };

    #[test]
    fn a_gap_is_a_kind_without_a_visible_event() {
        let tables = SessionFactTables {
            inference_calls: FactCount {
                total: 3,
                visible: 1,
            },
            edit_observations: FactCount {
                total: 2,
                visible: 0,
            },
            ..SessionFactTables::default()
        };
        let coverage = coverage(tables);
        assert_eq!(coverage.inference_calls.quarantined, 2);
        assert_eq!(coverage.edit_observations.quarantined, 2);
        assert_eq!(
            gaps(&coverage, NONE),
            [
                Gap::NoDeveloperDecisions,
                Gap::NoEditObservations,
                Gap::NoRejectedEdits,
                Gap::NoRetryLinkages,
                Gap::NoCommit,
            ]
        );
    }

    #[test]
    fn missing_deliveries_are_a_gap_only_if_there_is_a_commit() {
        let visible = EventCount {
            total: 1,
            visible: 1,
            quarantined: 0,
        };
        let coverage = EventCoverage {
            inference_calls: visible,
            developer_decisions: visible,
            edit_observations: visible,
            rejected_edits: visible,
            retry_linkages: visible,
            usage_receipts: None,
        };
        let found = |commits, pushes, ci_outcomes| {
            let deliveries = Deliveries {
                commits,
                pushes,
                ci_outcomes,
            };
            gaps(&coverage, deliveries)
        };
        assert_eq!(found(0, 0, 0), [Gap::NoCommit]);
        assert_eq!(found(1, 0, 0), [Gap::NoPushes, Gap::NoCiOutcomes]);
        assert_eq!(found(1, 0, 1), [Gap::NoPushes]);
        assert_eq!(found(1, 1, 0), [Gap::NoCiOutcomes]);
        assert_eq!(found(1, 1, 1), []);
    }

    #[test]
    fn events_of_one_moment_are_ordered_by_kind_then_id() {
        let edit = |number, seconds| TimelineEvent::RejectedEdit {
            fact_id: id(number),
            occurred_at: at(seconds),
            agent_harness: AgentHarness::Pi.into(),
            has_file_path: false,
            file_path: None,
            call_id: "t".to_owned(),
        };
        let observation = |number, seconds| TimelineEvent::EditObservation {
            fact_id: id(number),
            occurred_at: at(seconds),
            agent_harness: AgentHarness::Pi.into(),
            has_file_path: false,
            file_path: None,
            call_id: "t".to_owned(),
            external_lines_added_present: false,
            external_lines_removed_present: false,
            external_lines_added: None,
            external_lines_removed: None,
        };
        let ordered = [
            edit(9, 1),
            observation(8, 2),
            edit(2, 2),
            edit(3, 2),
            observation(1, 3),
        ];
        let mut shuffled = ordered.clone();
        shuffled.reverse();
        shuffled.sort_by(order);
        assert_eq!(shuffled, ordered);
    }
}
