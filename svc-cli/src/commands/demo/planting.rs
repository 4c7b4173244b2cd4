//! Delivers the demo's evidence.

use std::path::PathBuf;
use std::time::{Duration, Instant as Moment};

use fs_err as fs;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::endpoint::{EvidenceInventory, GrantInventory};
use svc_model::evidence::InventoryRequest;
use svc_model::facts::FactTable;
use svc_model::id::ForeignId;
use svc_model::ingest::{GatewayIngestRequest, IngestReceipt};
use svc_model::open::Open;
use svc_model::quarantine::{QuarantineReason, QuarantineRequest};
use svc_model::time::Instant;

use super::local::{self, Place};
use super::organization::{Organization, REPOSITORY, Timeline, first_session, quarantined_session};
use super::report::{Delivered, Planted, PlantedOrganization};
use super::story;
use crate::commands::evidence;
use crate::error::CommandError;

/// How long to wait for the mirror of the repository.
const MIRROR_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);
const REASON: &str = "svc demo: what a quarantined call looks like";

/// Delivers the story of one Session.
pub(super) async fn session(client: &Client) -> Result<Planted, CommandError> {
    let mut planted = Planted::default();
    for call in story::calls() {
        planted.calls.count(deliver(client, &call).await?);
    }
    client.ingest_events(&[story::decision()]).await?;
    planted.decisions = 1;
    let outcome = client.ingest_ci(&story::outcome()).await?;
    planted.ci_outcomes.count(outcome.stored);
    Ok(planted)
}

/// Delivers all evidence about the organization.
pub(super) async fn organization(place: &Place) -> Result<PlantedOrganization, CommandError> {
    let client = place.client();
    let begun = begun(client).await;
    let timeline = begun.map_or_else(
        || Timeline::until(Clock::system().now()),
        Timeline::of_first_call,
    );
    let organization = Organization::make(timeline, &folder(place)?)?;
    let mut planted = PlantedOrganization {
        repository: REPOSITORY,
        sessions: organization.sessions,
        commit: organization.commit.clone(),
        calls: Delivered::default(),
        ci_outcomes: Delivered::default(),
        webhooks: Delivered::default(),
        decisions_and_edits: organization.events.len(),
        commits_with_a_session: 0,
        mirrored: false,
    };
    for call in &organization.calls {
        planted.calls.count(deliver(client, call).await?);
    }
    client.ingest_events(&organization.events).await?;
    let before = client.facts().await?.tables.session_commit_observations;
    // A push that is delivered again is fetched again. A service that the demo did not start may
    // not fetch from a folder, so its mirror, which already has all of them, would be refused from
    // then on.
    let has_read = begun.is_some() && before.total >= organization.notes && !place.is_embedded();
    if let Some(secret) = place.webhook_secret() {
        for webhook in &organization.webhooks {
            let stored = !has_read && is_stored(&client.ingest_forge(webhook, secret).await?)?;
            planted.webhooks.count(stored);
        }
    }
    for outcome in &organization.outcomes {
        let result = client.ingest_ci(outcome).await?;
        planted.ci_outcomes.count(result.stored);
    }
    // If it was loaded before, the mirror already exists.
    let wanted = if planted.webhooks.is_new() {
        before.total + organization.notes
    } else {
        organization.notes
    };
    planted.commits_with_a_session = observed(place, wanted).await?;
    planted.mirrored = planted.commits_with_a_session >= wanted;
    quarantine(client).await?;
    Ok(planted)
}

async fn deliver(client: &Client, call: &GatewayIngestRequest) -> Result<bool, CommandError> {
    is_stored(&client.ingest_gateway(call).await?)
}

fn is_stored(receipt: &Open<IngestReceipt>) -> Result<bool, CommandError> {
    match receipt {
        Open::Known(IngestReceipt::Fact(fact)) => Ok(fact.stored),
        Open::Known(IngestReceipt::Skipped(skipped)) => Err(CommandError::refused(
            skipped.reason.as_str(),
            "the service did not store what the demo sent",
        )),
        _ => Ok(false),
    }
}

/// Returns when the organization began, if it was loaded before, so that it begins at the same
/// moment again.
async fn begun(client: &Client) -> Option<Instant> {
    let request = InventoryRequest {
        session_id: first_session(),
    };
    let inventory = evidence::ask::<EvidenceInventory, GrantInventory>(client, &request).await;
    let calls = inventory.ok()?.value.calls;
    calls.into_iter().map(|call| call.observed_at).min()
}

/// Returns the folder for the repository. It is kept, so that the same repository is fetched when
/// the demo is loaded again.
fn folder(place: &Place) -> Result<PathBuf, CommandError> {
    let folder = match place.own() {
        Some(own) => own.repositories.clone(),
        None => local::data()?.join("demo"),
    };
    fs::create_dir_all(&folder)?;
    Ok(folder.join("orders.git"))
}

/// Returns whether a store has Sessions that are not the demo's.
pub(super) async fn has_others(client: &Client) -> Result<bool, CommandError> {
    let sessions = client.facts().await?.sessions;
    let planted = client.session_facts(&first_session()).await?;
    // The story is one Session.
    Ok(sessions > 1 && planted.tables.inference_calls.total == 0)
}

/// Waits until the mirror has read this many notes and all pushes, so that nothing is left to a
/// service that may not fetch from a folder. Returns how many notes it has read.
async fn observed(place: &Place, wanted: u64) -> Result<u64, CommandError> {
    let begun = Moment::now();
    loop {
        let facts = place.client().facts().await?;
        let observed = facts.tables.session_commit_observations.total;
        if !place.is_embedded() || begun.elapsed() > MIRROR_MAX {
            return Ok(observed);
        }
        if observed >= wanted && place.has_read_all_pushes().await {
            return Ok(observed);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Quarantines one call.
async fn quarantine(client: &Client) -> Result<(), CommandError> {
    let calls = client
        .session_inference_calls(&quarantined_session())
        .await?;
    let Some(call) = calls.inference_calls.first() else {
        // It is already quarantined.
        return Ok(());
    };
    let (Ok(fact_id), Ok(reason)) = (
        ForeignId::new(&call.inference_call_id.to_string()),
        QuarantineReason::new(REASON),
    ) else {
        return Ok(());
    };
    client
        .quarantine(&QuarantineRequest {
            table: FactTable::InferenceCalls,
            fact_id,
            reason,
            force: false,
        })
        .await?;
    Ok(())
}
