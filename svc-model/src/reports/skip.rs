//! Why something is not counted. Each set is closed, and each candidate of a panel is either
//! counted or has exactly one reason of its set.

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
        /// The id belongs to several calls.
        Ambiguous = "ambiguous_decision_call_id",
        /// The call belongs to another organization. Never counted, because facts of other
        /// organizations are never read.
        OrgMismatch = "decision_org_mismatch",
        /// The call belongs to another Session.
        SessionMismatch = "decision_session_mismatch",
        /// The decision has no call id.
        Missing = "missing_decision_call_id",
        /// The id belongs to no call.
        Unmatched = "unmatched_decision_call_id",
    }
}

closed_set! {
    /// Why a CI run counts for no commit.
    pub enum CiRunSkip {
        /// Its outcomes contradict each other about what was run, where, or with which result.
        ConflictingIdentity = "conflicting_run_identity",
    }
}

closed_set! {
    /// Why a commit with several verdicts has no verdict itself.
    pub enum CiCommitSkip {
        /// Its runs have different verdicts.
        Ambiguous = "ambiguous_workflow_verdicts",
    }
}

closed_set! {
    /// Why the attribution rate is not taken of a call.
    pub enum CompletionSkip {
        /// The content of the call was erased, so nobody can tell whether it reached a commit.
        ContentErased = "content_erased",
    }
}

closed_set! {
    /// Why an edit has no Fate. The current score cannot fail, so its two reasons are never counted.
    pub enum FateSkip {
        /// The texts of the edit were erased.
        ContentErased = "content_erased",
        /// The score is not a number from 0 to 1.
        InvalidScore = "invalid_score",
        /// The score could not be computed.
        ScorerError = "scorer_error",
    }
}

closed_set! {
    /// What was found about a Session with decisions, and which observations were not counted. The
    /// units are Sessions and, for reasons about repositories, observations.
    pub enum SessionSkip {
        /// Sessions without an accepted decision.
        NoAcceptedDecision = "no_accepted_decision",
        /// Accepted Sessions with an observed commit.
        ReachedACommit = "reached_a_commit",
        /// Observations that name no repository.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// Observations whose push belongs to another repository.
        RepositoryIdentityConflict = "repository_identity_conflict",
        /// Observations whose repository cannot be determined.
        RepositoryIdentityUnresolved = "repository_identity_unresolved",
        /// Observations whose mirror does not belong to a single repository.
        RepositoryMirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// Observations whose push is absent, quarantined or later than the boundary.
        RepositorySourceAbsent = "repository_source_absent",
        /// Accepted Sessions without an observed commit.
        SessionCommitUnobserved = "session_commit_unobserved",
    }
}

from_decline!(SessionSkip);

closed_set! {
    /// Why an attributed file is not known to be in exactly one merged pull request.
    pub enum MembershipSkip {
        /// The commit is in several merged pull requests.
        Ambiguous = "ambiguous_pr_membership",
        /// For some merged pull request of the repository, it cannot be determined whether it
        /// contains the commit.
        AncestryCheckFailed = "ancestry_check_failed",
        /// No merged pull request contains the commit.
        WithoutMerge = "attribution_without_merge",
    }
}

