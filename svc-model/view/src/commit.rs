//! One commit.

use svc_model::id::SessionId;
use svc_model::open::Open;
use svc_model::query::{
    CommitRelation, CommitRepository, InferenceSkip, LinkSkip, LinkedCommit, NamedCommit,
    ObservationSource, ThroughPullRequest,
};
use svc_model::repository::CommitSha;

use crate::surface::Surface;

/// Returns why calls were not searched for in a commit, or not in all of it.
pub const fn reason(skip: InferenceSkip) -> &'static str {
    match skip {
        InferenceSkip::CommitDiffUnavailable => {
            "the mirror lacks the commit or cannot read its diff"
        }
        InferenceSkip::ContentErased => "the content of a call that may have written it was erased",
        InferenceSkip::MalformedDiffSection => "part of the diff is malformed",
        InferenceSkip::MirrorAbsent => "the repository has no mirror",
        InferenceSkip::MirrorUnreadable => "the mirror cannot be opened",
        InferenceSkip::PushUnknown => "it is unknown which push first brought the commit",
        InferenceSkip::UnsupportedDiffSection => {
            "part of the diff is not text, such as a binary file"
        }
    }
}

impl Surface {
    /// Returns how often a Session was observed at a commit, and from what if it was no note.
    pub fn observed(self, times: usize, source: Option<&Open<ObservationSource>>) -> String {
        let times = self.whole(times as u64);
        source.map_or_else(|| times.clone(), |source| format!("{times} from {source}"))
    }

    /// Returns the other names under which a repository was observed, if there are any.
    pub fn other_names(self, of: &CommitRepository) -> Option<String> {
        let others = of.observed_repo_slugs.iter().map(String::as_str);
        let mut others = others.filter(|name| *name != of.repo).peekable();
        others.peek()?;
        Some(self.list(others))
    }
}

/// Returns why links of a commit were not followed, or not all of them.
pub const fn link_reason(skip: LinkSkip) -> &'static str {
    match skip {
        LinkSkip::HeadUnavailable => "no mirror has that head of the pull request",
        LinkSkip::HistoryUnavailable => {
            "the mirror cannot tell the commits of the pull request from those of its base"
        }
        LinkSkip::MirrorAbsent => "the repository has no mirror",
        LinkSkip::MirrorUnreadable => "the mirror cannot be opened",
        LinkSkip::RepositoryUndetermined => {
            "the repository of a pull request merged there cannot be determined"
        }
        LinkSkip::TooDeep => "the commit is linked over too many others",
        LinkSkip::TooManyCommits => "a pull request or a message has too many commits",
        LinkSkip::TooManyMerges => "too many pull requests were merged near the commit",
    }
}

/// Returns the words that lead to a pull request, such as `through pull request 16 (squash)`.
pub fn through(link: &ThroughPullRequest) -> String {
    let method = link.merge_method.as_ref().map(ToString::to_string);
    let method = method.map_or_else(String::new, |method| format!(" ({method})"));
    format!("through pull request {}{method}", link.pr_number)
}

/// Returns the words that lead to a pull request, with the day of the merge if it is known.
pub fn through_on(link: &ThroughPullRequest) -> String {
    let method = link.merge_method.as_ref().map(ToString::to_string);
    let day = link.merged_at.map(|at| {
        let at = at.to_string();
        format!("merged {}", at.get(..10).unwrap_or(&at))
    });
    let more: Vec<String> = method.into_iter().chain(day).collect();
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" ({})", more.join(", "))
    };
    format!("through pull request {}{more}", link.pr_number)
}

/// Returns how a commit relates to the one that its message names.
pub fn relation(relation: &Open<CommitRelation>) -> &str {
    match relation.known() {
        Some(CommitRelation::CherryPickedFrom) => "cherry-picked from",
        Some(CommitRelation::Reverts) => "reverts",
        None => relation.as_str(),
    }
}

/// Returns what is said of a pull request at none of whose commits a Session was observed.
pub fn none_at(commits: usize) -> String {
    match commits {
        1 => "no Session observed at its commit".to_owned(),
        commits => format!("no Session observed at its {commits} commits"),
    }
}

/// A Session whose work a commit contains, although it was observed at another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedSession<'c> {
    /// The Session.
    pub session_id: &'c SessionId,
    /// The commit at which it was observed.
    pub commit_sha: &'c CommitSha,
    /// How the commit leads there.
    pub through: String,
}

