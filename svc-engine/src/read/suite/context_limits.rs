//! The order of the limits of a context scan.

use svc_engine_fact::testing::builders::text;
use svc_model::context::{ContextDiscoveryRequest, ContextSelectedRequest, MaxBytes, Query};
use svc_model::version::Version1;

use super::*;

/// Three Sessions with two calls each; the query matches every answer.
fn filled(stage: &Stage) {
    let calls = (0..6_u128).map(|number| {
        let answer = format!("a pager in window {number}");
        let call = call(number + 1)
            .session(["s", "t", "u"][usize::try_from(number / 2).unwrap()])
            .output(vec![text("assistant", &answer)])
            .build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(0))))
    });
    stage.add(calls);
}

fn selected_within(stage: &Stage, limits: &ScanLimits, query: &str) -> Result<(), Error> {
    let request = ContextSelectedRequest {
        schema_version: Version1,
        query: Query::new(query).unwrap(),
        session_id: SessionId::new("s").unwrap(),
        max_bytes: MaxBytes::default(),
    };
    let cache = ContentCache::new(1 << 20);
    selected(&mut stage.snapshot(), &cache, limits, request).map(drop)
}

fn discovered_within(stage: &Stage, limits: &ScanLimits, query: &str) -> Result<(), Error> {
    let request = ContextDiscoveryRequest {
        schema_version: Version1,
        query: Query::new(query).unwrap(),
        max_bytes: MaxBytes::default(),
        commit: None,
    };
    let grant = ["s", "t", "u"].map(|name| SessionId::new(name).unwrap());
    let cache = ContentCache::new(1 << 20);
    discover(&mut stage.snapshot(), &cache, limits, &grant, request).map(drop)
}

type Ask = fn(&Stage, &ScanLimits, &str) -> Result<(), Error>;

#[rstest]
fn the_limit_of_state_is_checked_before_that_of_parts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    filled(&stage);
    // Less than two groups need, and less than three Sessions need.
    let asks: [(Ask, u64, u64); 2] = [(selected_within, 4, 1_200), (discovered_within, 12, 2_000)];
    for (ask, parts, state_bytes) in asks {
        let limits = |parts, state_bytes| ScanLimits {
            parts,
            state_bytes,
            ..ScanLimits::of(Repeats::Count)
        };
        let enough = ScanLimits::of(Repeats::Count).state_bytes;
        let state = Decline::RetrievalStateLimit {
            limit_bytes: state_bytes,
        };
        let few = Decline::RetrievalPartLimit {
            count: parts,
            limit: parts - 1,
        };
        assert!(ask(&stage, &limits(parts, enough), "pager").is_ok());
        for (limits, query, expected) in [
            (limits(parts, state_bytes), "pager", &state),
            (limits(parts - 1, state_bytes), "pager", &state),
            (limits(parts - 1, enough), "pager", &few),
            // Parts that do not match need no state.
            (limits(parts - 1, state_bytes), "absent", &few),
        ] {
            match ask(&stage, &limits, query) {
                Err(Error::Declined(declined)) => assert_eq!(declined, *expected),
                other => panic!("{limits:?} {query}: {other:?}"),
            }
        }
    }
}

/// A Session whose calls each repeat the history: 30 distinct questions, and one answer.
fn history(stage: &Stage) -> ScanLimits {
    let calls = (1..=30_u128).map(|number| {
        let asked = (1..=number).map(|turn| text("user", &format!("turn{turn} pager")));
        let call = call(number).input(asked.collect()).build();
        Append::InferenceCall(Box::new(stage.store.encode(call, at(0))))
    });
    stage.add(calls);
    ScanLimits {
        parts: 31,
        calls: 30,
        ..ScanLimits::of(Repeats::Once)
    }
}

