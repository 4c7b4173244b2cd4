use std::path::PathBuf;

use clap::Args;
use svc_client::Client;
use svc_client::model::problem::Decline;
use svc_client::{ErrorKind, RawReply};
use svc_model::context::{DiscoveryResult, MaxBytes, Query};
use svc_model::endpoint::{EvidenceInventory, EvidenceManifest, GrantInventory, GrantManifest};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, InventoryRequest, ManifestRequest, PartType, Reference, Side,
};
use svc_model::id::InferenceCallId;
use svc_model::version::Version1;

use super::local::{self, DemoService};
use super::planting;
use super::report::{self, DemoReport};
use super::story;
use crate::commands::{context, evidence};
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Load the demo into a service on another machine, or one that already has evidence.
    #[arg(long)]
    force: bool,

    /// Load one Session only, without the organization around it.
    #[arg(long)]
    small: bool,

    /// Start a separate service with its store in this folder, whatever else runs on this machine.
    #[arg(long, value_name = "FOLDER", conflicts_with = "url")]
    folder: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceOptions,
}

impl Demo {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let place = local::place(&self.service, self.folder.as_deref()).await?;
            let outcome = self.show(&place, output).await;
            place.leave().await;
            outcome
        })
    }

    async fn show(&self, place: &DemoService, output: &mut Output) -> Result<(), CommandError> {
        let client = place.client();
        if !client.is_loopback() && !self.force {
            return Err(CommandError::refused(
                "not_local",
                "the service is not on this machine, and the demo's facts could not be removed from it",
            )
            .hint("to load the demo there anyway: svc demo --force"));
        }
        let has_others = !self.small && !self.force && planting::has_others(client).await?;
        // The organization comes first, because nothing is captured before what is stored.
        let organization = if self.small || has_others {
            None
        } else {
            Some(planting::organization(place).await?)
        };
        let planted = planting::session(client).await?;
        let discovery = discover(client).await?;
        let found = discovery
            .as_ref()
            .and_then(|discovery| found(&discovery.value))
            .cloned();
        let read = read(client, found).await?;
        let report = DemoReport {
            server: client.url().to_owned(),
            embedded: place.is_embedded(),
            planted,
            organization,
            has_others,
            own: place.own().cloned(),
            discovery: discovery.map(Into::into),
            read: read.into(),
        };
        output.value(&report, report::render)?;
        output.next(&self.service, &report::next(&report));
        Ok(())
    }
}

/// Finds the story by keywords; `None` if its Session is not granted to agents.
async fn discover(client: &Client) -> Result<Option<RawReply<DiscoveryResult>>, CommandError> {
    let query =
        Query::new(story::QUERY).map_err(|rule| CommandError::argument("the query", rule))?;
    match context::discover(client, &query, MaxBytes::default(), None).await {
        Ok(discovery) => Ok(found(&discovery.value).is_some().then_some(discovery)),
        Err(error) if *error.kind() == ErrorKind::RetrievalDisabled => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns where the best part of the story was found.
fn found(discovery: &DiscoveryResult) -> Option<&Reference> {
    let session_id = story::session_id();
    let candidate = discovery
        .items
        .iter()
        .find(|candidate| candidate.session_id == session_id)?;
    Some(&candidate.preview.as_ref()?.reference)
}

/// Reads the part that was found, and the last call's answer.
async fn read(
    client: &Client,
    found: Option<Reference>,
) -> Result<RawReply<EvidenceRead>, CommandError> {
    let last = last_answer(client).await?;
    let found = found.filter(|found| *found != last);
    let request = EvidenceReadRequest {
        schema_version: Version1,
        session_id: story::session_id(),
        references: found.into_iter().chain([last]).collect(),
        explain: false,
    };
    Ok(evidence::read(client, &request).await?)
}

/// Finds the last text of the last call, through the inventory and the manifest.
async fn last_answer(client: &Client) -> Result<Reference, CommandError> {
    let hidden = || {
        let hidden = ErrorKind::Declined(Decline::EvidenceUnavailable {
            reference_index: None,
        });
        CommandError::refused(hidden.code(), "the demo's calls are not visible")
            .hint("were they quarantined or erased? svc quarantine-log, svc erase log")
    };
    let session_id = story::session_id();
    let request = InventoryRequest {
        session_id: session_id.clone(),
    };
    let inventory = evidence::ask::<EvidenceInventory, GrantInventory>(client, &request).await?;
    let last = inventory.value.calls.last().ok_or_else(hidden)?;
    let inference_call_id =
        InferenceCallId::new(&last.inference_call_id.to_string()).map_err(|_| hidden())?;
    let request = ManifestRequest::new(session_id, inference_call_id);
    let manifest = evidence::ask::<EvidenceManifest, GrantManifest>(client, &request).await?;
    let messages = manifest.value.messages.into_iter().rev();
    messages
        .filter(|message| message.side == Side::Output)
        .flat_map(|message| message.parts)
        .find(|part| part.part_type == PartType::Text)
        .map(|part| part.reference)
        .ok_or_else(hidden)
}
