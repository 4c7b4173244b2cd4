use clap::Args;
use svc_engine::clock::Clock;
use svc_model::query::{CiOutcomeAnswer, CiOutcomeRecord, CiRun, SupersededOutcome};
use svc_model::time::Instant;

use super::RunOptions;
use crate::commands::{repository, service, suggestion};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Fields, Output, Table, escape, one_line, quote, relative};
use crate::product::product;

/// The characters of a reason that are shown.
const REASON_CHARACTERS_MAX: usize = 400;
/// The characters of a workflow's name that a table shows.
const WORKFLOW_CHARACTERS_MAX: usize = 48;

#[derive(Debug, Args)]
pub(crate) struct Outcome {
    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Outcome {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let client = service::client(&self.service)?;
        let found = service::block_on(self.run.find(&client, now))?;
        let reply = found.run;
        output.reply(&reply, |answer| {
            let others = others(&found.others, now);
            let blocks = std::iter::once(render(self.run.run(), answer, now)).chain(others);
            blocks.collect::<Vec<_>>().join("\n")
        })?;
        let Some(outcome) = &reply.value.outcome else {
            return Ok(());
        };
        output.next(
            &self.service,
            &[
                format!("svc investigate {}", run_flags(outcome)),
                commit_command(outcome),
            ],
        );
        Ok(())
    }
}

fn render(run: &str, answer: &CiOutcomeAnswer, now: Instant) -> String {
    match &answer.outcome {
        Some(outcome) => fields(outcome, answer.attempts.as_deref(), now).render(),
        None => not_stored(run),
    }
}

/// Returns the message for a run that is not stored.
pub(crate) fn not_stored(run: &str) -> String {
    format!("no visible run {} is stored\n", escape(run))
}

/// Returns an outcome as named values, with the result first.
pub(crate) fn fields(
    outcome: &CiOutcomeRecord,
    attempts: Option<&[Option<i64>]>,
    now: Instant,
) -> Fields {
    let mut fields = Fields::default();
    fields.add(
        "result",
        format!("{}, {}", outcome.result, relative(outcome.captured_at, now)),
    );
    fields.add_some("superseded", outcome.superseded.as_ref().map(superseded));
    let attempt = attempt_of(outcome.run_attempt);
    fields.add(
        "run",
        format!(
            "{} {}{attempt}",
            product(&outcome.provider),
            escape(&outcome.run_id)
        ),
    );
    let numbers = attempts.into_iter().flatten().flatten();
    let numbers: Vec<String> = numbers.map(ToString::to_string).collect();
    fields.add_some(
        "attempts",
        Some(numbers.join(", ")).filter(|_| numbers.len() > 1),
    );
    fields.add(
        "repository",
        repository::named(&outcome.repo, outcome.repository_identity.as_ref()),
    );
    fields.add("commit", outcome.commit_sha.as_str());
    let branch = escape(outcome.branch.as_str());
    fields.add_some("branch", Some(branch).filter(|branch| !branch.is_empty()));
    let workflow = escape(&outcome.workflow_name.to_string_lossy());
    fields.add_some("workflow", Some(workflow).filter(|name| !name.is_empty()));
    fields.add_some(
        "pull request",
        outcome.pr_number.map(|number| number.to_string()),
    );
    let text = |text: Option<&svc_model::json::Text>| {
        text.map(|text| one_line(text, REASON_CHARACTERS_MAX))
    };
    fields.add_some("system said", text(outcome.provider_result.as_ref()));
    fields.add_some("error type", text(outcome.error_type.as_ref()));
    fields.add_some("reason", text(outcome.reason.as_ref()));
    fields.add_some("url", text(outcome.run_url.as_ref()));
    fields
}

/// Returns what was reported for a run before the forge said something else.
pub(crate) fn superseded(superseded: &SupersededOutcome) -> String {
    let (result, outcome_id) = (&superseded.result, superseded.outcome_id);
    format!("a token reported {result} ({outcome_id}); the forge's signed word differs")
}

/// Returns an attempt in the form that follows a run's id.
pub(crate) fn attempt_of(attempt: Option<i64>) -> String {
    attempt.map_or_else(String::new, |attempt| format!(" attempt {attempt}"))
}

/// Returns the other runs of the same name, if any.
pub(crate) fn others(others: &[CiRun], now: Instant) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let mut table = Table::new(["other runs", "system", "run", "workflow"]);
    for CiRun { outcome, .. } in others {
        let workflow = one_line(&outcome.workflow_name, WORKFLOW_CHARACTERS_MAX);
        table.row([
            format!("{}, {}", outcome.result, relative(outcome.captured_at, now)),
            product(&outcome.provider),
            escape(&outcome.run_id) + &attempt_of(outcome.run_attempt),
            Some(workflow)
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    Some(table.render())
}

/// Returns the command that shows the commit of an outcome.
pub(crate) fn commit_command(outcome: &CiOutcomeRecord) -> String {
    let identity = outcome.repository_identity.as_ref();
    suggestion::commit(&outcome.commit_sha, unique_name(outcome), identity)
}

/// Returns the name that selects the repository of an outcome, or an empty text if another
/// repository has had the same name.
fn unique_name(outcome: &CiOutcomeRecord) -> &str {
    let link = outcome.commit_query.request();
    let is_unique = link.is_some_and(|link| !link.repository.is_empty());
    if is_unique { &outcome.repo } else { "" }
}

/// Returns the arguments that name exactly this run.
pub(crate) fn run_flags(outcome: &CiOutcomeRecord) -> String {
    let attempt = outcome
        .run_attempt
        .map_or_else(String::new, |attempt| format!(" --attempt {attempt}"));
    format!(
        "{} --system {}{attempt}{}",
        quote(&outcome.run_id),
        product(&outcome.provider),
        repository::flags(unique_name(outcome), outcome.repository_identity.as_ref())
    )
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::*;

    #[test]
    fn an_outcome_is_printed_with_its_known_fields() {
        let answer = r#"{"found":true,"outcome":{"outcome_id":"96c8a2f0-0000-4000-8000-000000000002",
            "provider":"forge_actions","run_id":"r\u001b1","run_attempt":2,"repo":"own/app",
            "commit_sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","branch":"main","result":"failed",
            "workflow_name":"Build","workflow_id":null,"run_url":null,"provider_result":"failure",
            "error_type":null,"reason":"3 tests\nfailed","pr_number":null,"captured_at":"2026-01-02T03:04:05Z",
            "commit_query":"/query/commit/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "repository_identity":{"provider":"github","host":"github.com","repository_id":"9"}}}"#;
        let answer: CiOutcomeAnswer = json::from_slice(answer.as_bytes()).unwrap();
        let now = Instant::parse("2026-01-02T05:04:05Z").unwrap();
        assert_eq!(
            render("r1", &answer, now),
            "result       failed, 2h ago\n\
             run          github-actions r\\u{1b}1 attempt 2\n\
             repository   own/app (github/github.com/9)\n\
             commit       aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\
             branch       main\n\
             workflow     Build\n\
             system said  failure\n\
             reason       3 tests failed\n"
        );
        assert_eq!(
            run_flags(answer.outcome.as_ref().unwrap()),
            r"$'r\x1b1' --system github-actions --attempt 2 --repo github/github.com/9"
        );
    }

    #[test]
    fn a_run_that_is_not_stored_is_reported() {
        let now = Instant::from_microseconds(0).unwrap();
        assert_eq!(
            render("7\u{1b}", &CiOutcomeAnswer::from(None), now),
            "no visible run 7\\u{1b} is stored\n"
        );
    }
}
