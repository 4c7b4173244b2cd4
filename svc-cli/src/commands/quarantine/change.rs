use clap::Args;
use serde::Serialize;
use svc_client::{Client, ErrorKind};
use svc_engine::clock::{Clock, Ids};
use svc_engine::store::{NewQuarantineEntry, NoTarget, WhenAbsent};
use svc_model::facts::FactTable;
use svc_model::id::ForeignId;
use svc_model::open::Open;
use svc_model::problem::{Problem, QueryFault};
use svc_model::quarantine::{
    QuarantineAction, QuarantineReason, QuarantineReceipt, QuarantineRequest,
};

use super::client_id;
use crate::commands::one_of::one_of;
use crate::commands::place::{DefaultPlace, OpenedLedger, StoreOrService, check_organization};
use crate::commands::service;
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::{Output, escape, quote};

#[derive(Debug, Args)]
pub(crate) struct QuarantineChange {
    /// The kind of fact.
    #[arg(value_parser = one_of(FactTable::ALL, FactTable::as_str))]
    table: FactTable,

    /// The id of the fact, or a unique prefix of at least eight characters.
    fact_id: String,

    /// The reason, which is kept in the log.
    #[arg(long)]
    reason: String,

    /// Record it even if no stored fact has this id; it then applies as soon as the fact arrives.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// The result of a change, for programs.
#[derive(Debug, Serialize)]
struct QuarantineChangeResult {
    #[serde(flatten)]
    receipt: QuarantineReceipt,
    /// The database or the service that recorded the change.
    recorded_in: String,
}

impl QuarantineChange {
    pub(crate) fn run(
        self,
        action: QuarantineAction,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let request = QuarantineRequest {
            table: self.table,
            fact_id: ForeignId::new(&self.fact_id)
                .map_err(|rule| CommandError::argument("the fact id", rule))?,
            reason: QuarantineReason::new(&self.reason)
                .map_err(|rule| CommandError::argument("--reason", rule))?,
            force: self.force,
        };
        let place = StoreOrService::find(&self.service, &self.store, DefaultPlace::Store, output)?;
        let receipt = match &place {
            StoreOrService::Store(opened) => record(opened, &request, action)?,
            StoreOrService::Service(client) => service::block_on(async {
                check_organization(client, &self.store).await?;
                ask(client, &request, action).await
            })?,
        };
        let receipt = receipt.map_err(|reason| self.no_target(reason, &place))?;
        if !receipt.target_found {
            output.warning(&format!(
                "quarantine_target_not_found: there is no {}/{}; the row applies once it is stored",
                receipt.table, receipt.fact_id
            ));
        }
        let changed = QuarantineChangeResult {
            receipt,
            recorded_in: place.shown(),
        };
        output.value(&changed, |changed| render(changed, &self.service))
    }

