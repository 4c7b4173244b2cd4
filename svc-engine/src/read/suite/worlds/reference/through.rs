//! The pull requests that were merged as a commit, as far as facts alone tell.

use super::*;

impl Reference<'_> {
    /// Returns a line for each commit of each pull request, and whether any has a Session.
    pub(super) fn through(
        &self,
        sha: &CommitSha,
        repository: &Repository,
        boundary: Instant,
    ) -> (Vec<String>, bool) {
        let of_base = |pull: &svc_engine_fact::PullRequest| {
            self.resolve(&pull.repo, pull.repository.as_ref(), boundary)
        };
        let mut merges: Vec<_> = self
            .seen
            .merges
            .iter()
            .filter(|merge| merge.captured_at <= boundary && merge.merge_commit_sha == *sha)
            .filter(|merge| merge.pull_request.head_sha != *sha)
            .filter(|merge| of_base(&merge.pull_request).as_ref() == Ok(repository))
            .collect();
        merges.sort_by_key(|merge| (merge.pull_request.pr_number, merge.merge_id));
        let mut allowed = BTreeSet::from([repository.clone()]);
        for merge in &merges {
            let pull = &merge.pull_request;
            let name = pull.head_repo.as_deref().unwrap_or_default();
            allowed.extend(self.resolve(name, pull.head_repository.as_ref(), boundary));
        }
        let mut lines = Vec::new();
        let mut have = false;
        for merge in merges {
            let pull = &merge.pull_request;
            let mut heads = BTreeSet::new();
            for revision in &self.seen.revisions {
                let other = &revision.pull_request;
                let is_same = other.pr_number == pull.pr_number
                    && other.repository == pull.repository
                    && (pull.repository.is_some() || other.repo == pull.repo);
                if is_same && revision.captured_at <= boundary {
                    heads.insert(&other.head_sha);
                    heads.extend(&revision.previous_head_sha);
                }
            }
            heads.remove(&pull.head_sha);
            heads.remove(sha);
            for commit in heads.into_iter().chain([&pull.head_sha]) {
                let sessions = self.sessions_at(commit, &allowed, boundary);
                have |= !sessions.is_empty();
                let sessions: Vec<&str> = sessions.into_iter().collect();
                lines.push(format!(
                    "through {} {commit} {}",
                    pull.pr_number,
                    sessions.join(" ")
                ));
            }
        }
        (lines, have)
    }

    fn sessions_at(
        &self,
        commit: &CommitSha,
        allowed: &BTreeSet<Repository>,
        boundary: Instant,
    ) -> BTreeSet<&str> {
        let observations = self.seen.observations.iter();
        observations
            .filter(|seen| seen.commit_sha == *commit && seen.captured_at <= boundary)
            .filter(|seen| {
                let repository = self.resolve_observation(seen, boundary);
                repository.is_ok_and(|repository| allowed.contains(&repository))
            })
            .map(|seen| seen.session_id.as_str())
            .collect()
    }
}
