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

/// Asks for the parts of the deployment's one configured Session that match a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextRetrievalRequest {
    /// Always 1.
    pub schema_version: Version1,
    /// The keywords.
    pub query: Query,
    /// The maximum size of the reply in bytes.
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

/// Asks for the parts of one Session of the grant that match a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextSelectedRequest {
    /// Always 1.
    pub schema_version: Version1,
    /// The keywords.
    pub query: Query,
    /// The Session, one of the grant.
    pub session_id: SessionId,
    /// The maximum size of the reply in bytes.
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
    /// The outcome of a query.
    pub enum ContextStatus {
        /// At least one item is in the reply.
        Matched = "matched",
        /// Nothing matched.
        NoMatch = "no_match",
        /// Something matched, but nothing fitted into `max_bytes`.
        BudgetExhausted = "budget_exhausted",
    }
}

/// What was scanned. There is a reply only if the scan was complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextCoverage {
    /// Visible calls of the Session.
    pub visible_inference_calls: u64,
    /// Quarantined calls of the Session, which are not scanned.
    pub quarantined_inference_calls: u64,
    /// Parts of every visible call, including excluded ones.
    pub scanned_parts: u64,
    /// Always true.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub complete_visible_scan: bool,
}

/// Why scanned parts are not among the items. With the items they add up to `scanned_parts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextSkipped {
    /// Reasoning parts, which retrieval never searches.
    pub reasoning_part: u64,
    /// Tool parts with a number that is not finite.
    pub non_finite_number: u64,
    /// Parts without any token of the query.
    pub no_match: u64,
    /// Further occurrences of the same content.
    pub repeated_content: u64,
    /// Parts after the eighth item.
    pub item_limit: u64,
    /// Parts that did not fit into `max_bytes`.
    pub response_budget: u64,
    /// Visible calls whose content was erased: of them there is nothing to scan. They are calls and no
    /// parts; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub content_erased: u64,
}

/// One part that matches the query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextItem {
    /// How many distinct tokens of the query the part contains.
    pub score: u64,
    /// The part, complete.
    pub evidence: EvidenceReadItem,
}

/// At most eight complete parts in rank order: score, then the newest, then the reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContextResult {
    /// Always 1.
    pub schema_version: Version1,
    /// The version of the ranking: always 1.
    pub policy_version: Open<Version1>,
    /// The Session.
    pub source_session_id: SessionId,
    /// The high-water mark of the quarantine log in the snapshot of this answer.
    pub quarantine_revision: u64,
    /// The outcome of the query.
    pub status: Open<ContextStatus>,
    /// Always `unknown`.
    pub capture_completeness: Open<CaptureCompleteness>,
    /// What was scanned.
    pub coverage: ContextCoverage,
    /// Why scanned parts are not among the items.
    pub skipped: ContextSkipped,
    /// The items.
    pub items: Vec<ContextItem>,
}
