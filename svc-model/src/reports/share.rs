#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Provenance;
use crate::closed_set;
use crate::id::OrgId;
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::time::Instant;

/// Where the Attributions of one repository come from. The unit is a commit.
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
    /// push, or one of a Session that the commit's note names within a week. At least 1, and the sum of
    /// the three that follow.
    pub agent_plausible_commits: u64,
    /// Those of which a file is attributed by a note.
    pub git_notes_attributed: u64,
    /// Those of which files are attributed by similarity alone.
    pub jaccard_attributed: u64,
    /// Those without an Attribution, commits without code among them.
    pub unattributed: u64,
    /// `git_notes_attributed` of `agent_plausible_commits`.
    pub git_notes_share: f64,
    /// Wilson's 95 % interval of that share.
    pub git_notes_share_ci: [f64; 2],
    /// By which rules the row was derived.
    pub provenance: Provenance,
    /// The identity of the repository; null when it is only known by its name.
    pub repository_identity: Option<LifetimeIdentity>,
}

closed_set! {
    /// What looks as if notes were lost.
    pub enum AttributionAlertKind {
        /// There are commits that an agent could have made, and none has a note that led to a call.
        ZeroShare = "zero_share_nonzero_activity",
        /// The share of notes is smaller than in the window before, beyond chance.
        SustainedDecline = "sustained_decline",
    }
}

/// A repository whose notes seem to be lost. It says where to look and not what is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionAlert {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The identity of the repository; null when it is only known by its name.
    pub repository_identity: Option<LifetimeIdentity>,
    /// What it looks like.
    pub kind: Open<AttributionAlertKind>,
    /// The window.
    pub current: AttributionShareRow,
    /// The window before; null when it has no plausible commit, or does not matter.
    pub baseline: Option<AttributionShareRow>,
    /// The alert in a sentence.
    pub reason: String,
}

/// The share of notes among Attributions, by repository, beside the window before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributionShareReport {
    /// How many plausible commits both windows need before a decline is called one.
    pub min_cases_for_decline_verdict: u64,
    /// The latest week of each repository.
    pub current: Vec<AttributionShareRow>,
    /// The four weeks before that.
    pub baseline: Vec<AttributionShareRow>,
    /// What looks as if notes were lost, in the order of `current`.
    pub alerts: Vec<AttributionAlert>,
}
