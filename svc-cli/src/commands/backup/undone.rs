//! The commands that repeat decisions of operators that a restore has undone.

use svc_engine::backup::UndoneDecision;
use svc_engine::store::backup::Undone;
use svc_engine::store::{GrantRow, GrantRule, GrantTarget, QuarantineAction};
use svc_model::facts::AgentHarness;
use svc_model::grant::GrantAction;
use svc_model::id::UserId;
use svc_model::repository::RepositoryName;

use crate::output::{long_option, positional, quote};

/// The reason for ending a grant again. Why it ended before is not in the backup.
const AS_BEFORE: &str = "as before the restore";

/// Returns the command that repeats a decision.
pub(super) fn command(undone: &UndoneDecision) -> String {
    let (what, arguments, reason) = match &undone.what {
        Undone::Fact(row) => {
            let verb = if row.action == QuarantineAction::Quarantine.as_str() {
                "quarantine"
            } else {
                "release"
            };
            // The fact may be newer than the backup, and be delivered once more.
            let fact = format!("{} {}", row.fact_table, positional(&row.fact_id));
            (verb.to_owned(), format!("--force {fact}"), &*row.reason)
        }
        Undone::GrantMissing(row) => {
            let (verb, arguments) = made(row);
            (format!("grant {verb}"), arguments, &*row.reason)
        }
        Undone::GrantBack(row) => {
            let (verb, arguments) = ended(row);
            (format!("grant {verb}"), arguments, AS_BEFORE)
        }
    };
    let org_id = long_option("org", undone.org_id.as_str());
    let reason = long_option("reason", reason);
    format!("svc {what}{org_id}{reason} {arguments}")
}

fn made(row: &GrantRow) -> (&'static str, String) {
    let token = positional(row.token.as_str());
    match &row.target {
        Some(GrantTarget::Session(session_id)) => (
            "add",
            format!("{token} {}", positional(session_id.as_str())),
        ),
        Some(GrantTarget::Rule(rule)) => ("add", format!("{token}{}", options(rule))),
        None => ("revoke", token.into_owned()),
    }
}

fn ended(row: &GrantRow) -> (&'static str, String) {
    match row.action {
        GrantAction::Revoke => ("restore", positional(row.token.as_str()).into_owned()),
        _ => ("remove", quote(&row.grant_id).into_owned()),
    }
}

/// Returns the options of a rule, each after a space.
fn options(rule: &GrantRule) -> String {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<&str>| {
        options.extend(value.map(|value| long_option(name, value)));
    };
    add("user", rule.user_id.as_ref().map(UserId::as_str));
    add("harness", rule.agent_harness.map(AgentHarness::as_str));
    add("repo", rule.repo.as_ref().map(RepositoryName::as_str));
    if let Some(identity) = &rule.repository {
        add(
            "repository-provider",
            Some(identity.repository_provider.as_str()),
        );
        add("repository-host", Some(identity.repository_host.as_str()));
        add("repository-id", Some(identity.repository_id.as_str()));
    }
    add(
        "since",
        rule.since.map(|since| since.to_string()).as_deref(),
    );
    options.concat()
}
