//! The names of tokens, for users who mistyped one.

use std::collections::BTreeSet;
use std::time::Duration;

use svc_client::RetryPolicy;
use svc_engine::read;
use svc_model::grant::{GrantsRequest, TokenName};
use svc_model::limit::QUARANTINE_LOG_MAX;

use super::{GrantPlace, unanswered};
use crate::commands::place::StoreOrService;
use crate::commands::service;
use crate::credentials::Role;
use crate::error::CommandError;
use crate::output::Output;

/// How long a warning waits for the server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the names that exist, for people: those of the service, or those with grants in the
/// store.
pub(super) fn shown(at: &GrantPlace, output: &mut Output) -> String {
    match at.find(output).and_then(|place| known(at, &place)) {
        Ok((whose, names)) => listed(whose, &names),
        Err(_) => "to see the tokens there are: svc grant list".to_owned(),
    }
}

/// Whose names those of a server are.
pub(super) const OF_SERVER: &str = "tokens of the server";

/// Returns names for people.
pub(super) fn listed(whose: &str, names: &BTreeSet<TokenName>) -> String {
    if names.is_empty() {
        return format!("{whose}: none");
    }
    let names: Vec<&str> = names.iter().map(TokenName::as_str).collect();
    format!("{whose}: {}", names.join(", "))
}

/// Returns the names that a server of this store has, if one runs on this machine and tells.
pub(super) fn of_server(place: &StoreOrService) -> Option<BTreeSet<TokenName>> {
    let client = service::stored_client(&place.running()?, Role::Operator).ok()?;
    let client = client
        .with_retry(RetryPolicy::none())
        .with_timeout(PATIENCE);
    let request = GrantsRequest::default();
    let list = service::block_on(async { Ok(client.grants(&request).await?) });
    Some(list.ok()?.configured_tokens?.into_iter().collect())
}

fn known(
    at: &GrantPlace,
    place: &StoreOrService,
) -> Result<(&'static str, BTreeSet<TokenName>), CommandError> {
    let latest = GrantsRequest {
        limit: QUARANTINE_LOG_MAX,
        ..GrantsRequest::default()
    };
    match place {
        StoreOrService::Service(client) => {
            let list = at.ask(client, client.grants(&GrantsRequest::default()))?;
            let names = list.configured_tokens.unwrap_or_default();
            Ok((OF_SERVER, names.into_iter().collect()))
        }
        StoreOrService::Store(opened) => {
            let mut snapshot = opened.ledger.snapshot()?;
            let list = read::grants(&mut snapshot, &latest).map_err(unanswered)?;
            let names = list.entries.into_iter().map(|entry| entry.token);
            Ok(("tokens with grants in this store", names.collect()))
        }
    }
}
