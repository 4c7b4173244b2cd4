use super::quarantine::FEWER_ROWS;
use super::query::SELECTOR;
use super::{Access, Explanation, Faults};
use crate::grant::{
    GrantExplanation, GrantExplanationRequest, GrantList, GrantReceipt, GrantRemovalRequest,
    GrantRequest, GrantsRequest, TokenChangeRequest,
};
use crate::limit;
use crate::problem::{Decline, Problem, QueryFault};

endpoint! {
    Grants: GET "/v1/grants" as "grants" for Access::Operator,
    GrantsRequest => GrantList,
    "List what the named retrieval tokens may read; with `history`, every change, by whom and why." {
        const CONFLICT: Option<Explanation> = Some(FEWER_ROWS);
    }
}

endpoint! {
    GrantExplain: GET "/v1/grants/explain" as "grantExplain" for Access::Operator,
    GrantExplanationRequest => GrantExplanation,
    "Explain which grants of a token reach a Session, and why the others do not." {
        const REPLY_BYTES_MAX: usize = limit::EVIDENCE_REPLY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(FEWER_ROWS);
    }
}

endpoint! {
    GrantAdd: POST "/v1/grants/add" as "grantAdd" for Access::Operator,
    GrantRequest => GrantReceipt,
    "Grant a named retrieval token a Session, or every Session that a rule reaches, at once on every server." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const CONFLICT: Option<Explanation> = Some(Explanation {
            description: "Several repositories have the name: give the identity of one.",
            problems: &[("ambiguous", Problem::Declined(Decline::RepositorySelectorAmbiguous))],
        });
        const FAULTS: Faults = &[
            ("full", QueryFault::GrantsFull),
            ("repository", QueryFault::RepositoryAbsent),
            SELECTOR,
        ];
    }
}

endpoint! {
    GrantRemove: POST "/v1/grants/remove" as "grantRemove" for Access::Operator,
    GrantRemovalRequest => GrantReceipt,
    "Remove a grant, by appending a row to the log." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const FAULTS: Faults = &[
            ("absent", QueryFault::GrantAbsent),
            ("ambiguous", QueryFault::GrantAmbiguous),
        ];
    }
}

endpoint! {
    TokenRevoke: POST "/v1/grants/revoke" as "tokenRevoke" for Access::Operator,
    TokenChangeRequest => GrantReceipt,
    "Revoke a named retrieval token: from now on, every server answers it with 401." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    }
}

endpoint! {
    TokenRestore: POST "/v1/grants/restore" as "tokenRestore" for Access::Operator,
    TokenChangeRequest => GrantReceipt,
    "Restore a revoked token with its grants." {
        const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
        const FAULTS: Faults =
            &[("state", QueryFault::TokenNotRevoked)];
    }
}
