//! A pull request that was opened, updated or merged.

use svc_engine_fact::{PullRequest, PullRequestMerge, PullRequestRevision};
use svc_model::ingest::SkipReason;
use svc_model::json::{Json, Object, Text};
use svc_model::repository::{Branch, CommitSha, RepositoryIdentity, RepositoryProvider};
use svc_model::time::Instant;

use super::identity::{identity, name};
use super::value::{count, given, object, sha, text};
use super::{DeliveryNotes, ForgeFact, WebhookDelivery};

/// What happened to a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Opened,
    /// A push to its branch. GitHub names both commits.
    Synchronize,
    /// A push to its branch. Gitea and Forgejo do not name the commits.
    Synchronized,
    Closed,
}

impl Action {
    fn of(text: Option<&Text>) -> Option<Self> {
        match text?.as_str()? {
            "opened" => Some(Self::Opened),
            "synchronize" => Some(Self::Synchronize),
            "synchronized" => Some(Self::Synchronized),
            "closed" => Some(Self::Closed),
            _ => None,
        }
    }
}

/// Turns the opening of a pull request and each push to it into a revision, and its merge into a
/// merge.
pub(super) fn capture(
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<ForgeFact, SkipReason> {
    let action = Action::of(text(Some(payload), "action"))
        .ok_or(SkipReason::UnsupportedPullRequestAction)?;
    match action {
        Action::Closed => {
            merge(payload, delivery, notes).map(|merge| ForgeFact::Merge(Box::new(merge)))
        }
        Action::Opened | Action::Synchronize | Action::Synchronized => {
            revision(payload, action, delivery, notes)
                .map(|revision| ForgeFact::Revision(Box::new(revision)))
        }
    }
}

fn revision(
    payload: &Object,
    action: Action,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<PullRequestRevision, SkipReason> {
    let described = object(Some(payload), "pull_request");
    if head_repository(described).is_none() {
        return Err(SkipReason::HeadRepositoryDeleted);
    }
    let boundary = SkipReason::InvalidPullRequestRevisionBoundary;
    let previous_head_sha = match action {
        Action::Opened | Action::Closed => None,
        Action::Synchronize | Action::Synchronized => {
            let lenient = action == Action::Synchronized;
            let after = pushed(payload, "after", lenient)?;
            let head = sha(object(described, "head"), "sha").ok_or(boundary)?;
            if after.is_some_and(|after| after != head) {
                return Err(SkipReason::SynchronizeHeadMismatch);
            }
            pushed(payload, "before", lenient)?
        }
    };
    let pull_request = pull_request(payload, delivery, notes).ok_or(boundary)?;
    Ok(PullRequestRevision {
        revision_id: delivery.fact_id(),
        pull_request,
        previous_head_sha,
        source_event_id: delivery.source_event_id()?,
        captured_at: delivery.receipt.received_at,
    })
}

/// Returns one of the two commits of the push that updated a pull request. Only a lenient reader
/// accepts a payload without it.
fn pushed(payload: &Object, name: &str, lenient: bool) -> Result<Option<CommitSha>, SkipReason> {
    if lenient && given(Some(payload), name).is_none() {
        return Ok(None);
    }
    sha(Some(payload), name)
        .map(Some)
        .ok_or(SkipReason::InvalidPullRequestRevisionBoundary)
}

fn merge(
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Result<PullRequestMerge, SkipReason> {
    let described = object(Some(payload), "pull_request");
    let merged = described.and_then(|described| described.get("merged")?.as_bool());
    if merged != Some(true) {
        return Err(SkipReason::PullRequestNotMerged);
    }
    if head_repository(described).is_none() {
        return Err(SkipReason::HeadRepositoryDeleted);
    }
    let boundary = SkipReason::InvalidPullRequestMergeBoundary;
    let merge_commit_sha = sha(described, "merge_commit_sha").ok_or(boundary)?;
    let merged_at = text(described, "merged_at")
        .and_then(|at| Instant::parse_iso_8601(at.as_str()?).ok())
        .ok_or(boundary)?;
    let pull_request = pull_request(payload, delivery, notes).ok_or(boundary)?;
    Ok(PullRequestMerge {
        merge_id: delivery.fact_id(),
        pull_request,
        merge_commit_sha,
        merged_at,
        source_event_id: delivery.source_event_id()?,
        captured_at: delivery.receipt.received_at,
    })
}

/// Returns the head repository of the pull request; `None` if it was deleted.
fn head_repository(described: Option<&Object>) -> Option<&Json> {
    given(object(described, "head"), "repo")
}

/// Reads what revisions and merges have in common; `None` if a part is malformed.
fn pull_request(
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
    notes: &mut DeliveryNotes,
) -> Option<PullRequest> {
    let described = object(Some(payload), "pull_request");
    let (head, base) = (object(described, "head"), object(described, "base"));
    let base_repository = object(Some(payload), "repository");
    let head_repository = head_repository(described).map(Json::as_object);
    let head_repo = match head_repository {
        Some(repository) => Some(name(repository)?.into()),
        None => None,
    };
    let mut identify = |repository| -> Option<RepositoryIdentity> {
        identity(repository, delivery.host)
            .map_err(|decline| notes.declined_identities.push(decline))
            .ok()
    };
    Some(PullRequest {
        provider: RepositoryProvider::Github,
        repo: name(base_repository)?.into(),
        repository: identify(base_repository),
        pr_number: count(described, "number")?,
        head_repo,
        head_repository: head_repository.and_then(identify),
        head_ref: branch(head)?,
        head_sha: sha(head, "sha")?,
        base_ref: branch(base)?,
        base_sha: sha(base, "sha")?,
    })
}

fn branch(side: Option<&Object>) -> Option<Branch> {
    Branch::new(text(side, "ref")?.as_str()?).filter(|branch| !branch.as_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::IdentityDecline;
    use super::super::testing::{self, changed, delivery};
    use super::*;

    const HEAD: &str = "6666666666666666666666666666666666666666";
    const BASE: &str = "7777777777777777777777777777777777777777";
    const MERGED: &str = "5555555555555555555555555555555555555555";
    const BEFORE: &str = "4444444444444444444444444444444444444444";

    fn payload(action: &str) -> Object {
        testing::object(&format!(
            r#"{{
                "action": "{action}", "number": 99, "before": "{BEFORE}", "after": "{HEAD}",
                "pull_request": {{
                    "number": 14, "merged": true, "merged_at": "2026-02-03T04:05:06Z",
                    "merge_commit_sha": "{MERGED}",
                    "head": {{
                        "ref": "refs/heads/feat", "sha": "{HEAD}",
                        "repo": {{"id": 901, "full_name": "Fork/R"}}
                    }},
                    "base": {{
                        "ref": "main", "sha": "{BASE}",
                        "repo": {{"id": 5, "full_name": "not/read"}}
                    }}
                }},
                "repository": {{"id": 900, "full_name": "O/R"}}
            }}"#
        ))
    }

    fn captured(payload: &Object) -> (Result<ForgeFact, SkipReason>, DeliveryNotes) {
        let mut notes = DeliveryNotes::default();
        (capture(payload, &delivery(), &mut notes), notes)
    }

    fn with(action: &str, place: &str, value: &str) -> Result<ForgeFact, SkipReason> {
        captured(&changed(&payload(action), place, value)).0
    }

    fn revision_of(fact: Result<ForgeFact, SkipReason>) -> PullRequestRevision {
        match fact.unwrap() {
            ForgeFact::Revision(revision) => *revision,
            other => panic!("{other:?}"),
        }
    }

    fn merge_of(fact: Result<ForgeFact, SkipReason>) -> PullRequestMerge {
        match fact.unwrap() {
            ForgeFact::Merge(merge) => *merge,
            other => panic!("{other:?}"),
        }
    }

    fn previous(fact: Result<ForgeFact, SkipReason>) -> Option<String> {
        revision_of(fact).previous_head_sha.map(Into::into)
    }

    /// The parts that revisions and merges need, each with invalid values.
    fn spoilt() -> Vec<(&'static str, String)> {
        let long = format!("\"{}\"", "x".repeat(1_025));
        let mut spoilt = Vec::new();
        for (place, values) in [
            (
                "pull_request.number",
                &[
                    "-",
                    "null",
                    "0",
                    "-1",
                    "1.5",
                    "\"14\"",
                    "true",
                    "9223372036854775808",
                ][..],
            ),
            ("pull_request.head", &["{\"repo\":{\"full_name\":\"a/b\"}}"]),
            (
                "pull_request.head.repo",
                &[
                    "{}",
                    "5",
                    "\"Fork/R\"",
                    "[]",
                    "{\"full_name\":\"x\"}",
                    "{\"full_name\":5}",
                ],
            ),
            (
                "pull_request.head.ref",
                &[
                    "-",
                    "null",
                    "\"\"",
                    "\"  \"",
                    "\"refs/heads/\"",
                    "\"a\\u0000\"",
                    "5",
                    &long,
                ],
            ),
            ("pull_request.head.sha", &["-", "null", "\"abc\"", "5"]),
            ("pull_request.base", &["-", "null", "[]"]),
            (
                "pull_request.base.ref",
                &["-", "null", "\"\"", "\"\\ud800\"", &long],
            ),
            ("pull_request.base.sha", &["-", "null", "\"abc\"", "5"]),
            ("repository", &["-", "null", "5"]),
            (
                "repository.full_name",
                &["-", "null", "\"x\"", "\"a/b/c\"", "5", &long],
            ),
        ] {
            spoilt.extend(values.iter().map(|value| (place, (*value).to_owned())));
        }
        spoilt
    }

    #[test]
    fn every_member_of_an_opened_pull_request_is_captured() {
        let named = WebhookDelivery {
            id: Some(" d-1 "),
            ..delivery()
        };
        let mut notes = DeliveryNotes::default();
        let revision = revision_of(capture(&payload("opened"), &named, &mut notes));
        assert_eq!(revision.revision_id, delivery().fact_id());
        assert_eq!(revision.previous_head_sha, None, "`before` is not read");
        assert_eq!(revision.source_event_id.as_deref(), Some("d-1"));
        assert_eq!(revision.captured_at, delivery().receipt.received_at);
        let found = revision.pull_request;
        assert_eq!(found.repo, "o/r");
        assert_eq!(found.repository.unwrap().repository_id.as_str(), "900");
        assert_eq!(found.pr_number, 14, "the outer number is not read");
        assert_eq!(found.head_repo.as_deref(), Some("fork/r"));
        assert_eq!(found.head_repository.unwrap().repository_id.as_str(), "901");
        assert_eq!(found.head_ref.as_str(), "feat");
        assert_eq!(found.head_sha.as_str(), HEAD);
        assert_eq!(found.base_ref.as_str(), "main");
        assert_eq!(found.base_sha.as_str(), BASE);
        assert_eq!(notes, DeliveryNotes::default());
    }

    #[test]
    fn only_opened_updated_and_closed_pull_requests_are_captured() {
        for other in [
            "-",
            "null",
            "5",
            "\"edited\"",
            "\"reopened\"",
            "\"Opened\"",
            "\" opened\"",
            "\"\"",
            "\"\\ud800\"",
        ] {
            let reason = Err(SkipReason::UnsupportedPullRequestAction);
            assert_eq!(with("opened", "action", other), reason, "{other}");
        }
    }

    #[test]
    fn an_update_records_the_head_it_replaced() {
        for action in ["synchronize", "synchronized"] {
            let fact = captured(&payload(action)).0;
            assert_eq!(previous(fact).as_deref(), Some(BEFORE));
            let upper = format!("\" {} \"", HEAD.to_uppercase());
            assert!(with(action, "after", &upper).is_ok());
            for (place, value) in [
                ("after", format!("\"{BASE}\"")),
                ("pull_request.head.sha", format!("\"{BASE}\"")),
            ] {
                let reason = Err(SkipReason::SynchronizeHeadMismatch);
                assert_eq!(with(action, place, &value), reason);
            }
            for place in ["before", "after"] {
                for wrong in ["\"\"", "\"abc\"", "5"] {
                    let reason = Err(SkipReason::InvalidPullRequestRevisionBoundary);
                    assert_eq!(with(action, place, wrong), reason, "{place} {wrong}");
                }
            }
        }
    }

    #[test]
    fn only_an_update_from_gitea_may_omit_its_commits() {
        for absent in ["-", "null"] {
            for place in ["before", "after"] {
                let reason = Err(SkipReason::InvalidPullRequestRevisionBoundary);
                assert_eq!(with("synchronize", place, absent), reason, "{place}");
            }
            assert_eq!(previous(with("synchronized", "before", absent)), None);
            let unchecked = with("synchronized", "after", absent);
            assert_eq!(previous(unchecked).as_deref(), Some(BEFORE));
        }
    }

    #[test]
    fn a_revision_of_a_deleted_fork_is_declined_before_anything_else() {
        for action in ["opened", "synchronize", "synchronized"] {
            for (place, gone) in [
                ("pull_request", "-"),
                ("pull_request", "null"),
                ("pull_request", "5"),
                ("pull_request", "{}"),
                ("pull_request.head", "-"),
                ("pull_request.head", "null"),
                ("pull_request.head", "{\"sha\":5}"),
                ("pull_request.head.repo", "-"),
                ("pull_request.head.repo", "null"),
            ] {
                let reason = Err(SkipReason::HeadRepositoryDeleted);
                assert_eq!(with(action, place, gone), reason, "{action} {place} {gone}");
            }
        }
    }

    #[test]
    fn a_revision_with_a_malformed_part_is_declined() {
        for (place, value) in spoilt() {
            let reason = Err(SkipReason::InvalidPullRequestRevisionBoundary);
            assert_eq!(with("opened", place, &value), reason, "{place} {value}");
        }
    }

    #[test]
    fn every_member_of_a_merge_is_captured() {
        let (fact, notes) = captured(&payload("closed"));
        let merge = merge_of(fact);
        assert_eq!(merge.merge_id, delivery().fact_id());
        assert_eq!(merge.merge_commit_sha.as_str(), MERGED);
        assert_eq!(merge.merged_at.to_string(), "2026-02-03T04:05:06Z");
        assert_eq!(merge.source_event_id, None);
        assert_eq!(merge.captured_at, delivery().receipt.received_at);
        let opened = revision_of(captured(&payload("opened")).0);
        assert_eq!(merge.pull_request, opened.pull_request);
        assert_eq!(notes, DeliveryNotes::default());
    }

    #[test]
    fn a_merge_time_needs_an_offset_and_keeps_microseconds() {
        let at = |text: &str| with("closed", "pull_request.merged_at", text);
        for (text, expected) in [
            (
                "\"2026-02-03T04:05:06.123456+05:30\"",
                "2026-02-02T22:35:06.123456Z",
            ),
            (
                "\"2026-02-03 04:05:06.1234569Z\"",
                "2026-02-03T04:05:06.123456Z",
            ),
            ("\"2026-02-03T04:05Z\"", "2026-02-03T04:05:00Z"),
            ("\"2026-02-03T04:05:06+02\"", "2026-02-03T02:05:06Z"),
        ] {
            assert_eq!(merge_of(at(text)).merged_at.to_string(), expected);
        }
        for wrong in [
            "-",
            "null",
            "5",
            "1770091506",
            "\"yesterday\"",
            "\"\"",
            "\"2026-02-03\"",
            "\"2026-02-03T04:05:06\"",
            "\"1969-12-31T23:59:59Z\"",
            "\"2262-01-01T00:00:00Z\"",
            "\"2026-13-03T04:05:06Z\"",
            "\"2026-02-03T04:05:06z\"",
            "\"2026-02-03t04:05:06Z\"",
            "\"2026-02-03T04:05:60Z\"",
            "\"+002026-02-03T04:05:06Z\"",
            "\"2026-02-03T04:05:06Z[UTC]\"",
            "\"\\ud800\"",
        ] {
            let reason = Err(SkipReason::InvalidPullRequestMergeBoundary);
            assert_eq!(at(wrong), reason, "{wrong}");
        }
    }

    #[test]
    fn closing_a_pull_request_without_merging_is_declined() {
        for (place, value) in [
            ("pull_request.merged", "-"),
            ("pull_request.merged", "false"),
            ("pull_request.merged", "null"),
            ("pull_request.merged", "\"true\""),
            ("pull_request.merged", "1"),
            ("pull_request", "null"),
            ("pull_request", "-"),
        ] {
            let reason = Err(SkipReason::PullRequestNotMerged);
            assert_eq!(with("closed", place, value), reason, "{place} {value}");
        }
    }

    #[test]
    fn a_merge_with_a_malformed_part_is_declined() {
        let own = ["-", "null", "\"abc\"", "5"].map(|value| ("merge_commit_sha", value));
        let own = own.map(|(name, value)| (format!("pull_request.{name}"), value.to_owned()));
        let common = spoilt()
            .into_iter()
            .map(|(place, value)| (place.to_owned(), value));
        for (place, value) in common.chain(own) {
            let reason = Err(SkipReason::InvalidPullRequestMergeBoundary);
            assert_eq!(with("closed", &place, &value), reason, "{place} {value}");
        }
    }

    #[test]
    fn a_merge_from_a_deleted_fork_is_declined() {
        for gone in ["-", "null"] {
            let payload = changed(&payload("closed"), "pull_request.head.repo", gone);
            let (fact, _) = captured(&payload);
            assert_eq!(fact, Err(SkipReason::HeadRepositoryDeleted));
        }
    }

    #[test]
    fn the_base_and_head_repositories_are_identified_separately() {
        for action in ["opened", "closed"] {
            let payload = changed(&payload(action), "pull_request.head.repo.id", "-");
            let payload = changed(&payload, "repository.id", "0");
            let (fact, notes) = captured(&payload);
            let found = match fact.unwrap() {
                ForgeFact::Revision(revision) => revision.pull_request,
                ForgeFact::Merge(merge) => merge.pull_request,
                other => panic!("{other:?}"),
            };
            assert_eq!((found.repository, found.head_repository), (None, None));
            assert_eq!(
                notes.declined_identities,
                [IdentityDecline::Invalid, IdentityDecline::Absent]
            );
        }
    }

    #[test]
    fn a_delivery_with_a_too_long_id_is_declined() {
        let long = "x".repeat(1_025);
        let named = WebhookDelivery {
            id: Some(&long),
            ..delivery()
        };
        for action in ["opened", "closed"] {
            let fact = capture(&payload(action), &named, &mut DeliveryNotes::default());
            assert_eq!(fact, Err(SkipReason::InvalidDeliveryId));
        }
    }
}
