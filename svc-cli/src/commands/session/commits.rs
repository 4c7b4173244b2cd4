//! The commits of a Session, with their pushes and CI results.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::query::{AttributedCommit, DossierCiOutcome, DossierPush, SessionDossier};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::{NONE, results};
use crate::output::{ShortIds, Table, escape, relative};

/// The characters that a commit id is shortened to, unless another id has the same prefix.
const COMMIT_CHARACTERS: usize = 10;

/// Returns the commits and what became of them, if there are any.
pub(super) fn render(dossier: &SessionDossier, now: Instant) -> Option<String> {
    let commits = &dossier.attributed_commits;
    if commits.is_empty() {
        return None;
    }
    let short = ShortIds::of(
        COMMIT_CHARACTERS,
        commits
            .iter()
            .map(|commit| commit.commit_sha.as_str())
            .chain(further_on(dossier).map(|push| push.after_sha.as_str())),
    );
    let mut table = Table::new(["commit", "repository", "observed", "pushed", "ci"]).numbers(&[2]);
    for commit in commits {
        table.row([
            short.short(commit.commit_sha.as_str()),
            escape(&commit.repo),
            commit.session_commit_observation_ids.len().to_string(),
            pushed(dossier, commit, short, now),
            checked(dossier, commit, short),
        ]);
    }
    Some(table.render())
}

/// Returns the pushes that brought a commit but left the branch at a later one.
fn further_on(dossier: &SessionDossier) -> impl Iterator<Item = &DossierPush> {
    dossier.delivering_pushes.iter().flatten()
}

/// Returns the pushes that brought one commit but left the branch at a later one.
fn bringing<'d>(
    dossier: &'d SessionDossier,
    commit: &'d AttributedCommit,
) -> impl Iterator<Item = &'d DossierPush> {
    let by = commit.delivered_by_push_ids.as_deref().unwrap_or_default();
    further_on(dossier).filter(|push| by.contains(&push.push_id))
}

/// Returns the branches that a commit was pushed to, each with its latest push: first those left at
/// the commit, then those left at a later one.
fn pushed(
    dossier: &SessionDossier,
    commit: &AttributedCommit,
    short: ShortIds,
    now: Instant,
) -> String {
    let mut branches: BTreeMap<(&str, Option<&str>), Instant> = BTreeMap::new();
    let at = dossier.pushes.iter().filter(|push| {
        push.after_sha == commit.commit_sha
            && push.repository_identity == commit.repository_identity
    });
    let all = at
        .map(|push| (push, None))
        .chain(bringing(dossier, commit).map(|push| (push, Some(push.after_sha.as_str()))));
    for (push, head) in all {
        let branch = push.r#ref.trim_start_matches("refs/heads/");
        let latest = branches.entry((branch, head)).or_insert(push.captured_at);
        *latest = push.captured_at.max(*latest);
    }
    let branches: Vec<_> = branches
        .into_iter()
        .map(|((branch, head), at)| {
            let head = head.map_or_else(String::new, |head| format!(" with {}", short.short(head)));
            format!("{}{head} {}", escape(branch), relative(at, now))
        })
        .collect();
    if branches.is_empty() {
        "-".to_owned()
    } else {
        branches.join(", ")
    }
}

/// Returns the counts of CI results at a commit, and at the commits that it was pushed with.
fn checked(dossier: &SessionDossier, commit: &AttributedCommit, short: ShortIds) -> String {
    let of = |outcomes: &mut dyn Iterator<Item = &DossierCiOutcome>, sha: &CommitSha| {
        let at = outcomes.filter(|outcome| {
            outcome.commit_sha == *sha && outcome.repository_identity == commit.repository_identity
        });
        results(at.map(|outcome| &outcome.result))
    };
    let own = of(&mut dossier.ci_outcomes.iter(), &commit.commit_sha);
    let heads: BTreeSet<&CommitSha> = bringing(dossier, commit)
        .map(|push| &push.after_sha)
        .collect();
    let outcomes = || dossier.delivering_ci_outcomes.iter().flatten();
    let heads = heads.into_iter().filter_map(|head| {
        let results = of(&mut outcomes(), head);
        (results != NONE).then(|| format!("{results} at {}", short.short(head.as_str())))
    });
    let all: Vec<String> = Some(own)
        .filter(|own| own != NONE)
        .into_iter()
        .chain(heads)
        .collect();
    if all.is_empty() {
        NONE.to_owned()
    } else {
        all.join(", ")
    }
}
