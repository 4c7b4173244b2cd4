use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use svc_client::model::facts::AgentHarness;
use svc_client::model::id::{ForeignId, SessionId};
use svc_client::model::ingest::event::{Event, FilePath, ToolDecision};
use svc_client::{Client, Outbox, OutboxError, OutboxLimits};

/// The hook of an agent after each edit: it reports that the edit was accepted, and sends
/// everything that is waiting. It waits at most two seconds for the service. What is not sent by
/// then stays on disk.
pub async fn report(
    outbox: &Outbox,
    client: &Client,
    session: &str,
    call: &str,
    file: &str,
) -> Result<(), Box<dyn Error>> {
    let event = Event {
        agent: AgentHarness::Cursor,
        session_id: SessionId::new(session)?,
        user_id: None,
        occurred_at: SystemTime::now().try_into()?,
        kind: ToolDecision {
            call_id: ForeignId::new(call)?,
            file_path: Some(FilePath::new(file)?),
            accepted: true,
            explicit: false,
            tool_name: Some("Write".to_owned()),
        }
        .into(),
    };
    // When this returns, the event is on disk. An error says why it was not kept.
    outbox.put(&event).await?;
    // What is not sent within this time is sent after a later edit.
    match tokio::time::timeout(Duration::from_secs(2), outbox.drain(client)).await {
        // If another hook is sending at the moment, that one or the next one finds the event.
        Err(_) | Ok(Ok(_) | Err(OutboxError::Busy)) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut stdout = std::io::stdout();
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [folder, session, call, file] = arguments.as_slice() else {
        writeln!(stdout, "outbox FOLDER SESSION CALL FILE")?;
        return Ok(());
    };
    let outbox = Outbox::open(Path::new(folder), OutboxLimits::default())?;
    report(&outbox, &Client::from_env()?, session, call, file).await?;

    // For people: how much is waiting, since when, and whether a person must act.
    let status = outbox.status()?;
    writeln!(
        stdout,
        "{} wait, {} refused",
        status.waiting, status.refused
    )?;
    if let Some(reason) = status.stopped {
        writeln!(stdout, "stopped: {}", reason.message)?;
    }
    for refused in outbox.refused()? {
        writeln!(stdout, "refused: {}", refused.path.display())?;
    }
    Ok(())
}
