//! From a run to the Sessions behind it.

use clap::Args;
use serde::Serialize;
use svc_client::{Client, ErrorKind};
use svc_engine::clock::Clock;
use svc_model::endpoint::{CommitQuery, SessionQuery};
use svc_model::id::SessionId;
use svc_model::query::SessionDossierRequest;
use svc_model::query::{
    CiDelivery, CiOutcomeAnswer, CiRun, CommitEvidence, CommitRepository, CommitRequest,
    LifetimeIdentity, RepositorySelector, SessionAnswer,
};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;
use svc_view::{SHELL, linked_sessions};

use super::ci::{FoundRun, RunOptions, commit_command, fields, not_stored, others};
use super::session::summary;
use super::{commit, service, suggestion};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Exact, Fields, Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Investigate {
    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

/// A run, its commit and the Sessions observed at it, for programs: the unchanged replies of the
/// service.
#[derive(Debug, Serialize)]
struct Investigation {
    run: Exact<CiOutcomeAnswer>,
    /// Other runs of the same name and commit.
    other_runs: Vec<CiRun>,
    /// What was delivered with the commit of the run; `None` if there is no such run.
    delivery: Option<CiDelivery>,
    /// `None` if there is no such run.
    commit: Option<Exact<CommitEvidence>>,
    sessions: Vec<ExaminedSession>,
}

/// A Session behind the run.
#[derive(Debug, Serialize)]
struct ExaminedSession {
    session_id: SessionId,
    /// The commits of the run at which it was observed.
    commits: Vec<CommitSha>,
    /// How the commit of the run leads to these commits, if the Session was observed at none of
    /// those delivered with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<String>,
    /// `None` if the service refuses it.
    dossier: Option<Exact<SessionAnswer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<SessionRefusal>,
}

#[derive(Debug, Serialize)]
struct SessionRefusal {
    code: String,
    message: String,
}

impl Investigate {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let as_of = self.run.as_of(now)?;
        let client = service::client(&self.service)?;
        let investigation = service::block_on(async {
            let found = self.run.find(&client, now).await?;
            follow(&client, found, as_of).await
        })?;
        output.value(&investigation, |investigation| {
            render(self.run.run(), investigation, now)
        })?;
        if investigation.run.value.found && investigation.sessions.is_empty() {
            output.note(
                "Sessions are observed through notes on commits; to see whether the notes were \
                 read, on the machine of the service: svc mirror status",
            );
        }
        output.next(&self.service, &next(&investigation));
        Ok(())
    }
}

/// Follows a run to its commit, and to the Sessions at that commit and at those delivered with it.
async fn follow(
    client: &Client,
    found: FoundRun,
    as_of: Option<Instant>,
) -> Result<Investigation, CommandError> {
    let mut investigation = Investigation {
        run: found.run.into(),
        other_runs: found.others,
        delivery: found.delivery,
        commit: None,
        sessions: Vec::new(),
    };
    let Some(outcome) = &investigation.run.value.outcome else {
        return Ok(investigation);
    };
    // Notes often arrive after the run has ended, so this asks about the commit as of now.
    let identity = outcome.repository_identity.as_ref();
    let request = CommitRequest {
        commit_sha: outcome.commit_sha.clone(),
        repository: identity
            .and_then(LifetimeIdentity::repository)
            .map_or_else(RepositorySelector::default, RepositorySelector::identified),
        as_of,
        explain: true,
    };
    let commit = Exact::from(client.call_raw::<CommitQuery>(&request).await?);
    let at_head = commit::sessions(&commit.value).into_iter();
    let mut observed: Vec<(SessionId, Vec<CommitSha>)> = at_head
        .map(|session_id| (session_id.clone(), vec![outcome.commit_sha.clone()]))
        .collect();
    for delivered in investigation
        .delivery
        .iter()
        .flat_map(|delivery| &delivery.commits)
    {
        for session_id in &delivered.session_ids {
            let commit_sha = delivered.commit_sha.clone();
            match observed.iter_mut().find(|(known, _)| known == session_id) {
                Some((_, commits)) if commits.contains(&commit_sha) => {}
                Some((_, commits)) => commits.push(commit_sha),
                None => observed.push((session_id.clone(), vec![commit_sha])),
            }
        }
    }
    let mut through: Vec<(SessionId, Vec<CommitSha>, String)> = Vec::new();
    let repositories = commit.value.repos.iter().flatten();
    for linked in repositories.flat_map(linked_sessions) {
        let is_of = |known: &SessionId| known == linked.session_id;
        let commit_sha = linked.commit_sha.clone();
        if observed.iter().any(|(known, _)| is_of(known)) {
            continue;
        }
        match through.iter_mut().find(|(known, ..)| is_of(known)) {
            Some((_, commits, _)) if commits.contains(&commit_sha) => {}
            Some((_, commits, _)) => commits.push(commit_sha),
            None => through.push((linked.session_id.clone(), vec![commit_sha], linked.through)),
        }
    }
    investigation.commit = Some(commit);
    for (session_id, commits) in observed {
        let examined = examine(client, session_id, commits).await?;
        investigation.sessions.push(examined);
    }
    for (session_id, commits, through) in through {
        let examined = examine(client, session_id, commits).await?;
        investigation.sessions.push(ExaminedSession {
            through: Some(through),
            ..examined
        });
    }
    Ok(investigation)
}

