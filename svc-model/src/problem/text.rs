//! Problems as text: a closed word for programs, a sentence for people.

use std::fmt;

use super::{Code, Decline, QueryFault, RequiredAuthority, SessionBound};

impl Code {
    /// Returns the code as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InferenceCallIdentityConflict => "inference_call_identity_conflict",
            Self::RepositoryIdentityConflict => "repository_identity_conflict",
            Self::DatabaseUnavailable => "database_unavailable",
            Self::SearchDisabled => "search_disabled",
            Self::SearchUnavailable => "search_unavailable",
            Self::UnknownPriceFormat => "unknown_price_format",
            Self::NoModels => "no_models",
            Self::PriceTablesFull => "price_tables_full",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Decline {
    /// Returns the reason as it is written on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::EvidenceUnavailable { .. } => "evidence_unavailable",
            Self::EvidencePartAbsent { .. } => "evidence_part_absent",
            Self::ContentErased { .. } => "content_erased",
            Self::EvidenceInventoryLimit { .. } => "evidence_inventory_limit",
            Self::EvidenceSourceLimit { .. } => "evidence_source_limit",
            Self::EvidenceResponseLimit { .. } => "evidence_response_limit",
            Self::RetrievalPartLimit { .. } => "retrieval_part_limit",
            Self::RetrievalStateLimit { .. } => "retrieval_state_limit",
            Self::RepositorySelectorAmbiguous => "repository_selector_ambiguous",
            Self::RepositoryEvidenceLimit => "repository_evidence_limit",
            Self::NonFiniteNumber => "non_finite_number",
        }
    }
}

/// Writes how much exceeds a limit, with its unit.
fn over(f: &mut fmt::Formatter<'_>, count: u64, unit: &str, limit: u64, word: &str) -> fmt::Result {
    let (count, limit) = (Thousands(count), Thousands(limit));
    write!(f, "{count} {unit} exceed the limit of {limit} ({word})")
}

/// A number with a comma after every three digits.
struct Thousands(u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.char_indices() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.as_str();
        match self {
            Self::EvidenceUnavailable {
                reference_index: None,
            } => {
                write!(f, "the evidence is not available ({word})")
            }
            Self::EvidenceUnavailable {
                reference_index: Some(index),
            } => {
                write!(f, "reference {index} is not available ({word})")
            }
            Self::EvidencePartAbsent { reference_index } => {
                write!(
                    f,
                    "reference {reference_index} is not a part of its call ({word})"
                )
            }
            Self::ContentErased { reference_index } => {
                write!(
                    f,
                    "the content that reference {reference_index} names was erased ({word})"
                )
            }
            Self::EvidenceInventoryLimit { count, limit } => over(f, *count, "calls", *limit, word),
            Self::RetrievalPartLimit { count, limit } => over(f, *count, "parts", *limit, word),
            Self::EvidenceSourceLimit { bytes, limit } => {
                over(f, *bytes, "stored bytes", *limit, word)
            }
            Self::EvidenceResponseLimit { limit } => {
                write!(f, "the reply would exceed {limit} bytes ({word})")
            }
            Self::RetrievalStateLimit { limit_bytes } => {
                write!(
                    f,
                    "the candidates take more than {limit_bytes} bytes ({word})"
                )
            }
            Self::RepositorySelectorAmbiguous => {
                write!(f, "the selector matches several repositories ({word})")
            }
            Self::RepositoryEvidenceLimit => write!(f, "too many repository claims ({word})"),
            Self::NonFiniteNumber => {
                write!(
                    f,
                    "the reply would contain a number that is not finite ({word})"
                )
            }
        }
    }
}

impl QueryFault {
    /// Returns the fault as a closed word. On the wire it is a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MalformedSha => "malformed_sha",
            Self::ReversedBounds => "reversed_bounds",
            Self::IncompleteIdentity => "incomplete_identity",
            Self::MissingSelector => "missing_selector",
            Self::SelectorConflict => "selector_conflict",
            Self::InvalidCursor => "invalid_cursor",
            Self::CursorMismatch => "cursor_mismatch",
            Self::InvalidSessionCursor => "invalid_session_cursor",
            Self::SessionCursorMismatch => "session_cursor_mismatch",
            Self::CohortTooLong => "cohort_too_long",
            Self::CohortReversed => "cohort_reversed",
            Self::CohortAfterBoundary => "cohort_after_boundary",
            Self::TargetAbsent => "target_absent",
            Self::TargetAmbiguous => "target_ambiguous",
            Self::GrantAbsent => "grant_absent",
            Self::GrantAmbiguous => "grant_ambiguous",
            Self::GrantsFull => "grants_full",
            Self::RepositoryAbsent => "repository_absent",
            Self::TokenNotRevoked => "token_not_revoked",
            Self::UnknownPriceFormat => "unknown_price_format",
            Self::NoModels => "no_models",
            Self::PriceTablesFull => "price_tables_full",
        }
    }
}

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MalformedSha => "the commit is not 40 or 64 hexadecimal digits",
            Self::ReversedBounds => "the capture range ends before it starts",
            Self::IncompleteIdentity => {
                "a repository identity needs provider, host and id together"
            }
            Self::MissingSelector => "a repository must be selected",
            Self::SelectorConflict => "the repository never had that name",
            Self::InvalidCursor | Self::InvalidSessionCursor => {
                "the cursor was not issued by this service"
            }
            Self::CursorMismatch | Self::SessionCursorMismatch => {
                "the cursor is no longer valid: the query has changed, or facts were quarantined \
             or released since"
            }
            Self::CohortTooLong => "the cohort is longer than 31 days",
            Self::CohortReversed => "the cohort ends before it starts",
            Self::CohortAfterBoundary => "the cohort ends after as_of",
            Self::TargetAbsent => "no fact of this table has this id",
            Self::TargetAmbiguous => "several facts of this table have this prefix of an id",
            Self::GrantAbsent => "no grant has this id",
            Self::GrantAmbiguous => "several grants have this prefix of an id",
            Self::GrantsFull => "the token already has 32 grants: remove one",
            Self::RepositoryAbsent => "no stored fact names this repository",
            Self::TokenNotRevoked => "the token is not revoked",
            Self::UnknownPriceFormat => {
                "the file is neither LiteLLM's list of models nor the document of models.dev"
            }
            Self::NoModels => "no model of the file has a price",
            Self::PriceTablesFull => "there are 1,000 price tables, and no more are kept",
        })
    }
}

impl fmt::Display for SessionBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reconciliation => "the Session has too many calls to list",
            Self::Compatibility => "the Session has too many facts for the compatibility evidence",
            Self::Dossier => "the Session has too many events for a dossier",
            Self::Delivery => "the Session has too many commits, pushes or CI outcomes",
        })
    }
}

impl fmt::Display for RequiredAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingest => "ingest authority required",
            Self::Operator => "operator authority required",
            Self::Retrieval => "retrieval authority required",
        })
    }
}
