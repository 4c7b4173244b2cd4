#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AttributionSkip, Counts, Provenance};
use crate::closed_set;
use crate::id::OrgId;
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::time::Instant;

/// How the commits of one repository in one window were attributed: by note, by similarity only, or
/// not at all. The unit is a commit that an agent could have made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionShareRow {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The start of the window, included. A push belongs to the window by when the service received
    /// it.
    pub window_start: Instant,
    /// The end of the window, included.
    pub window_end: Instant,
    /// Commits of pushes in the window that an agent could have made: a call was observed near the
    /// push, or a call of a Session that the note of the commit names was observed in the week
    /// before. At least 1, and the sum of the next three members. It does not say how many commits
    /// agents made.
    pub agent_plausible_commits: u64,
    /// Commits with at least one file that is attributed by note.
    pub git_notes_attributed: u64,
    /// Commits with files that are attributed by similarity only, which is a guess.
    pub jaccard_attributed: u64,
    /// Commits without an Attribution, including commits without code. It does not say that no
    /// agent wrote them. A commit that could not be examined is not counted here.
    pub unattributed: u64,
    /// `git_notes_attributed` divided by `agent_plausible_commits`, from 0 to 1. It does not say
    /// how much agents write.
    pub git_notes_share: f64,
    /// Wilson's 95 % interval of `git_notes_share`.
    pub git_notes_share_ci: [f64; 2],
    /// The rules that this row was derived by.
    pub provenance: Provenance,
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

closed_set! {
    /// A sign that notes may be missing.
    pub enum AttributionAlertKind {
        /// There are commits that an agent could have made, but none of them is attributed by note.
        ZeroShare = "zero_share_nonzero_activity",
        /// The share of notes is smaller than in the window before. Both windows have enough
        /// commits, and the intervals of their shares do not overlap.
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
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The kind of alert.
    pub kind: Open<AttributionAlertKind>,
    /// The row of the window.
    pub current: AttributionShareRow,
    /// The row of the window before; null if that window has none, or if the report has no window
    /// before.
    pub baseline: Option<AttributionShareRow>,
    /// The alert as a sentence for people.
    pub reason: String,
}

/// How many commits are attributed by note, by repository, compared with the weeks before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionShareReport {
    /// The number of plausible commits that both windows need before a decline is reported.
    pub min_cases_for_decline_verdict: u64,
    /// One row for each repository: the seven days up to its last push. A repository without a
    /// plausible commit has no row.
    pub current: Vec<AttributionShareRow>,
    /// The same for the 28 days before.
    pub baseline: Vec<AttributionShareRow>,
    /// Repositories whose notes may be missing, in the order of `current`.
    pub alerts: Vec<AttributionAlert>,
    /// What could not be examined in either window, by reason. Each reason has its own unit. If
    /// this concerns a commit without an Attribution by note, the commit is in no row, and its
    /// repository may have no row at all: the share is unknown, not 0. Absent if everything could
    /// be examined.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_skips: Counts<AttributionSkip>,
}
