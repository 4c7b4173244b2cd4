use clap::Args;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::endpoint::CiFailuresQuery;
use svc_model::ingest::CiResult;
use svc_model::limit::CI_PAGE_MAX;
use svc_model::open::Open;
use svc_model::query::{
    CiCursor, CiFailures, CiFailuresRequest, CiOutcomeRecord, PageLimit, RepositorySelector,
};
use svc_model::time::Instant;
use svc_view::SHELL;

use super::attempt_of;
use crate::commands::moment::{moment, optional_boundary, optional_moment};
use crate::commands::one_of::one_of;
use crate::commands::repository::{self, RepositoryOptions};
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, ShortIds, Table, escape, long_option, one_line, relative};
use crate::product::product;

/// The characters of a text that a table shows.
const TEXT_CHARACTERS_MAX: usize = 48;
/// The characters that a commit id is shortened to, unless another id has the same prefix.
const COMMIT_CHARACTERS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Failures {
    #[command(flatten)]
    repository: RepositoryOptions,

    /// The start of the range, by capture time: RFC 3339 with an offset, a date, or an age such as
    /// 7d.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "7d",
        allow_hyphen_values = true
    )]
    since: String,

    /// The end of the range, by capture time, not included; by default now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// Count only facts captured at or before this moment; by default the end of the range.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,

    /// List runs with this result instead of failures.
    #[arg(long, default_value = CiResult::Failed.as_str(), value_parser = one_of(CiResult::ALL, CiResult::as_str))]
    result: CiResult,

    /// Only runs of the workflow with exactly this name; an empty name selects runs without one.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,

    /// Only runs of this pull request.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pull_request: Option<i64>,

    /// The maximum number of runs per page.
    #[arg(long, value_name = "NUMBER", default_value = "50",
          value_parser = clap::value_parser!(u64).range(1..=CI_PAGE_MAX))]
    limit: u64,

    /// The cursor of the previous page, for the same range and selection.
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    cursor: Option<String>,

    /// Read every page.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Failures {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let request = self.request(now)?;
        let client = service::client(&self.service)?;
        let repository = shown(&request.repository);
        if self.all {
            let failures = service::block_on(every(&client, request))?;
            output.value(&failures, |failures| render(failures, &repository, now))?;
            explain(&failures, output);
            output.next(&self.service, &next(&failures, None));
            return Ok(());
        }
        let reply =
            service::block_on(async { Ok(client.call_raw::<CiFailuresQuery>(&request).await?) })?;
        output.reply(&reply, |failures| render(failures, &repository, now))?;
        explain(&reply.value, output);
        let after = reply.value.next_cursor.as_ref();
        let after = after.map(|cursor| Self::after(&request, cursor));
        output.next(&self.service, &next(&reply.value, after));
        Ok(())
    }

    fn request(&self, now: Instant) -> Result<CiFailuresRequest, CommandError> {
        let repository = self.repository.selector()?;
        if repository.is_empty() {
            let error = CommandError::misuse("a repository", "must be selected");
            return Err(error.hint("by its name: --repo OWNER/NAME"));
        }
        let since = moment("--since", &self.since, now)?;
        let until = optional_moment("--until", self.until.as_deref(), now)?;
        let mut request = CiFailuresRequest::new(repository, since, until.unwrap_or(now));
        if request.captured_after >= request.captured_before {
            return Err(CommandError::misuse("--since", "must be before --until"));
        }
        request.as_of = optional_boundary("--as-of", self.as_of.as_deref(), now)?;
        request.result = self.result;
        request.workflow_name.clone_from(&self.workflow);
        request.pr_number = self.pull_request;
        request.limit = PageLimit::new(self.limit).unwrap_or_default();
        request.cursor = self.cursor.clone().map(CiCursor::new);
        Ok(request)
    }

    /// Returns the command that shows the next page. Its range is absolute, because a cursor is
    /// valid for one query only.
    fn after(request: &CiFailuresRequest, cursor: &CiCursor) -> String {
        let selector = &request.repository;
        let mut command = "svc ci failures".to_owned();
        command += &repository::selecting(selector);
        let mut option = |name: &str, value: &str| {
            command += &long_option(name, value);
        };
        option("since", &request.captured_after.to_string());
        option("until", &request.captured_before.to_string());
        if let Some(as_of) = request.as_of {
            option("as-of", &as_of.to_string());
        }
        if request.result != CiResult::Failed {
            option("result", request.result.as_str());
        }
        if let Some(workflow) = &request.workflow_name {
            option("workflow", workflow);
        }
        if let Some(number) = request.pr_number {
            option("pull-request", &number.to_string());
        }
        if request.limit != PageLimit::default() {
            option("limit", &request.limit.get().to_string());
        }
        option("cursor", cursor.as_str());
        command
    }
}