closed_set! {
    /// Why an attributed file has no score of what remained of it. The unit is a file in a merged
    /// pull request; for `session_commit_unobserved` a pair of commit and Session, for the two
    /// section reasons a section of the commit's diff.
    pub enum ScoringSkip {
        /// The file contains a NUL.
        BinaryFile = "binary_file",
        /// The file is too large to be read.
        FileOversized = "file_oversized",
        /// git failed while the file was read.
        FileReadFailed = "file_read_failed",
        /// The head of the pull request is not in its mirror.
        HeadCommitAbsent = "head_commit_absent",
        /// The head has no regular file at the path.
        HeadFileAbsent = "head_file_absent",
        /// The head has the file neither at its own path nor at a single other one.
        HeadPathUnresolved = "head_path_unresolved",
        /// A section of the diff is malformed.
        MalformedDiffSection = "malformed_diff_section",
        /// The merged commit is not in its mirror.
        MergeCommitAbsent = "merge_commit_absent",
        /// The merged commit has no regular file at the path.
        MergeFileAbsent = "merge_file_absent",
        /// The merged commit has the file neither at its own path nor at a single other one.
        MergePathUnresolved = "merge_path_unresolved",
        /// A mirror is missing.
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
        /// The attributed commit is not in its mirror.
        SourceCommitAbsent = "source_commit_absent",
        /// The diff of the commit cannot be read.
        SourceDiffUnavailable = "source_diff_unavailable",
        /// The diff has no section, or several sections, for the path.
        SourceFileDiffAbsent = "source_file_diff_absent",
        /// What the commit adds to the file is blank.
        SourceTextEmpty = "source_text_empty",
        /// A section of the diff is of an unsupported kind.
        UnsupportedDiffSection = "unsupported_diff_section",
    }
}

from_decline!(ScoringSkip);

closed_set! {
    /// Why a push, a commit, a section or a file has no Attribution. Each reason has its own unit.
    pub enum AttributionSkip {
        /// Commits whose diff cannot be read.
        CommitDiffUnavailable = "commit_diff_unavailable",
        /// Files to which no call is similar enough, where the content of a call that could have
        /// written them was erased.
        ContentErased = "content_erased",
        /// Malformed sections of a diff.
        MalformedDiffSection = "malformed_diff_section",
        /// Pushes whose repository has no mirror.
        MirrorAbsent = "mirror_absent",
        /// Commits that add nothing to a source code file.
        NoCodeDiff = "no_code_diff",
        /// Pushes that no call could have led to. They are not examined further.
        NoInferenceCallCandidates = "no_inference_call_candidates",
        /// Files that no call is similar enough to.
        NoMatch = "no_match",
        /// Pushes that name no repository.
        RepositoryIdentityAbsent = "repository_identity_absent",
        /// Pushes that contradict another fact about their repository.
        RepositoryIdentityConflict = "repository_identity_conflict",
        /// Pushes whose repository cannot be determined.
        RepositoryIdentityUnresolved = "repository_identity_unresolved",
        /// Pushes whose mirror does not belong to a single repository.
        RepositoryMirrorIdentityUnresolved = "repository_mirror_identity_unresolved",
        /// Pushes whose source is absent, quarantined or later than the boundary.
        RepositorySourceAbsent = "repository_source_absent",
        /// Sections of a diff of an unsupported kind.
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
        /// Accepted calls without an Attribution to an observed commit.
        AttributionUnavailable = "attribution_unavailable",
        /// Calls in merged pull requests without any CI evidence.
        CiMissing = "ci_missing",
        /// Calls in merged pull requests with CI evidence but no verdict.
        CiNonVerdict = "ci_non_verdict",
        /// Accepted calls whose content was erased, so nobody can tell whether they reached a commit.
        /// They are in no stage and in no denominator.
        ContentErased = "content_erased",
        /// Decisions about a call of another organization; never counted.
        DecisionOrgMismatch = "decision_org_mismatch",
        /// Decisions about a call of another Session.
        DecisionSessionMismatch = "decision_session_mismatch",
        /// Decisions without a call id.
        MissingDecisionCallId = "missing_decision_call_id",
        /// Attributed calls without a file that is known to be in exactly one merged pull request.
        PullRequestMembershipUnavailable = "pull_request_membership_unavailable",
        /// Pairs of commit and Session of accepted calls that no observation supports.
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
    /// Why an accepted call is in no stratum of a dimension.
    pub enum StratumSkip {
        /// No model is known.
        MissingModel = "missing_model",
        /// It has no Attribution to an observed commit.
        MissingRepository = "missing_repository",
        /// Its commits have no run.
        MissingWorkflow = "missing_workflow",
        /// Decisions of several agents are attached to it.
        MultipleAgentHarnesses = "multiple_agent_harnesses",
        /// Its commits are in several repositories.
        MultipleRepositories = "multiple_repositories",
        /// Several workflows ran for its commits.
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
