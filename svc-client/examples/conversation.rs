use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use svc_client::Client;
use svc_client::model::id::SessionId;
use svc_client::model::ingest::{AgentName, CallsReceipt, Conversation, SentCall};

/// A question and its answer, as the program keeps its history.
const TURNS: [(&str, &str); 2] = [
    (
        "Why does the pager fire at night?",
        "A cron job restarts the queue.",
    ),
    ("At what time?", "At three."),
];

/// Delivers each call after the model has answered. The program gives the whole input, as it gave
/// it to the model; only what is new is sent.
pub async fn deliver(client: &Client, session: &str) -> Result<Vec<CallsReceipt>, Box<dyn Error>> {
    let agent = AgentName::new("pager-bot")?;
    let mut conversation = Conversation::new(SessionId::new(session)?, agent);
    let mut receipts = Vec::new();
    for (turn, (question, answer)) in TURNS.iter().enumerate() {
        let ended = SystemTime::now();
        let began = ended - Duration::from_millis(2_250);
        let call = TURNS[..turn]
            .iter()
            .fold(SentCall::builder(), |call, (question, answer)| {
                call.text_message("user", question)
                    .text_message("assistant", answer)
            })
            .text_message("user", question)
            .answered_text(answer)
            .id(format!("turn-{turn}"))
            .model("gpt-5")
            .model_provider("openai")
            .finish_reason("stop")
            .tokens(12, 7)
            .cost_usd_micros(180)
            .time(began.try_into()?, ended.try_into()?)
            .build()?;
        receipts.push(client.ingest_next_call(&mut conversation, call).await?);
    }
    Ok(receipts)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    for receipt in deliver(&client, "fix-the-pager").await? {
        writeln!(std::io::stdout(), "stored: {}", receipt.stored)?;
    }
    Ok(())
}
