//! Delivers the demo's evidence.

use std::path::PathBuf;
use std::time::{Duration, Instant as Moment};

use fs_err as fs;
use svc_client::Client;
use svc_engine::clock::Clock;
use svc_model::endpoint::{EvidenceInventory, GrantInventory};
use svc_model::evidence::InventoryRequest;
use svc_model::facts::FactTable;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::{GatewayIngestRequest, IngestReceipt};
use svc_model::open::Open;
use svc_model::quarantine::{QuarantineReason, QuarantineRequest};
use svc_model::time::Instant;

use super::local::{self, DemoService};
use super::organization::{
    Organization, REPOSITORY, Step, Timeline, first_session, quarantined_session, repository,
};
use super::report::{DeliveredFacts, PlantedFacts, PlantedOrganization};
use super::story;
use crate::commands::evidence;
use crate::error::CommandError;

/// How long to wait for the mirror of the repository.
const MIRROR_MAX: Duration = Duration::from_secs(20);
/// A longer pause than any within a change, in microseconds.
const PAUSE_US: i64 = 60 * 60 * 1_000_000;
const LOOK: Duration = Duration::from_millis(50);
const REASON: &str = "svc demo: what a quarantined call looks like";

/// Delivers the story of one Session.
pub(super) async fn session(client: &Client) -> Result<PlantedFacts, CommandError> {
    let mut planted = PlantedFacts::default();
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
pub(super) async fn organization(place: &DemoService) -> Result<PlantedOrganization, CommandError> {
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
        calls: DeliveredFacts::default(),
        ci_outcomes: DeliveredFacts::default(),
        webhooks: DeliveredFacts::default(),
        decisions_and_edits: 0,
        commits_with_a_session: 0,
        mirrored: false,
    };
    let before = client.facts().await?.tables.session_commit_observations;
    // A push that is delivered again is fetched again. A service that the demo did not start may
    // not fetch from a folder, so its mirror, which already has all of them, would be refused from
    // then on.
    let has_read = begun.is_some() && before.total >= organization.notes && !place.is_embedded();
    // A service of the demo's own captures everything on its day.
    let replays = begun.is_none() && place.is_embedded();
    let repository = folder(place)?;
    if replays {
        let pushes = organization
            .steps
            .iter()
            .filter_map(|(_, step)| match step {
                Step::Webhook(webhook) => Some(&webhook.pushed),
                _ => None,
            });
        repository::empty(&repository, &pushes.collect::<Vec<_>>())?;
    }
    let mut last = timeline.begin();
    for (at, step) in &organization.steps {
        if replays {
            if at.microseconds() - last.microseconds() > PAUSE_US {
                until_read(place).await;
            }
            place.set_time(*at);
            last = *at;
        }
        match step {
            Step::Call(call) => planted.calls.count(deliver(client, call).await?),
            Step::Event(event) => {
                client.ingest_events(std::slice::from_ref(event)).await?;
                planted.decisions_and_edits += 1;
            }
            Step::Webhook(webhook) => {
                if replays {
                    repository::push(&repository, &webhook.pushed)?;
                }
                if let Some(secret) = place.webhook_secret() {
                    let delivery = &webhook.delivery;
                    let stored =
                        !has_read && is_stored(&client.ingest_forge(delivery, secret).await?)?;
                    planted.webhooks.count(stored);
                }
            }
            Step::Outcome(outcome) => {
                let result = client.ingest_ci(outcome).await?;
                planted.ci_outcomes.count(result.stored);
            }
        }
    }
    if replays {
        until_read(place).await;
        place.set_time(Clock::system().now());
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
fn folder(place: &DemoService) -> Result<PathBuf, CommandError> {
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
    let has = async |session_id: &SessionId| -> Result<bool, CommandError> {
        let planted = client.session_facts(session_id).await?;
        Ok(planted.tables.inference_calls.total > 0)
    };
    let story = u64::from(has(&story::session_id()).await?);
    Ok(sessions > story && !has(&first_session()).await?)
}

/// Waits until the mirror has read all pushes.
async fn until_read(place: &DemoService) {
    let begun = Moment::now();
    while !place.has_read_all_pushes().await && begun.elapsed() < MIRROR_MAX {
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the mirror has read this many notes and all pushes, so that nothing is left to a
/// service that may not fetch from a folder. Returns how many notes it has read.
async fn observed(place: &DemoService, wanted: u64) -> Result<u64, CommandError> {
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
