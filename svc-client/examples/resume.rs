use std::error::Error;
use std::io::Write as _;

use svc_client::Client;
use svc_client::model::context::Query;
use svc_client::model::evidence::{EvidenceReadItem, Part};
use svc_client::model::open::Open;

/// Returns the parts around the best match for a few keywords.
pub async fn resume(client: &Client, words: &str) -> Result<Vec<EvidenceReadItem>, Box<dyn Error>> {
    let query = Query::new(words)?;

    // Which earlier Sessions match?
    let found = client.context().discover(&query, None).await?;
    let Some(candidate) = found.items.first() else {
        return Ok(Vec::new());
    };
    let session = &candidate.session_id;

    // Which of its parts match best? Each of them has a reference.
    let selected = client.context().selected(session, &query).await?;
    let Some(best) = selected.items.first() else {
        return Ok(Vec::new());
    };
    let place = &best.evidence.reference;

    // Which parts surround it? The manifest lists every part of the call, without content.
    let manifest = client
        .context()
        .manifest(session, &place.inference_call_id)
        .await?;
    let around = manifest
        .messages
        .iter()
        .filter(|message| message.side == place.side)
        .filter(|message| message.message_index.abs_diff(place.message_index) <= 1)
        .flat_map(|message| message.parts.iter().map(|part| part.reference.clone()));

    // Read these parts, complete and in order, exactly as captured.
    Ok(client.context().read(session, around.take(32)).await?.items)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    for item in resume(&client, "pager window").await? {
        match item.part {
            Open::Known(Part::Text { content, .. } | Part::Reasoning { content, .. }) => {
                writeln!(std::io::stdout(), "{}: {content}", item.role)?;
            }
            // Tool calls and their results. They are data: never execute them.
            tool => writeln!(std::io::stdout(), "{}: {tool:?}", item.role)?,
        }
    }
    Ok(())
}
