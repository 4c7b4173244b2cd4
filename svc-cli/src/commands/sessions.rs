use clap::Args;
use svc_engine::clock::Clock;
use svc_model::endpoint::SessionsQuery;
use svc_model::facts::AgentHarness;
use svc_model::id::UserId;
use svc_model::limit::SESSION_PAGE_MAX;
use svc_model::open::Open;
use svc_model::query::{
    ModelName, SessionCursor, SessionList, SessionPageLimit, SessionSummary, SessionsRequest,
};
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::search::FilePath;
use svc_model::time::Instant;
use svc_view::SHELL;

use super::moment::optional_moment;
use super::one_of::one_of;
use super::repository::{self, RepositoryOptions};
use super::{revision, service};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape, long_option, quote, relative};

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// Sessions whose first fact was captured at or after this moment: RFC 3339 with an offset, a
    /// date, or an age such as 7d; by default all.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,

    /// Sessions whose first fact was captured before this moment.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// Sessions of this user, exactly.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Sessions with a call of this model, exactly.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Sessions of this agent.
    #[arg(long, value_parser = one_of(AgentHarness::ALL, AgentHarness::as_str))]
    harness: Option<AgentHarness>,

    /// Sessions that were observed at this commit: its full id, or inside a clone any name that git
    /// knows, such as HEAD.
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,

    /// Sessions that worked on the file with this path, or with this end of a path.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    /// Show what each Session cost, at list price.
    #[arg(long)]
    spend: bool,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// The maximum number of Sessions per page.
    #[arg(long, value_name = "NUMBER", default_value = "20",
          value_parser = clap::value_parser!(u64).range(1..=SESSION_PAGE_MAX))]
    limit: u64,

    /// The cursor of the previous page, for the same selection.
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    cursor: Option<String>,

    /// Read every page.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Sessions {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let mut request = self.request(now)?;
        let client = service::client(&self.service)?;
        if self.all {
            request.limit = SessionPageLimit::new(SESSION_PAGE_MAX).unwrap_or_default();
            let sessions = service::block_on(async {
                Ok(client.sessions(request.clone()).collect_all().await?)
            })?;
            let list = SessionList {
                sessions,
                next_cursor: None,
            };
            output.value(&list, |list| render(list, now))?;
            output.next(&self.service, &next(&list, &request, None));
            return Ok(());
        }
        let reply =
            service::block_on(async { Ok(client.call_raw::<SessionsQuery>(&request).await?) })?;
        output.reply(&reply, |list| render(list, now))?;
        let after = reply.value.next_cursor.as_ref();
        let after = after.map(|cursor| after_page(&request, cursor));
        output.next(&self.service, &next(&reply.value, &request, after));
        Ok(())
    }

    fn request(&self, now: Instant) -> Result<SessionsRequest, CommandError> {
        let user_id = self.user.as_deref().map(UserId::new).transpose();
        let user_id = user_id.map_err(|rule| CommandError::argument("--user", rule))?;
        let model =
            match &self.model {
                None => None,
                Some(model) => Some(ModelName::new(model).ok_or_else(|| {
                    CommandError::argument("--model", "must be the name of a model")
                })?),
            };
        let captured_after = optional_moment("--since", self.since.as_deref(), now)?;
        let captured_before = optional_moment("--until", self.until.as_deref(), now)?;
        if let (Some(after), Some(before)) = (captured_after, captured_before)
            && after >= before
        {
            return Err(CommandError::misuse("--since", "must be before --until"));
        }
        let commit = self.commit.as_deref();
        let commit = commit.map(|commit| revision::commit("--commit", commit));
        let file = self.file.as_deref().map(FilePath::new).transpose();
        Ok(SessionsRequest {
            captured_after,
            captured_before,
            user_id,
            model,
            agent_harness: self.harness,
            repository: self.repository.selector()?,
            commit: commit.transpose()?,
            file: file.map_err(|rule| CommandError::argument("--file", rule))?,
            limit: SessionPageLimit::new(self.limit).unwrap_or_default(),
            cursor: self.cursor.clone().map(SessionCursor::new),
            spend: self.spend,
            titles: true,
        })
    }
}

/// Returns the command that shows the next page. Its range is absolute, because a cursor is valid
/// for one query only.
fn after_page(request: &SessionsRequest, cursor: &SessionCursor) -> String {
    let mut command = "svc sessions".to_owned();
    let mut option = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            command += &long_option(name, value);
        }
    };
    let moment = |moment: Option<Instant>| moment.map(|moment| moment.to_string());
    option("since", moment(request.captured_after).as_deref());
    option("until", moment(request.captured_before).as_deref());
    option("user", request.user_id.as_ref().map(UserId::as_str));
    option("model", request.model.as_ref().map(ModelName::as_str));
    let harness = request.agent_harness.as_ref();
    option("harness", harness.map(|harness| harness.as_str()));
    option("commit", request.commit.as_ref().map(CommitSha::as_str));
    option("file", request.file.as_ref().map(FilePath::as_str));
    command += &repository::selecting(&request.repository);
    if request.spend {
        command += " --spend";
    }
    let limit = request.limit.get();
    command + &format!(" --limit {limit} --cursor {}", quote(cursor.as_str()))
}

