#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AttributionSkip, Counts, Provenance};
use crate::closed_set;
use crate::id::OrgId;
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::time::Instant;

/// The sources of one repository's Attributions. The unit is a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionShareRow {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The first moment of the window, by when pushes were received.
    pub window_start: Instant,
    /// The last moment of the window.
    pub window_end: Instant,
    /// Commits of pushes in the window that an agent could have made: a call was observed near the
    /// push, or a call of a Session that the commit's note names was observed within a week. At
    /// least 1, and the sum of the next three.
    pub agent_plausible_commits: u64,
    /// Commits with a file that is attributed by a note.
    pub git_notes_attributed: u64,
    /// Commits with files that are attributed by similarity only.
    pub jaccard_attributed: u64,
    /// Commits without an Attribution, including commits without code. A commit that could not be looked
    /// at is not among them.
    pub unattributed: u64,
    /// `git_notes_attributed` of `agent_plausible_commits`.
    pub git_notes_share: f64,
    /// Wilson's 95 % interval of that share.
    pub git_notes_share_ci: [f64; 2],
    /// The rules that the row was derived by.
    pub provenance: Provenance,
    /// The identity of the repository; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

closed_set! {
    /// A possible sign of missing notes.
    pub enum AttributionAlertKind {
        /// There are commits that an agent could have made, but none has a note that led to a call.
        ZeroShare = "zero_share_nonzero_activity",
        /// The share of notes is smaller than in the previous window, beyond chance.
        SustainedDecline = "sustained_decline",
    }
}

/// A repository whose notes may be missing. It says where to look, not what is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionAlert {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The identity of the repository; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The kind of alert.
    pub kind: Open<AttributionAlertKind>,
    /// The window.
    pub current: AttributionShareRow,
    /// The previous window; null if it has no plausible commit or is not relevant.
    pub baseline: Option<AttributionShareRow>,
    /// The alert as a sentence.
    pub reason: String,
}

/// The share of notes among Attributions, by repository, compared with the previous window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionShareReport {
    /// How many plausible commits both windows need before a decline is reported.
    pub min_cases_for_decline_verdict: u64,
    /// The latest week of each repository.
    pub current: Vec<AttributionShareRow>,
    /// The four weeks before that.
    pub baseline: Vec<AttributionShareRow>,
    /// Alerts about possibly missing notes, in the order of `current`.
    pub alerts: Vec<AttributionAlert>,
    /// What could not be looked at in either window, by reason, each in its own unit. A commit that no
    /// note ties and that this concerns is in no row, and a repository of such commits may have none: its
    /// share is unknown, not 0. Absent if everything could be looked at.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_skips: Counts<AttributionSkip>,
}
