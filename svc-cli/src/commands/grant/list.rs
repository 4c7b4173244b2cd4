use std::collections::BTreeSet;

use clap::Args;
use svc_engine::read;
use svc_model::grant::{GrantAction, GrantEntry, GrantList, GrantsRequest, TokenName};
use svc_model::limit::QUARANTINE_LOG_MAX;
use svc_model::open::Open;

use super::{GrantPlace, scope, token, unanswered};
use crate::commands::place::StoreOrService;
use crate::error::CommandError;
use crate::output::{Output, Table, clock, escape};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only the grants of this token.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Show every change: what was granted and removed, who did it, and why.
    #[arg(long)]
    history: bool,

    #[command(flatten)]
    at: GrantPlace,
}

impl List {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let named = |name| token(name, &self.at, output);
        let request = GrantsRequest {
            token: self.token.as_deref().map(named).transpose()?,
            history: self.history,
            limit: QUARANTINE_LOG_MAX,
            before: None,
        };
        let list = match &self.at.find(output)? {
            StoreOrService::Store(opened) => {
                let mut snapshot = opened.ledger.snapshot()?;
                all(request, |request| {
                    read::grants(&mut snapshot, request).map_err(unanswered)
                })?
            }
            StoreOrService::Service(client) => all(request, |request| {
                self.at.ask(client, client.grants(request))
            })?,
        };
        output.value(&list, |list| render(list, self.history))?;
        self.at.next(&next(&list, self.history), output);
        Ok(())
    }
}

/// Reads every page.
fn all(
    mut request: GrantsRequest,
    mut page: impl FnMut(&GrantsRequest) -> Result<GrantList, CommandError>,
) -> Result<GrantList, CommandError> {
    let mut list = page(&request)?;
    while let Some(before) = list.next_before {
        request.before = Some(before);
        let mut earlier = page(&request)?;
        list.next_before = earlier.next_before;
        earlier.entries.append(&mut list.entries);
        list.entries = earlier.entries;
    }
    Ok(list)
}

fn render(list: &GrantList, history: bool) -> String {
    let rows = match (list.entries.is_empty(), history) {
        (true, _) => "no grants\n".to_owned(),
        (false, true) => log(&list.entries),
        (false, false) => in_force(&list.entries),
    };
    rows + &tokens(list)
}

fn log(entries: &[GrantEntry]) -> String {
    let mut table = Table::new(["when", "who", "did", "grant", "token", "what", "why"]);
    for entry in entries {
        table.row([
            clock(entry.recorded_at),
            escape(&entry.client_id),
            entry.action.to_string(),
            grant(entry),
            entry.token.to_string(),
            what(entry),
            escape(&entry.reason),
        ]);
    }
    table.render()
}

fn in_force(entries: &[GrantEntry]) -> String {
    let mut table = Table::new(["grant", "token", "what", "since", "by"]);
    for entry in entries {
        table.row([
            escape(&entry.grant_id),
            entry.token.to_string(),
            what(entry),
            clock(entry.recorded_at),
            escape(&entry.client_id),
        ]);
    }
    table.render()
}

/// Returns the names of the server's tokens, if a server was asked.
fn tokens(list: &GrantList) -> String {
    let tokens = list.configured_tokens.as_deref();
    let names = tokens.map(|tokens| tokens.iter().map(TokenName::as_str));
    match names.map(Iterator::collect::<Vec<&str>>) {
        None => String::new(),
        Some(names) if names.is_empty() => {
            "the server has no named tokens (SVC_RETRIEVAL_TOKENS)\n".to_owned()
        }
        Some(names) => format!(
            "tokens of the server: {}\n{}",
            names.join(", "),
            foreign(list, &names)
        ),
    }
}

/// Returns the names that have grants although the server has no such token. They may have been
/// renamed.
fn foreign(list: &GrantList, known: &[&str]) -> String {
    let in_force = list.entries.iter().filter(|entry| entry.in_force);
    let names: BTreeSet<&str> = in_force.map(|entry| entry.token.as_str()).collect();
    let foreign: Vec<&str> = names
        .into_iter()
        .filter(|name| !known.contains(name))
        .collect();
    if foreign.is_empty() {
        String::new()
    } else {
        format!("not tokens of the server: {}\n", foreign.join(", "))
    }
}

/// Returns the grant that a change was about, or `-` for a change to a whole token.
fn grant(entry: &GrantEntry) -> String {
    match (&entry.removed_grant_id, &entry.action) {
        (Some(removed), _) => escape(removed),
        (None, Open::Known(GrantAction::Add)) => escape(&entry.grant_id),
        (None, _) => "-".to_owned(),
    }
}

fn what(entry: &GrantEntry) -> String {
    match (&entry.scope, &entry.action) {
        (Some(scope), _) => scope::text(scope),
        (None, Open::Known(GrantAction::Revoke)) => "revoked; refused on every server".to_owned(),
        (None, _) => "the token itself".to_owned(),
    }
}

fn next(list: &GrantList, history: bool) -> Vec<String> {
    let last = list.entries.iter().rev().find(|entry| entry.in_force);
    let mut next = Vec::new();
    if let Some(GrantEntry {
        action: Open::Known(GrantAction::Add),
        grant_id,
        ..
    }) = last
    {
        next.push(format!("svc grant remove {grant_id} --reason REASON"));
    }
    if !history && list.grant_revision > 0 {
        next.push("svc grant list --history".to_owned());
    }
    next
}
