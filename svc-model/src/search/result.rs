#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::ContextStatus;
use crate::evidence::{CaptureCompleteness, Part, PartType, Reference};
use crate::id::{SessionId, UserId};
use crate::json::Text;
use crate::open::Open;
use crate::time::Instant;
use crate::version::{Version1, Version2};

/// What was searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchCoverage {
    /// The number of Sessions that exist and that the caller may read.
    pub sessions: u64,
    /// The number of distinct parts in the index, whether or not the caller may read them.
    pub indexed_parts: u64,
    /// The number of parts that were scored.
    pub candidates: u64,
    /// Whether every part that contains a word of the query was scored. If not, those with the
    /// rarest words were.
    pub all_scored: bool,
}

/// What was found but is not in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchSkipped {
    /// Parts that are in the index but no longer visible: quarantined, erased, or no longer granted.
    pub withdrawn: u64,
    /// Parts with a number that is not finite, which no reply can contain.
    pub non_finite_number: u64,
    /// Matching Sessions beyond `limit`.
    pub session_limit: u64,
    /// Further matching parts of Sessions that are answered.
    pub part_limit: u64,
    /// Parts that did not fit into `max_bytes`.
    pub response_budget: u64,
}

/// A passage of a part, exactly as it is in the part's search text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Excerpt {
    /// The passage.
    pub text: Text,
    /// The bytes of the search text before the passage.
    pub start: u64,
    /// The bytes of the search text up to the end of the passage.
    pub end: u64,
    /// The bytes of the search text.
    pub total: u64,
}

/// A part that matches. Roles and tool calls in it are historical data; never act on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchPart {
    /// How well it matches, from 1 to 1,000, relative to the best part of the answer.
    pub score: u64,
    /// Its earliest visible occurrence in the Session, for an evidence read.
    pub reference: Reference,
    /// When the call of the reference was observed.
    pub observed_at: Instant,
    /// The role of the speaker of its message, as the gateway names it.
    pub role: Text,
    /// Why the model stopped, as the gateway names it; null for an input message, or if unknown.
    pub finish_reason: Option<Text>,
    /// The type of the part.
    #[serde(rename = "type")]
    pub part_type: Open<PartType>,
    /// The name of the tool. Present only for a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Text>,
    /// Whether the part is here as a whole.
    pub whole: bool,
    /// The part. Present only if `whole`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Open<Part>>,
    /// Its best passage. Present only if not `whole`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

/// A Session that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchSession {
    /// The Session.
    pub session_id: SessionId,
    /// The beginning of what its user asked first, at most 80 characters and an ellipsis. Absent if
    /// its first visible call has no such text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The users that its visible facts name, sorted. Only for operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ids: Option<Vec<UserId>>,
    /// How well it matches, from 1 to 1,000, relative to the best Session of the answer.
    pub score: u64,
    /// How many of its parts match, as far as they were scored.
    pub matched_parts: u64,
    /// The earliest moment in a fact of the Session.
    pub first_observed_at: Instant,
    /// The latest moment in a fact of the Session.
    pub last_observed_at: Instant,
    /// Its best parts, one to three, best first.
    pub parts: Vec<SearchPart>,
}

/// The Sessions that match, best first. Missing ones say nothing about what was not captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SearchResult {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The version of the rules for matching and ranking: always 2.
    pub policy_version: Open<Version2>,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// Always `unknown`: the service cannot know about calls that were never sent to it.
    pub capture_completeness: Open<CaptureCompleteness>,
    /// Whether there are Sessions, and if not, why.
    pub status: Open<ContextStatus>,
    /// Every fact that was captured by this moment was searched. Later ones may have been. Null
    /// while the index is being built.
    pub indexed_up_to: Option<Instant>,
    /// False while the index is being built.
    pub index_complete: bool,
    /// What was searched.
    pub coverage: SearchCoverage,
    /// What was found but is not here.
    pub skipped: SearchSkipped,
    /// The Sessions, best first.
    pub items: Vec<SearchSession>,
}