/// Reads every page. Runs that could not be assigned to the repository are on the first page.
async fn every(client: &Client, request: CiFailuresRequest) -> Result<CiFailures, CommandError> {
    let mut request = CiFailuresRequest {
        limit: PageLimit::new(CI_PAGE_MAX).unwrap_or_default(),
        ..request
    };
    let mut all = client.ci_failures_page(&request).await?;
    request.cursor = all.next_cursor.take();
    if request.cursor.is_some() {
        let more = client.ci_failures(request).collect_all().await?;
        all.outcomes.extend(more);
    }
    Ok(all)
}

fn render(failures: &CiFailures, repository: &str, now: Instant) -> String {
    let result = &failures.result;
    let unresolved = failures.unresolved_ci_outcomes.as_deref();
    let mut blocks = Vec::new();
    if !failures.outcomes.is_empty() {
        blocks.push(table(result, &failures.outcomes, now));
    } else if failures.repository_skipped.is_some() {
        // Only the remaining pages are needed.
    } else if failures.repository_known {
        blocks.push(format!(
            "no {} runs in this range\n",
            SHELL.adjective(result)
        ));
    } else {
        blocks.push(format!(
            "no fact mentions a repository {repository}: is the name right, and did anything from it arrive?\n"
        ));
    }
    for (reason, count) in failures.repository_skipped.iter().flatten() {
        let unlisted = SHELL.unlisted(result, *count);
        blocks.push(format!("not listed above: {unlisted} ({reason})\n"));
    }
    blocks.extend(unresolved.map(|unresolved| table(result, unresolved, now)));
    blocks.join("\n")
}

fn table(result: &Open<CiResult>, outcomes: &[CiOutcomeRecord], now: Instant) -> String {
    let commits = outcomes.iter().map(|outcome| outcome.commit_sha.as_str());
    let commits = ShortIds::of(COMMIT_CHARACTERS, commits);
    let mut table = Table::new([
        result.as_str(),
        "system",
        "run",
        "workflow",
        "branch",
        "commit",
        "reason",
    ]);
    for outcome in outcomes {
        table.row(row(outcome, commits, now));
    }
    table.render()
}

fn row(outcome: &CiOutcomeRecord, commits: ShortIds, now: Instant) -> [String; 7] {
    let reason = outcome.reason.as_ref().or(outcome.error_type.as_ref());
    [
        relative(outcome.captured_at, now),
        product(&outcome.provider),
        format!(
            "{}{}",
            escape(&outcome.run_id),
            attempt_of(outcome.run_attempt)
        ),
        SHELL.or_none(one_line(&outcome.workflow_name, TEXT_CHARACTERS_MAX)),
        SHELL.or_none(escape(outcome.branch.as_str())),
        commits.short(outcome.commit_sha.as_str()),
        SHELL.or_none(reason.map_or_else(String::new, |text| one_line(text, TEXT_CHARACTERS_MAX))),
    ]
}

/// Returns the requested repository, for people.
fn shown(selector: &RepositorySelector) -> String {
    let name = selector.repo.iter().map(|name| escape(name.as_str()));
    let identity = selector.identity.iter().map(|identity| {
        let (provider, host) = (identity.repository_provider, &identity.repository_host);
        format!(
            "{provider}/{}/{}",
            host.as_str(),
            identity.repository_id.as_str()
        )
    });
    name.chain(identity).collect::<Vec<_>>().join(", ")
}

/// Says what to change if runs cannot be assigned to their repository.
fn explain(failures: &CiFailures, output: &mut Output) {
    if failures.repository_skipped.is_some() {
        output.note(
            "their reports have no repository number: set SVC_REPOSITORY_ID in the CI system, or \
             report with --repository-id; see docs/integrate/ci.md",
        );
    }
}

