//! A month of work as reports see it: Sessions whose calls write files, commits that contain these
//! files more or less as they were written, merged pull requests, and what people and CI said about
//! all this.
//!
//! Everything is derived from numbers, so the facts and the repositories are created independently.

mod code;
mod facts;
mod forge;

use svc_engine::clock::Clock;
use svc_model::id::SessionId;
use svc_model::repository::{
    CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use svc_model::time::Instant;

pub(crate) use self::forge::Forge;
use crate::Failure;

/// When the month begins: after the half year of the organization, and before any measurement.
const BEGIN: &str = "2026-09-01T00:00:00Z";
const MINUTE: i64 = 60 * 1_000_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// How much of everything there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CohortShape {
    /// The number of repositories.
    pub(crate) repositories: u64,
    /// The pull requests of each repository.
    pub(crate) pull_requests: u64,
    /// The commits of each pull request, without the one that merges it.
    pub(crate) commits: u64,
    /// The files of each of these commits.
    pub(crate) files: u64,
    /// The Sessions of each pull request.
    pub(crate) sessions: u64,
    /// The calls of each Session.
    pub(crate) calls: u64,
    /// How many of these calls, the first ones, write files.
    pub(crate) writing: u64,
    /// The decisions of each Session.
    pub(crate) decisions: u64,
    /// The edit observations of each Session.
    pub(crate) edits: u64,
    /// The CI outcomes of each commit.
    pub(crate) outcomes: u64,
    /// How long all this takes, in microseconds.
    pub(crate) span: i64,
    /// What the texts are like.
    pub(crate) texts: Texts,
}

/// What the texts of a cohort are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// As people and agents write: a few words are frequent, most are rare.
    Ordinary,
    /// Made of few words, so that all texts are somewhat similar.
    Alike,
}

impl CohortShape {
    /// The largest cohort that a report accepts: 50,000 calls, 30,000 decisions, 20,000 edits,
    /// 5,000 commits and 50,000 CI outcomes in a month.
    pub(crate) const LARGE: Self = Self {
        repositories: 10,
        pull_requests: 50,
        commits: 9,
        files: 4,
        sessions: 5,
        calls: 20,
        writing: 8,
        decisions: 12,
        edits: 8,
        outcomes: 10,
        span: 30 * DAY,
        texts: Texts::Ordinary,
    };
    /// Some days more than a report covers.
    pub(crate) const GROWING: Self = Self {
        pull_requests: 60,
        span: 36 * DAY,
        ..Self::LARGE
    };
    /// An ordinary month of a small team: 3,000 calls.
    pub(crate) const SMALL: Self = Self {
        pull_requests: 3,
        ..Self::LARGE
    };
    /// As many calls within one hour as a report accepts, and 5,000 commits of 20 files.
    pub(crate) const DENSE: Self = Self {
        pull_requests: 25,
        commits: 19,
        files: 20,
        sessions: 10,
        calls: 20,
        writing: 20,
        decisions: 3,
        edits: 4,
        outcomes: 2,
        span: 60 * MINUTE,
        ..Self::LARGE
    };

    /// Returns this share of the cohort, by pull requests.
    pub(crate) fn share(mut self, share: f64) -> Self {
        self.pull_requests = ((self.pull_requests as f64 * share).round() as u64).max(1);
        self
    }

    /// Returns how many pull requests there are.
    pub(crate) const fn all_pull_requests(&self) -> u64 {
        self.repositories * self.pull_requests
    }

    /// Returns how many calls there are.
    pub(crate) const fn all_calls(&self) -> u64 {
        self.repositories * self.pull_requests * self.sessions * self.calls
    }

    /// Returns how many commits pushes brought.
    pub(crate) const fn all_commits(&self) -> u64 {
        self.repositories * self.pull_requests * (self.commits + 1)
    }
}

/// A cohort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cohort {
    pub(crate) shape: CohortShape,
    begin: Instant,
}

/// The commits of a pull request.
#[derive(Clone, Debug)]
pub(crate) struct PullRequestCommits {
    /// The commit that it is based on.
    pub(crate) base: CommitSha,
    /// Its own commits, oldest first.
    pub(crate) commits: Vec<CommitSha>,
    /// The commit that merged it.
    pub(crate) merge: CommitSha,
}

/// A pull request, by its number among all.
#[derive(Clone, Copy, Debug)]
struct PullRequest {
    repository: u64,
    /// Its index among those of the repository.
    place: u64,
    number: u64,
}

impl Cohort {
    pub(crate) fn new(shape: CohortShape) -> Result<Self, Failure> {
        Ok(Self {
            shape,
            begin: Instant::parse(BEGIN)?,
        })
    }

