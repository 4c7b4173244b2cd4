#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextStatus, MaxBytes, Query};
use crate::evidence::{CaptureCompleteness, EvidenceReadItem};
use crate::field::{FieldKind, Fields, Undeclared, Violation, Violations, is_zero};
use crate::id::{FactId, SessionId};
use crate::json::{Json, WriteError};
use crate::open::Open;
use crate::repository::{CommitAnchor, RepositoryIdentity};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::version::Version1;

/// Asks which Sessions of the grant match a query or made a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextDiscoveryRequest {
    /// Always 1.
    pub schema_version: Version1,
    /// The keywords.
    pub query: Query,
    /// The maximum size of the reply in bytes.
    #[serde(default)]
    pub max_bytes: MaxBytes,
    /// A commit whose Sessions rank first. It neither grants access nor proves ownership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitAnchor>,
}

fn anchor(fields: &Fields<'_>, violations: &mut Violations) -> Option<CommitAnchor> {
    let value = fields.get("commit").filter(|value| !value.is_null())?;
    let Json::Object(object) = value else {
        violations.push(
            Violation::new(FieldKind::ModelAttributesType, "must be a JSON object")
                .at(fields.loc("commit")),
        );
        return None;
    };
    let commit = Fields::new(object, fields.loc("commit"));
    let repository_provider = commit.required("repository_provider", violations);
    let repository_host = commit.required("repository_host", violations);
    let repository_id = commit.required("repository_id", violations);
    let commit_sha = commit.required("commit_sha", violations);
    commit.deny_undeclared(
        &[
            "repository_provider",
            "repository_host",
            "repository_id",
            "commit_sha",
        ],
        Undeclared::ByParent,
        violations,
    );
    Some(CommitAnchor {
        repository_provider: repository_provider?,
        repository_host: repository_host?,
        repository_id: repository_id?,
        commit_sha: commit_sha?,
    })
}

impl CommitAnchor {
    /// Returns the identity of the repository.
    pub fn repository(&self) -> RepositoryIdentity {
        RepositoryIdentity {
            repository_provider: self.repository_provider,
            repository_host: self.repository_host.clone(),
            repository_id: self.repository_id.clone(),
        }
    }
}

impl Request for ContextDiscoveryRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let schema_version = fields.required("schema_version", &mut violations);
        let query = fields.required("query", &mut violations);
        let max_bytes = fields.present("max_bytes", &mut violations);
        let commit = anchor(&fields, &mut violations);
        fields.deny_undeclared(
            &["schema_version", "query", "max_bytes", "commit"],
            Undeclared::ByParent,
            &mut violations,
        );
        Ok(violations.finish(|| {
            Some(Self {
                schema_version: schema_version?,
                query: query?,
                max_bytes: max_bytes.unwrap_or_default(),
                commit,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// What was scanned, over the whole grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryCoverage {
    /// Sessions of the grant.
    pub authorized_sessions: u64,
    /// Sessions of the grant that exist.
    pub found_sessions: u64,
    /// Their visible calls.
    pub visible_inference_calls: u64,
    /// Their quarantined calls, which are not scanned.
    pub quarantined_inference_calls: u64,
    /// Parts of every visible call.
    pub scanned_parts: u64,
    /// Parts with a token of the query, repetitions included.
    pub matched_parts: u64,
    /// Always true.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub complete_visible_scan: bool,
}

/// Why scanned parts and known Sessions are not among the candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoverySkipped {
    /// Reasoning parts, which retrieval never searches.
    pub reasoning_part: u64,
    /// Tool parts with a number that is not finite.
    pub non_finite_number: u64,
    /// Parts without any token of the query.
    pub unmatched_part: u64,
    /// Sessions without a matched part and without the commit.
    pub unmatched_session: u64,
    /// Candidates after the eighth.
    pub candidate_limit: u64,
    /// Candidates that did not fit into `max_bytes`.
    pub response_budget: u64,
    /// Visible calls whose content was erased: of them there is nothing to scan. They are calls and no
    /// parts; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub content_erased: u64,
}

/// The observed link between a Session and the requested commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitMatch {
    /// The Session commit observation.
    pub observation_id: FactId,
    /// The push after which it was observed.
    pub source_push_id: FactId,
    /// When the service observed it.
    pub captured_at: Instant,
}

/// One candidate Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryCandidate {
    /// The Session.
    pub session_id: SessionId,
    /// The score of its best part; 0 without a match.
    pub score: u64,
    /// How many of its parts match, repetitions included.
    pub matched_parts: u64,
    /// Its best part; null without a match, or when a commit-matched candidate's part does not fit.
    pub preview: Option<EvidenceReadItem>,
    /// The observed link to the requested commit.
    pub commit_match: Option<CommitMatch>,
}

/// At most eight Sessions: those of the commit first, then by score, then by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryResult {
    /// Always 1.
    pub schema_version: Version1,
    /// The version of the ranking: always 1.
    pub policy_version: Open<Version1>,
    /// The high-water mark of the quarantine log in the snapshot of this answer.
    pub quarantine_revision: u64,
    /// Always `unknown`.
    pub capture_completeness: Open<CaptureCompleteness>,
    /// The requested commit, normalised, whether or not it matched.
    pub commit: Option<CommitAnchor>,
    /// The outcome of the query.
    pub status: Open<ContextStatus>,
    /// What was scanned.
    pub coverage: DiscoveryCoverage,
    /// Why scanned parts and known Sessions are not among the candidates.
    pub skipped: DiscoverySkipped,
    /// The candidates.
    pub items: Vec<DiscoveryCandidate>,
}
