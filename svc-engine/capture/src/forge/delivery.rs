use svc_engine_fact::{CiOutcome, PullRequestMerge, PullRequestRevision, Push, RepositoryRename};
use svc_model::id::{FactId, IdentityError, identity};
use svc_model::ingest::{ForgeEvent, SkipReason};
use svc_model::json::Object;
use svc_model::repository::RepositoryHost;

use super::{IdentityDecline, ci, pull_request, push, rename};
use crate::Receipt;
use crate::redaction::RedactionCounts;

/// What capture needs to know about a webhook delivery besides its payload.
#[derive(Clone, Copy, Debug)]
pub struct WebhookDelivery<'a> {
    /// The receipt.
    pub receipt: Receipt<'a>,
    /// The host of the forge, which comes from the configuration, not from a payload.
    pub host: &'a RepositoryHost,
    /// The forge's id of the delivery, as received.
    pub id: Option<&'a str>,
}

impl WebhookDelivery<'_> {
    pub(super) fn fact_id(&self) -> FactId {
        self.receipt.fresh_id()
    }

    /// Returns the id of the delivery in its stored form.
    pub(super) fn source_event_id(&self) -> Result<Option<String>, SkipReason> {
        match self.id.map(identity) {
            None | Some(Err(IdentityError::Blank)) => Ok(None),
            Some(Ok(id)) => Ok(Some(id.to_owned())),
            Some(Err(IdentityError::NotScalar | IdentityError::TooLong)) => {
                Err(SkipReason::InvalidDeliveryId)
            }
        }
    }
}

/// The fact that a delivery contains.
#[derive(Clone, Debug, PartialEq)]
pub enum ForgeFact {
    /// A branch was pushed.
    Push(Box<Push>),
    /// A run of the forge's own CI completed.
    CiOutcome(Box<CiOutcome>),
    /// A pull request was opened or updated.
    Revision(Box<PullRequestRevision>),
    /// A pull request was merged.
    Merge(Box<PullRequestMerge>),
    /// A repository was renamed.
    Rename(Box<RepositoryRename>),
}

/// What to log about a delivery, captured or not, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryNotes {
    /// Why repositories in the fact have no identity.
    pub declined_identities: Vec<IdentityDecline>,
    /// Whether a push names no repository. Then nothing can be fetched for it.
    pub unnamed_repository: bool,
    /// Redacted credentials.
    pub redactions: RedactionCounts,
}

/// Turns a delivery into a fact.
///
/// # Errors
///
/// Returns the reason for which the delivery is declined.
pub fn capture(
    event: ForgeEvent,
    payload: Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<ForgeFact, SkipReason> {
    match event {
        ForgeEvent::Push => {
            push::capture(&payload, delivery, notes).map(|push| ForgeFact::Push(Box::new(push)))
        }
        ForgeEvent::WorkflowRun => ci::capture(payload, delivery, notes)
            .map(|outcome| ForgeFact::CiOutcome(Box::new(outcome))),
        ForgeEvent::PullRequest => pull_request::capture(&payload, delivery, notes),
        ForgeEvent::Repository => {
            rename::capture(&payload, delivery).map(|rename| ForgeFact::Rename(Box::new(rename)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::delivery;
    use super::*;

    #[test]
    fn the_id_of_a_delivery_is_an_identity_or_absent() {
        fn id(id: Option<&str>) -> Result<Option<String>, SkipReason> {
            WebhookDelivery { id, ..delivery() }.source_event_id()
        }
        assert_eq!(id(None), Ok(None));
        assert_eq!(id(Some("")), Ok(None));
        assert_eq!(id(Some(" \u{3000}\t")), Ok(None));
        assert_eq!(id(Some(" d-1 ")), Ok(Some("d-1".to_owned())));
        let longest = "x".repeat(1_024);
        assert_eq!(id(Some(&longest)), Ok(Some(longest.clone())));
        for wrong in ["x".repeat(1_025), "a\0b".to_owned()] {
            assert_eq!(id(Some(&wrong)), Err(SkipReason::InvalidDeliveryId));
        }
    }
}