/// Returns the commands to suggest next: the latest run, and the next page.
fn next(failures: &CiFailures, page: Option<String>) -> Vec<String> {
    let unresolved = failures.unresolved_ci_outcomes.iter().flatten();
    let latest = failures.outcomes.iter().chain(unresolved).next();
    let latest = latest.map(|outcome| format!("svc investigate {}", super::run_flags(outcome)));
    latest.into_iter().chain(page).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use svc_model::json;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        failures: Failures,
    }

    fn at(text: &str) -> Instant {
        Instant::parse(text).unwrap()
    }

    fn request(line: &str) -> Result<CiFailuresRequest, CommandError> {
        let words = std::iter::once("failures").chain(line.split(' '));
        let failures = Line::try_parse_from(words).unwrap().failures;
        failures.request(at("2026-01-08T00:00:00Z"))
    }

    #[test]
    fn the_default_range_is_the_last_week() {
        let asked = request("--repo own/app").unwrap();
        assert_eq!(asked.captured_after, at("2026-01-01T00:00:00Z"));
        assert_eq!(asked.captured_before, at("2026-01-08T00:00:00Z"));
        assert_eq!(asked.result, CiResult::Failed);
        let asked = request("--repo own/app --since -2d --until -1d").unwrap();
        assert_eq!(asked.captured_after, at("2026-01-06T00:00:00Z"));
        assert_eq!(asked.captured_before, at("2026-01-07T00:00:00Z"));
        for wrong in ["--since -1d", "--repo own/app --since -1d --until -2d"] {
            assert_eq!(request(wrong).unwrap_err().code(), "invalid_argument");
        }
    }

    #[test]
    fn the_command_for_the_next_page_repeats_the_question() {
        let asked = request(
            "--repo own/app --result timed_out --workflow Build --pull-request 7 --limit 2",
        )
        .unwrap();
        let command = Failures::after(&asked, &CiCursor::new("c"));
        assert_eq!(
            command,
            "svc ci failures --repo own/app --since 2026-01-01T00:00:00Z --until 2026-01-08T00:00:00Z \
             --result timed_out --workflow Build --pull-request 7 --limit 2 --cursor c"
        );
        let again = command.trim_start_matches("svc ci failures ");
        let again = request(again).unwrap();
        assert_eq!(again.cursor, Some(CiCursor::new("c")));
        assert_eq!(
            CiFailuresRequest {
                cursor: None,
                ..again
            },
            asked
        );
    }

    #[test]
    fn failures_are_a_table_with_the_latest_first() {
        let outcome = |run: &str, commit: &str, reason: &str| {
            format!(
                r#"{{"outcome_id":"96c8a2f0-0000-4000-8000-000000000002","provider":"ci_b",
                "run_id":"{run}","run_attempt":null,"repo":"own/app","commit_sha":"{commit}",
                "branch":"main","result":"failed","workflow_name":"","workflow_id":null,"run_url":null,
                "provider_result":null,"error_type":null,"reason":{reason},"pr_number":null,
                "captured_at":"2026-01-07T23:00:00Z","commit_query":"/query/commit/{commit}?repo=own%2Fapp",
                "repository_identity":null}}"#
            )
        };
        let (one, other) = ("a".repeat(40), "a".repeat(39) + "b");
        let failures = format!(
            r#"{{"result":"failed","outcomes":[{},{}],"next_cursor":null}}"#,
            outcome("r1", &one, r#""3 tests\u001b failed""#),
            outcome("r2", &other, "null")
        );
        let failures: CiFailures = json::from_slice(failures.as_bytes()).unwrap();
        let now = at("2026-01-08T00:00:00Z");
        assert_eq!(
            render(&failures, "own/app", now),
            format!(
                "failed  system     run  workflow  branch  commit{}reason\n\
                 1h ago  gitlab-ci  r1   -         main    {one}  3 tests\\u{{1b}} failed\n\
                 1h ago  gitlab-ci  r2   -         main    {other}  -\n",
                " ".repeat(36)
            )
        );
        assert_eq!(
            next(&failures, Some("svc ci failures --cursor c".to_owned())),
            [
                "svc investigate r1 --system gitlab-ci --repo own/app",
                "svc ci failures --cursor c"
            ]
        );
        let none = |more: &str| {
            let page =
                format!(r#"{{"result":"timed_out","outcomes":[],"next_cursor":null{more}}}"#);
            json::from_slice::<CiFailures>(page.as_bytes()).unwrap()
        };
        let known = none(r#","repository_known":true"#);
        assert_eq!(
            render(&known, "own/app", now),
            "no timed-out runs in this range\n"
        );
        assert!(next(&known, None).is_empty());
        assert_eq!(
            render(&none(""), "own/app", now),
            "no fact mentions a repository own/app: is the name right, and did anything from it arrive?\n"
        );
        let declined = none(&format!(
            r#","repository_skipped":{{"repository_identity_unresolved":1}},"unresolved_ci_outcomes":[{}]"#,
            outcome("r3", &one, "null")
        ));
        assert!(render(&declined, "own/app", now).starts_with(
            "not listed above: 1 timed-out run under this name whose repository cannot be determined \
             (repository_identity_unresolved)\n\ntimed_out  system     run"
        ));
        assert_eq!(
            next(&declined, None),
            ["svc investigate r3 --system gitlab-ci --repo own/app"]
        );
    }
}
