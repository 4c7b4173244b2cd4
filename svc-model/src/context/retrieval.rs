#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MaxBytes, Query};
use crate::closed_set;
use crate::evidence::{CaptureCompleteness, EvidenceReadItem};
use crate::field::{Fields, Undeclared, Violations, is_zero};
use crate::id::SessionId;
use crate::json::WriteError;
use crate::open::Open;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::version::Version1;

/// Asks for the parts of the one configured Session that match keywords.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextRetrievalRequest {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The keywords.
    pub query: Query,
    /// The maximum size of the whole reply in bytes: 4,096 to 65,536, by default 16,384.
    #[serde(default)]
    pub max_bytes: MaxBytes,
}

impl Request for ContextRetrievalRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let schema_version = fields.required("schema_version", &mut violations);
        let query = fields.required("query", &mut violations);
        let max_bytes = fields.present("max_bytes", &mut violations);
        fields.deny_undeclared(
            &["schema_version", "query", "max_bytes"],
            Undeclared::ByParent,
            &mut violations,
        );
        Ok(violations.finish(|| {
            Some(Self {
                schema_version: schema_version?,
                query: query?,
                max_bytes: max_bytes.unwrap_or_default(),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// Asks for the parts of one Session of the grant that match keywords.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextSelectedRequest {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The keywords.
    pub query: Query,
    /// The Session, which must be in the grant.
    pub session_id: SessionId,
    /// The maximum size of the whole reply in bytes: 4,096 to 65,536, by default 16,384.
    #[serde(default)]
    pub max_bytes: MaxBytes,
}

impl Request for ContextSelectedRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let schema_version = fields.required("schema_version", &mut violations);
        let query = fields.required("query", &mut violations);
        let session_id = fields.required("session_id", &mut violations);
        let max_bytes = fields.present("max_bytes", &mut violations);
        fields.deny_undeclared(
            &["schema_version", "query", "session_id", "max_bytes"],
            Undeclared::ByParent,
            &mut violations,
        );
        Ok(violations.finish(|| {
            Some(Self {
                schema_version: schema_version?,
                query: query?,
                session_id: session_id?,
                max_bytes: max_bytes.unwrap_or_default(),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

closed_set! {
    /// Whether a query found something that is in the reply.
    pub enum ContextStatus {
        /// At least one item is in the reply.
        Matched = "matched",
        /// Nothing matched.
        NoMatch = "no_match",
        /// Something matched, but nothing of it fitted into `max_bytes`.
        BudgetExhausted = "budget_exhausted",
    }
}

/// What was scanned. There is a reply only if the scan was complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextCoverage {
    /// The number of visible calls of the Session.
    pub visible_inference_calls: u64,
    /// The number of quarantined calls of the Session, which are not scanned.
    pub quarantined_inference_calls: u64,
    /// The number of parts of the visible calls, including those that `skipped` counts.
    pub scanned_parts: u64,
    /// Always true: there is a reply only if every visible part was scanned.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub complete_visible_scan: bool,
}

/// Why scanned parts are not among the items. The parts counted here and the items add up to
/// `scanned_parts`; `content_erased` counts calls and is not in that sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextSkipped {
    /// Parts with reasoning, which is never searched.
    pub reasoning_part: u64,
    /// Tool calls and results with a number that is not finite, which no reply can contain.
    pub non_finite_number: u64,
    /// Parts without any keyword.
    pub no_match: u64,
    /// Matching parts that repeat another one: the same content, role and finish reason. Only the
    /// best-ranked occurrence is considered.
    pub repeated_content: u64,
    /// Matching parts that rank after the eighth item.
    pub item_limit: u64,
    /// Matching parts that would have exceeded `max_bytes`.
    pub response_budget: u64,
    /// Visible calls whose content was erased, so that there is nothing to scan. They are calls,
    /// not parts. Absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub content_erased: u64,
}

/// One part that contains at least one keyword.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextItem {
    /// How many distinct keywords the part contains; at least 1.
    pub score: u64,
    /// The part, complete, with its reference.
    pub evidence: EvidenceReadItem,
}

/// At most eight complete parts of one Session, by score, then the newest first, then by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextResult {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The version of the rules for matching and ranking: always 1.
    pub policy_version: Open<Version1>,
    /// The Session that the parts are from.
    pub source_session_id: SessionId,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// Whether there are items, and if not, why.
    pub status: Open<ContextStatus>,
    /// Always `unknown`: the service cannot know about calls that were never sent to it.
    pub capture_completeness: Open<CaptureCompleteness>,
    /// What was scanned.
    pub coverage: ContextCoverage,
    /// Why scanned parts are not among the items.
    pub skipped: ContextSkipped,
    /// The matching parts, best first.
    pub items: Vec<ContextItem>,
}
