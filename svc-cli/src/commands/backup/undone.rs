//! The commands that repeat decisions of operators that a restore has undone.

use svc_engine::backup::UndoneDecision;
use svc_engine::store::backup::Undone;
use svc_engine::store::{GrantRow, GrantRule, GrantTarget, QuarantineAction};
use svc_model::grant::GrantAction;

use crate::output::quote;

/// The reason for ending a grant again. Why it ended before is not in the backup.
const AS_BEFORE: &str = "as before the restore";

/// Returns the command that repeats a decision.
pub(super) fn command(undone: &UndoneDecision) -> String {
    let (what, reason) = match &undone.what {
        Undone::Fact(row) => {
            let verb = if row.action == QuarantineAction::Quarantine.as_str() {
                "quarantine"
            } else {
                "release"
            };
            // The fact may be newer than the backup, and be delivered once more.
            let what = format!("{verb} {} {} --force", row.fact_table, quote(&row.fact_id));
            (what, &*row.reason)
        }
        Undone::GrantMissing(row) => (format!("grant {}", made(row)), &*row.reason),
        Undone::GrantBack(row) => (format!("grant {}", ended(row)), AS_BEFORE),
    };
    let (org_id, reason) = (quote(undone.org_id.as_str()), quote(reason));
    format!("svc {what} --org {org_id} --reason={reason}")
}

fn made(row: &GrantRow) -> String {
    let token = quote(row.token.as_str());
    match &row.target {
        Some(GrantTarget::Session(session_id)) => {
            format!("add {token} {}", quote(session_id.as_str()))
        }
        Some(GrantTarget::Rule(rule)) => format!("add {token}{}", options(rule)),
        None => format!("revoke {token}"),
    }
}

fn ended(row: &GrantRow) -> String {
    match row.action {
        GrantAction::Revoke => format!("restore {}", quote(row.token.as_str())),
        _ => format!("remove {}", quote(&row.grant_id)),
    }
}

/// Returns the options of a rule, each after a space.
fn options(rule: &GrantRule) -> String {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<&str>| {
        options.extend(value.map(|value| format!(" --{name}={}", quote(value))));
    };
    add("user", rule.user_id.as_ref().map(|it| it.as_str()));
    add("harness", rule.agent_harness.map(|it| it.as_str()));
    add("repo", rule.repo.as_ref().map(|it| it.as_str()));
    if let Some(identity) = &rule.repository {
        add(
            "repository-provider",
            Some(identity.repository_provider.as_str()),
        );
        add("repository-host", Some(identity.repository_host.as_str()));
        add("repository-id", Some(identity.repository_id.as_str()));
    }
    add("since", rule.since.map(|it| it.to_string()).as_deref());
    options.concat()
}
