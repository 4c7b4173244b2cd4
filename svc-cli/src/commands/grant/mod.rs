//! What the named retrieval tokens may read: granted, taken back, explained.

mod add;
mod change;
mod explain;
mod list;
mod scope;

use clap::{Args, Subcommand};
use serde::Serialize;
use svc_client::{Client, Error, ErrorKind};
use svc_engine::clock::{Clock, Ids};
use svc_engine::error::Error as EngineError;
use svc_engine::store::{ChangedGrant, GrantChange};
use svc_model::grant::{GrantAction, GrantReach, GrantReceipt, GrantScope, TokenName};
use svc_model::open::Open;
use svc_model::problem::QueryFault;
use svc_model::quarantine::QuarantineReason;

use crate::commands::place::{Opened, Otherwise, Place, check_organization};
use crate::commands::{quarantine, service};
use crate::error::{CommandError, advice};
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape, quote};

#[derive(Debug, Subcommand)]
pub(crate) enum Grant {
    /// List what the tokens may read, or with --history all that ever happened to it.
    List(list::List),
    /// Grant a token a Session, or all that a rule reaches.
    ///
    /// The token is one of SVC_RETRIEVAL_TOKENS, and the grant holds at once, on every server. A rule is
    /// made of --user, --harness, --repo and --since: it reaches the Sessions of which visible facts say
    /// all that is given, and nothing else of the same kind. What comes later and fits is reached too.
    Add(add::Add),
    /// End a grant.
    ///
    /// It appends a row to the log; nothing is deleted.
    Remove(change::Remove),
    /// Refuse a token everywhere.
    ///
    /// It is 401 from now on, on every server. Its grants stay as they are.
    Revoke(change::Change),
    /// Take a revoked token again.
    Restore(change::Change),
    /// Say which grants of a token reach a Session, and why the others do not.
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
pub(super) struct Where {
    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

impl Where {
    fn find(&self) -> Result<Place, CommandError> {
        Place::find(&self.service, &self.store, Otherwise::Store)
    }

    /// Asks a service, when it is of the organization that a person named.
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

    /// Returns the options as a command is to repeat them, each after a blank. The URL of a database may
    /// hold a password, and is not repeated.
    fn repeated(&self) -> String {
        let org = self
            .store
            .org_id
            .as_deref()
            .map(str::trim)
            .unwrap_or_default();
        let org = match org {
            "" => String::new(),
            org => format!(" --org {}", quote(org)),
        };
        self.service.repeated() + &org
    }

    /// Prints what may be run next. Where the database was named on the command line, whoever reads it
    /// names it again.
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

/// Returns what a grant reaches, as a person reads it.
pub(super) fn scope(scope: &GrantScope) -> String {
    scope::text(scope)
}

/// Reads the name of a token.
fn token(name: &str) -> Result<TokenName, CommandError> {
    TokenName::new(name).map_err(|rule| {
        CommandError::argument("the token", rule)
            .hint("a token of SVC_RETRIEVAL_TOKENS is meant: that of SVC_RETRIEVAL_TOKEN reads the Sessions of the settings")
    })
}

fn reason(text: &str) -> Result<QuarantineReason, CommandError> {
    QuarantineReason::new(text).map_err(|rule| CommandError::argument("--reason", rule))
}

/// Returns a change that is made at this shell.
fn change(reason: &QuarantineReason) -> GrantChange {
    GrantChange {
        grant_id: Ids::random().fresh(),
        reason: reason.as_str().to_owned(),
        recorded_at: Clock::system().now(),
        client_id: quarantine::client_id(),
    }
}

/// Returns the receipt of a change that was made in a store.
fn receipt(opened: &Opened, changed: ChangedGrant, reach: Option<GrantReach>) -> GrantReceipt {
    GrantReceipt {
        org_id: opened.org_id.clone(),
        entry: svc_engine::read::grant_entry(changed.row),
        unchanged: changed.unchanged,
        reach,
        configured: None,
    }
}

/// Says why a store has not done what was asked, as it is said of a service.
fn refused(fault: QueryFault) -> CommandError {
    let refused = CommandError::refused(fault.as_str(), fault.to_string());
    match advice(&ErrorKind::Query(fault)) {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Says why a question to a store has no answer.
fn unanswered(error: EngineError) -> CommandError {
    match error {
        EngineError::Query(fault) => refused(fault),
        EngineError::Declined(decline) => {
            CommandError::refused(decline.as_str(), decline.to_string())
        }
        other => other.into(),
    }
}

/// What became of a change, as a program reads it.
#[derive(Debug, Serialize)]
struct Changed {
    #[serde(flatten)]
    receipt: GrantReceipt,
    /// The database or the service that recorded it.
    recorded_in: String,
}

/// Prints what was recorded, and what may be run next.
fn print(
    place: &Place,
    at: &Where,
    receipt: GrantReceipt,
    output: &mut Output,
) -> Result<(), CommandError> {
    let changed = Changed {
        receipt,
        recorded_in: place.shown(),
    };
    output.value(&changed, render)?;
    let next = next(&changed.receipt);
    at.next(&next, output);
    Ok(())
}

fn render(changed: &Changed) -> String {
    let entry = &changed.receipt.entry;
    let token = &entry.token;
    let before = if changed.receipt.unchanged {
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
                "not granted to {token} any more: {scope} (grant {})",
                escape(grant)
            )
        }
        Open::Known(GrantAction::Revoke) => format!("revoked {token}: it is refused everywhere"),
        Open::Known(GrantAction::Restore) => {
            format!("restored {token}: it may read what it is granted")
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