/// Returns the Sessions whose work a commit contains: those at commits of pull requests that it was
/// merged with, and at commits that it copies. What it takes back is not among them.
pub fn linked_sessions(of: &CommitRepository) -> Vec<LinkedSession<'_>> {
    let mut found = Vec::new();
    add_linked(
        &of.through_pull_requests,
        &of.named_commits,
        None,
        &mut found,
    );
    found
}

fn add_linked<'c>(
    links: &'c [ThroughPullRequest],
    named: &'c [NamedCommit],
    from: Option<&str>,
    found: &mut Vec<LinkedSession<'c>>,
) {
    for link in links {
        let words = from.map_or_else(|| through(link), str::to_owned);
        for commit in &link.commits {
            add_commit(commit, &words, found);
        }
    }
    for named in named {
        if named.relation.known() == Some(&CommitRelation::CherryPickedFrom) {
            let copied = || format!("cherry-picked from {}", named.commit.commit_sha);
            add_commit(
                &named.commit,
                &from.map_or_else(copied, str::to_owned),
                found,
            );
        }
    }
}

fn add_commit<'c>(commit: &'c LinkedCommit, words: &str, found: &mut Vec<LinkedSession<'c>>) {
    found.extend(
        commit
            .observed_sessions
            .iter()
            .map(|session| LinkedSession {
                session_id: &session.session_id,
                commit_sha: &commit.commit_sha,
                through: words.to_owned(),
            }),
    );
    add_linked(
        &commit.through_pull_requests,
        &commit.named_commits,
        Some(words),
        found,
    );
}

#[cfg(test)]
mod tests {
    use svc_model::json;
    use svc_model::query::{MergeMethod, ObservedSession};
    use svc_model::time::Instant;

    use super::*;

    fn link(commits: Vec<LinkedCommit>) -> ThroughPullRequest {
        ThroughPullRequest {
            pr_number: 16,
            merge_method: Some(MergeMethod::Squash.into()),
            merge_commit_sha: sha('a'),
            merged_at: Instant::parse("2026-01-02T03:04:05Z").ok(),
            commits,
        }
    }

    fn sha(digit: char) -> CommitSha {
        CommitSha::new(&digit.to_string().repeat(40)).unwrap()
    }

    fn seen(digit: char, session: &str) -> LinkedCommit {
        let mut commit = LinkedCommit::new(sha(digit));
        let session =
            format!(r#"{{"session_id":"{session}","session_commit_observation_ids":[]}}"#);
        let session: ObservedSession = json::from_slice(session.as_bytes()).unwrap();
        commit.observed_sessions.push(session);
        commit
    }

    #[test]
    fn a_pull_request_is_named_with_what_is_certain() {
        let mut link = link(Vec::new());
        assert_eq!(through(&link), "through pull request 16 (squash)");
        assert_eq!(
            through_on(&link),
            "through pull request 16 (squash, merged 2026-01-02)"
        );
        link.merge_method = None;
        assert_eq!(
            through_on(&link),
            "through pull request 16 (merged 2026-01-02)"
        );
        link.merged_at = None;
        assert_eq!(through_on(&link), "through pull request 16");
        assert_eq!(through(&link), "through pull request 16");
    }

    #[test]
    fn what_a_commit_takes_back_is_not_its_own_work() {
        let named = |relation: CommitRelation, commit| NamedCommit {
            relation: relation.into(),
            commit,
        };
        let mut stacked = seen('b', "one");
        stacked
            .through_pull_requests
            .push(link(vec![seen('c', "two")]));
        let links = [link(vec![stacked])];
        let named = [
            named(CommitRelation::Reverts, seen('d', "undone")),
            named(CommitRelation::CherryPickedFrom, seen('e', "copied")),
        ];
        let mut found = Vec::new();
        add_linked(&links, &named, None, &mut found);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|found| (found.session_id.as_str(), found.through.as_str()))
            .collect();
        let through = "through pull request 16 (squash)";
        let copied = format!("cherry-picked from {}", sha('e'));
        assert_eq!(
            found,
            [
                ("one", through),
                ("two", through),
                ("copied", copied.as_str())
            ]
        );
    }
}
