//! The Sessions at linked commits.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_store::{ObservationRow, Snapshot, StoreError};
use svc_model::id::{FactId, SessionId};
use svc_model::limit::COMMIT_OBSERVATIONS_MAX;
use svc_model::problem::Decline;
use svc_model::query::{
    LinkedCommit, NamedCommit, ObservationSource, ObservedSession, ThroughPullRequest,
};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::CommitLinks;
use super::walk::Walk;
use crate::error::Error;
use crate::read::repository::{TouchedRepositories, of_observation, source, touch};

/// The observations of each Session at each commit, with where they come from.
type Observed =
    BTreeMap<CommitSha, BTreeMap<SessionId, BTreeMap<FactId, Option<ObservationSource>>>>;

/// Adds the Sessions that were observed at linked commits, in the repository or in those of the
/// branches that were merged. Leaves out commits that a message names and nobody knows.
pub(super) fn fill(
    snapshot: &mut Snapshot<'_>,
    walk: &Walk<'_>,
    links: &mut CommitLinks,
    boundary: Instant,
) -> Result<(), Error> {
    let mut commits = BTreeSet::new();
    let mut collect = |commit: &LinkedCommit| {
        commits.insert(commit.commit_sha.clone());
    };
    for commit in links.through.iter().flat_map(|link| &link.commits) {
        commit.visit(&mut collect);
    }
    for named in &links.named {
        named.commit.visit(&mut collect);
    }
    let commits: Vec<&CommitSha> = commits.iter().collect();
    if commits.is_empty() {
        return Ok(());
    }
    let observed = observed(snapshot, walk, &commits, boundary)?;
    fill_through(&observed, walk, &mut links.through);
    fill_named(&observed, walk, &mut links.named);
    Ok(())
}

fn observed(
    snapshot: &mut Snapshot<'_>,
    walk: &Walk<'_>,
    commits: &[&CommitSha],
    boundary: Instant,
) -> Result<Observed, Error> {
    let mut rows: Vec<ObservationRow> = Vec::new();
    let mut is_cut = false;
    snapshot.sessions_of_commits(commits, boundary, |row| -> Result<(), StoreError> {
        is_cut = rows.len() as u64 >= COMMIT_OBSERVATIONS_MAX;
        if !is_cut {
            rows.push(row);
        }
        Ok(())
    })?;
    if is_cut {
        return Err(Decline::RepositoryEvidenceLimit.into());
    }
    let mut touched = TouchedRepositories::default();
    for row in &rows {
        touch(&mut touched, row);
    }
    let repositories = touched.read(snapshot, boundary)?;
    let mut observed = Observed::new();
    for row in rows {
        let of = of_observation(&repositories, &row);
        if of.is_ok_and(|repository| walk.covers(&repository)) {
            let sessions = observed.entry(row.commit_sha).or_default();
            let session = sessions.entry(row.session_id).or_default();
            session.insert(row.observation_id, row.source);
        }
    }
    Ok(observed)
}

fn fill_through(observed: &Observed, walk: &Walk<'_>, links: &mut [ThroughPullRequest]) {
    for commit in links.iter_mut().flat_map(|link| &mut link.commits) {
        fill_commit(observed, walk, commit);
    }
}

fn fill_named(observed: &Observed, walk: &Walk<'_>, named: &mut Vec<NamedCommit>) {
    for named in &mut *named {
        fill_commit(observed, walk, &mut named.commit);
    }
    named.retain(|NamedCommit { commit, .. }| {
        let is_linked =
            !commit.observed_sessions.is_empty() || !commit.through_pull_requests.is_empty();
        is_linked || walk.mirrored.contains(&commit.commit_sha)
    });
}

fn fill_commit(observed: &Observed, walk: &Walk<'_>, commit: &mut LinkedCommit) {
    let sessions = observed.get(&commit.commit_sha).into_iter().flatten();
    commit.observed_sessions = sessions
        .map(|(session_id, observations)| ObservedSession {
            session_id: session_id.clone(),
            source: source(observations.values().copied()),
            session_commit_observation_ids: observations.keys().copied().collect(),
        })
        .collect();
    fill_through(observed, walk, &mut commit.through_pull_requests);
    fill_named(observed, walk, &mut commit.named_commits);
}
