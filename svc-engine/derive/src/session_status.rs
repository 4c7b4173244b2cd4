//! What is known about Sessions with accepted work.
//!
//! A Session with an observed commit is committed. Of any other, nothing is known: a commit may
//! exist that nobody saw, so no Session is ever called abandoned.

use std::collections::{BTreeMap, HashSet};

use svc_model::id::{OrgId, SessionId};
use svc_model::reports::{
    AbandonmentReport, AbandonmentSummary, Counts, SessionOutcome, SessionSkip, SessionStatus,
};
use svc_model::time::Instant;

use super::decision::Decision;
use super::observed::ObservedCommit;
use super::policy::Policy;

/// A Session with an accepted decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedSession {
    /// The Session.
    pub session_id: SessionId,
    /// Number of accepted decisions; at least 1.
    pub accepted: u64,
    /// Number of those that people made.
    pub explicit_accepted: u64,
    /// When the last decision was made, accepted or not.
    pub last_decision_at: Instant,
    /// What is known about it.
    pub status: SessionStatus,
}

/// The Sessions of a set of decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStatuses {
    /// Those with an accepted decision, by id.
    pub accepted: Vec<AcceptedSession>,
    /// What was found for each Session, and observations whose repository cannot be determined.
    pub skipped: Counts<SessionSkip>,
}

impl SessionStatuses {
    /// Returns what is known about the Sessions of these decisions. Decisions and observations are
    /// those of the Sessions in question.
    pub fn new(decisions: &[Decision], observations: &[ObservedCommit]) -> Self {
        let mut skipped = Counts::default();
        let (mut observed, mut declined) = (HashSet::new(), HashSet::new());
        for observation in observations {
            match &observation.repository {
                Ok(_) => {
                    observed.insert(&observation.session_id);
                }
                Err(decline) => {
                    if declined.insert(observation.observation_id) {
                        skipped.add((*decline).into(), 1);
                    }
                }
            }
        }
        let mut sessions: BTreeMap<&SessionId, (u64, u64, Instant)> = BTreeMap::new();
        for decision in decisions {
            let (accepted, explicit, last) =
                sessions
                    .entry(&decision.session_id)
                    .or_insert((0, 0, decision.occurred_at));
            *accepted += u64::from(decision.accepted);
            *explicit += u64::from(decision.accepted && decision.explicit);
            *last = decision.occurred_at.max(*last);
        }
        let mut accepted = Vec::new();
        for (session_id, (count, explicit_accepted, last_decision_at)) in sessions {
            if count == 0 {
                skipped.add(SessionSkip::NoAcceptedDecision, 1);
                continue;
            }
            let (status, found) = if observed.contains(session_id) {
                (SessionStatus::Committed, SessionSkip::ReachedACommit)
            } else {
                (
                    SessionStatus::AttributionUnavailable,
                    SessionSkip::SessionCommitUnobserved,
                )
            };
            skipped.add(found, 1);
            accepted.push(AcceptedSession {
                session_id: session_id.clone(),
                accepted: count,
                explicit_accepted,
                last_decision_at,
                status,
            });
        }
        Self { accepted, skipped }
    }

    /// Returns the Sessions with this status, by id.
    pub fn with(&self, status: SessionStatus) -> impl Iterator<Item = &SessionId> {
        self.accepted
            .iter()
            .filter(move |session| session.status == status)
            .map(|session| &session.session_id)
    }

    /// Returns a summary.
    pub fn summary(&self, quarantine_revision: u64) -> AbandonmentSummary {
        AbandonmentSummary {
            abandoned_sessions: 0,
            grade_eligible_sessions: 0,
            implicit_only_sessions: 0,
            negative_completions: 0,
            explicit_accepts_unjoined: 0,
            derivation_skipped: self.skipped.clone(),
            provenance: Policy::Abandonment.provenance(quarantine_revision),
        }
    }

