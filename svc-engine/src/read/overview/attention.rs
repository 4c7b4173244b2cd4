//! What needs a look: failed commits with Sessions behind them, edits that are gone, and
//! repositories and sources that fell silent.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_derive::ci::Verdict;
use svc_engine_derive::overview::OverviewTables;
use svc_engine_derive::place::RepositoryLabel;
use svc_engine_derive::repository::Repositories;
use svc_engine_derive::silence;
use svc_engine_fact::Lifetime;
use svc_engine_store::Snapshot;
use svc_model::id::SessionId;
use svc_model::limit::{OVERVIEW_ATTENTION_MAX, REPORT_FACTS_MAX};
use svc_model::open::Open;
use svc_model::overview::Attention;
use svc_model::query::AttributionSource;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use crate::error::Error;
use crate::read::reports::call_outcomes::ReadOutcomes;
use crate::read::reports::up_to;
use crate::read::repository::{TouchedRepositories, of_push};

/// Fewer commits without a note may be chance.
const COMMITS_WITHOUT_NOTES_MIN: u64 = 3;
/// How long before an overview pushes tell what is usual.
const PUSH_DAYS: i64 = 31;
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// What needs a look, at most so many rows of each kind.
#[derive(Debug, Default)]
pub(super) struct AttentionRows {
    pub(super) rows: Vec<Open<Attention>>,
    pub(super) left_out: u64,
}

impl AttentionRows {
    fn add(&mut self, rows: Vec<Attention>) {
        let shown = rows.len().min(OVERVIEW_ATTENTION_MAX);
        self.left_out += (rows.len() - shown) as u64;
        self.rows
            .extend(rows.into_iter().take(shown).map(Open::Known));
    }
}

/// Reads what needs a look.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    read: &ReadOutcomes,
    tables: &OverviewTables,
    as_of: Instant,
) -> Result<AttentionRows, Error> {
    let mut attention = AttentionRows::default();
    attention.add(failed_commits(read, tables));
    attention.add(deleted_edits(tables));
    attention.add(notes_absent(read));
    attention.add(pushes_absent(snapshot, as_of)?);
    attention.add(silent_sources(snapshot, as_of)?);
    Ok(attention)
}

fn label(repositories: &Repositories, repository: &Lifetime) -> RepositoryLabel {
    RepositoryLabel::of(repositories, repository)
}

/// A failed commit, while it is collected.
#[derive(Default)]
struct Failed {
    pr_number: Option<i64>,
    workflows: BTreeSet<String>,
    session_ids: BTreeSet<SessionId>,
}

/// Returns the commits of the listed Sessions' work that failed, by repository and id.
fn failed_commits(read: &ReadOutcomes, tables: &OverviewTables) -> Vec<Attention> {
    let outcomes = &read.outcomes;
    let selected: BTreeSet<&SessionId> =
        tables.sessions.iter().map(|row| &row.session_id).collect();
    let mut failed: BTreeMap<(&Lifetime, &CommitSha), Failed> = BTreeMap::new();
    let mut add = |commit: usize, session_id: &SessionId| {
        let reached = &outcomes.commits[commit];
        let landed = &reached.landed;
        if landed.verdict != Some(Verdict::Failed) || !selected.contains(session_id) {
            return;
        }
        let row = failed
            .entry((&reached.repository, &landed.commit_sha))
            .or_default();
        row.session_ids.insert(session_id.clone());
        row.workflows
            .extend(landed.failed_workflows.iter().cloned());
        let pull_request = reached.pull_request.as_ref().filter(|_| landed.is_merge);
        row.pr_number = pull_request.map(|pull_request| pull_request.pr_number);
    };
    for call in &read.calls {
        let outcome = outcomes.calls.get(&call.inference_call_id);
        for commit in outcome.into_iter().flat_map(|outcome| &outcome.commits) {
            add(*commit, &call.session_id);
        }
    }
    for (session_id, commits) in &outcomes.sessions {
        for commit in commits {
            add(*commit, session_id);
        }
    }
    failed
        .into_iter()
        .map(|((repository, commit_sha), row)| {
            let label = label(&read.of.repositories, repository);
            Attention::FailedCommit {
                repo: label.repo,
                repository_identity: label.identity,
                commit_sha: commit_sha.clone(),
                pr_number: row.pr_number,
                workflows: row.workflows.into_iter().collect(),
                session_ids: row.session_ids.into_iter().collect(),
            }
        })
        .collect()
}

