#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextStatus, MaxBytes, Query};
use crate::evidence::{CaptureCompleteness, EvidenceReadItem};
use crate::field::{FieldKind, Fields, Undeclared, Violation, Violations, is_zero};
use crate::id::{FactId, SessionId};
use crate::json::{Json, WriteError};
use crate::open::Open;
use crate::query::ObservationSource;
use crate::repository::{CommitAnchor, RepositoryIdentity};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::version::Version1;

/// Asks which Sessions of the grant match keywords or made a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextDiscoveryRequest {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The keywords. A Session matches if one of its parts contains at least one of them.
    pub query: Query,
    /// The maximum size of the whole reply in bytes: 4,096 to 65,536, by default 16,384.
    #[serde(default)]
    pub max_bytes: MaxBytes,
    /// A commit; the Sessions that were observed at it rank first. It neither grants access nor
    /// proves who made the commit.
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

/// What was scanned, summed over the Sessions that were searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryCoverage {
    /// The number of Sessions in the grant, whether or not they exist.
    pub authorized_sessions: u64,
    /// The number of Sessions in the grant that some fact names.
    pub found_sessions: u64,
    /// The number of these Sessions that were searched, the ones with the latest facts, if all of
    /// them together are too much to search at once. Absent if all were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_sessions: Option<u64>,
    /// The number of visible calls of the searched Sessions.
    pub visible_inference_calls: u64,
    /// The number of their quarantined calls, which are not scanned.
    pub quarantined_inference_calls: u64,
    /// The number of parts of the visible calls, including those that `skipped` counts.
    pub scanned_parts: u64,
    /// The number of parts that contain a keyword. Repeated content counts each time.
    pub matched_parts: u64,
    /// Whether every visible part of the found Sessions was scanned: false only if
    /// `searched_sessions` is present.
    pub complete_visible_scan: bool,
}

/// Why scanned parts and known Sessions are not among the candidates. The parts counted here and
/// `matched_parts` add up to `scanned_parts`; the Sessions counted here and the candidates add up
/// to the searched ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoverySkipped {
    /// Parts with reasoning, which is never searched.
    pub reasoning_part: u64,
    /// Tool calls and results with a number that is not finite, which no reply can contain.
    pub non_finite_number: u64,
    /// Parts without any keyword.
    pub unmatched_part: u64,
    /// Sessions without a matching part that were not observed at the commit either.
    pub unmatched_session: u64,
    /// Sessions that rank after the eighth candidate.
    pub candidate_limit: u64,
    /// Sessions that would have exceeded `max_bytes`.
    pub response_budget: u64,
    /// Visible calls whose content was erased, so that there is nothing to scan. They are calls,
    /// not parts or Sessions, and are in no sum. Absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub content_erased: u64,
}

/// The observed link between a Session and the requested commit: a note on the commit names the
/// Session, or the Session's client reported the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CommitMatch {
    /// The id of the Session commit observation.
    pub observation_id: FactId,
    /// The id of the push after which the link was found.
    pub source_push_id: FactId,
    /// When the service found the link.
    pub captured_at: Instant,
    /// Where the link comes from. Absent if it comes from a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Open<ObservationSource>>,
}

/// One Session that matches the keywords or was observed at the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryCandidate {
    /// The id of the Session.
    pub session_id: SessionId,
    /// How many distinct keywords its best part contains; 0 if no part matches.
    pub score: u64,
    /// The number of its parts that contain a keyword. Repeated content counts each time.
    pub matched_parts: u64,
    /// Its best part, complete. Null if no part matches, or if the candidate was observed at the
    /// commit and fits into `max_bytes` only without its part.
    pub preview: Option<EvidenceReadItem>,
    /// The observed link to the requested commit; null if there is none, or if no commit was
    /// requested.
    pub commit_match: Option<CommitMatch>,
}

/// At most eight Sessions: those that were observed at the commit first, then by score, then by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DiscoveryResult {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The version of the rules for matching and ranking: always 1.
    pub policy_version: Open<Version1>,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// Always `unknown`: the service cannot know about calls that were never sent to it.
    pub capture_completeness: Open<CaptureCompleteness>,
    /// The requested commit in normal form, whether or not it matched; null if none was requested.
    pub commit: Option<CommitAnchor>,
    /// Whether there are candidates, and if not, why.
    pub status: Open<ContextStatus>,
    /// What was scanned.
    pub coverage: DiscoveryCoverage,
    /// Why scanned parts and known Sessions are not among the candidates.
    pub skipped: DiscoverySkipped,
    /// The candidates, best first.
    pub items: Vec<DiscoveryCandidate>,
}
