//! The commits of a Session, with their pushes and CI results.

use svc_model::query::{AttributedCommit, SessionDossier};
use svc_model::time::Instant;
use svc_view::{SHELL, branches};

use crate::output::{ShortIds, Table, escape, relative};

/// The characters that a commit id is shortened to, unless another id has the same prefix.
const COMMIT_CHARACTERS: usize = 10;

/// Returns the commits and what became of them, if there are any.
pub(super) fn render(dossier: &SessionDossier, now: Instant) -> Option<String> {
    let commits = &dossier.attributed_commits;
    if commits.is_empty() {
        return None;
    }
    // The later commits that pushes left branches at.
    let heads = dossier.delivering_pushes.iter().flatten();
    let short = ShortIds::of(
        COMMIT_CHARACTERS,
        commits
            .iter()
            .map(|commit| commit.commit_sha.as_str())
            .chain(heads.map(|push| push.after_sha.as_str())),
    );
    let mut table = Table::new(["commit", "repository", "observed", "pushed", "ci"]).numbers(&[2]);
    for commit in commits {
        table.row([
            short.short(commit.commit_sha.as_str()),
            escape(&commit.repo),
            SHELL.observed(
                commit.session_commit_observation_ids.len(),
                commit.source.as_ref(),
            ),
            pushed(dossier, commit, short, now),
            checked(dossier, commit, short),
        ]);
    }
    Some(table.render())
}

/// Returns the branches that a commit was pushed to, each with its latest push.
fn pushed(
    dossier: &SessionDossier,
    commit: &AttributedCommit,
    short: ShortIds,
    now: Instant,
) -> String {
    let branches = branches(dossier, commit).map(|branch| {
        let head = branch.head.map_or_else(String::new, |head| {
            format!(" with {}", short.short(head.as_str()))
        });
        format!("{}{head} {}", escape(branch.name), relative(branch.at, now))
    });
    SHELL.or_none(branches.collect::<Vec<_>>().join(", "))
}

/// Returns the counts of CI results at a commit, and at the commits that it was pushed with.
fn checked(dossier: &SessionDossier, commit: &AttributedCommit, short: ShortIds) -> String {
    let checks = SHELL.checks(dossier, commit).into_iter();
    let checks = checks.map(|(results, head)| match head {
        Some(head) => format!("{results} at {}", short.short(head.as_str())),
        None => results,
    });
    SHELL.or_none(checks.collect::<Vec<_>>().join(", "))
}
