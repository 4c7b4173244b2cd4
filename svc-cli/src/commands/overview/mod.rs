//! What became of the work of the last days.

mod page;

use clap::Args;
use svc_engine::clock::Clock;
use svc_model::endpoint::OverviewQuery;
use svc_model::id::UserId;
use svc_model::limit::{OVERVIEW_SESSIONS_DEFAULT, OVERVIEW_SESSIONS_MAX};
use svc_model::overview::{
    Overview, OverviewDays, OverviewLimit, OverviewOutcome, OverviewRequest,
};
use svc_model::query::ModelName;
use svc_model::spend::UnpricedReason;
use svc_model::time::Instant;

use super::moment::optional_moment;
use super::one_of::one_of;
use super::repository::{self, RepositoryOptions};
use super::{service, suggestion};
use crate::credentials::Credentials;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, long_option};

/// The command for what the spend became.
const SPEND: &str = "svc report spend";
/// How many Sessions are listed where they are not what is asked for.
const LATEST: u64 = 5;

#[derive(Debug, Args)]
pub(crate) struct OverviewCommand {
    /// How many days it covers; by default 7.
    #[arg(long, value_parser = one_of(OverviewDays::ALL, OverviewDays::as_str))]
    days: Option<OverviewDays>,

    /// The moment up to which it covers the days, and captured facts: RFC 3339 with an offset, a
    /// date, or an age such as 7d; by default now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// Only calls of this model, exactly.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Only calls of this user, exactly.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// List only Sessions with a call that this figure counts.
    #[arg(long, value_parser = one_of(OverviewOutcome::ALL, OverviewOutcome::as_str))]
    outcome: Option<OverviewOutcome>,

    /// The maximum number of Sessions that are listed; by default 5, and 20 with --outcome.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=OVERVIEW_SESSIONS_MAX))]
    limit: Option<u64>,

    #[command(flatten)]
    service: ServiceOptions,
}

impl OverviewCommand {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let request = self.request(now)?;
        let client = service::client(&self.service)?;
        let reply =
            service::block_on(async { Ok(client.call_raw::<OverviewQuery>(&request).await?) })?;
        output.reply(&reply, |overview| {
            page::render(overview, request.outcome, &self.service, now)
        })?;
        let mut next = next(&reply.value, &request);
        if self.service.url.is_none() {
            // A report reads a store that is named; the sum is that of the service.
            let url = long_option("url", client.url());
            if let Some(report) = next.iter_mut().find(|next| next.starts_with(SPEND)) {
                *report += &url;
            }
        }
        output.next(&self.service, &next);
        Ok(())
    }

    fn request(&self, now: Instant) -> Result<OverviewRequest, CommandError> {
        let user_id = self.user.as_deref().map(UserId::new).transpose();
        let model = self.model.as_deref().map(|model| {
            ModelName::new(model)
                .ok_or_else(|| CommandError::argument("--model", "must be the name of a model"))
        });
        let limit = self.limit.unwrap_or(match self.outcome {
            Some(_) => OVERVIEW_SESSIONS_DEFAULT,
            None => LATEST,
        });
        Ok(OverviewRequest {
            days: self.days,
            as_of: optional_moment("--as-of", self.as_of.as_deref(), now)?,
            repository: self.repository.selector()?,
            model: model.transpose()?,
            user_id: user_id.map_err(|rule| CommandError::argument("--user", rule))?,
            outcome: self.outcome,
            limit: OverviewLimit::new(limit).unwrap_or_default(),
        })
    }
}

/// Returns whether a service to ask is known: from the environment or a login, or because it runs
/// on this machine. A setting that cannot be read counts, so that the command says what is wrong.
pub(crate) fn is_service_known() -> bool {
    let options = ServiceOptions::default();
    let named = match service::given(&options) {
        Ok(None) => Credentials::load().is_ok_and(|stored| stored.current().is_some()),
        Ok(Some(_)) | Err(_) => true,
    };
    named || svc_server::running_here().is_some()
}