    /// Returns the report. `as_of` is the time of the last fact that was considered; `None` without
    /// a decision.
    pub fn report(
        self,
        org_id: &OrgId,
        as_of: Option<Instant>,
        quarantine_revision: u64,
    ) -> AbandonmentReport {
        let provenance = Policy::Abandonment.provenance(quarantine_revision);
        let accepted_session_outcomes = self
            .accepted
            .into_iter()
            .map(|session| SessionOutcome {
                org_id: org_id.clone(),
                session_id: session.session_id,
                accepted_decisions: session.accepted,
                explicit_accepted_decisions: session.explicit_accepted,
                last_decision_at: session.last_decision_at,
                as_of: as_of.unwrap_or(session.last_decision_at),
                status: session.status,
                provenance: provenance.clone(),
            })
            .collect();
        AbandonmentReport {
            org_id: org_id.clone(),
            policy_version: provenance.policy_version,
            as_of,
            abandoned_sessions: Vec::new(),
            accepted_session_outcomes,
            skipped: self.skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::Lifetime;
    use svc_engine_fact::testing::builders::{at, commit, decision, id, name};
    use svc_model::repository::RepositoryDecline;

    use super::*;

    fn decided(number: u128, session: &str, accepted: bool, explicit: bool) -> Decision {
        let mut fact = decision(number);
        fact.session_id = SessionId::new(session).unwrap();
        fact.accepted = accepted;
        fact.explicit = explicit;
        fact.occurred_at = at(i64::try_from(number).unwrap());
        Decision::from(&fact)
    }

    fn observed(session: &str, declined: Option<RepositoryDecline>) -> ObservedCommit {
        ObservedCommit {
            observation_id: id(1),
            session_id: SessionId::new(session).unwrap(),
            repository: declined.map_or(Ok(Lifetime::Named(name("own/repo"))), Err),
            commit_sha: commit('b'),
        }
    }

    #[test]
    fn a_session_is_committed_or_unknown_and_never_abandoned() {
        let decisions = [
            decided(1, "committed", true, true),
            decided(2, "committed", true, false),
            decided(3, "committed", false, true),
            decided(4, "unknown", true, false),
            decided(5, "refused", false, true),
            decided(6, "declined", true, true),
        ];
        let observations = [
            observed("committed", None),
            observed("refused", None),
            observed("declined", Some(RepositoryDecline::SourceAbsent)),
        ];
        let statuses = SessionStatuses::new(&decisions, &observations);
        let expected = [
            ("committed", 2, 1, 3, SessionStatus::Committed),
            ("declined", 1, 1, 6, SessionStatus::AttributionUnavailable),
            ("unknown", 1, 0, 4, SessionStatus::AttributionUnavailable),
        ];
        let actual: Vec<_> = statuses
            .accepted
            .iter()
            .map(|session| {
                (
                    session.session_id.as_str(),
                    session.accepted,
                    session.explicit_accepted,
                )
            })
            .collect();
        assert_eq!(
            actual,
            expected.map(|(session, all, own, _, _)| (session, all, own))
        );
        for (session, (_, _, _, last, status)) in statuses.accepted.iter().zip(expected) {
            assert_eq!(
                (session.last_decision_at, session.status),
                (at(last), status)
            );
        }
        let skips: Vec<_> = statuses.skipped.iter().collect();
        assert_eq!(
            skips,
            [
                (SessionSkip::NoAcceptedDecision, 1),
                (SessionSkip::ReachedACommit, 1),
                (SessionSkip::RepositorySourceAbsent, 1),
                (SessionSkip::SessionCommitUnobserved, 2),
            ]
        );
    }

    #[test]
    fn the_order_of_decisions_and_observations_does_not_matter() {
        let mut decisions: Vec<Decision> = (0..30)
            .map(|number| {
                let session = format!("s{}", number % 7);
                decided(number, &session, number % 3 == 0, number % 2 == 0)
            })
            .collect();
        let mut observations: Vec<ObservedCommit> = (0..5)
            .map(|number| observed(&format!("s{number}"), None))
            .collect();
        let first = SessionStatuses::new(&decisions, &observations);
        decisions.reverse();
        observations.reverse();
        observations.extend(observations.clone());
        assert_eq!(SessionStatuses::new(&decisions, &observations), first);
        let sessions =
            first.accepted.len() as u64 + first.skipped.get(SessionSkip::NoAcceptedDecision);
        assert_eq!(sessions, 7, "each Session is in one place");
    }

    #[test]
    fn without_a_decision_a_report_has_no_as_of() {
        let org = OrgId::new("acme").unwrap();
        let report = SessionStatuses::default().report(&org, None, 3);
        assert_eq!(report.as_of, None);
        assert!(report.accepted_session_outcomes.is_empty());
        let summary = SessionStatuses::default().summary(3);
        assert_eq!(summary.provenance.quarantine_revision, 3);
    }
}
