//! Properties that hold for every payload.

use proptest::prelude::*;
use svc_model::id::identity;
use svc_model::ingest::{ForgeEvent, SkipReason};
use svc_model::json::{Json, Object, Text};
use svc_model::repository::RepositoryName;

use super::testing::delivery;
use super::{DeliveryNotes, ForgeFact, WebhookDelivery, capture};

/// Names that mean something here or to redaction, with some values for each.
const WORDS: [&str; 46] = [
    "action",
    "ref",
    "before",
    "after",
    "deleted",
    "forced",
    "repository",
    "id",
    "full_name",
    "clone_url",
    "name",
    "from",
    "changes",
    "pull_request",
    "number",
    "head",
    "base",
    "repo",
    "sha",
    "merged",
    "merged_at",
    "merge_commit_sha",
    "workflow_run",
    "workflow_id",
    "run_attempt",
    "head_sha",
    "head_branch",
    "conclusion",
    "html_url",
    "path",
    "pull_requests",
    "api_key",
    "opened",
    "synchronize",
    "closed",
    "completed",
    "renamed",
    "success",
    "refs/heads/main",
    "Own/Repo",
    "https://u:p@h/a",
    "2026-02-03T04:05:06Z",
    "cccccccccccccccccccccccccccccccccccccccc",
    "0000000000000000000000000000000000000000",
    "\0",
    " ",
];

fn word() -> impl Strategy<Value = Text> {
    prop_oneof![
        12 => prop::sample::select(WORDS.to_vec()).prop_map(Text::from),
        1 => any::<String>().prop_map(Text::from),
        1 => Just(Text::from_wtf8(vec![0xed, 0xa0, 0x80]).unwrap()),
    ]
}

fn leaf() -> impl Strategy<Value = Json> {
    let number = prop::sample::select(vec![
        "0",
        "-1",
        "1",
        "14",
        "1.5",
        "1e400",
        "NaN",
        "9223372036854775808",
        "99999999999999999999",
    ]);
    prop_oneof![
        1 => Just(Json::Null),
        2 => any::<bool>().prop_map(Json::Bool),
        3 => number.prop_map(|number| Json::parse(number.as_bytes()).unwrap()),
        6 => word().prop_map(Json::String),
    ]
}

fn value() -> impl Strategy<Value = Json> {
    leaf().prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec((word(), inner), 0..7)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// A valid payload with some arbitrary values.
fn nearly_valid() -> impl Strategy<Value = (ForgeEvent, Object)> {
    let valid = prop::sample::select(vec![
        (
            ForgeEvent::Push,
            r#"{"ref":"refs/heads/main","before":"SHA","after":"SHA","deleted":false,"forced":true,
                "repository":{"id":1,"full_name":"O/R","clone_url":"https://h/o/r"}}"#,
        ),
        (
            ForgeEvent::WorkflowRun,
            r#"{"action":"completed","repository":{"id":1,"full_name":"O/R"},
                "workflow_run":{"id":5,"run_attempt":1,"name":"CI","head_branch":"main",
                    "head_sha":"SHA","conclusion":"success","html_url":"u","workflow_id":7,
                    "path":"p","pull_requests":[{"number":7}]}}"#,
        ),
        (
            ForgeEvent::PullRequest,
            r#"{"action":"synchronize","before":"SHA","after":"SHA","repository":{"id":1,"full_name":"O/R"},
                "pull_request":{"number":14,"head":{"ref":"f","sha":"SHA","repo":{"id":2,"full_name":"F/R"}},
                    "base":{"ref":"main","sha":"SHA"}}}"#,
        ),
        (
            ForgeEvent::PullRequest,
            r#"{"action":"closed","repository":{"id":1,"full_name":"O/R"},
                "pull_request":{"number":14,"merged":true,"merged_at":"2026-02-03T04:05:06Z",
                    "merge_commit_sha":"SHA","head":{"ref":"f","sha":"SHA","repo":{"id":2,"full_name":"F/R"}},
                    "base":{"ref":"main","sha":"SHA"}}}"#,
        ),
        (
            ForgeEvent::Repository,
            r#"{"action":"renamed","changes":{"repository":{"name":{"from":"Old"}}},
                "repository":{"id":301,"full_name":"Own/New"}}"#,
        ),
    ]);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), value()), 0..3);
    (valid, changes).prop_map(|((event, text), changes)| {
        let text = text.replace("SHA", &"c".repeat(40));
        let mut payload = Json::parse(text.as_bytes()).unwrap();
        for (place, other) in changes {
            let mut left = place.index(places(&payload));
            replace(&mut payload, &mut left, &other);
        }
        (event, payload.into_object().unwrap_or_default())
    })
}