#[rstest]
fn a_history_that_each_call_repeats_counts_once_against_the_limits(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let once = history(&stage);
    let repeated = ScanLimits {
        repeats: Repeats::Count,
        ..once
    };
    let cache = ContentCache::new(1 << 20);
    let ask = |limits: &ScanLimits| {
        let request = ContextSelectedRequest {
            schema_version: Version1,
            query: Query::new("turn7 pager").unwrap(),
            session_id: SessionId::new("s").unwrap(),
            max_bytes: MaxBytes::default(),
        };
        selected(&mut stage.snapshot(), &cache, limits, request)
    };
    let occurrences = 31 * 30 / 2 + 30;
    let many = Decline::RetrievalPartLimit {
        count: occurrences,
        limit: 31,
    };
    is_declined(&ask(&repeated), &many);
    let enough = ScanLimits {
        parts: occurrences,
        ..repeated
    };
    let found = ask(&once).unwrap();
    assert_eq!(found, ask(&enough).unwrap(), "the same answer");
    assert_eq!(found.coverage.scanned_parts, occurrences);
    assert_eq!(found.items[0].score, 2);
    // The bytes of the distinct messages, those of thirty questions and an answer.
    let few = |bytes| ScanLimits {
        source_bytes: bytes,
        ..once
    };
    let Err(Error::Declined(Decline::EvidenceSourceLimit { bytes, limit: 1 })) = ask(&few(1))
    else {
        panic!("declined");
    };
    assert!((31 * 60..31 * 120).contains(&bytes), "{bytes}");
    assert_eq!(ask(&few(bytes)).unwrap(), found);
    let limits = ScanLimits { parts: 30, ..once };
    let many = Decline::RetrievalPartLimit {
        count: 31,
        limit: 30,
    };
    is_declined(&ask(&limits), &many);
    let limits = ScanLimits { calls: 29, ..once };
    let many = Decline::EvidenceInventoryLimit {
        count: 30,
        limit: 29,
    };
    is_declined(&ask(&limits), &many);
    // One group of content for each question; its text is not kept.
    let limits = ScanLimits {
        state_bytes: 30 * 512,
        ..once
    };
    assert_eq!(ask(&limits).unwrap(), found);
}

#[rstest]
fn a_discovery_searches_the_latest_sessions_that_fit_and_says_how_many(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    filled(&stage);
    stage.calls("long", 1_000..1_010);
    let grant = ["absent", "long", "s", "t", "u"].map(|name| SessionId::new(name).unwrap());
    let cache = ContentCache::new(1 << 20);
    let ask = |limits: &ScanLimits| {
        let request = ContextDiscoveryRequest {
            schema_version: Version1,
            query: Query::new("pager").unwrap(),
            max_bytes: MaxBytes::default(),
            commit: None,
        };
        discover(&mut stage.snapshot(), &cache, limits, &grant, request)
    };
    let once = ScanLimits::of(Repeats::Once);
    let whole = ask(&once).unwrap();
    assert_eq!(whole, ask(&ScanLimits::of(Repeats::Count)).unwrap());
    assert_eq!(whole.coverage.searched_sessions, None);
    assert!(whole.coverage.complete_visible_scan);

    let names = |limits: &ScanLimits| {
        let found = ask(limits).unwrap();
        let coverage = &found.coverage;
        assert_eq!(
            (coverage.authorized_sessions, coverage.found_sessions),
            (5, 4)
        );
        assert!(!coverage.complete_visible_scan);
        let skipped = found.items.len() as u64 + found.skipped.unmatched_session;
        assert_eq!(Some(skipped), coverage.searched_sessions);
        let names = found.items.iter().map(|item| item.session_id.to_string());
        names.collect::<Vec<_>>()
    };
    // The latest Session is too long, and the next two fit.
    assert_eq!(names(&ScanLimits { calls: 5, ..once }), ["t", "u"]);
    // Each of the six calls has a question and an answer; the question is the same.
    assert_eq!(names(&ScanLimits { parts: 5, ..once }), ["u"]);
    let many = Decline::EvidenceInventoryLimit {
        count: 10,
        limit: 1,
    };
    is_declined(&ask(&ScanLimits { calls: 1, ..once }), &many);
}
