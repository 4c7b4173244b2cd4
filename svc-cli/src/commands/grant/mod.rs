//! The grants of named retrieval tokens.

mod add;
mod change;
mod explain;
mod list;
mod names;
mod scope;

use clap::{Args, Subcommand};
use serde::Serialize;
use svc_client::{Client, Error};
use svc_engine::clock::{Clock, Ids};
use svc_engine::error::Error as EngineError;
use svc_engine::store::{ChangedGrant, GrantChange};
use svc_model::grant::{GrantAction, GrantReach, GrantReceipt, GrantScope, TokenName};
use svc_model::open::Open;
use svc_model::problem::{Problem, QueryFault};
use svc_model::quarantine::QuarantineReason;

use crate::commands::place::{DefaultPlace, OpenedLedger, StoreOrService, check_organization};
use crate::commands::{quarantine, service};
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape, long_option, quote};

#[derive(Debug, Subcommand)]
pub(crate) enum Grant {
    /// List what the tokens may read; with --history, every change.
    List(list::List),
    /// Grant a token a Session, or every Session that a rule reaches.
    ///
    /// The token is one of SVC_RETRIEVAL_TOKENS. The grant takes effect at once on every server. A
    /// rule combines --user, --harness, --repo and --since: it reaches the Sessions whose visible
    /// facts match every given option and name no other user, agent or repository. It also reaches
    /// matching Sessions that arrive later.
    Add(add::Add),
    /// Remove a grant.
    ///
    /// It appends a row to the log; nothing is deleted.
    Remove(change::Remove),
    /// Revoke a token on every server.
    ///
    /// From now on every server answers the token with 401. Its grants are kept.
    Revoke(change::TokenChange),
    /// Restore a revoked token.
    Restore(change::TokenChange),
    /// Show which grants of a token reach a Session, and why the others do not.
    Explain(explain::Explain),
}

impl Grant {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::List(list) => list.run(output),
            Self::Add(add) => add.run(output),
            Self::Remove(remove) => remove.run(output),
            Self::Revoke(change) => change.run(GrantAction::Revoke, output),
            Self::Restore(change) => change.run(GrantAction::Restore, output),
            Self::Explain(explain) => explain.run(output),
        }
    }
}

/// Where grants are kept.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct GrantPlace {
    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

impl GrantPlace {
    fn find(&self, output: &mut Output) -> Result<StoreOrService, CommandError> {
        StoreOrService::find(&self.service, &self.store, DefaultPlace::Store, output)
    }

