use clap::Args;
use svc_engine::clock::Clock;
use svc_engine::read;
use svc_model::facts::AgentHarness;
use svc_model::grant::{GrantReceipt, GrantRequest};
use svc_model::id::{SessionId, UserId};
use svc_model::limit::GRANT_RULE_ROWS_MAX;
use svc_model::time::Instant;

use super::{
    GrantPlace, change, print, reason, receipt, refused, token, unanswered, warn_of_token,
};
use crate::commands::moment::optional_moment;
use crate::commands::one_of::one_of;
use crate::commands::place::{OpenedLedger, StoreOrService};
use crate::commands::repository::RepositoryOptions;
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name of the token.
    token: String,

    /// A Session to grant, instead of a rule. It need not be stored yet.
    #[arg(conflicts_with_all = ["user", "harness", "since", "repo"])]
    session: Option<String>,

    /// The reason, which is kept in the log.
    #[arg(long)]
    reason: String,

    /// Sessions of this user and no other.
    #[arg(long, value_name = "USER")]
    user: Option<String>,

    /// Sessions of this agent and no other.
    #[arg(long, value_parser = one_of(AgentHarness::ALL, AgentHarness::as_str))]
    harness: Option<AgentHarness>,

    #[command(flatten)]
    repository: RepositoryOptions,

    /// Sessions whose first fact was captured at or after this moment: RFC 3339 with an offset, a
    /// date, or an age such as 7d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,

    #[command(flatten)]
    at: GrantPlace,
}

impl Add {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = self.request(Clock::system().now(), output)?;
        let place = self.at.find(output)?;
        let receipt = match &place {
            StoreOrService::Store(opened) => record(opened, &request)?,
            StoreOrService::Service(client) => self.at.ask(client, client.add_grant(&request))?,
        };
        warn_of_token(&place, &self.at, &receipt, output);
        warn(&receipt, output);
        print(&place, &self.at, receipt, output)
    }

    fn request(&self, now: Instant, output: &mut Output) -> Result<GrantRequest, CommandError> {
        let session_id = self.session.as_deref().map(SessionId::new).transpose();
        let user_id = self.user.as_deref().map(UserId::new).transpose();
        let selector = self.repository.selector()?;
        let request = GrantRequest {
            token: token(&self.token, &self.at, output)?,
            session_id: session_id.map_err(|rule| CommandError::argument("the Session", rule))?,
            user_id: user_id.map_err(|rule| CommandError::argument("--user", rule))?,
            agent_harness: self.harness,
            repo: selector.repo,
            repository: selector.identity,
            since: optional_moment("--since", self.since.as_deref(), now)?,
            reason: reason(&self.reason)?,
        };
        if request.is_one() {
            return Ok(request);
        }
        Err(
            CommandError::refused("invalid_argument", "nothing to grant was given")
                .hint("name a SESSION, or a rule: --user, --harness, --repo, --since"),
        )
    }
}

/// Records a grant in a store.
fn record(opened: &OpenedLedger, request: &GrantRequest) -> Result<GrantReceipt, CommandError> {
    let target = read::grant_target(&mut opened.ledger.snapshot()?, request).map_err(unanswered)?;
    let change = change(&request.reason);
    let added = opened.ledger.add_grant(&request.token, &target, &change)?;
    let added = added.map_err(|reason| refused(reason.into()))?;
    let reach = read::grant_reach(&mut opened.ledger.snapshot()?, &added.row);
    let reach = reach.map_err(unanswered)?;
    Ok(receipt(opened, added, Some(reach)))
}

/// Warns about a grant that may not do what was intended.
fn warn(receipt: &GrantReceipt, output: &mut Output) {
    let is_session = receipt
        .entry
        .scope
        .as_ref()
        .is_some_and(|scope| scope.session_id.is_some());
    match receipt.reach {
        Some(reach) if reach.over_limit => output.warning(&format!(
            "many_sessions: more than {GRANT_RULE_ROWS_MAX} Sessions may match the rule; discovery \
             searches the latest, and every other one can still be read by its id"
        )),
        Some(reach) if reach.sessions == 0 && is_session => output.warning(
            "session_unknown: no fact names the Session yet; it can be read once one does",
        ),
        Some(reach) if reach.sessions == 0 => output.warning(
            "nothing_reached: the rule reaches no Session yet; later Sessions that match will be reached",
        ),
        _ => {}
    }
}