    /// Returns the error for a fact that was not found, naming the place.
    fn no_target(&self, reason: NoTarget, place: &StoreOrService) -> CommandError {
        let name = format!("{}/{}", self.table, self.fact_id);
        let place = match place {
            StoreOrService::Store(opened) => {
                format!("{}, organization {}", place.shown(), opened.org_id)
            }
            StoreOrService::Service(client) => {
                match service::block_on(async { Ok(client.me().await?) }) {
                    Ok(me) => format!("{}, organization {}", place.shown(), me.org_id),
                    Err(_) => place.shown(),
                }
            }
        };
        match reason {
            NoTarget::Absent => CommandError::refused(
                "quarantine_target_not_found",
                format!("there is no {name} in {place}: nothing was recorded"),
            )
            .hint("check the kind of fact, the organization (--org) and the store (--url, --database-url)")
            .hint("to record it anyway, for a fact that may still arrive: --force"),
            NoTarget::Ambiguous => CommandError::refused(
                "quarantine_target_ambiguous",
                format!("several ids in {place} begin with {name}: nothing was recorded"),
            )
            .advised(Problem::Query(QueryFault::TargetAmbiguous).advice()),
        }
    }
}

/// Records a change in a store.
fn record(
    opened: &OpenedLedger,
    request: &QuarantineRequest,
    action: QuarantineAction,
) -> Result<Result<QuarantineReceipt, NoTarget>, CommandError> {
    let entry = NewQuarantineEntry {
        quarantine_id: Ids::random().fresh(),
        table: request.table,
        fact_id: request.fact_id.to_string(),
        action,
        reason: request.reason.as_str().to_owned(),
        recorded_at: Clock::system().now(),
        client_id: client_id(),
    };
    let absent = if request.force {
        WhenAbsent::Record
    } else {
        WhenAbsent::Refuse
    };
    let recorded = opened.ledger.quarantine_one(&entry, absent)?;
    Ok(recorded.map(|recorded| QuarantineReceipt {
        org_id: opened.org_id.clone(),
        action: Open::Known(action),
        table: Open::Known(request.table),
        fact_id: recorded.fact_id,
        target_found: recorded.target_found,
        unchanged: recorded.unchanged,
        quarantine_revision: recorded.revision,
    }))
}

/// Asks a service to record a change.
async fn ask(
    client: &Client,
    request: &QuarantineRequest,
    action: QuarantineAction,
) -> Result<Result<QuarantineReceipt, NoTarget>, CommandError> {
    let answer = match action {
        QuarantineAction::Quarantine => client.quarantine(request).await,
        QuarantineAction::Release => client.release(request).await,
    };
    match answer {
        Ok(receipt) => Ok(Ok(receipt)),
        Err(error) => match error.kind() {
            ErrorKind::Query(QueryFault::TargetAbsent) => Ok(Err(NoTarget::Absent)),
            ErrorKind::Query(QueryFault::TargetAmbiguous) => Ok(Err(NoTarget::Ambiguous)),
            _ if error.is_retryable() => Err(CommandError::from(error)
                .hint("it may have been recorded anyway; check svc quarantine-log")),
            _ => Err(error.into()),
        },
    }
}

fn render(changed: &QuarantineChangeResult, service: &ServiceOptions) -> String {
    let receipt = &changed.receipt;
    let name = format!("{}/{}", receipt.table, escape(&receipt.fact_id));
    let place = format!(
        "{}, organization {}",
        escape(&changed.recorded_in),
        receipt.org_id
    );
    let before = if receipt.unchanged { ", as before" } else { "" };
    match &receipt.action {
        Open::Known(QuarantineAction::Quarantine) => format!(
            "quarantined {name} in {place}{before} (reversible: svc release {} {} --reason REASON{}{})\n",
            receipt.table,
            quote(&receipt.fact_id),
            // Somebody who names a fact that does not exist means it.
            if receipt.target_found { "" } else { " --force" },
            service.repeated()
        ),
        Open::Known(QuarantineAction::Release) => format!("released {name} in {place}{before}\n"),
        Open::Unknown(action) => format!("{action} {name} in {place}{before}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_change_names_the_fact_and_its_table() {
        let changed = |action, unchanged| QuarantineChangeResult {
            receipt: QuarantineReceipt {
                org_id: svc_model::id::OrgId::new("acme").unwrap(),
                action,
                table: FactTable::Pushes.into(),
                fact_id: "p1".to_owned(),
                target_found: true,
                unchanged,
                quarantine_revision: 1,
            },
            recorded_in: "https://svc.example".to_owned(),
        };
        let service = ServiceOptions {
            url: Some("https://svc.example".to_owned()),
        };
        assert_eq!(
            render(
                &changed(QuarantineAction::Quarantine.into(), false),
                &service
            ),
            "quarantined pushes/p1 in https://svc.example, organization acme (reversible: svc \
             release pushes p1 --reason REASON --url https://svc.example)\n"
        );
        assert_eq!(
            render(&changed(QuarantineAction::Release.into(), true), &service),
            "released pushes/p1 in https://svc.example, organization acme, as before\n"
        );
    }
}
