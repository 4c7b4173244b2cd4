//! The kinds in words: closed ones for programs, sentences for people.

use std::fmt;

use svc_model::field::{FieldError, Step};
use svc_model::problem::{Code, Decline, QueryFault, RequiredAuthority, SessionBound};

use super::{Denial, ErrorKind};

pub(super) fn code_word(code: Code) -> &'static str {
    match code {
        Code::InferenceCallIdentityConflict => "inference_call_identity_conflict",
        Code::RepositoryIdentityConflict => "repository_identity_conflict",
        Code::DatabaseUnavailable => "database_unavailable",
    }
}

pub(super) fn decline_word(decline: &Decline) -> &'static str {
    match decline {
        Decline::EvidenceUnavailable { .. } => "evidence_unavailable",
        Decline::EvidencePartAbsent { .. } => "evidence_part_absent",
        Decline::EvidenceInventoryLimit { .. } => "evidence_inventory_limit",
        Decline::EvidenceSourceLimit { .. } => "evidence_source_limit",
        Decline::EvidenceResponseLimit { .. } => "evidence_response_limit",
        Decline::RetrievalPartLimit { .. } => "retrieval_part_limit",
        Decline::RetrievalStateLimit { .. } => "retrieval_state_limit",
        Decline::RepositorySelectorAmbiguous => "repository_selector_ambiguous",
        Decline::RepositoryEvidenceLimit => "repository_evidence_limit",
        Decline::NonFiniteNumber => "non_finite_number",
    }
}

pub(super) fn fault_word(fault: QueryFault) -> &'static str {
    match fault {
        QueryFault::MalformedSha => "malformed_sha",
        QueryFault::ReversedBounds => "reversed_bounds",
        QueryFault::IncompleteIdentity => "incomplete_identity",
        QueryFault::MissingSelector => "missing_selector",
        QueryFault::SelectorConflict => "selector_conflict",
        QueryFault::InvalidCursor => "invalid_cursor",
        QueryFault::CursorMismatch => "cursor_mismatch",
        QueryFault::InvalidSessionCursor => "invalid_session_cursor",
        QueryFault::SessionCursorMismatch => "session_cursor_mismatch",
        QueryFault::CohortTooLong => "cohort_too_long",
        QueryFault::CohortReversed => "cohort_reversed",
        QueryFault::CohortAfterBoundary => "cohort_after_boundary",
        QueryFault::TargetAbsent => "target_absent",
        QueryFault::TargetAmbiguous => "target_ambiguous",
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable => f.write_str("the request holds a number that is not finite"),
            Self::Unaddressable => f.write_str("no URL of this version can ask this"),
            Self::Connect => f.write_str("the service cannot be reached"),
            Self::TimedOut => f.write_str("the time is over"),
            Self::Transport => f.write_str("the connection broke"),
            Self::Malformed => f.write_str("the service could not read the body"),
            Self::UnsupportedProvider => f.write_str("the gateway has no adapter"),
            Self::Unauthorized => f.write_str("the token is missing or not known"),
            Self::Forbidden(denial) => denial.fmt(f),
            Self::NotFound => f.write_str("the service has no such route"),
            Self::RetrievalDisabled => f.write_str("context retrieval is not configured for this"),
            Self::Conflict(code) => {
                write!(
                    f,
                    "a fact with the same identity says otherwise ({})",
                    code_word(*code)
                )
            }
            Self::Declined(decline) => write_decline(decline, f),
            Self::SessionBound(SessionBound::Reconciliation) => {
                f.write_str("the Session has too many calls to list")
            }
            Self::SessionBound(SessionBound::Compatibility) => {
                f.write_str("the Session has too many facts for the compatibility evidence")
            }
            Self::SessionBound(SessionBound::Dossier) => {
                f.write_str("the Session has too many events for a dossier")
            }
            Self::SessionBound(SessionBound::Delivery) => {
                f.write_str("the Session has too many commits, pushes or CI outcomes")
            }
            Self::ReportEvidence => {
                f.write_str("the cohort of the report has more facts than a report may take in")
            }
            Self::Oversize => f.write_str("the reply would be over the cap of its route"),
            Self::TooLarge => f.write_str("the body is over the cap of its route"),
            Self::Invalid(fields) => write_fields(fields, f),
            Self::Query(fault) => f.write_str(match fault {
                QueryFault::MalformedSha => "the commit is not 40 or 64 hexadecimal digits",
                QueryFault::ReversedBounds => "the range of capture ends before it begins",
                QueryFault::IncompleteIdentity => {
                    "a repository identity is provider, host and id together"
                }
                QueryFault::MissingSelector => "a repository must be selected",
                QueryFault::SelectorConflict => "the repository never had that name",
                QueryFault::InvalidCursor | QueryFault::InvalidSessionCursor => {
                    "the cursor is none of this service"
                }
                QueryFault::CursorMismatch | QueryFault::SessionCursorMismatch => {
                    "the cursor no longer fits: another question, or facts were quarantined or \
                     released since"
                }
                QueryFault::CohortTooLong => "the cohort is longer than 31 days",
                QueryFault::CohortReversed => "the cohort ends before it begins",
                QueryFault::CohortAfterBoundary => {
                    "the cohort ends after the moment up to which facts count"
                }
                QueryFault::TargetAbsent => "no fact of this table has this id",
                QueryFault::TargetAmbiguous => "the ids of several facts of this table begin so",
            }),
            Self::Busy => f.write_str("all read slots of the service are in use"),
            Self::Deadline => f.write_str("the service stopped the work at its deadline"),
            Self::StoreUnavailable => f.write_str("the fact store cannot be reached"),
            Self::Unavailable { status } => {
                write!(f, "the service is not available (status {status})")
            }
            Self::Unreadable => f.write_str("the reply is not that of the route"),
            Self::ReplyTooLarge { bytes_max } => {
                write!(f, "the reply is over {bytes_max} bytes")
            }
            Self::Redirected { status } => {
                write!(
                    f,
                    "the answer is a redirect, which is not followed (status {status})"
                )
            }
            Self::Unrecognised {
                status,
                word: Some(word),
            } => {
                write!(f, "the answer is not known (status {status}, {word})")
            }
            Self::Unrecognised { status, word: None } => {
                write!(f, "the answer is not known (status {status})")
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authority(RequiredAuthority::Ingest) => "ingest authority required",
            Self::Authority(RequiredAuthority::Operator) => "operator authority required",
            Self::Authority(RequiredAuthority::Retrieval) => "retrieval authority required",
            Self::OutsideGrant => "the Session is outside the configured grant",
            Self::Other => "the request is denied",
        })
    }
}

