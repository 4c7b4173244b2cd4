use std::collections::BTreeMap;

use clap::Args;
use svc_engine::clock::Clock;
use svc_model::endpoint::SessionQuery;
use svc_model::facts::SessionRequest;
use svc_model::id::SessionId;
use svc_model::ingest::CiResult;
use svc_model::open::Open;
use svc_model::query::{
    AttributedCommit, EventCount, SessionAnswer, SessionDossier, TimelineEvent,
};
use svc_model::time::Instant;

use super::context::session_id;
use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Fields, Output, ShortIds, Table, escape, quote, relative};

/// Characters that a commit and a fact are cut to, when no other begins like it.
const COMMIT_CHARACTERS: usize = 10;
const FACT_CHARACTERS: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The Session.
    #[arg(value_name = "SESSION")]
    id: String,

    /// How many of the last events are listed.
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
        let request = SessionRequest {
            session_id: session_id(&self.id)?,
        };
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<SessionQuery>(&request).await?) })?;
        let tail = if self.all { usize::MAX } else { self.tail };
        output.reply(&reply, |answer| match answer {
            SessionAnswer::Known(dossier) => render(dossier, tail, now),
            SessionAnswer::Unknown(_) => {
                format!(
                    "Session {} is not known\n",
                    escape(request.session_id.as_str())
                )
            }
        })?;
        match &reply.value {
            SessionAnswer::Known(dossier) => output.next(&self.service, &next(dossier)),
            SessionAnswer::Unknown(_) => {}
        }
        Ok(())
    }
}

fn render(dossier: &SessionDossier, tail: usize, now: Instant) -> String {
    let mut blocks = vec![format!(
        "Session {}\n{}",
        escape(dossier.session_id.as_str()),
        summary(dossier, now).render()
    )];
    blocks.extend(timeline(&dossier.timeline, tail, now));
    blocks.extend(commits(dossier, now));
    blocks.join("\n")
}

/// Returns what was captured of a Session, as named values.
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
    for (reason, count) in &dossier.repository_skipped {
        fields.add("skipped", format!("{count} {reason}"));
    }
    let gaps: Vec<&str> = dossier.gaps.iter().map(Open::as_str).collect();
    fields.add_some("not captured", (!gaps.is_empty()).then(|| gaps.join(", ")));
    fields
}

