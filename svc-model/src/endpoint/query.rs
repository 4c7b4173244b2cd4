use super::facts::bound;
use super::{Access, Explanation, Faults};
use crate::problem::{Decline, Problem, QueryFault, SessionBound};
use crate::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};

const IDENTITY: (&str, QueryFault) = ("identity", QueryFault::IncompleteIdentity);
pub(super) const SELECTOR: (&str, QueryFault) = ("selector", QueryFault::SelectorConflict);

const SELECTION: Explanation = Explanation {
    description: "The selector matches several repositories, and one must be selected; or a bound would \
                  be exceeded. There is no partial answer.",
    problems: &[
        ("ambiguous", Problem::Declined(Decline::RepositorySelectorAmbiguous)),
        ("repositories", Problem::Declined(Decline::RepositoryEvidenceLimit)),
        ("size", Problem::ReplyTooLarge),
    ],
};

endpoint! {
    CiOutcomeQuery: GET "/query/ci/outcome" as "ciOutcome" for Access::Operator,
    CiOutcomeRequest => CiOutcomeAnswer,
    "Look up the outcome of one run, with a link to its commit." {
        // The interface promises it for this route.
        const IGNORES_OTHER_QUERY: bool = true;
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = &[IDENTITY, SELECTOR];
    }
}

endpoint! {
    CiRunsQuery: GET "/query/ci/runs" as "ciRuns" for Access::Operator,
    CiRunsRequest => CiRuns,
    "Find the runs that an id or a URL names, and the Sessions delivered with their commit." {
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = &[IDENTITY, SELECTOR];
    }
}

endpoint! {
    CiFailuresQuery: GET "/query/ci/failures" as "ciFailures" for Access::Operator,
    CiFailuresRequest => CiFailures,
    "List a repository's outcomes with one result, latest first, in pages." {
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = &[
            ("bounds", QueryFault::ReversedBounds),
            IDENTITY,
            ("repository", QueryFault::MissingSelector),
            SELECTOR,
            ("cursor", QueryFault::InvalidCursor),
            ("filters", QueryFault::CursorMismatch),
        ];
    }
}

/// What is wrong with a request for a list of Sessions.
const SESSIONS: Faults = &[
    ("bounds", QueryFault::ReversedBounds),
    IDENTITY,
    SELECTOR,
    ("cursor", QueryFault::InvalidSessionCursor),
    ("filters", QueryFault::SessionCursorMismatch),
];

endpoint! {
    SessionsQuery: GET "/v1/sessions" as "sessions" for Access::Operator,
    SessionsRequest => SessionList,
    "List Sessions by time, user, model, agent or repository, latest first, in pages." {
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = SESSIONS;
    }
}

endpoint! {
    GrantSessions: GET "/query/context/sessions" as "contextSessions" for Access::Search,
    SessionsRequest => SessionList,
    "List the Sessions that the caller may read, latest first, in pages." {
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = SESSIONS;
    }
}

endpoint! {
    SessionQuery: GET "/query/session/{session_id}" as "sessionDossier" for Access::Operator,
    SessionDossierRequest => SessionAnswer,
    "Show everything that was captured of a Session, as metadata." {
        const CONFLICT: Option<Explanation> = Some(bound(&[
            ("bound", Problem::SessionBound(SessionBound::Dossier)),
            ("size", Problem::ReplyTooLarge),
            ("deliveries", Problem::SessionBound(SessionBound::Delivery)),
            ("repositories", Problem::Declined(Decline::RepositoryEvidenceLimit)),
        ]));
    }
}

endpoint! {
    CommitQuery: GET "/query/commit/{sha}" as "commitEvidence" for Access::Operator,
    CommitRequest => CommitEvidence,
    "Show the Sessions, calls and CI outcomes of a commit, by repository." {
        const CONFLICT: Option<Explanation> = Some(SELECTION);
        const FAULTS: Faults = &[
            ("sha", QueryFault::MalformedSha),
            IDENTITY,
            SELECTOR,
        ];
    }
}
