mod commits;
mod timeline;

use std::collections::BTreeMap;

use clap::Args;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::endpoint::SessionQuery;
use svc_model::id::SessionId;
use svc_model::ingest::CiResult;
use svc_model::limit::SESSION_PAGE_MAX;
use svc_model::open::Open;
use svc_model::query::{
    EventCount, Gap, SessionAnswer, SessionDossier, SessionDossierRequest, SessionPageLimit,
    SessionsRequest, TimelineEvent,
};
use svc_model::time::Instant;

use super::context::session_id;
use super::{service, suggestion};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Fields, Output, clock, escape, later, positional, relative, time_of_day};

/// The placeholder for an absent value.
const NONE: &str = "-";

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
    let coverage = dossier.coverage;
    fields.add("calls", count(coverage.inference_calls) + &models(dossier));
    fields.add(
        "decisions",
        count(coverage.developer_decisions) + &decisions(dossier),
    );
    fields.add("edits observed", count(coverage.edit_observations));
    fields.add("edits rejected", count(coverage.rejected_edits));
    fields.add("retries", count(coverage.retry_linkages));
    fields.add("commits", dossier.attributed_commits.len().to_string());
    if let Some(count) = dossier.content_erased {
        fields.add("content erased", format!("of {count} facts"));
    }
    for (reason, count) in &dossier.repository_skipped {
        fields.add("skipped", format!("{count} {reason}"));
    }
    let gaps = dossier.gaps.iter();
    let gaps: Vec<&str> = gaps
        .filter(|gap| !dossier.coverage.has_quarantined(gap))
        .map(in_words)
        .collect();
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

/// Describes something that was not captured.
fn in_words(gap: &Open<Gap>) -> &str {
    let Open::Known(gap) = gap else {
        return gap.as_str();
    };
    match gap {
        Gap::NoInferenceCalls => "model calls",
        Gap::NoDeveloperDecisions => "decisions",
        Gap::NoEditObservations => "what became of edits",
        Gap::NoRejectedEdits => "rejected edits",
        Gap::NoRetryLinkages => "retries",
        Gap::NoCommit => "commits",
        Gap::NoPushes => "a push to one of its commits",
        Gap::NoCiOutcomes => "CI of one of its commits",
    }
}

fn count(events: EventCount) -> String {
    if events.quarantined == 0 {
        events.visible.to_string()
    } else {
        format!(
            "{} (and {} quarantined)",
            events.visible, events.quarantined
        )
    }
}

/// Returns the models, by number of calls, and the known token counts.
fn models(dossier: &SessionDossier) -> String {
    let mut models: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_i64, 0_i64);
    for event in &dossier.timeline {
        if let Open::Known(TimelineEvent::InferenceCall {
            model,
            input_tokens,
            output_tokens,
            ..
        }) = event
        {
            *models.entry(model.as_deref().unwrap_or("-")).or_default() += 1;
            input = input.saturating_add(input_tokens.unwrap_or(0));
            output = output.saturating_add(output_tokens.unwrap_or(0));
        }
    }
    if models.is_empty() {
        return String::new();
    }
    let mut models: Vec<_> = models.into_iter().collect();
    models.sort_by_key(|(model, calls)| (std::cmp::Reverse(*calls), *model));
    let models: Vec<_> = models
        .into_iter()
        .map(|(model, calls)| format!("{} {calls}", escape(model)))
        .collect();
    let models = models.join(", ");
    if input == 0 && output == 0 {
        return format!(" ({models})");
    }
    format!(" ({models}; {input} tokens in, {output} out)")
}

fn decisions(dossier: &SessionDossier) -> String {
    let (mut accepted, mut rejected, mut by_rule) = (0, 0, 0);
    for event in &dossier.timeline {
        if let Open::Known(TimelineEvent::DeveloperDecision {
            accepted: is_accepted,
            explicit,
            ..
        }) = event
        {
            *(if *is_accepted {
                &mut accepted
            } else {
                &mut rejected
            }) += 1;
            by_rule += u64::from(!explicit);
        }
    }
    match (accepted + rejected, by_rule) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({accepted} accepted, {rejected} rejected)"),
        (_, by_rule) => {
            format!(" ({accepted} accepted, {rejected} rejected; {by_rule} of them by a rule)")
        }
    }
}

/// Counts each result, in the order of the results.
pub(super) fn results<'a>(results: impl Iterator<Item = &'a Open<CiResult>>) -> String {
    let mut counts: BTreeMap<&Open<CiResult>, u64> = BTreeMap::new();
    for result in results {
        *counts.entry(result).or_default() += 1;
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|(result, count)| format!("{count} {result}"))
        .collect();
    if counts.is_empty() {
        NONE.to_owned()
    } else {
        counts.join(", ")
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
