//! Why something is not counted. Each set is closed. Each candidate of a panel is either counted or
//! has exactly one reason of its set.

use crate::closed_set;
use crate::repository::RepositoryDecline;

macro_rules! from_decline {
    ($name:ident) => {
        impl From<RepositoryDecline> for $name {
            fn from(decline: RepositoryDecline) -> Self {
                match decline {
                    RepositoryDecline::IdentityAbsent => Self::RepositoryIdentityAbsent,
                    RepositoryDecline::IdentityConflict => Self::RepositoryIdentityConflict,
                    RepositoryDecline::IdentityUnresolved => Self::RepositoryIdentityUnresolved,
                    RepositoryDecline::MirrorIdentityUnresolved => {
                        Self::RepositoryMirrorIdentityUnresolved
                    }
                    RepositoryDecline::SourceAbsent => Self::RepositorySourceAbsent,
                }
            }
        }
    };
}

closed_set! {
    /// Why a decision is not attached to a call.
    pub enum DecisionSkip {
        /// The call id of the decision belongs to several calls.
        Ambiguous = "ambiguous_decision_call_id",
        /// The call belongs to another organization. Never counted, because facts of other
        /// organizations are never read.
        OrgMismatch = "decision_org_mismatch",
        /// The call belongs to another Session.
        SessionMismatch = "decision_session_mismatch",
        /// The decision has no call id.
        Missing = "missing_decision_call_id",
        /// No call has the call id of the decision.
        Unmatched = "unmatched_decision_call_id",
    }
}

closed_set! {
    /// Why a CI run counts for no commit.
    pub enum CiRunSkip {
        /// The outcomes of the run contradict each other about what was run, where, or with which
        /// result.
        ConflictingIdentity = "conflicting_run_identity",
    }
}

closed_set! {
    /// Why a commit has no verdict although its runs have some.
    pub enum CiCommitSkip {
        /// The runs of the commit have different verdicts.
        Ambiguous = "ambiguous_workflow_verdicts",
    }
}

closed_set! {
    /// Why a call is not counted in an Attribution rate.
    pub enum CompletionSkip {
        /// The content of the call was erased, so nobody can tell whether it reached a commit.
        ContentErased = "content_erased",
    }
}

closed_set! {
    /// Why an edit has no Fate.
    pub enum FateSkip {
        /// The texts of the edit were erased.
        ContentErased = "content_erased",
        /// The score is not a number from 0 to 1. Never counted by the current rules.
        InvalidScore = "invalid_score",
        /// The score could not be computed. Never counted by the current rules.
        ScorerError = "scorer_error",
    }
}

closed_set! {
    /// What was found about a Session with decisions, and why observations were not counted. The
    /// unit is a Session; for the reasons about repositories, it is a Session commit observation.
    pub enum SessionSkip {
        /// Sessions with decisions, none of them accepted.
        NoAcceptedDecision = "no_accepted_decision",
        /// Sessions with an accepted decision and an observed commit.
        ReachedACommit = "reached_a_commit",
        /// Observations that name no repository.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// Observations that name another repository than their push.
        RepositoryIdentityConflict = "repository_identity_conflict",
        /// Observations whose repository cannot be determined.
        RepositoryIdentityUnresolved = "repository_identity_unresolved",
        /// Observations whose mirror does not belong to a single repository.
        RepositoryMirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// Observations whose push is absent, quarantined or later than the boundary.
        RepositorySourceAbsent = "repository_source_absent",
        /// Sessions with an accepted decision and without an observed commit. They may still have
        /// one.
        SessionCommitUnobserved = "session_commit_unobserved",
    }
}

from_decline!(SessionSkip);

closed_set! {
    /// Why an attributed file is not known to be in exactly one merged pull request.
    pub enum MembershipSkip {
        /// The commit is in several merged pull requests.
        Ambiguous = "ambiguous_pr_membership",
        /// It cannot be determined whether some merged pull request of the repository contains the
        /// commit.
        AncestryCheckFailed = "ancestry_check_failed",
        /// No merged pull request that is known contains the commit.
        WithoutMerge = "attribution_without_merge",
    }
}

