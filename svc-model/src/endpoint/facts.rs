use super::{Access, Explanation};
use crate::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use crate::problem::{Problem, SessionBound};
use crate::request::NoParameters;

/// Why a read of a Session with too many facts is refused.
pub(super) const fn bound(problems: &'static [(&'static str, Problem)]) -> Explanation {
    Explanation {
        description: "The Session has too many visible facts for this read. There is no partial answer.",
        problems,
    }
}

endpoint! {
    Facts: GET "/v1/facts" as "facts" for Access::Operator,
    NoParameters => FactsCounts,
    "Count the stored and the visible facts of each kind."
}

endpoint! {
    SessionFacts: GET "/v1/facts/session/{session_id}" as "sessionFacts" for Access::Operator,
    SessionRequest => SessionFactsCounts,
    "Count the facts of each kind that name a Session."
}

endpoint! {
    SessionCalls: GET "/v1/facts/session/{session_id}/inference-calls" as "sessionInferenceCalls" for Access::Operator,
    SessionRequest => SessionInferenceCalls,
    "List the metadata of a Session's visible calls." {
        const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
        const CONFLICT: Option<Explanation> = Some(bound(&[
            ("bound", Problem::SessionBound(SessionBound::Reconciliation)),
            ("size", Problem::ReplyTooLarge),
        ]));
    }
}

endpoint! {
    Compatibility: GET "/v1/facts/session/{session_id}/compatibility-evidence" as "compatibilityEvidence" for Access::Operator,
    SessionRequest => CompatibilityEvidence,
    "Return what an agent harness can compare with its own records of a Session." {
        const CONFLICT: Option<Explanation> = Some(bound(&[
            ("bound", Problem::SessionBound(SessionBound::Compatibility)),
            ("size", Problem::ReplyTooLarge),
        ]));
    }
}
