//! The kinds of fact, each described by its table.

use svc_model::facts::FactTable;

use super::calls;
use super::record::{Record, Table};

/// Declares something for each kind of fact, in the order in which a transaction writes the kinds
/// and a verification reads them. The kinds that are given come first; the kinds that are one row
/// each follow.
macro_rules! kinds {
    (@of $declare:ident [$($first:tt)*] $($(#[$doc:meta])* $kind:ident in $table:ident,)+) => {
        $declare! {
            $($first)*
            $($(#[$doc])* $kind(svc_engine_fact::$kind) in $table,)+
        }
    };
    ($declare:ident $($first:tt)*) => {
        $crate::table::kind::kinds! { @of $declare [$($first)*]
            // Before the observations that refer to it.
            /// A push to a branch.
            Push in Pushes,
            /// An accepted or rejected proposal.
            DeveloperDecision in DeveloperDecisions,
            /// What became of an applied edit.
            EditObservation in EditObservations,
            /// A refused edit.
            RejectedEdit in RejectedEdits,
            /// A refused edit and the edit that was accepted instead.
            RetryLinkage in RetryLinkages,
            /// A client's report that a model was called.
            UsageReceipt in UsageReceipts,
            /// A pull request when it was opened or changed.
            PullRequestRevision in PullRequestRevisions,
            /// A merged pull request.
            PullRequestMerge in PullRequestMerges,
            /// A renamed repository.
            RepositoryRename in RepositoryRenames,
            /// The outcome of a CI run.
            CiOutcome in CiOutcomes,
            /// A link between a Session and a commit.
            SessionCommitObservation in SessionCommitObservations,
        }
    };
}
pub(crate) use kinds;

macro_rules! tables {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        /// Returns the table of a kind.
        pub(crate) const fn table(kind: FactTable) -> &'static Table {
            match kind {
                FactTable::InferenceCalls => &calls::TABLE,
                $(FactTable::$table => <$fact as Record>::TABLE,)+
            }
        }
    };
}
kinds!(tables);

/// Returns the tables of all kinds.
pub(crate) fn tables() -> impl Iterator<Item = &'static Table> {
    FactTable::ALL.iter().map(|kind| table(*kind))
}

/// Returns the kinds that hold captured content of a Session.
pub(crate) fn with_content() -> impl Iterator<Item = FactTable> {
    let kinds = FactTable::ALL.iter().copied();
    kinds.filter(|kind| !table(*kind).content.is_empty())
}