closed_set! {
    /// Why an attributed file has no score. The unit is a file in a merged pull request; for
    /// `session_commit_unobserved` it is a pair of a commit and a Session, for
    /// `malformed_diff_section` and `unsupported_diff_section` a section of the commit's diff, and
    /// for reasons about repositories a Session commit observation, a merge, a revision or a CI
    /// outcome.
    pub enum ScoringSkip {
        /// The file contains a NUL.
        BinaryFile = "binary_file",
        /// The file is too large to be compared.
        FileOversized = "file_oversized",
        /// git failed to read the file.
        FileReadFailed = "file_read_failed",
        /// The mirror does not have the head of the pull request.
        HeadCommitAbsent = "head_commit_absent",
        /// The head has no regular file at the path.
        HeadFileAbsent = "head_file_absent",
        /// The head has the file neither at its own path nor at exactly one other path.
        HeadPathUnresolved = "head_path_unresolved",
        /// A section of the diff is malformed.
        MalformedDiffSection = "malformed_diff_section",
        /// The mirror does not have the merged commit.
        MergeCommitAbsent = "merge_commit_absent",
        /// The merged commit has no regular file at the path.
        MergeFileAbsent = "merge_file_absent",
        /// The merged commit has the file neither at its own path nor at exactly one other path.
        MergePathUnresolved = "merge_path_unresolved",
        /// There is no mirror of the repository, or of the head repository.
        MirrorAbsent = "mirror_absent",
        /// A fact names no repository.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// A fact and its source name different repositories.
        RepositoryIdentityConflict = "repository_identity_conflict",
        /// The repository of a fact cannot be determined.
        RepositoryIdentityUnresolved = "repository_identity_unresolved",
        /// The mirror does not belong to a single repository.
        RepositoryMirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// The source of a fact is absent, quarantined or later than the boundary.
        RepositorySourceAbsent = "repository_source_absent",
        /// No observation links the commit and the Session.
        SessionCommitUnobserved = "session_commit_unobserved",
        /// The mirror does not have the attributed commit.
        SourceCommitAbsent = "source_commit_absent",
        /// The diff of the commit cannot be read.
        SourceDiffUnavailable = "source_diff_unavailable",
        /// The diff has no section for the path, or several.
        SourceFileDiffAbsent = "source_file_diff_absent",
        /// The text that the commit adds to the file is blank.
        SourceTextEmpty = "source_text_empty",
        /// A section of the diff is of an unsupported kind.
        UnsupportedDiffSection = "unsupported_diff_section",
    }
}

from_decline!(ScoringSkip);

closed_set! {
    /// Why a push, a commit, a section of a diff or a file has no Attribution. Each reason has its
    /// own unit.
    pub enum AttributionSkip {
        /// Commits whose diff cannot be read.
        CommitDiffUnavailable = "commit_diff_unavailable",
        /// Files for which no call is similar enough, although the content of a call that could
        /// have written them was erased.
        ContentErased = "content_erased",
        /// Malformed sections of a diff.
        MalformedDiffSection = "malformed_diff_section",
        /// Pushes whose repository has no mirror.
        MirrorAbsent = "mirror_absent",
        /// Commits that add nothing to a source code file, if their diff could be read in full.
        NoCodeDiff = "no_code_diff",
        /// Pushes that no call could have led to: no call was observed near them, and none of a
        /// Session that a note names in the week before. They are not examined further.
        NoInferenceCallCandidates = "no_inference_call_candidates",
        /// Files for which no call is similar enough.
        NoMatch = "no_match",
        /// Pushes, and over all history observations, that name no repository.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// The same, that contradict another fact about their repository.
        RepositoryIdentityConflict = "repository_identity_conflict",
        /// The same, whose repository cannot be determined.
        RepositoryIdentityUnresolved = "repository_identity_unresolved",
        /// The same, whose mirror does not belong to a single repository.
        RepositoryMirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// The same, whose source is absent, quarantined or later than the boundary.
        RepositorySourceAbsent = "repository_source_absent",
        /// Sections of a diff that are of an unsupported kind, such as binary files.
        UnsupportedDiffSection = "unsupported_diff_section",
    }
}

from_decline!(AttributionSkip);

