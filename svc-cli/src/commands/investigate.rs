//! The way from a run to the Sessions behind it.

use clap::Args;
use serde::Serialize;
use svc_client::{Client, ErrorKind};
use svc_engine::clock::Clock;
use svc_model::endpoint::{CommitQuery, SessionQuery};
use svc_model::facts::SessionRequest;
use svc_model::id::SessionId;
use svc_model::query::{
    CiOutcomeAnswer, CommitEvidence, CommitRepository, CommitRequest, RepositorySelector,
    SessionAnswer,
};
use svc_model::time::Instant;

use super::ci::{RunOptions, fields, not_stored};
use super::session::{self, results, summary};
use super::{commit, service};
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

/// A run, its commit and the Sessions that were observed at it, as a program reads them: the replies
/// of the service as they came.
#[derive(Debug, Serialize)]
struct Investigation {
    run: Exact<CiOutcomeAnswer>,
    /// Null when there is no such run.
    commit: Option<Exact<CommitEvidence>>,
    sessions: Vec<Examined>,
}

/// A Session behind the run.
#[derive(Debug, Serialize)]
struct Examined {
    session_id: SessionId,
    /// Null when the service refuses it, which it does whole.
    dossier: Option<Exact<SessionAnswer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refusal>,
}

#[derive(Debug, Serialize)]
struct Refusal {
    code: String,
    message: String,
}

impl Investigate {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let as_of = self.run.as_of(now)?;
        let client = service::client(&self.service)?;
        let investigation = service::block_on(async {
            let run = self.run.find(&client, now).await?;
            follow(&client, run.into(), as_of).await
        })?;
        output.value(&investigation, |investigation| {
            render(self.run.run(), investigation, now)
        })?;
        output.next(&self.service, &next(&investigation));
        Ok(())
    }
}

/// Follows a run to its commit and to the Sessions at it.
async fn follow(
    client: &Client,
    run: Exact<CiOutcomeAnswer>,
    as_of: Option<Instant>,
) -> Result<Investigation, CommandError> {
    let Some(outcome) = &run.value.outcome else {
        return Ok(Investigation {
            run,
            commit: None,
            sessions: Vec::new(),
        });
    };
    // Notes often arrive after the run has ended, so the commit is asked for as it is by now.
    let identity = outcome.repository_identity.clone();
    let request = CommitRequest {
        commit_sha: outcome.commit_sha.clone(),
        repository: identity.map_or_else(RepositorySelector::default, |identity| {
            RepositorySelector::identified(identity.into())
        }),
        as_of,
    };
    let commit = Exact::from(client.call_raw::<CommitQuery>(&request).await?);
    let mut sessions = Vec::new();
    for session_id in commit::sessions(&commit.value) {
        sessions.push(examine(client, session_id.clone()).await?);
    }
    Ok(Investigation {
        run,
        commit: Some(commit),
        sessions,
    })
}

/// Asks for a Session. One that is too large to be told does not hide the others.
async fn examine(client: &Client, session_id: SessionId) -> Result<Examined, CommandError> {
    let request = SessionRequest {
        session_id: session_id.clone(),
    };
    match client.call_raw::<SessionQuery>(&request).await {
        Ok(reply) => Ok(Examined {
            session_id,
            dossier: Some(reply.into()),
            refused: None,
        }),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::SessionBound(_) | ErrorKind::Declined(_) | ErrorKind::Oversize
            ) =>
        {
            Ok(Examined {
                session_id,
                dossier: None,
                refused: Some(Refusal {
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
    let mut blocks = vec![
        fields(outcome, now).render(),
        format!(
            "commit {}\n{}{}",
            outcome.commit_sha,
            of_commit(&commit.value).render(),
            inferred(&commit.value)
        ),
    ];
    blocks.extend(
        investigation
            .sessions
            .iter()
            .map(|examined| of_session(examined, now)),
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
            0 => "none observed, which says nothing about who wrote it".to_owned(),
            sessions => format!("{sessions} observed"),
        },
    );
    for repository in &repositories {
        let outcomes = repository.ci_outcomes.iter().map(|outcome| outcome.result);
        let name = if repositories.len() > 1 {
            format!("{}: ", escape(&repository.repo))
        } else {
            String::new()
        };
        fields.add("ci", name + &results(outcomes));
    }
    for (reason, count) in commit.repository_skipped.iter().flatten() {
        fields.add("skipped", format!("{count} {reason}"));
    }
    fields
}

/// Returns the calls that are guessed, apart from what was observed, and why others were not looked for.
fn inferred(commit: &CommitEvidence) -> String {
    let repositories = commit.repos.iter().flatten();
    let guessed = repositories.flat_map(commit::inferred);
    let skipped = commit::not_looked_for(commit).into_iter();
    guessed.chain(skipped).collect()
}

fn of_session(examined: &Examined, now: Instant) -> String {
    let session = format!("Session {}\n", escape(examined.session_id.as_str()));
    let told = match (&examined.dossier, &examined.refused) {
        (Some(dossier), _) => match &dossier.value {
            SessionAnswer::Known(dossier) => summary(dossier, now).render(),
            SessionAnswer::Unknown(_) => "is not known\n".to_owned(),
        },
        (None, Some(refused)) => format!("refused: {}\n", escape(&refused.message)),
        (None, None) => String::new(),
    };
    session + &told
}

fn next(investigation: &Investigation) -> Vec<String> {
    let Some(outcome) = &investigation.run.value.outcome else {
        return Vec::new();
    };
    let mut next: Vec<String> = investigation
        .sessions
        .iter()
        .map(|examined| session::command(&examined.session_id))
        .collect();
    if next.is_empty() {
        // Why nothing is observed is a question to the mirror.
        next.push("svc mirror status".to_owned());
    }
    next.push(commit::command(
        &outcome.commit_sha,
        &outcome.repo,
        outcome.repository_identity.as_ref(),
    ));
    next
}