/// Returns the commands to suggest next: those that list the Sessions behind what stands out, the
/// latest Session, and prices where they lack. Without calls, those that find or bring some.
fn next(overview: &Overview, request: &OverviewRequest) -> Vec<String> {
    let figures = &overview.figures;
    if figures.calls == 0 {
        return without_calls(request);
    }
    let lists = [
        (figures.failed, OverviewOutcome::Failed),
        (figures.deleted, OverviewOutcome::Deleted),
        (figures.not_observable, OverviewOutcome::NotObservable),
    ];
    let list = lists
        .into_iter()
        .find(|(count, _)| *count > 0 && request.outcome.is_none());
    let list = list.map(|(_, outcome)| with_outcome(request, outcome));
    let latest = overview.sessions.first();
    let latest = latest.map(|session| suggestion::session(&session.session_id));
    let unpriced = |reason| overview.unpriced.get(reason) > 0;
    let prices = if unpriced(UnpricedReason::NoPriceTable) {
        Some("svc prices load FILE")
    } else if unpriced(UnpricedReason::ModelNotInTable) {
        Some("svc prices check")
    } else {
        None
    };
    let prices = prices.map(str::to_owned);
    let next = list.into_iter().chain(latest);
    next.chain(spend(overview, request)).chain(prices).collect()
}

/// Returns the command that says what the spend became, unless its sum is of other calls.
fn spend(overview: &Overview, request: &OverviewRequest) -> Option<String> {
    let spend = &overview.figures.spend;
    let is_known = spend.captured.items + spend.derived.items > 0;
    let is_same = request.as_of.is_none() && !request.is_narrowed();
    let days = overview.window.days;
    (is_known && is_same).then(|| format!("{SPEND} --by pull-request --since {days}"))
}

fn without_calls(request: &OverviewRequest) -> Vec<String> {
    let mut next = Vec::new();
    if request.days != Some(OverviewDays::ThirtyOne) {
        let longer = OverviewRequest {
            days: Some(OverviewDays::ThirtyOne),
            ..request.clone()
        };
        next.push(again(&longer));
    }
    if request.is_narrowed() || request.as_of.is_some() {
        next.push("svc overview".to_owned());
    } else {
        let first = ["svc doctor", "svc install claude-code", "svc demo"];
        next.extend(first.map(str::to_owned));
    }
    next
}

/// Returns the command that lists the Sessions behind a figure, with the same filters.
fn with_outcome(request: &OverviewRequest, outcome: OverviewOutcome) -> String {
    again(request) + &long_option("outcome", outcome.as_str())
}

/// Returns the command for the same calls.
fn again(request: &OverviewRequest) -> String {
    let mut command = "svc overview".to_owned();
    let mut option = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            command += &long_option(name, value);
        }
    };
    option("days", request.days.map(OverviewDays::as_str));
    let as_of = request.as_of.map(|moment| moment.to_string());
    option("as-of", as_of.as_deref());
    option("model", request.model.as_ref().map(ModelName::as_str));
    option("user", request.user_id.as_ref().map(UserId::as_str));
    command + &repository::selecting(&request.repository)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        overview: OverviewCommand,
    }

    fn request(line: &str) -> Result<OverviewRequest, CommandError> {
        let words = std::iter::once("overview").chain(line.split_whitespace());
        let overview = Line::try_parse_from(words).unwrap().overview;
        overview.request(Instant::parse("2026-01-08T00:00:00Z").unwrap())
    }

    #[test]
    fn the_command_for_a_list_repeats_the_filters() {
        let asked = request("--days 31 --as-of 1d --user ann --model m --repo own/app").unwrap();
        assert_eq!(asked.limit.get(), LATEST);
        let command = with_outcome(&asked, OverviewOutcome::Failed);
        assert_eq!(
            command,
            "svc overview --days 31 --as-of 2026-01-07T00:00:00Z --model m --user ann --repo own/app \
             --outcome failed"
        );
        let again = request(command.trim_start_matches("svc overview")).unwrap();
        assert_eq!(again.outcome, Some(OverviewOutcome::Failed));
        assert_eq!(again.limit.get(), OVERVIEW_SESSIONS_DEFAULT);
        let same = OverviewRequest {
            outcome: None,
            limit: asked.limit,
            ..again
        };
        assert_eq!(same, asked);
        for wrong in ["--as-of x", "--repo own", "--user \0", "--model \0"] {
            request(wrong).unwrap_err();
        }
    }
}