fn write_decline(decline: &Decline, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let word = decline_word(decline);
    match decline {
        Decline::EvidenceUnavailable {
            reference_index: None,
        } => {
            write!(f, "the evidence is not available ({word})")
        }
        Decline::EvidenceUnavailable {
            reference_index: Some(index),
        } => {
            write!(f, "reference {index} is not available ({word})")
        }
        Decline::EvidencePartAbsent { reference_index } => {
            write!(
                f,
                "reference {reference_index} names no part of its call ({word})"
            )
        }
        Decline::EvidenceInventoryLimit { count, limit }
        | Decline::RetrievalPartLimit { count, limit } => {
            write!(f, "{count} are over the limit of {limit} ({word})")
        }
        Decline::EvidenceSourceLimit { bytes, limit } => {
            write!(
                f,
                "{bytes} stored bytes are over the limit of {limit} ({word})"
            )
        }
        Decline::EvidenceResponseLimit { limit } => {
            write!(f, "the reply would be over {limit} bytes ({word})")
        }
        Decline::RetrievalStateLimit { limit_bytes } => {
            write!(
                f,
                "the candidates take more than {limit_bytes} bytes ({word})"
            )
        }
        Decline::RepositorySelectorAmbiguous => {
            write!(f, "the selector names several repositories ({word})")
        }
        Decline::RepositoryEvidenceLimit => write!(f, "too many repository claims ({word})"),
        Decline::NonFiniteNumber => {
            write!(
                f,
                "the reply would hold a number that is not finite ({word})"
            )
        }
    }
}

fn write_fields(fields: &[FieldError], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the request is not valid")?;
    for (index, field) in fields.iter().enumerate() {
        f.write_str(if index == 0 { ": " } else { "; " })?;
        for (depth, step) in field.loc.iter().enumerate() {
            if depth > 0 {
                f.write_str(".")?;
            }
            match step {
                Step::Index(index) => write!(f, "{index}")?,
                Step::Name(name) => write!(f, "{}", name.escape_debug())?,
            }
        }
        if !field.loc.is_empty() {
            f.write_str(" ")?;
        }
        write!(f, "{}", field.msg.escape_debug())?;
    }
    Ok(())
}
