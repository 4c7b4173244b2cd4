use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use svc_client::Client;
use svc_client::model::id::SessionId;
use svc_client::model::ingest::{GatewayCall, IngestReceipt};
use svc_client::model::open::Open;

/// Delivers a model call after the model has answered. The call has an id, so it can be delivered
/// again without harm, and the client retries automatically.
pub async fn deliver(
    client: &Client,
    session: &str,
) -> Result<Open<IngestReceipt>, Box<dyn Error>> {
    let ended = SystemTime::now();
    let began = ended - Duration::from_millis(2_250);
    let call = GatewayCall::builder()
        .session(SessionId::new(session)?)
        .id("7c3e5a10-4b52-4c0d-9a39-0e6f7c1d2b84")
        .model("gpt-5")
        .model_provider("openai")
        .text_message("user", "Why does the pager fire at night?")
        .answered_text("A cron job restarts the queue.")
        .finish_reason("stop")
        .tokens(12, 7)
        .time(began.try_into()?, ended.try_into()?)
        .build()?;
    Ok(client.ingest_call(&call).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let receipt = match deliver(&client, "fix-the-pager").await? {
        Open::Known(IngestReceipt::Fact(fact)) => {
            format!("{}, new: {}", fact.fact_id, fact.stored)
        }
        Open::Known(IngestReceipt::Skipped(skipped)) => format!("skipped: {}", skipped.reason),
        // A newer service may return a receipt that this program does not know.
        newer => format!("{newer:?}"),
    };
    Ok(writeln!(std::io::stdout(), "{receipt}")?)
}
