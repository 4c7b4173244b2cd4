//! The shares of commits tied by notes, in the form of reports.

use svc_model::id::OrgId;
use svc_model::reports::{
    AttributionAlert, AttributionAlertKind, AttributionShareReport, AttributionShareRow,
    AttributionSkip, Counts,
};

use super::attribution_share::{Alert, ShareRow};
use super::place::RepositoryLabel;
use super::policy::Policy;
use super::repository::Repositories;

/// Renders rows of shares and their alerts for a reply.
#[derive(Clone, Copy, Debug)]
pub struct Renderer<'s> {
    /// The organization.
    pub org_id: &'s OrgId,
    /// The high-water mark of the quarantine log.
    pub quarantine_revision: u64,
    /// The names of the repositories.
    pub repositories: &'s Repositories,
}

/// The parts of an organization's report.
#[derive(Clone, Debug)]
pub struct ShareParts<'r> {
    /// Each repository's current week.
    pub current: &'r [ShareRow],
    /// The weeks before it.
    pub baseline: &'r [ShareRow],
    /// The alerts about them.
    pub alerts: &'r [Alert],
    /// How many commits both windows need before a decline is reported.
    pub cases_min: u64,
    /// What could not be looked at, by reason.
    pub attribution_skips: Counts<AttributionSkip>,
}

impl ShareParts<'_> {
    /// Returns the report of an organization without pushes.
    pub fn of_nothing(cases_min: u64) -> Self {
        Self {
            current: &[],
            baseline: &[],
            alerts: &[],
            cases_min,
            attribution_skips: Counts::default(),
        }
    }
}

impl Renderer<'_> {
    /// Returns the row of a repository.
    pub fn row(&self, row: &ShareRow) -> AttributionShareRow {
        let place = RepositoryLabel::of(self.repositories, &row.repository);
        let share = row.share();
        AttributionShareRow {
            org_id: self.org_id.clone(),
            repo: place.repo,
            window_start: row.window.start,
            window_end: row.window.end,
            agent_plausible_commits: share.denominator,
            git_notes_attributed: share.numerator,
            jaccard_attributed: row.jaccard,
            unattributed: row.unattributed,
            git_notes_share: share.rate_or_zero(),
            git_notes_share_ci: share.wilson(),
            provenance: Policy::AttributionShare.provenance(self.quarantine_revision),
            repository_identity: place.identity,
        }
    }

    /// Returns an alert.
    pub fn alert(&self, alert: &Alert) -> AttributionAlert {
        let current = self.row(&alert.current);
        let reason = match alert.kind {
            AttributionAlertKind::ZeroShare => {
                "no commit that an agent could have made is tied to a call by its note"
            }
            AttributionAlertKind::SustainedDecline => {
                "the share of notes fell below that of the window before, beyond chance"
            }
        };
        AttributionAlert {
            org_id: current.org_id.clone(),
            repo: current.repo.clone(),
            repository_identity: current.repository_identity.clone(),
            kind: alert.kind.into(),
            current,
            baseline: alert.baseline.as_ref().map(|row| self.row(row)),
            reason: reason.to_owned(),
        }
    }

    /// Returns the report of an organization.
    pub fn report(&self, report: ShareParts<'_>) -> AttributionShareReport {
        AttributionShareReport {
            min_cases_for_decline_verdict: report.cases_min,
            current: report.current.iter().map(|row| self.row(row)).collect(),
            baseline: report.baseline.iter().map(|row| self.row(row)).collect(),
            alerts: report
                .alerts
                .iter()
                .map(|alert| self.alert(alert))
                .collect(),
            attribution_skips: report.attribution_skips,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use svc_engine_fact::testing::builders::{at, name, repository};
    use svc_engine_fact::{Lifetime, RepositoryClaim};

    use super::*;
    use crate::attribution_share::{Window, alerts};
    use crate::cohort::world::assert_same;

    fn share(git_notes: u64, jaccard: u64, unattributed: u64) -> ShareRow {
        ShareRow {
            repository: Lifetime::Identified(repository(101)),
            window: Window {
                start: at(0),
                end: at(3 * 86_400),
            },
            git_notes,
            jaccard,
            unattributed,
        }
    }

    #[test]
    fn a_share_and_its_alert_are_shown_with_their_counts() {
        let org_id = OrgId::new("acme").unwrap();
        let repositories = Repositories::new(vec![RepositoryClaim {
            name: name("o/full"),
            repository: repository(101),
            borne_at: None,
        }])
        .unwrap();
        let renderer = Renderer {
            org_id: &org_id,
            quarantine_revision: 2,
            repositories: &repositories,
        };
        let identity = json!({
            "provider": "github", "host": "github.com", "repository_id": "101",
        });
        let row = |counts: [u64; 4], share: f64, interval: [f64; 2]| {
            json!({
                "org_id": "acme",
                "repo": "o/full",
                "window_start": "2026-11-01T00:00:00Z",
                "window_end": "2026-11-04T00:00:00Z",
                "agent_plausible_commits": counts[0],
                "git_notes_attributed": counts[1],
                "jaccard_attributed": counts[2],
                "unattributed": counts[3],
                "git_notes_share": share,
                "git_notes_share_ci": interval,
                "provenance": {
                    "policy_version": "2", "quarantine_revision": 2, "policy_digest": null,
                },
                "repository_identity": identity,
            })
        };
        let current = [share(2, 0, 8)];
        let baseline = [share(9, 1, 0)];
        let report = |attribution_skips| {
            let report = renderer.report(ShareParts {
                current: &current,
                baseline: &baseline,
                alerts: &alerts(&current, &baseline, 4),
                cases_min: 4,
                attribution_skips,
            });
            serde_json::to_value(report).unwrap()
        };
        let skips = Counts::from_iter([(AttributionSkip::MirrorAbsent, 2)]);
        assert_eq!(
            report(skips)["attribution_skips"],
            json!({ "mirror_absent": 2 })
        );
        let now = row(
            [10, 2, 0, 8],
            0.2,
            [0.056_682_151_454_375, 0.509_837_528_463_358],
        );
        let before = row(
            [10, 9, 1, 0],
            0.9,
            [0.595_849_973_204_762, 0.982_123_786_904_927],
        );
        assert_same(
            &report(Counts::default()),
            &json!({
                "min_cases_for_decline_verdict": 4,
                "current": [now],
                "baseline": [before],
                "alerts": [{
                    "org_id": "acme",
                    "repo": "o/full",
                    "repository_identity": identity,
                    "kind": "sustained_decline",
                    "current": now,
                    "baseline": before,
                    "reason": "$text",
                }],
            }),
        );
        let zero = renderer.alert(&alerts(&[share(0, 1, 0)], &[], 97)[0]);
        assert_eq!(zero.kind, AttributionAlertKind::ZeroShare);
        assert_eq!(zero.baseline, None);
    }
}