closed_set! {
    /// Why an accepted call or a decision does not reach the next stage. Each reason has its own
    /// unit.
    pub enum AcceptedWorkSkip {
        /// Calls in merged pull requests whose CI contradicts itself.
        AmbiguousCiVerdict = "ambiguous_ci_verdict",
        /// Decisions whose call id belongs to several calls.
        AmbiguousDecisionCallId = "ambiguous_decision_call_id",
        /// Accepted calls without an Attribution to a commit at which their Session was observed.
        AttributionUnavailable = "attribution_unavailable",
        /// Calls in merged pull requests without any CI evidence.
        CiMissing = "ci_missing",
        /// Calls in merged pull requests with CI evidence but without a verdict.
        CiNonVerdict = "ci_non_verdict",
        /// Accepted calls whose content was erased, so nobody can tell whether they reached a
        /// commit. They are in no stage and in no denominator.
        ContentErased = "content_erased",
        /// Decisions about a call of another organization. Never counted.
        DecisionOrgMismatch = "decision_org_mismatch",
        /// Decisions about a call of another Session.
        DecisionSessionMismatch = "decision_session_mismatch",
        /// Decisions without a call id.
        MissingDecisionCallId = "missing_decision_call_id",
        /// Attributed calls without a file that is known to be in exactly one merged pull request.
        PullRequestMembershipUnavailable = "pull_request_membership_unavailable",
        /// Pairs of a commit and a Session of accepted calls that no observation supports.
        SessionCommitUnobserved = "session_commit_unobserved",
        /// Decisions whose call id belongs to no call.
        UnmatchedDecisionCallId = "unmatched_decision_call_id",
    }
}

impl From<DecisionSkip> for AcceptedWorkSkip {
    fn from(skip: DecisionSkip) -> Self {
        match skip {
            DecisionSkip::Ambiguous => Self::AmbiguousDecisionCallId,
            DecisionSkip::OrgMismatch => Self::DecisionOrgMismatch,
            DecisionSkip::SessionMismatch => Self::DecisionSessionMismatch,
            DecisionSkip::Missing => Self::MissingDecisionCallId,
            DecisionSkip::Unmatched => Self::UnmatchedDecisionCallId,
        }
    }
}

closed_set! {
    /// Why an accepted call is in no stratum of a property.
    pub enum StratumSkip {
        /// The model of the call is unknown.
        MissingModel = "missing_model",
        /// The call has no Attribution to a commit at which its Session was observed.
        MissingRepository = "missing_repository",
        /// No CI run is known for the commits of the call.
        MissingWorkflow = "missing_workflow",
        /// Decisions from several agents are attached to the call.
        MultipleAgentHarnesses = "multiple_agent_harnesses",
        /// The commits of the call are in several repositories.
        MultipleRepositories = "multiple_repositories",
        /// Several workflows ran for the commits of the call.
        MultipleWorkflows = "multiple_workflows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<T: Copy>(all: &[T], text: impl Fn(T) -> &'static str) {
        assert!(all.is_sorted_by_key(|value| text(*value)));
    }

    #[test]
    fn reasons_are_sorted_as_text() {
        sorted(DecisionSkip::ALL, DecisionSkip::as_str);
        sorted(CompletionSkip::ALL, CompletionSkip::as_str);
        sorted(FateSkip::ALL, FateSkip::as_str);
        sorted(SessionSkip::ALL, SessionSkip::as_str);
        sorted(MembershipSkip::ALL, MembershipSkip::as_str);
        sorted(ScoringSkip::ALL, ScoringSkip::as_str);
        sorted(AttributionSkip::ALL, AttributionSkip::as_str);
        sorted(AcceptedWorkSkip::ALL, AcceptedWorkSkip::as_str);
        sorted(StratumSkip::ALL, StratumSkip::as_str);
    }

    #[test]
    fn a_reason_keeps_its_word_in_a_wider_set() {
        for skip in DecisionSkip::ALL {
            assert_eq!(AcceptedWorkSkip::from(*skip).as_str(), skip.as_str());
        }
        for decline in RepositoryDecline::ALL {
            assert_eq!(SessionSkip::from(*decline).as_str(), decline.as_str());
            assert_eq!(ScoringSkip::from(*decline).as_str(), decline.as_str());
            assert_eq!(AttributionSkip::from(*decline).as_str(), decline.as_str());
        }
    }
}