/// Counts the values inside a value, at any depth.
fn places(value: &Json) -> usize {
    match value {
        Json::Object(object) => object.iter().map(|(_, inner)| 1 + places(inner)).sum(),
        Json::Array(items) => items.iter().map(|inner| 1 + places(inner)).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
    }
}

/// Replaces the value that comes after `left` others.
fn replace(value: &mut Json, left: &mut usize, other: &Json) -> bool {
    let mut visit = |inner: &mut Json| {
        if *left == 0 {
            *inner = other.clone();
            return true;
        }
        *left -= 1;
        replace(inner, left, other)
    };
    match value {
        Json::Object(object) => object.iter_mut().any(|(_, inner)| visit(inner)),
        Json::Array(items) => items.iter_mut().any(visit),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn captured(
    event: ForgeEvent,
    payload: &Object,
    delivery: &WebhookDelivery<'_>,
) -> (Result<ForgeFact, SkipReason>, DeliveryNotes) {
    let mut notes = DeliveryNotes::default();
    let fact = capture(event, payload.clone(), delivery, &mut notes);
    (fact, notes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_payload_is_captured_or_declined(payload in value(), id in any::<Option<String>>()) {
        let payload = payload.into_object().unwrap_or_default();
        let delivery = WebhookDelivery { id: id.as_deref(), ..delivery() };
        for event in ForgeEvent::ALL {
            prop_assert_eq!(
                captured(*event, &payload, &delivery),
                captured(*event, &payload, &delivery),
                "the same delivery is the same fact"
            );
        }
    }

    /// Every indexed text fits into the store's index.
    #[test]
    fn every_captured_fact_fits_the_store((event, payload) in nearly_valid()) {
        let delivery = WebhookDelivery { id: Some(" d "), ..delivery() };
        let (fact, notes) = captured(event, &payload, &delivery);
        let Ok(fact) = fact else {
            prop_assert_eq!(notes.redactions, DeliveryNotes::default().redactions);
            return Ok(());
        };
        let bounded = |text: &str| identity(text) == Ok(text);
        let name = |name: &str| {
            name.is_empty() || RepositoryName::new(name).is_some_and(|parsed| parsed.as_str() == name)
        };
        match fact {
            ForgeFact::Push(push) => {
                prop_assert!(name(&push.repo) && bounded(&push.r#ref));
                prop_assert!(push.r#ref.starts_with("refs/heads/"));
                prop_assert!(!push.clone_url.contains('\0'));
                prop_assert_eq!(push.repository.is_none(), !notes.declined_identities.is_empty());
            }
            ForgeFact::CiOutcome(outcome) => {
                prop_assert!(name(&outcome.repo) && bounded(&outcome.run_id));
                prop_assert!(outcome.workflow_id.as_deref().is_none_or(bounded));
                prop_assert!(outcome.workflow_path.is_none_or(|path| !path.contains('\0')));
                prop_assert!(outcome.raw.as_object().is_some());
                prop_assert_eq!(outcome.source_event_id.as_deref(), Some("d"));
            }
            ForgeFact::Revision(revision) => {
                let found = revision.pull_request;
                prop_assert!(!found.repo.is_empty() && name(&found.repo) && found.pr_number > 0);
                prop_assert!(found.head_repo.is_some_and(|repo| bounded(&repo)));
            }
            ForgeFact::Merge(merge) => {
                let found = merge.pull_request;
                prop_assert!(!found.repo.is_empty() && name(&found.repo) && found.pr_number > 0);
                prop_assert!(found.head_repo.as_deref().is_none_or(bounded));
                prop_assert!(found.head_repo.is_some() || found.head_repository.is_none());
            }
            ForgeFact::Rename(rename) => prop_assert_ne!(rename.old_repo, rename.new_repo),
        }
    }
}
