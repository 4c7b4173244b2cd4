//! The names of tokens, for users who mistyped one.

use std::collections::BTreeSet;

use svc_engine::read;
use svc_model::grant::{GrantsRequest, TokenName};
use svc_model::limit::QUARANTINE_LOG_MAX;

use super::{Where, unanswered};
use crate::commands::place::Place;
use crate::error::CommandError;
use crate::output::Output;

/// Returns the names that exist, for people: those of the service, or those with grants in the
/// store.
pub(super) fn shown(at: &Where, output: &mut Output) -> String {
    match at.find(output).and_then(|place| known(at, &place)) {
        Ok((whose, names)) if names.is_empty() => format!("{whose}: none"),
        Ok((whose, names)) => {
            let names: Vec<&str> = names.iter().map(TokenName::as_str).collect();
            format!("{whose}: {}", names.join(", "))
        }
        Err(_) => "to see the tokens there are: svc grant list".to_owned(),
    }
}

fn known(at: &Where, place: &Place) -> Result<(&'static str, BTreeSet<TokenName>), CommandError> {
    let latest = GrantsRequest {
        limit: QUARANTINE_LOG_MAX,
        ..GrantsRequest::default()
    };
    match place {
        Place::Service(client) => {
            let list = at.ask(client, client.grants(&GrantsRequest::default()))?;
            let names = list.configured_tokens.unwrap_or_default();
            Ok(("tokens of the server", names.into_iter().collect()))
        }
        Place::Store(opened) => {
            let mut snapshot = opened.ledger.snapshot()?;
            let list = read::grants(&mut snapshot, &latest).map_err(unanswered)?;
            let names = list.entries.into_iter().map(|entry| entry.token);
            Ok(("tokens with grants in this store", names.collect()))
        }
    }
}
