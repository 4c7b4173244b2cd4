mod commits;
mod timeline;

use clap::Args;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::endpoint::SessionQuery;
use svc_model::id::SessionId;
use svc_model::limit::SESSION_PAGE_MAX;
use svc_model::query::{
    SessionAnswer, SessionDossier, SessionDossierRequest, SessionPageLimit, SessionsRequest,
};
use svc_model::time::Instant;
use svc_view::SHELL;

use super::context::session_id;
use super::{service, suggestion};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Fields, Output, clock, escape, later, positional, relative, time_of_day};

#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The Session.
    #[arg(value_name = "SESSION")]
    id: String,

    /// How many of the last events to list.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "20",
        conflicts_with = "all"
    )]
    tail: usize,

    /// List every event.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Session {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let request = SessionDossierRequest::new(session_id(&self.id)?);
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<SessionQuery>(&request).await?) })
                .map_err(|error: CommandError| error.given("SESSION", &self.id))?;
        let tail = if self.all { usize::MAX } else { self.tail };
        output.reply(&reply, |answer| match answer {
            SessionAnswer::Known(dossier) => render(dossier, tail, now),
            SessionAnswer::Unknown(_) => unknown(&request.session_id),
        })?;
        match &reply.value {
            SessionAnswer::Known(dossier) => output.next(&self.service, &next(dossier)),
            SessionAnswer::Unknown(_) => {
                let meant = service::block_on(async {
                    Ok(similar(&client, &request.session_id, "svc session").await)
                })?;
                output.next(&self.service, &meant);
            }
        }
        Ok(())
    }
}

/// Says that no fact names a Session.
pub(super) fn unknown(session_id: &SessionId) -> String {
    format!("Session {} is not known\n", escape(session_id.as_str()))
}

/// How many Sessions are suggested in place of an unknown one.
const MEANT_MAX: usize = 5;

/// Returns the command for those of the latest Sessions whose ids contain an unknown one. An agent
/// may not list Sessions, and gets no suggestions.
pub(super) async fn similar(client: &Client, session_id: &SessionId, command: &str) -> Vec<String> {
    let request = SessionsRequest {
        limit: SessionPageLimit::new(SESSION_PAGE_MAX).unwrap_or_default(),
        ..SessionsRequest::default()
    };
    let Ok(latest) = client.sessions_page(&request).await else {
        return Vec::new();
    };
    let ids = latest
        .sessions
        .iter()
        .map(|session| session.session_id.as_str());
    let (text, meant) = (session_id.as_str(), ids);
    let meant = meant.filter(|id| id.contains(text) || text.contains(id));
    let commands = meant.take(MEANT_MAX);
    commands
        .map(|id| format!("{command} {}", positional(id)))
        .collect()
}

fn render(dossier: &SessionDossier, tail: usize, now: Instant) -> String {
    let mut blocks = vec![format!(
        "Session {}\n{}",
        escape(dossier.session_id.as_str()),
        summary(dossier, now).render()
    )];
    blocks.extend(timeline::render(&dossier.timeline, tail));
    blocks.extend(commits::render(dossier, now));
    blocks.join("\n")
}

/// Returns a summary of what was captured of a Session.
pub(super) fn summary(dossier: &SessionDossier, now: Instant) -> Fields {
    let mut fields = Fields::default();
    fields.add("seen", span(dossier, now));
    for (name, count, known) in SHELL.captured(dossier) {
        fields.add(name, count + &known);
    }
    for (how, session_id, call) in SHELL.continuations(dossier) {
        fields.add(how, escape(session_id.as_str()) + &call);
    }
    if let Some(count) = dossier.content_erased {
        fields.add("content erased", format!("of {count} facts"));
    }
    for (reason, count) in &dossier.repository_skipped {
        fields.add("skipped", format!("{count} {reason}"));
    }
    let gaps = SHELL.not_captured(dossier);
    fields.add_some("not captured", (!gaps.is_empty()).then(|| gaps.join(", ")));
    fields
}

fn span(dossier: &SessionDossier, now: Instant) -> String {
    let (first, last) = (dossier.first_observed_at, dossier.last_observed_at);
    let ago = relative(last, now);
    match later(first, last) {
        None => format!("{} UTC ({ago})", clock(last)),
        Some(length) => {
            let end = time_of_day(first, last);
            format!("{} to {end} UTC ({length}, until {ago})", clock(first))
        }
    }
}

fn next(dossier: &SessionDossier) -> Vec<String> {
    // The last pushed commit, or else the last commit.
    let pushed = dossier.pushes.last();
    let commit = dossier
        .attributed_commits
        .iter()
        .rfind(|commit| pushed.is_none_or(|push| push.after_sha == commit.commit_sha));
    let commit = commit.map(|commit| {
        suggestion::commit(
            &commit.commit_sha,
            &commit.repo,
            commit.repository_identity.as_ref(),
        )
    });
    let calls = dossier.coverage.inference_calls.visible > 0;
    let calls = calls.then(|| {
        let session = positional(dossier.session_id.as_str());
        format!("svc evidence inventory {session}")
    });
    commit.into_iter().chain(calls).collect()
}