    /// Asks a service, after checking that it belongs to the given organization.
    fn ask<T>(
        &self,
        client: &Client,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, CommandError> {
        service::block_on(async {
            check_organization(client, &self.store).await?;
            Ok(question.await?)
        })
    }

    /// Returns the options for a suggested command, each after a space. A database URL is left out,
    /// because it may contain a password.
    fn repeated(&self) -> String {
        let org = self
            .store
            .org_id
            .as_deref()
            .map(str::trim)
            .unwrap_or_default();
        let org = match org {
            "" => String::new(),
            org => long_option("org", org),
        };
        self.service.repeated() + &org
    }

    /// Prints the suggested commands. If the database was given on the command line, it must be
    /// given to them too.
    fn next(&self, commands: &[String], output: &mut Output) {
        if self.store.database_url.is_none() {
            let commands: Vec<String> = commands
                .iter()
                .map(|command| command.clone() + &self.repeated())
                .collect();
            output.next(&ServiceOptions::default(), &commands);
        }
    }
}

/// Returns what a grant reaches, for people.
pub(super) fn scope(scope: &GrantScope) -> String {
    scope::text(scope)
}

/// Parses the name of a token. If it is invalid, the error lists the names that exist.
fn token(name: &str, at: &GrantPlace, output: &mut Output) -> Result<TokenName, CommandError> {
    TokenName::new(name).map_err(|rule| {
        CommandError::argument("the token", rule)
            .hint(names::shown(at, output))
            .hint("use the name of a token in SVC_RETRIEVAL_TOKENS; the grant of SVC_RETRIEVAL_TOKEN comes from the settings")
    })
}

/// Warns about a token that the server does not have. A store does not know the tokens, but a server
/// that runs on it may be asked.
fn warn_of_token(
    place: &StoreOrService,
    at: &GrantPlace,
    receipt: &GrantReceipt,
    output: &mut Output,
) {
    let token = &receipt.entry.token;
    let (has, names) = match names::of_server(place) {
        Some(names) => (
            names.contains(token),
            names::listed(names::OF_SERVER, &names),
        ),
        None if receipt.configured == Some(false) => (false, names::shown(at, output)),
        None => return,
    };
    if !has {
        output.warning(&format!(
            "token_not_configured: the server has no token {token}; add it to SVC_RETRIEVAL_TOKENS; {names}"
        ));
    }
}

fn reason(text: &str) -> Result<QuarantineReason, CommandError> {
    QuarantineReason::new(text).map_err(|rule| CommandError::argument("--reason", rule))
}

/// Returns a change made from this shell.
fn change(reason: &QuarantineReason) -> GrantChange {
    GrantChange {
        grant_id: Ids::random().fresh(),
        reason: reason.as_str().to_owned(),
        recorded_at: Clock::system().now(),
        client_id: quarantine::client_id(),
    }
}

/// Returns the receipt of a change made in a store.
fn receipt(
    opened: &OpenedLedger,
    changed: ChangedGrant,
    reach: Option<GrantReach>,
) -> GrantReceipt {
    GrantReceipt {
        org_id: opened.org_id.clone(),
        entry: svc_engine::read::grant_entry(changed.row),
        unchanged: changed.unchanged,
        reach,
        configured: None,
    }
}

/// Turns a store's refusal into the same error as a service's.
fn refused(fault: QueryFault) -> CommandError {
    CommandError::refused(fault.as_str(), fault.to_string()).advised(Problem::Query(fault).advice())
}

/// Turns a failed read on a store into an error.
fn unanswered(error: EngineError) -> CommandError {
    match error {
        EngineError::Query(fault) => refused(fault),
        EngineError::Declined(decline) => {
            CommandError::refused(decline.as_str(), decline.to_string())
                .advised(Problem::Declined(decline).advice())
        }
        other => other.into(),
    }
}

/// The result of a change, for programs.
#[derive(Debug, Serialize)]
struct GrantChangeResult {
    #[serde(flatten)]
    receipt: GrantReceipt,
    /// The database or the service that recorded it.
    recorded_in: String,
}

/// Prints what was recorded, and the suggested commands.
fn print(
    place: &StoreOrService,
    at: &GrantPlace,
    receipt: GrantReceipt,
    output: &mut Output,
) -> Result<(), CommandError> {
    let changed = GrantChangeResult {
        receipt,
        recorded_in: place.shown(),
    };
    output.value(&changed, render)?;
    let next = next(&changed.receipt);
    at.next(&next, output);
    Ok(())
}

fn render(changed: &GrantChangeResult) -> String {
    let entry = &changed.receipt.entry;
    let token = &entry.token;
    let is_restore = entry.action == Open::Known(GrantAction::Restore);
    let before = if changed.receipt.unchanged && !is_restore {
        ", as before"
    } else {
        ""
    };
    let scope = entry.scope.as_ref().map(scope::text).unwrap_or_default();
    let done = match &entry.action {
        Open::Known(GrantAction::Add) => {
            format!("granted to {token}: {scope} (grant {})", entry.grant_id)
        }
        Open::Known(GrantAction::Remove) => {
            let grant = entry.removed_grant_id.as_deref().unwrap_or_default();
            format!(
                "no longer granted to {token}: {scope} (grant {})",
                escape(grant)
            )
        }
        Open::Known(GrantAction::Revoke) => format!("revoked {token}: every server refuses it"),
        // A server may know of a revocation that a restored backup lacks.
        Open::Known(GrantAction::Restore) if changed.receipt.unchanged => format!(
            "{token} is not revoked; if a server refuses it all the same, a restored backup has lost \
             a revocation that the server has seen: revoke the token and restore it"
        ),
        Open::Known(GrantAction::Restore) => {
            format!("restored {token}: it can read what is granted to it")
        }
        Open::Unknown(action) => format!("{action} {token}"),
    };
    format!(
        "{done}{before}, in {}, organization {}\n",
        escape(&changed.recorded_in),
        changed.receipt.org_id
    )
}

fn next(receipt: &GrantReceipt) -> Vec<String> {
    let entry = &receipt.entry;
    let token = &entry.token;
    let back = match &entry.action {
        Open::Known(GrantAction::Add) => {
            format!(
                "svc grant remove {} --reason REASON",
                quote(&entry.grant_id)
            )
        }
        Open::Known(GrantAction::Revoke) => format!("svc grant restore {token} --reason REASON"),
        _ => return vec![format!("svc grant list --token {token}")],
    };
    vec![format!("svc grant list --token {token}"), back]
}
