//! The kinds of fact, each described by its table.

use svc_engine_fact::{
    CiOutcome, DeveloperDecision, EditObservation, PullRequestMerge, PullRequestRevision, Push,
    RejectedEdit, RepositoryRename, RetryLinkage, SessionCommitObservation,
};
use svc_model::facts::FactTable;

use super::calls;
use super::record::{Record as _, Table};

/// Returns the table of a kind.
pub(crate) const fn table(kind: FactTable) -> &'static Table {
    match kind {
        FactTable::InferenceCalls => &calls::TABLE,
        FactTable::DeveloperDecisions => DeveloperDecision::TABLE,
        FactTable::CiOutcomes => CiOutcome::TABLE,
        FactTable::Pushes => Push::TABLE,
        FactTable::PullRequestMerges => PullRequestMerge::TABLE,
        FactTable::PullRequestRevisions => PullRequestRevision::TABLE,
        FactTable::EditObservations => EditObservation::TABLE,
        FactTable::RejectedEdits => RejectedEdit::TABLE,
        FactTable::RetryLinkages => RetryLinkage::TABLE,
        FactTable::SessionCommitObservations => SessionCommitObservation::TABLE,
        FactTable::RepositoryRenames => RepositoryRename::TABLE,
    }
}

/// Returns the tables of all kinds.
pub(crate) fn tables() -> impl Iterator<Item = &'static Table> {
    FactTable::ALL.iter().map(|kind| table(*kind))
}
