//! A repository that was renamed.

use svc_engine_fact::RepositoryRename;
use svc_model::id::identity_text;
use svc_model::ingest::SkipReason;
use svc_model::json::Object;
use svc_model::repository::RepositoryName;

use super::WebhookDelivery;
use super::identity::{IdentityDecline, identity, name};
use super::value::{object, text};

/// Turns a rename into a fact. Other changes to a repository are declined. An example is a transfer
/// to another owner, which does not change the repository's number.
pub(super) fn capture(
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
) -> Result<RepositoryRename, SkipReason> {
    let members = Some(payload);
    let action = text(members, "action").ok_or(SkipReason::MalformedDiscriminator)?;
    if *action != "renamed" {
        return Err(SkipReason::UnsupportedDiscriminator);
    }
    let renamed = object(members, "repository");
    let repository = identity(renamed, delivery.host).map_err(IdentityDecline::skip_reason)?;
    let boundary = SkipReason::InvalidRepositoryRenameBoundary;
    let new_repo = name(renamed).ok_or(boundary)?;
    let old_repo = old_name(payload, &new_repo).ok_or(boundary)?;
    if old_repo == new_repo {
        return Err(SkipReason::RepositoryNameUnchanged);
    }
    Ok(RepositoryRename {
        rename_id: delivery.fact_id(),
        repository,
        old_repo,
        new_repo,
        source_event_id: delivery.source_event_id()?,
        occurred_at: None,
        captured_at: delivery.receipt.received_at,
    })
}

/// Returns the old name. The payload omits the owner, which has not changed.
fn old_name(payload: &Object, new_repo: &RepositoryName) -> Option<RepositoryName> {
    let changes = object(Some(payload), "changes");
    let name = object(object(changes, "repository"), "name");
    let from = identity_text(text(name, "from")?).ok()?;
    let (owner, _) = new_repo.as_str().split_once('/')?;
    RepositoryName::new(&[owner, "/", from].concat())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, changed, delivery};
    use super::*;

    fn payload() -> Object {
        testing::object(
            r#"{
                "action": "renamed",
                "changes": {"repository": {"name": {"from": "Old"}}},
                "repository": {"id": 301, "name": "New", "full_name": "Own/New"}
            }"#,
        )
    }

    fn with(place: &str, value: &str) -> Result<RepositoryRename, SkipReason> {
        capture(&changed(&payload(), place, value), &delivery())
    }

    #[test]
    fn every_member_of_a_rename_is_captured() {
        let named = WebhookDelivery {
            id: Some(" k1 "),
            ..delivery()
        };
        let rename = capture(&payload(), &named).unwrap();
        assert_eq!(rename.rename_id, delivery().fact_id());
        assert_eq!(rename.repository.repository_id.as_str(), "301");
        assert_eq!(rename.repository.repository_host.as_str(), "git.example");
        assert_eq!(rename.old_repo.as_str(), "own/old");
        assert_eq!(rename.new_repo.as_str(), "own/new");
        assert_eq!(rename.source_event_id.as_deref(), Some("k1"));
        assert_eq!(rename.occurred_at, None);
        assert_eq!(rename.captured_at, delivery().receipt.received_at);
        let unnamed = capture(&payload(), &delivery()).unwrap();
        assert_eq!(unnamed.source_event_id, None);
    }

    #[test]
    fn only_a_rename_is_captured() {
        for malformed in ["-", "null", "5", "[\"renamed\"]"] {
            let reason = Err(SkipReason::MalformedDiscriminator);
            assert_eq!(with("action", malformed), reason, "{malformed}");
        }
        for other in [
            "\"created\"",
            "\"transferred\"",
            "\"Renamed\"",
            "\"\"",
            "\"\\ud800\"",
        ] {
            let reason = Err(SkipReason::UnsupportedDiscriminator);
            assert_eq!(with("action", other), reason, "{other}");
        }
    }

    #[test]
    fn a_rename_needs_a_repository_identity() {
        for (place, absent) in [
            ("repository", "-"),
            ("repository", "null"),
            ("repository", "[]"),
            ("repository.id", "-"),
            ("repository.id", "null"),
        ] {
            let reason = Err(SkipReason::RepositoryIdentityAbsent);
            assert_eq!(with(place, absent), reason, "{place} {absent}");
        }
        for wrong in ["0", "\"x1\"", "true", "1.5"] {
            let reason = Err(SkipReason::RepositoryIdentityInvalid);
            assert_eq!(with("repository.id", wrong), reason, "{wrong}");
        }
    }

    #[test]
    fn a_rename_needs_the_old_and_the_new_name() {
        let long = format!("\"{}\"", "x".repeat(1_025));
        for (place, wrong) in [
            ("repository.full_name", "-"),
            ("repository.full_name", "\"nope\""),
            ("repository.full_name", "\"a/b/c\""),
            ("repository.full_name", "5"),
            ("changes", "-"),
            ("changes", "[]"),
            ("changes.repository", "null"),
            ("changes.repository.name", "\"Old\""),
            ("changes.repository.name.from", "-"),
            ("changes.repository.name.from", "5"),
            ("changes.repository.name.from", "\"\""),
            ("changes.repository.name.from", "\" \""),
            ("changes.repository.name.from", "\"a/b\""),
            ("changes.repository.name.from", "\"a\\u0000\""),
            ("changes.repository.name.from", "\"\\ud800\""),
            ("changes.repository.name.from", &long),
        ] {
            let reason = Err(SkipReason::InvalidRepositoryRenameBoundary);
            assert_eq!(with(place, wrong), reason, "{place} {wrong}");
        }
        for same in ["\"New\"", "\"NEW\"", "\" new \""] {
            let reason = Err(SkipReason::RepositoryNameUnchanged);
            assert_eq!(with("changes.repository.name.from", same), reason, "{same}");
        }
    }

    #[test]
    fn a_delivery_with_a_too_long_id_is_declined() {
        let long = "x".repeat(1_025);
        let named = WebhookDelivery {
            id: Some(&long),
            ..delivery()
        };
        let reason = Err(SkipReason::InvalidDeliveryId);
        assert_eq!(capture(&payload(), &named), reason);
    }
}
