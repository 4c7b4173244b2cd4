use clap::Args;
use svc_model::grant::{GrantAction, GrantRemovalRequest, TokenChangeRequest};
use svc_model::id::ForeignId;

use super::{GrantPlace, change, print, reason, receipt, refused, token, warn_of_token};
use crate::commands::place::StoreOrService;
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The id of the grant, or a unique prefix of it.
    #[arg(value_name = "GRANT")]
    grant: String,

    /// The reason, which is kept in the log.
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    at: GrantPlace,
}

impl Remove {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let request = GrantRemovalRequest {
            grant_id: ForeignId::new(&self.grant)
                .map_err(|rule| CommandError::argument("the grant", rule))?,
            reason: reason(&self.reason)?,
        };
        let place = self.at.find(output)?;
        let receipt = match &place {
            StoreOrService::Store(opened) => {
                let change = change(&request.reason);
                let removed = opened
                    .ledger
                    .remove_grant(request.grant_id.as_str(), &change)?;
                let removed = removed.map_err(|reason| refused(reason.into()))?;
                receipt(opened, removed, None)
            }
            StoreOrService::Service(client) => {
                self.at.ask(client, client.remove_grant(&request))?
            }
        };
        print(&place, &self.at, receipt, output)
    }
}

#[derive(Debug, Args)]
pub(crate) struct TokenChange {
    /// The name of the token.
    token: String,

    /// The reason, which is kept in the log.
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    at: GrantPlace,
}

impl TokenChange {
    pub(crate) fn run(self, action: GrantAction, output: &mut Output) -> Result<(), CommandError> {
        let request = TokenChangeRequest {
            token: token(&self.token, &self.at, output)?,
            reason: reason(&self.reason)?,
        };
        let place = self.at.find(output)?;
        let receipt = match &place {
            StoreOrService::Store(opened) => {
                let change = change(&request.reason);
                let changed = opened
                    .ledger
                    .change_token(&request.token, action, &change)?;
                let changed = changed.map_err(|reason| refused(reason.into()))?;
                receipt(opened, changed, None)
            }
            StoreOrService::Service(client) => match action {
                GrantAction::Revoke => self.at.ask(client, client.revoke_token(&request))?,
                _ => self.at.ask(client, client.restore_token(&request))?,
            },
        };
        warn_of_token(&place, &self.at, &receipt, output);
        print(&place, &self.at, receipt, output)
    }
}
