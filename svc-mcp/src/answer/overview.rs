//! What became of the work of the last days: the sentence, the figures behind it, and what needs a
//! look.

use serde_json::{Value, json};
use svc_model::endpoint::OverviewQuery;
use svc_model::id::UserId;
use svc_model::json::Json;
use svc_model::open::Open;
use svc_model::overview::{
    Attention, Overview, OverviewDays, OverviewFigures, OverviewOutcome, OverviewRequest,
    OverviewSession,
};
use svc_model::query::LifetimeIdentity;
use svc_model::repository::CommitSha;
use svc_model::spend::SpendFigure;
use svc_view::SHELL;

use super::{Answer, Members, NOTICE, Step, call, of_session, typed};
use crate::arguments::Shown;
use crate::moment::minute;
use crate::refusal::ToolRefusal;

/// The entries of a list by repository or model.
const ROWS_MAX: usize = 5;
/// What needs a look, in an answer.
const ATTENTION_MAX: usize = 8;
/// The characters of a title, and of what needs a look.
const TITLE_CHARACTERS: usize = 120;
const ATTENTION_CHARACTERS: usize = 400;
/// The names in a list.
const NAMES_MAX: usize = 5;

/// Makes an answer of an overview.
pub(crate) fn overview(
    shown: &Shown,
    request: &OverviewRequest,
    reply: Json,
) -> Result<Step, ToolRefusal> {
    let overview = typed::<OverviewQuery>(reply)?;
    let attention = overview.attention.iter().take(ATTENTION_MAX);
    let attention: Vec<Value> = attention.map(|it| looked_at(it, &overview)).collect();
    let left_out = overview.attention.len().saturating_sub(attention.len()) as u64;
    let sessions: Vec<Value> = overview.sessions.iter().map(session).collect();
    let repositories = overview.repositories.iter();
    let repositories = repositories.map(|row| named("repo", row.repo.as_deref(), &row.figures));
    let models = overview.models.iter();
    let models = models.map(|row| named("model", row.model.as_deref(), &row.figures));
    let (unobservable, unpriced) = (SHELL.not_observable(&overview), SHELL.not_priced(&overview));
    let structured = Members::default()
        .with("sentence", &*overview.sentence)
        .with("figures", figures(&overview.figures).value())
        .with("not_observable_because", unobservable)
        .with("not_priced_because", unpriced)
        .with(
            "by_repository",
            repositories.take(ROWS_MAX).collect::<Vec<_>>(),
        )
        .with("by_model", models.take(ROWS_MAX).collect::<Vec<_>>())
        .with("attention", attention)
        .with(
            "attention_left_out",
            some(left_out + overview.attention_left_out),
        )
        .with("sessions", sessions)
        .with("session_count", overview.session_count)
        .with("next", next(shown, request, &overview))
        .with("notice", NOTICE)
        .0;
    Ok(Step::Answer(Answer::new(structured)))
}