fn span(dossier: &SessionDossier, now: Instant) -> String {
    let first = relative(dossier.first_observed_at, now);
    let last = relative(dossier.last_observed_at, now);
    if first == last {
        last
    } else {
        format!("{first} to {last}")
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

/// Returns the models of the calls, those of the most calls first, and the tokens that are known.
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

/// Returns the last events, when there are any.
fn timeline(events: &[Open<TimelineEvent>], tail: usize, now: Instant) -> Option<String> {
    let shown = &events[events.len().saturating_sub(tail)..];
    if shown.is_empty() {
        return None;
    }
    let facts = ShortIds::of(
        FACT_CHARACTERS,
        shown
            .iter()
            .filter_map(|event| Some(event.known()?.fact_id().to_string())),
    );
    let mut table = Table::new(["when", "event", "from", "what", "fact"]);
    for event in shown {
        let Open::Known(event) = event else {
            let kind = escape(event.as_str()).replace('_', " ");
            table.row(["-", &kind, "-", "known to a newer svc", "-"].map(str::to_owned));
            continue;
        };
        let (from, what) = told(event);
        table.row([
            relative(event.occurred_at(), now),
            event.event_type().replace('_', " "),
            from,
            what,
            facts.short(&event.fact_id().to_string()),
        ]);
    }
    let mut text = table.render();
    if shown.len() < events.len() {
        text = format!(
            "the last {} of {} events (--all for all)\n{text}",
            shown.len(),
            events.len()
        );
    }
    Some(text)
}

/// Returns who told of an event, and what it was.
fn told(event: &TimelineEvent) -> (String, String) {
    let name = |name: Option<&String>| name.map_or_else(|| "-".to_owned(), |name| escape(name));
    match event {
        TimelineEvent::InferenceCall {
            gateway_provider,
            model_provider,
            model,
            input_tokens,
            output_tokens,
            duration_ms,
            ..
        } => {
            let model = format!("{}/{}", name(model_provider.as_ref()), name(model.as_ref()));
            let tokens = input_tokens.zip(*output_tokens);
            let tokens = tokens.map(|(input, output)| format!("{input} tokens in, {output} out"));
            let duration = duration_ms.map(|duration| format!("{duration} ms"));
            let what: Vec<_> = [Some(model), tokens, duration]
                .into_iter()
                .flatten()
                .collect();
            (gateway_provider.to_string(), what.join(", "))
        }
        TimelineEvent::DeveloperDecision {
            agent_harness,
            accepted,
            explicit,
            interaction_mode,
            call_id,
            ..
        } => {
            let verdict = if *accepted { "accepted" } else { "rejected" };
            let who = if *explicit { "a person" } else { "a rule" };
            let call_id = call_id.as_ref();
            let call_id = call_id.map_or_else(String::new, |id| format!(", {}", escape(id)));
            let what = format!("{verdict} by {who}, {interaction_mode}{call_id}");
            (agent_harness.to_string(), what)
        }
        TimelineEvent::EditObservation {
            agent_harness,
            call_id,
            external_lines_added,
            external_lines_removed,
            ..
        } => {
            let lines = |sign: char, lines: &Option<i64>| match lines {
                Some(lines) => format!("{sign}{lines}"),
                None => format!("{sign}?"),
            };
            let what = format!(
                "{}, by others {} {}",
                escape(call_id),
                lines('+', external_lines_added),
                lines('-', external_lines_removed)
            );
            (agent_harness.to_string(), what)
        }
        TimelineEvent::RejectedEdit {
            agent_harness,
            call_id,
            ..
        } => (agent_harness.to_string(), escape(call_id)),
        TimelineEvent::RetryLinkage {
            agent_harness,
            tool_name,
            rejected_call_id,
            accepted_call_id,
            ..
        } => {
            let what = format!(
                "{tool_name} {}, accepted as {}",
                escape(rejected_call_id),
                escape(accepted_call_id)
            );
            (agent_harness.to_string(), what)
        }
    }
}

/// Returns the commits with what became of them, when there are any.
fn commits(dossier: &SessionDossier, now: Instant) -> Option<String> {
    let commits = &dossier.attributed_commits;
    if commits.is_empty() {
        return None;
    }
    let short = ShortIds::of(
        COMMIT_CHARACTERS,
        commits.iter().map(|commit| commit.commit_sha.as_str()),
    );
    let mut table = Table::new(["commit", "repository", "observed", "pushed", "ci"]).numbers(&[2]);
    for commit in commits {
        table.row([
            short.short(commit.commit_sha.as_str()),
            escape(&commit.repo),
            commit.session_commit_observation_ids.len().to_string(),
            pushed(dossier, commit, now),
            checked(dossier, commit),
        ]);
    }
    Some(table.render())
}

/// Returns the branches that were left at a commit, each with its latest push.
fn pushed(dossier: &SessionDossier, commit: &AttributedCommit, now: Instant) -> String {
    let mut branches: BTreeMap<&str, Instant> = BTreeMap::new();
    for push in &dossier.pushes {
        let same = push.after_sha == commit.commit_sha
            && push.repository_identity == commit.repository_identity;
        if same {
            let branch = push.r#ref.trim_start_matches("refs/heads/");
            let latest = branches.entry(branch).or_insert(push.captured_at);
            *latest = push.captured_at.max(*latest);
        }
    }
    let branches: Vec<_> = branches
        .into_iter()
        .map(|(branch, at)| format!("{} {}", escape(branch), relative(at, now)))
        .collect();
    if branches.is_empty() {
        "-".to_owned()
    } else {
        branches.join(", ")
    }
}

/// Returns how often CI came to which result at a commit.
fn checked(dossier: &SessionDossier, commit: &AttributedCommit) -> String {
    results(
        dossier
            .ci_outcomes
            .iter()
            .filter(|outcome| {
                outcome.commit_sha == commit.commit_sha
                    && outcome.repository_identity == commit.repository_identity
            })
            .map(|outcome| &outcome.result),
    )
}

/// Returns how often which result came up, in the order of the results.
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
        "-".to_owned()
    } else {
        counts.join(", ")
    }
}

/// Returns the command that shows a Session.
pub(super) fn command(session_id: &SessionId) -> String {
    format!("svc session {}", quote(session_id.as_str()))
}

fn next(dossier: &SessionDossier) -> Vec<String> {
    // The commit that was pushed last, else the last one.
    let pushed = dossier.pushes.last();
    let commit = dossier
        .attributed_commits
        .iter()
        .rfind(|commit| pushed.is_none_or(|push| push.after_sha == commit.commit_sha));
    let commit = commit.map(|it| {
        super::commit::command(&it.commit_sha, &it.repo, it.repository_identity.as_ref())
    });
    let calls = dossier.coverage.inference_calls.visible > 0;
    let calls = calls.then(|| {
        let session = quote(dossier.session_id.as_str());
        format!("svc evidence inventory {session}")
    });
    commit.into_iter().chain(calls).collect()
}
