use svc_model::overview::{OverviewFigures, OverviewOutcome};

/// What evidence says about some changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// They went on.
    Reached,
    /// There is evidence that they did not, or that CI failed.
    Against,
    /// There is none.
    Unknown,
}

/// Some changes at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPart {
    /// What became of them.
    pub said: &'static str,
    /// How many they are.
    pub count: u64,
    /// What evidence says about them.
    pub evidence: Evidence,
    /// The figure that counts them, if there is one.
    pub outcome: Option<OverviewOutcome>,
}

/// One step of the flow. Its parts are those changes that reached the step before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// The step.
    pub name: &'static str,
    /// What became of the changes, without parts that hold none.
    pub parts: Vec<FlowPart>,
}

/// Returns the way of changes: accepted, committed, merged, and what CI says. All rows are of the
/// scale of the changes.
pub fn flow(figures: &OverviewFigures) -> [FlowRow; 4] {
    let undecided = figures.changes.saturating_sub(figures.accepted);
    let unmerged = figures.committed.saturating_sub(figures.merged);
    [
        row(
            "accepted",
            [
                reached("accepted", figures.accepted, OverviewOutcome::Accepted),
                unknown("without a decision", undecided, None),
            ],
        ),
        row(
            "committed",
            [
                reached(
                    "in pushed commits",
                    figures.committed,
                    OverviewOutcome::Committed,
                ),
                against("thrown away", figures.deleted, OverviewOutcome::Deleted),
                unknown(
                    "no commit found",
                    figures.no_commit_found,
                    Some(OverviewOutcome::NoCommitFound),
                ),
                unknown(
                    "not observable",
                    figures.not_observable,
                    Some(OverviewOutcome::NotObservable),
                ),
            ],
        ),
        row(
            "merged",
            [
                reached("merged", figures.merged, OverviewOutcome::Merged),
                unknown("no merge known", unmerged, None),
            ],
        ),
        row(
            "CI",
            [
                reached("passed", figures.passed, OverviewOutcome::Passed),
                against("failed", figures.failed, OverviewOutcome::Failed),
                unknown(
                    "no verdict",
                    figures.no_verdict,
                    Some(OverviewOutcome::NoVerdict),
                ),
            ],
        ),
    ]
}

fn row<const PARTS: usize>(name: &'static str, parts: [FlowPart; PARTS]) -> FlowRow {
    let parts = parts.into_iter().filter(|part| part.count > 0);
    FlowRow {
        name,
        parts: parts.collect(),
    }
}

const fn reached(said: &'static str, count: u64, outcome: OverviewOutcome) -> FlowPart {
    FlowPart {
        said,
        count,
        evidence: Evidence::Reached,
        outcome: Some(outcome),
    }
}

const fn against(said: &'static str, count: u64, outcome: OverviewOutcome) -> FlowPart {
    FlowPart {
        said,
        count,
        evidence: Evidence::Against,
        outcome: Some(outcome),
    }
}

const fn unknown(said: &'static str, count: u64, outcome: Option<OverviewOutcome>) -> FlowPart {
    FlowPart {
        said,
        count,
        evidence: Evidence::Unknown,
        outcome,
    }
}

/// The changes of a day, a repository or a model, each once. Those that CI failed are also among
/// those that are merged or committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeBar {
    /// In commits of merged pull requests.
    pub merged: u64,
    /// In other pushed commits.
    pub committed: u64,
    /// Thrown away.
    pub deleted: u64,
    /// With no commit found, or not observable.
    pub unknown: u64,
    /// Those in commits that CI says now failed.
    pub failed: u64,
}

impl OutcomeBar {
    /// Returns the number of changes.
    pub const fn changes(&self) -> u64 {
        self.merged + self.committed + self.deleted + self.unknown
    }
}

/// Returns the changes as a bar shows them.
pub const fn bar(figures: &OverviewFigures) -> OutcomeBar {
    OutcomeBar {
        merged: figures.merged,
        committed: figures.committed.saturating_sub(figures.merged),
        deleted: figures.deleted,
        unknown: figures.no_commit_found + figures.not_observable,
        failed: figures.failed,
    }
}