    /// Returns a cohort that begins so many days before now.
    pub(crate) fn before_now(shape: CohortShape, days: i64) -> Self {
        let now = Clock::system().now();
        let begin = Instant::from_microseconds(now.microseconds() - days * DAY);
        Self {
            shape,
            begin: begin.unwrap_or(now),
        }
    }

    /// Returns the query for both reports.
    pub(crate) fn query(&self) -> String {
        let end = self.end();
        let as_of = self.at(self.shape.span.max(DAY) + DAY);
        format!("cohort_start={}&cohort_end={end}&as_of={as_of}", self.begin)
    }

    /// Returns the end of the cohort.
    pub(crate) fn end(&self) -> Instant {
        self.at(self.shape.span.max(DAY))
    }

    /// Returns the query for both reports over the days before a moment shortly after a pull request
    /// was merged, by its number among all.
    pub(crate) fn query_after(&self, number: u64, days: i64) -> String {
        let last = self.pull_requests().find(|found| found.number == number);
        let end = last.map_or(0, |last| self.pushed_at(last)) + 20 * MINUTE;
        let (start, end) = (self.at(end - days * DAY), self.at(end));
        format!("cohort_start={start}&cohort_end={end}&as_of={end}")
    }

    /// Returns the moment this many microseconds after the beginning.
    fn at(&self, microseconds: i64) -> Instant {
        Instant::from_microseconds(self.begin.microseconds() + microseconds).unwrap_or(self.begin)
    }

    /// Returns the name of a repository.
    pub(crate) fn name(repository: u64) -> RepositoryName {
        RepositoryName::new(&format!("team/service-{repository}")).expect("owner/name")
    }

    /// Returns the forge's number of a repository.
    pub(crate) fn id(repository: u64) -> u64 {
        1_000 + repository
    }

    fn identity(repository: u64) -> RepositoryIdentity {
        RepositoryIdentity {
            repository_provider: RepositoryProvider::Github,
            repository_host: RepositoryHost::new("github.com").expect("a host"),
            repository_id: RepositoryId::new(&Self::id(repository).to_string()).expect("an id"),
        }
    }

    fn pull_requests(&self) -> impl Iterator<Item = PullRequest> + use<> {
        let shape = self.shape;
        // In order of time, with the repositories in turn.
        (0..shape.pull_requests).flat_map(move |place| {
            (0..shape.repositories).map(move |repository| PullRequest {
                repository,
                place,
                number: place * shape.repositories + repository,
            })
        })
    }

    /// Returns when a pull request was first pushed.
    fn pushed_at(&self, pull_request: PullRequest) -> i64 {
        let all = self.shape.all_pull_requests() as i64;
        // The last one has time to be merged.
        (self.shape.span - self.spread() - 20 * MINUTE) / all * pull_request.number as i64
            + self.spread()
            + 5 * MINUTE
    }

    /// Returns how long before the first push the calls may have been made, in microseconds.
    const fn spread(&self) -> i64 {
        if self.shape.span < DAY {
            4 * MINUTE
        } else {
            50 * MINUTE
        }
    }

    /// Returns the Session of a commit.
    const fn session_of(&self, commit: u64) -> u64 {
        commit % self.shape.sessions
    }

    /// Returns the call that wrote a file of a commit.
    const fn call_of(&self, commit: u64, file: u64) -> u64 {
        (commit / self.shape.sessions * self.shape.files + file) % self.shape.writing
    }

    fn session(pull_request: PullRequest, session: u64) -> SessionId {
        SessionId::new(&format!("work-{}-{session}", pull_request.number)).expect("an id")
    }

    /// Returns what makes the text of a call unique.
    const fn seed(&self, pull_request: PullRequest, session: u64, call: u64) -> u64 {
        (pull_request.number * self.shape.sessions + session) * self.shape.calls + call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_cohort_has_the_maximum_size_of_a_report() {
        let shape = CohortShape::LARGE;
        let sessions = shape.repositories * shape.pull_requests * shape.sessions;
        assert_eq!(shape.all_calls(), 50_000);
        assert_eq!(sessions * shape.decisions, 30_000);
        assert_eq!(sessions * shape.edits, 20_000);
        assert_eq!(shape.all_commits(), 5_000);
        assert_eq!(shape.all_commits() * shape.outcomes, 50_000);
        assert_eq!(CohortShape::DENSE.all_calls(), 50_000);
        assert_eq!(CohortShape::DENSE.all_commits(), 5_000);
        assert_eq!(CohortShape::SMALL.all_calls(), 3_000);
    }
}