fn deleted_edits(tables: &OverviewTables) -> Vec<Attention> {
    let rows = tables.sessions.iter();
    rows.filter(|row| row.figures.deleted > 0)
        .map(|row| Attention::DeletedEdits {
            session_id: row.session_id.clone(),
            calls: row.figures.deleted,
        })
        .collect()
}

/// Returns the repositories where agents may have made commits, and no note names a Session.
fn notes_absent(read: &ReadOutcomes) -> Vec<Attention> {
    let mut plausible: BTreeMap<&Lifetime, (u64, bool)> = BTreeMap::new();
    for commit in read.assessed.iter().filter(|commit| commit.is_plausible) {
        let (commits, is_noted) = plausible.entry(&commit.repository).or_default();
        *commits += 1;
        *is_noted |= commit.source == Some(AttributionSource::GitNotes) || !commit.is_settled;
    }
    // A Session that was observed at a commit is named by its note, whatever the commit holds.
    for commit in read.outcomes.sessions.values().flatten() {
        let repository = &read.outcomes.commits[*commit].repository;
        if let Some((_, is_noted)) = plausible.get_mut(repository) {
            *is_noted = true;
        }
    }
    plausible
        .into_iter()
        .filter(|(_, (commits, is_noted))| !is_noted && *commits >= COMMITS_WITHOUT_NOTES_MIN)
        .map(|(repository, (commits, _))| {
            let label = label(&read.of.repositories, repository);
            Attention::NotesAbsent {
                repo: label.repo,
                repository_identity: label.identity,
                commits,
            }
        })
        .collect()
}

/// Returns the repositories that were pushed to less recently than is usual.
fn pushes_absent(snapshot: &mut Snapshot<'_>, as_of: Instant) -> Result<Vec<Attention>, Error> {
    let boundary = snapshot.boundary(Some(as_of))?;
    let start = as_of.microseconds() - PUSH_DAYS * DAY_MICROSECONDS;
    let start = Instant::from_microseconds(start.max(0)).unwrap_or(as_of);
    let mut pushes = Vec::new();
    snapshot.pushes_captured(start..as_of, up_to(&mut pushes, REPORT_FACTS_MAX))?;
    let mut touched = TouchedRepositories::default();
    for push in &pushes {
        touched.add(of_push(push));
    }
    let repositories = touched.read(snapshot, boundary)?;
    let mut of_repositories: BTreeMap<Lifetime, Vec<Instant>> = BTreeMap::new();
    for push in &pushes {
        if let Ok(repository) = repositories.of(of_push(push)) {
            let pushed_at = of_repositories.entry(repository).or_default();
            pushed_at.push(push.captured_at);
        }
    }
    let silent = of_repositories
        .into_iter()
        .filter_map(|(repository, pushed_at)| {
            let silence = silence::after_arrivals(pushed_at, as_of)?;
            let label = label(&repositories, &repository);
            Some(Attention::PushesAbsent {
                repo: label.repo,
                repository_identity: label.identity,
                last_push_at: silence.since,
                usual_seconds: silence.usual_seconds,
            })
        });
    Ok(silent.collect())
}

/// Returns the sources that delivered less recently than is usual.
fn silent_sources(snapshot: &mut Snapshot<'_>, as_of: Instant) -> Result<Vec<Attention>, Error> {
    let totals = snapshot.capture_totals()?;
    let Some(since) = totals.since else {
        return Ok(Vec::new());
    };
    let silent = totals.sources.into_iter().filter_map(|(source, counts)| {
        let last = counts.last_delivery_at?;
        let silence = silence::after_count(since, last, counts.deliveries, as_of)?;
        Some(Attention::SilentSource {
            source,
            last_delivery_at: silence.since,
            usual_seconds: silence.usual_seconds,
        })
    });
    Ok(silent.collect())
}
