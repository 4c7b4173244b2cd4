//! Sessions with accepted work, by status.

use svc_model::reports::{Counts, Coverage, Population, SessionAttrition, SessionStatus};

use super::examples;
use crate::session_status::SessionStatuses;

/// Derives the panel.
pub(super) fn derive(statuses: &SessionStatuses) -> SessionAttrition {
    let count = |status: SessionStatus| statuses.with(status).count() as u64;
    let example = |population, status| examples::of(population, statuses.with(status));
    let eligible = statuses.accepted.len() as u64;
    let unknown = count(SessionStatus::AttributionUnavailable);
    SessionAttrition {
        eligible_sessions: eligible,
        committed: count(SessionStatus::Committed),
        abandoned: count(SessionStatus::Abandoned),
        in_flight: count(SessionStatus::InFlight),
        attribution_unavailable: unknown,
        skips: statuses.skipped.clone(),
        coverage: Coverage {
            observed: eligible - unknown,
            missing: Counts::from_iter([(SessionStatus::AttributionUnavailable, unknown)]),
            unsupported_by_integration: Counts::default(),
            ambiguous: Counts::default(),
        },
        examples: vec![
            example(Population::Committed, SessionStatus::Committed),
            example(Population::Abandoned, SessionStatus::Abandoned),
            example(Population::InFlight, SessionStatus::InFlight),
            example(
                Population::AttributionUnavailable,
                SessionStatus::AttributionUnavailable,
            ),
        ],
    }
}