/// Returns a count, unless it is 0.
fn some(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

/// Returns the figures that are not 0.
fn figures(of: &OverviewFigures) -> Members {
    let counts = [
        ("calls", of.calls),
        ("changes", of.changes),
        ("accepted", of.accepted),
        ("committed", of.committed),
        ("committed_by_similarity", of.committed_by_similarity),
        ("merged", of.merged),
        ("reverted", of.reverted),
        ("passed", of.passed),
        ("failed", of.failed),
        ("no_verdict", of.no_verdict),
        ("deleted", of.deleted),
        ("no_commit_found", of.no_commit_found),
        ("not_observable", of.not_observable),
        ("rejected", of.rejected),
    ];
    let counts = counts.into_iter();
    let members = counts.fold(Members::default(), |members, (name, count)| {
        members.with(name, some(count))
    });
    members
        .with("cost_usd_micros", cost(&of.spend))
        .with("unpriced", some(of.spend.unpriced_items))
}

/// Returns a cost, if any is known.
fn cost(spend: &SpendFigure) -> Option<i64> {
    let is_known = spend.captured.items + spend.derived.items > 0;
    is_known.then_some(spend.cost_usd_micros)
}

fn named(name: &str, value: Option<&str>, of: &OverviewFigures) -> Value {
    let mut row = figures(of).0;
    row.insert(
        name.to_owned(),
        value.map_or(Value::Null, |it| cut(it, TITLE_CHARACTERS)),
    );
    Value::Object(row)
}

fn cut(text: &str, characters: usize) -> Value {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

fn looked_at(attention: &Open<Attention>, overview: &Overview) -> Value {
    let said = SHELL.attention(attention, overview.window.end);
    Members::default()
        .with("kind", attention.as_str())
        .with("what", cut(&said, ATTENTION_CHARACTERS))
        .with("next", attention.known().and_then(look))
        .value()
}

/// Writes the call that shows more about what needs a look.
fn look(attention: &Attention) -> Option<String> {
    match attention {
        Attention::FailedCommit {
            repo,
            repository_identity,
            commit_sha,
            ..
        } => Some(commit(commit_sha, repo, repository_identity.as_ref())),
        Attention::DeletedEdits { session_id, .. } => {
            Some(call("session_dossier", of_session(session_id.as_str())))
        }
        Attention::NotesAbsent { .. }
        | Attention::PushesAbsent { .. }
        | Attention::SilentSource { .. } => None,
    }
}

fn commit(sha: &CommitSha, repo: &str, identity: Option<&LifetimeIdentity>) -> String {
    let members = Members::default().with("sha", sha.as_str());
    let members = match identity {
        Some(identity) => members
            .with("repository_provider", identity.provider.as_str())
            .with("repository_host", identity.host.as_str())
            .with("repository_id", identity.repository_id.as_str()),
        None => members.with("repo", repo),
    };
    call("commit_dossier", members.0)
}

fn session(session: &OverviewSession) -> Value {
    let names = |names: Vec<&str>| {
        let names = names.into_iter().take(NAMES_MAX);
        Value::from(names.collect::<Vec<_>>())
    };
    let users = session.user_ids.iter().map(UserId::as_str);
    let users: Vec<&str> = users.take(NAMES_MAX).collect();
    let marks = SHELL.marks(session).into_iter().map(|mark| mark.said);
    let marks: Vec<String> = marks.collect();
    let title = session.title.as_deref().map(|it| cut(it, TITLE_CHARACTERS));
    Members::default()
        .with("session", session.session_id.as_str())
        .with("title", title)
        .with("time", minute(session.last_observed_at))
        .with("user", (!users.is_empty()).then(|| users.join(", ")))
        .with(
            "repos",
            names(session.repositories.iter().map(String::as_str).collect()),
        )
        .with("became", (!marks.is_empty()).then(|| marks.join(", ")))
        .with("calls", session.figures.calls)
        .with("cost_usd_micros", cost(&session.figures.spend))
        .with("unpriced", some(session.figures.spend.unpriced_items))
        .value()
}

fn next(shown: &Shown, request: &OverviewRequest, overview: &Overview) -> String {
    let figures = &overview.figures;
    if figures.calls == 0 {
        let all = call("overview", Members::default().0);
        return if request.is_narrowed() {
            format!("For all calls, and the names of repositories and models: {all}.")
        } else if request.days == Some(OverviewDays::ThirtyOne) {
            "For earlier Sessions: list_sessions.".to_owned()
        } else {
            let more = shown.again("days", OverviewDays::ThirtyOne.get());
            format!("For more days: {more}; for earlier Sessions, list_sessions.")
        };
    }
    let outcome = if figures.failed > 0 {
        OverviewOutcome::Failed
    } else if figures.not_observable > 0 {
        OverviewOutcome::NotObservable
    } else {
        OverviewOutcome::Committed
    };
    let again = shown.again("outcome", json!(outcome.as_str()));
    let spend = match cost(&figures.spend) {
        Some(_) if !request.is_narrowed() => {
            let as_of = request.as_of.map(|moment| moment.to_string());
            let arguments = Members::default()
                .with("since_days", overview.window.days)
                .with("by", "pull-request")
                .with("as_of", as_of);
            let spend = call("spend_report", arguments.0);
            format!(" For what the spend became: {spend}.")
        }
        _ => String::new(),
    };
    format!(
        "For the Sessions behind a figure, its name as outcome: {again}; then session_dossier with \
         a session, or list_sessions for others.{spend}"
    )
}