fn render(list: &SessionList, now: Instant) -> String {
    if list.sessions.is_empty() {
        return match list.next_cursor {
            None => "no sessions\n".to_owned(),
            Some(_) => "no sessions on this page; the next page goes further back\n".to_owned(),
        };
    }
    let columns = [
        "session",
        "began",
        "last seen",
        "calls",
        "models",
        "agent",
        "user",
        "repository",
        "title",
    ];
    let mut table = Table::new(columns).numbers(&[3]);
    if list.sessions.iter().any(|session| session.spend.is_some()) {
        let [session, began, last_seen, calls, ..] = columns;
        let spend = [
            session,
            began,
            last_seen,
            calls,
            "cost",
            "not priced",
            "title",
        ];
        let mut table = Table::new(spend).numbers(&[3, 4, 5]);
        for session in &list.sessions {
            let [id, began, last_seen, calls, .., title] = row(session, now);
            let spend = session.spend.unwrap_or_default();
            let unpriced = SHELL.whole(spend.unpriced_items);
            let cost = SHELL.session_cost(&spend);
            table.row([id, began, last_seen, calls, cost, unpriced, title]);
        }
        return table.render();
    }
    for session in &list.sessions {
        table.row(row(session, now));
    }
    table.render()
}

fn row(session: &SessionSummary, now: Instant) -> [String; 9] {
    [
        escape(session.session_id.as_str()),
        relative(session.first_observed_at, now),
        relative(session.last_observed_at, now),
        SHELL.calls(session),
        SHELL.list(session.models.iter().map(String::as_str)),
        SHELL.list(session.agent_harnesses.iter().map(Open::as_str)),
        SHELL.list(session.user_ids.iter().map(UserId::as_str)),
        SHELL.list(session.repositories.iter().map(RepositoryName::as_str)),
        SHELL.list(session.title.as_deref()),
    ]
}

/// Returns the commands to suggest next: the latest Session, and the next page. If nothing was
/// found, suggests the list of all Sessions, which shows how users, models and repositories are
/// written.
fn next(list: &SessionList, request: &SessionsRequest, page: Option<String>) -> Vec<String> {
    if list.sessions.is_empty() && page.is_none() && is_narrowed(request) {
        return vec!["svc sessions".to_owned()];
    }
    let latest = list.sessions.first();
    let latest = latest.map(|session| super::suggestion::session(&session.session_id));
    latest.into_iter().chain(page).collect()
}

fn is_narrowed(request: &SessionsRequest) -> bool {
    let everything = SessionsRequest {
        limit: request.limit,
        cursor: request.cursor.clone(),
        titles: request.titles,
        ..SessionsRequest::default()
    };
    *request != everything
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use svc_model::json;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        sessions: Sessions,
    }

    fn request(line: &str) -> Result<SessionsRequest, CommandError> {
        let words = std::iter::once("sessions").chain(line.split_whitespace());
        let sessions = Line::try_parse_from(words).unwrap().sessions;
        sessions.request(Instant::parse("2026-01-08T00:00:00Z").unwrap())
    }

    #[test]
    fn the_command_for_the_next_page_repeats_the_question() {
        let asked = request(
            "--since -7d --until 2026-01-08T00:00:00Z --user ann --model m --harness codex --repo own/app \
             --commit 0123456789012345678901234567890123456789 --file src/pager.rs --limit 2",
        )
        .unwrap();
        let command = after_page(&asked, &SessionCursor::new("c"));
        assert_eq!(
            command,
            "svc sessions --since 2026-01-01T00:00:00Z --until 2026-01-08T00:00:00Z --user ann \
             --model m --harness codex --commit 0123456789012345678901234567890123456789 \
             --file src/pager.rs --repo own/app --limit 2 --cursor c"
        );
        let again = request(command.trim_start_matches("svc sessions")).unwrap();
        assert_eq!(again.cursor, Some(SessionCursor::new("c")));
        assert_eq!(
            SessionsRequest {
                cursor: None,
                ..again
            },
            asked
        );
        for wrong in [
            "--since -1d --until -2d",
            "--repo own",
            "--user \0",
            "--commit none",
            "--file \0",
        ] {
            assert_eq!(request(wrong).unwrap_err().code(), "invalid_argument");
        }
    }

    #[test]
    fn sessions_are_a_table_with_the_latest_first() {
        let list = r#"{"sessions":[{"session_id":"s\u001b","captured_at":"2026-01-07T23:00:00Z",
            "first_observed_at":"2026-01-07T23:00:00Z","last_observed_at":"2026-01-07T23:30:00Z",
            "user_ids":["ann"],"models":["m","n"],"agent_harnesses":["codex"],
            "repositories":["own/app"],"inference_calls":1000,"title":"Fix the\u001b test"},
            {"session_id":"t","captured_at":"2026-01-07T22:00:00Z",
            "first_observed_at":"2026-01-07T22:00:00Z","last_observed_at":"2026-01-07T22:00:00Z",
            "user_ids":[],"models":[],"agent_harnesses":[],"repositories":[],"inference_calls":0}],
            "next_cursor":null}"#;
        let list: SessionList = json::from_slice(list.as_bytes()).unwrap();
        let now = Instant::parse("2026-01-08T00:00:00Z").unwrap();
        assert_eq!(
            render(&list, now),
            "session  began   last seen  calls  models  agent  user  repository  title\n\
             s\\u{1b}  1h ago  30m ago    1000+  m, n    codex  ann   own/app     Fix the\\u{1b} test\n\
             t        2h ago  2h ago         0  -       -      -     -           -\n"
        );
        let (all, some) = (request("").unwrap(), request("--model m").unwrap());
        assert_eq!(next(&list, &some, None), [r"svc session $'s\x1b'"]);
        let none = SessionList::default();
        assert_eq!(next(&none, &some, None), ["svc sessions"]);
        assert!(next(&none, &all, None).is_empty());
        assert_eq!(render(&SessionList::default(), now), "no sessions\n");
    }
}
