//! A push to a branch.

use svc_engine_fact::Push;
use svc_model::id::identity_text;
use svc_model::ingest::SkipReason;
use svc_model::json::{Json, Object, Text};
use svc_model::repository::RepositoryProvider;

use super::clone_url::clone_url;
use super::identity::{identity, name_or_empty};
use super::value::{object, sha, text};
use super::{DeliveryNotes, WebhookDelivery};

/// The prefix of a branch's ref.
const BRANCHES: &[u8] = b"refs/heads/";

/// Turns a push to a branch into a fact. Pushes of tags and notes, and deletions, are declined.
pub(super) fn capture(
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<Push, SkipReason> {
    let members = Some(payload);
    let flag = |name| payload.get(name).and_then(Json::as_bool) == Some(true);
    let branch = text(members, "ref")
        .filter(|branch| branch.as_bytes().starts_with(BRANCHES))
        .ok_or(SkipReason::NotABranch)?;
    let branch = identity_text(branch).map_err(|_| SkipReason::InvalidRef)?;
    if flag("deleted") || text(members, "after").is_some_and(is_zeros) {
        return Err(SkipReason::BranchDeleted);
    }
    let after_sha = sha(members, "after").ok_or(SkipReason::InvalidAfterSha)?;
    let before_sha = sha(members, "before").ok_or(SkipReason::InvalidBeforeSha)?;
    let repository = object(members, "repository");
    let repo = name_or_empty(repository)?;
    let identity = identity(repository, delivery.host)
        .map_err(|decline| notes.declined_identities.push(decline));
    notes.unnamed_repository = repo.is_empty();
    let mut clone_url = clone_url(repository);
    if let Some(mut redactor) = delivery.receipt.redactor() {
        redactor.string(&mut clone_url);
        notes.redactions = redactor.counts();
    }
    Ok(Push {
        push_id: delivery.fact_id(),
        provider: RepositoryProvider::Github,
        repo,
        repository: identity.ok(),
        clone_url,
        r#ref: branch.to_owned(),
        before_sha,
        after_sha,
        forced: flag("forced"),
        captured_at: delivery.receipt.received_at,
    })
}

/// Returns whether a commit id of any length is all zeros, which means no commit.
fn is_zeros(sha: &Text) -> bool {
    let sha = sha.trimmed();
    !sha.is_empty() && sha.as_bytes().iter().all(|byte| *byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::super::IdentityDecline;
    use super::super::testing::{self, changed, delivery};
    use super::*;
    use crate::Redaction;
    use crate::redaction::MARKER;

    const BEFORE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const AFTER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn payload() -> Object {
        testing::object(&format!(
            r#"{{
                "ref": "refs/heads/main", "before": "{BEFORE}", "after": "{AFTER}",
                "created": false, "deleted": false, "forced": false,
                "repository": {{
                    "id": 11, "full_name": "Acme/Widget",
                    "clone_url": "https://u:p@github.com/Acme/Widget.git"
                }},
                "commits": [{{"id": "{AFTER}"}}], "sender": {{"login": "x"}}
            }}"#
        ))
    }

    fn captured(payload: &Object) -> (Result<Push, SkipReason>, DeliveryNotes) {
        let mut notes = DeliveryNotes::default();
        (capture(payload, &delivery(), &mut notes), notes)
    }

    /// Captures the payload after replacing the value at a place; `-` removes it.
    fn with(place: &str, value: &str) -> Result<Push, SkipReason> {
        captured(&changed(&payload(), place, value)).0
    }

    #[test]
    fn every_member_of_a_push_is_captured() {
        let (push, notes) = captured(&payload());
        let push = push.unwrap();
        assert_eq!(push.push_id, delivery().fact_id());
        assert_eq!(push.repo, "acme/widget");
        let identity = push.repository.unwrap();
        assert_eq!(identity.repository_host.as_str(), "git.example");
        assert_eq!(identity.repository_id.as_str(), "11");
        assert_eq!(push.clone_url, "https://github.com/Acme/Widget.git");
        assert_eq!(push.r#ref, "refs/heads/main");
        assert_eq!(push.before_sha.as_str(), BEFORE);
        assert_eq!(push.after_sha.as_str(), AFTER);
        assert!(!push.forced);
        assert_eq!(push.captured_at, delivery().receipt.received_at);
        assert_eq!(notes, DeliveryNotes::default());
    }

    #[test]
    fn a_credential_in_the_query_of_the_clone_url_is_redacted() {
        let url = "https://github.com/a/b.git?private_token=";
        for secret in ["Zx8-qP2mN4vB6kL0sD", "configured-secret"] {
            let payload = changed(
                &payload(),
                "repository.clone_url",
                &format!("\"{url}{secret}\""),
            );
            let (push, notes) = captured(&payload);
            assert_eq!(push.unwrap().clone_url, format!("{url}{MARKER}"));
            assert!(!notes.redactions.is_empty());
            let mut kept = delivery();
            kept.receipt.redaction = Redaction::Off;
            let push = capture(&payload, &kept, &mut DeliveryNotes::default()).unwrap();
            assert_eq!(push.clone_url, format!("{url}{secret}"));
        }
    }

    #[test]
    fn only_branches_are_captured() {
        for other in [
            "-",
            "null",
            "5",
            "\"\"",
            "\"main\"",
            "\"refs/tags/v1\"",
            "\"refs/notes/x\"",
            "\" refs/heads/main\"",
            "\"refs/headsmain\"",
            "\"Refs/heads/main\"",
        ] {
            assert_eq!(with("ref", other), Err(SkipReason::NotABranch), "{other}");
        }
        let long = format!("\"refs/heads/{}\"", "x".repeat(1_014));
        for wrong in ["\"refs/heads/a\\u0000\"", "\"refs/heads/\\ud800\"", &long] {
            assert_eq!(with("ref", wrong), Err(SkipReason::InvalidRef), "{wrong}");
        }
        let longest = format!("refs/heads/{}", "x".repeat(1_013));
        let kept = with("ref", &format!("\"{longest} \"")).unwrap();
        assert_eq!(kept.r#ref, longest, "trimmed");
        let kept = with("ref", "\"refs/heads/refs/heads/\u{e9}\"").unwrap();
        assert_eq!(kept.r#ref, "refs/heads/refs/heads/\u{e9}");
    }

    #[test]
    fn a_branch_deletion_is_declined() {
        assert_eq!(with("deleted", "true"), Err(SkipReason::BranchDeleted));
        for other in ["-", "null", "\"true\"", "1"] {
            assert!(with("deleted", other).is_ok(), "{other}");
        }
        for length in [1, 40, 41, 64] {
            let zeros = format!("\" {} \"", "0".repeat(length));
            assert_eq!(with("after", &zeros), Err(SkipReason::BranchDeleted));
        }
    }

    #[test]
    fn a_push_needs_two_full_commit_ids() {
        let number = "1".repeat(40);
        let short = format!("\"{}\"", "0".repeat(39));
        let letters = format!("\"{}\"", "g".repeat(40));
        for wrong in [
            "-",
            "null",
            "\"\"",
            "\" \"",
            "\"abc1234\"",
            &number,
            &letters,
            "\"\\ud800\"",
            "[]",
        ] {
            let reason = Err(SkipReason::InvalidAfterSha);
            assert_eq!(with("after", wrong), reason, "{wrong}");
            let reason = Err(SkipReason::InvalidBeforeSha);
            assert_eq!(with("before", wrong), reason, "{wrong}");
        }
        assert_eq!(with("before", &short), Err(SkipReason::InvalidBeforeSha));
        let zeros = "0".repeat(40);
        let made = with("before", &format!("\"{zeros}\"")).unwrap();
        assert_eq!(
            made.before_sha.as_str(),
            zeros,
            "the push created the branch"
        );
        let long = "AB".repeat(32);
        let kept = with("after", &format!("\" {long}\"")).unwrap();
        assert_eq!(kept.after_sha.as_str(), long.to_lowercase());
    }

    #[test]
    fn a_push_is_forced_only_if_the_member_is_true() {
        assert!(with("forced", "true").unwrap().forced);
        for other in ["-", "null", "\"true\"", "1", "false"] {
            assert!(!with("forced", other).unwrap().forced, "{other}");
        }
    }

    #[test]
    fn a_push_without_a_repository_identity_is_captured() {
        for (value, decline) in [
            ("-", IdentityDecline::Absent),
            ("null", IdentityDecline::Absent),
            ("5", IdentityDecline::Absent),
            (
                "{\"full_name\":7,\"clone_url\":null}",
                IdentityDecline::Absent,
            ),
            (
                "{\"id\":0,\"full_name\":\"nope\"}",
                IdentityDecline::Invalid,
            ),
        ] {
            let (push, notes) = captured(&changed(&payload(), "repository", value));
            let push = push.unwrap();
            assert_eq!((push.repo.as_str(), push.clone_url.as_str()), ("", ""));
            assert_eq!(push.repository, None);
            assert_eq!(notes.declined_identities, [decline], "{value}");
            assert!(notes.unnamed_repository);
        }
        let long = format!("\"a/{}\"", "b".repeat(1_023));
        assert_eq!(
            with("repository.full_name", &long),
            Err(SkipReason::InvalidRepositoryName)
        );
    }

    #[test]
    fn an_empty_payload_is_declined() {
        assert_eq!(captured(&Object::new()).0, Err(SkipReason::NotABranch));
    }
}
