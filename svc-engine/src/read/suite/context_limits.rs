//! The order of the limits of a context scan.

use svc_model::context::{ContextDiscoveryRequest, ContextSelectedRequest, MaxBytes, Query};
use svc_model::version::Version1;

use super::*;
use crate::testing::builders::text;

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
            ..ScanLimits::default()
        };
        let enough = ScanLimits::default().state_bytes;
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