/// Asks about a Session. A Session that is too large does not hide the others.
async fn examine(
    client: &Client,
    session_id: SessionId,
    commits: Vec<CommitSha>,
) -> Result<ExaminedSession, CommandError> {
    // The commits are already shown.
    let request = SessionDossierRequest {
        session_id: session_id.clone(),
        explain: false,
    };
    match client.call_raw::<SessionQuery>(&request).await {
        Ok(reply) => Ok(ExaminedSession {
            session_id,
            commits,
            through: None,
            dossier: Some(reply.into()),
            refused: None,
        }),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::SessionBound(_) | ErrorKind::Declined(_) | ErrorKind::Oversize
            ) =>
        {
            Ok(ExaminedSession {
                session_id,
                commits,
                through: None,
                dossier: None,
                refused: Some(SessionRefusal {
                    code: error.kind().code().to_owned(),
                    message: error.to_string(),
                }),
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn render(run: &str, investigation: &Investigation, now: Instant) -> String {
    let (Some(outcome), Some(commit)) = (&investigation.run.value.outcome, &investigation.commit)
    else {
        return not_stored(run);
    };
    let attempts = investigation.run.value.attempts.as_deref();
    let mut blocks = vec![fields(outcome, attempts, now).render()];
    blocks.extend(others(&investigation.other_runs, now));
    let mut of_commit = of_commit(&commit.value);
    of_delivery(investigation, &mut of_commit);
    blocks.push(format!(
        "commit {}\n{}{}{}",
        outcome.commit_sha,
        of_commit.render(),
        linked(&commit.value),
        inferred(&commit.value)
    ));
    blocks.extend(
        investigation
            .sessions
            .iter()
            .map(|examined| of_session(examined, &outcome.commit_sha, now)),
    );
    blocks.join("\n")
}

fn of_commit(commit: &CommitEvidence) -> Fields {
    let mut fields = Fields::default();
    let repositories: Vec<&CommitRepository> = commit.repos.iter().flatten().collect();
    let sessions = commit::sessions(commit).len();
    fields.add(
        "Sessions",
        match sessions {
            0 => match commit::elsewhere(commit) {
                elsewhere if elsewhere.is_empty() => {
                    "none observed, which does not tell who wrote it".to_owned()
                }
                elsewhere => format!("none observed{elsewhere}"),
            },
            sessions => format!("{sessions} observed"),
        },
    );
    for repository in &repositories {
        let outcomes = repository.ci_outcomes.iter().map(|outcome| &outcome.result);
        let name = if repositories.len() > 1 {
            format!("{}: ", escape(&repository.repo))
        } else {
            String::new()
        };
        fields.add(
            "ci",
            name + &SHELL.or_none(SHELL.results(outcomes).unwrap_or_default()),
        );
    }
    for (reason, count) in commit.repository_skipped.iter().flatten() {
        fields.add("skipped", format!("{count} {reason}"));
    }
    fields
}

/// Returns the links to other commits, and why others were not followed.
fn linked(commit: &CommitEvidence) -> String {
    let repositories = commit.repos.iter().flatten();
    let links = repositories.flat_map(commit::linked);
    links.chain(commit::not_followed(commit)).collect()
}

/// Returns the inferred calls, separate from what was observed, and why others were not searched
/// for.
fn inferred(commit: &CommitEvidence) -> String {
    let repositories = commit.repos.iter().flatten();
    let guessed = repositories.flat_map(commit::inferred);
    let skipped = commit::not_looked_for(commit).into_iter();
    guessed.chain(skipped).collect()
}

/// Adds what was delivered with the commit of the run, if anything.
fn of_delivery(investigation: &Investigation, fields: &mut Fields) {
    let Some(delivery) = &investigation.delivery else {
        return;
    };
    let numbers = delivery.pull_requests.iter();
    let numbers: Vec<String> = numbers.map(ToString::to_string).collect();
    fields.add_some(
        "pull requests",
        Some(numbers.join(", ")).filter(|numbers| !numbers.is_empty()),
    );
    let head = &delivery.commit_sha;
    let others = delivery
        .commits
        .iter()
        .filter(|commit| commit.commit_sha != *head);
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        let sessions = others.iter().flat_map(|other| &other.session_ids);
        let sessions = sessions.collect::<std::collections::BTreeSet<_>>().len();
        let more = if delivery.more { ", and more" } else { "" };
        let commits = SHELL.many(others.len() as u64, "commit", "commits");
        let sessions = SHELL.sessions(sessions as u64);
        fields.add(
            "delivered with it",
            format!(
                "{commits} of the same push or pull request with observations, {sessions}{more}"
            ),
        );
    }
}

fn of_session(examined: &ExaminedSession, head: &CommitSha, now: Instant) -> String {
    let session = escape(examined.session_id.as_str());
    let through = examined.through.as_ref();
    let through = through.map_or_else(String::new, |through| format!(", {}", escape(through)));
    let session = match examined.commits.as_slice() {
        commits if commits.contains(head) => format!("Session {session}\n"),
        [commit, ..] => format!("Session {session}, at {commit}{through}\n"),
        [] => format!("Session {session}\n"),
    };
    let shown = match (&examined.dossier, &examined.refused) {
        (Some(dossier), _) => match &dossier.value {
            SessionAnswer::Known(dossier) => summary(dossier, now).render(),
            SessionAnswer::Unknown(_) => "is not known\n".to_owned(),
        },
        (None, Some(refused)) => format!("refused: {}\n", escape(&refused.message)),
        (None, None) => String::new(),
    };
    session + &shown
}

fn next(investigation: &Investigation) -> Vec<String> {
    let Some(outcome) = &investigation.run.value.outcome else {
        return Vec::new();
    };
    let mut next: Vec<String> = investigation
        .sessions
        .iter()
        .map(|examined| suggestion::session(&examined.session_id))
        .collect();
    if let Some(commit) = &investigation.commit {
        let observed = commit::sessions(&commit.value);
        let guessed = commit::guessed_sessions(&commit.value);
        let guessed = guessed.difference(&observed);
        next.extend(guessed.map(|session| suggestion::session(session)));
    }
    next.push(commit_command(outcome));
    next
}
