//! Deliveries that could not be made yet.

use clap::{Args, Subcommand};
use serde::Serialize;
use svc_client::outbox::{Ending, Reason};

use super::sending::Kept;
use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape};

#[derive(Debug, Subcommand)]
pub(crate) enum Outbox {
    /// Show what is waiting to be delivered, and what a service refused.
    Status(Status),
    /// Send what is waiting now.
    ///
    /// Exits with 1 if something is still waiting or was refused.
    Drain(Drain),
}

impl Outbox {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Status(_) => status(output),
            Self::Drain(drain) => drain.run(output),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Status {}

#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Also resend what a service refused, once the cause is fixed.
    #[arg(long)]
    refused: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// What is kept for one service, for programs.
#[derive(Debug, Serialize)]
struct Shown {
    service: String,
    folder: String,
    waiting: u64,
    waiting_bytes: u64,
    oldest_seconds: Option<u64>,
    refused: Vec<Refused>,
    /// Why sending has stopped until a person acts.
    stopped: Option<Reason>,
}

#[derive(Debug, Serialize)]
struct Refused {
    id: String,
    path: String,
    reason: Option<Reason>,
}

impl Shown {
    fn of(kept: &Kept) -> Result<Self, CommandError> {
        let status = kept.outbox.status()?;
        let refused = kept.outbox.refused()?.into_iter().map(|refused| Refused {
            id: refused.id.to_string(),
            path: refused.path.display().to_string(),
            reason: refused.reason,
        });
        Ok(Self {
            service: kept.url.clone(),
            folder: kept.outbox.folder().display().to_string(),
            waiting: status.waiting,
            waiting_bytes: status.waiting_bytes,
            oldest_seconds: status.oldest_age.map(|age| age.as_secs()),
            refused: refused.collect(),
            stopped: status.stopped,
        })
    }
}

fn status(output: &mut Output) -> Result<(), CommandError> {
    let kept = Kept::all()?;
    let shown: Vec<Shown> = kept.iter().map(Shown::of).collect::<Result<_, _>>()?;
    output.value(&shown, |shown| render(shown))?;
    let waits = shown.iter().any(|outbox| outbox.waiting > 0);
    let next = waits.then(|| "svc outbox drain".to_owned());
    output.next(
        &ServiceOptions::default(),
        &next.into_iter().collect::<Vec<_>>(),
    );
    Ok(())
}

fn render(shown: &[Shown]) -> String {
    let is_empty = |it: &Shown| it.waiting == 0 && it.refused.is_empty();
    if shown.iter().all(is_empty) {
        return "nothing is waiting to be delivered\n".to_owned();
    }
    let mut table =
        Table::new(["service", "waiting", "bytes", "oldest", "refused"]).numbers(&[1, 2, 4]);
    for it in shown {
        table.row([
            escape(&it.service),
            it.waiting.to_string(),
            it.waiting_bytes.to_string(),
            it.oldest_seconds.map_or_else(|| "-".to_owned(), age),
            it.refused.len().to_string(),
        ]);
    }
    let mut blocks = vec![table.render()];
    for it in shown {
        let service = escape(&it.service);
        if let Some(reason) = &it.stopped {
            blocks.push(format!(
                "deliveries to {service} have stopped: {}\n",
                escape(&reason.message)
            ));
        }
        for refused in &it.refused {
            let reason = refused.reason.as_ref();
            let reason = reason.map_or_else(|| "unknown".to_owned(), |it| escape(&it.message));
            blocks.push(format!(
                "{service} refused {}: {reason}\n",
                escape(&refused.path)
            ));
        }
    }
    blocks.join("\n")
}

/// Returns a duration in its largest whole unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The result for one service.
#[derive(Debug, Serialize)]
struct Sent {
    service: String,
    delivered: u64,
    refused: u64,
    waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Drain {
    fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        let kept = match service::given(&self.service)? {
            Some(_) => vec![Kept::of(&self.service)?],
            None => Kept::all()?,
        };
        let mut sent = Vec::new();
        for kept in &kept {
            if self.refused {
                kept.outbox.restore_refused()?;
            }
            sent.push(send(kept)?);
        }
        output.value(&sent, |sent| rendered(sent))?;
        let left: u64 = sent.iter().map(|sent| sent.waiting + sent.refused).sum();
        if left == 0 {
            return Ok(());
        }
        let error = CommandError::refused("not_delivered", "not everything was delivered");
        Err(error.hint("see what is left, and why: svc outbox status"))
    }
}

/// Sends what is waiting for a service.
fn send(kept: &Kept) -> Result<Sent, CommandError> {
    let mut sent = Sent {
        service: kept.url.clone(),
        delivered: 0,
        refused: 0,
        waiting: kept.outbox.status()?.waiting,
        error: None,
    };
    if sent.waiting == 0 {
        return Ok(sent);
    }
    let waiting_before = sent.waiting;
    let refused_before = kept.outbox.refused()?.len();
    let drained = kept
        .client()
        .and_then(|client| service::block_on(async { Ok(kept.outbox.drain(&client).await?) }));
    match drained {
        Err(error) => {
            // Some of it may have been sent before.
            let refused = kept.outbox.refused()?.len();
            sent.refused = refused.saturating_sub(refused_before) as u64;
            let left = kept.outbox.status()?.waiting + sent.refused;
            sent.delivered = waiting_before.saturating_sub(left);
            sent.error = Some(error.message().to_owned());
        }
        Ok(drained) => {
            sent.delivered = drained.acknowledged;
            sent.refused = drained.refused;
            if let Ending::Later(error) | Ending::Stopped(error) = drained.ending {
                sent.error = Some(CommandError::from(error).message().to_owned());
            }
        }
    }
    sent.waiting = kept.outbox.status()?.waiting;
    Ok(sent)
}

fn rendered(sent: &[Sent]) -> String {
    let lines = sent.iter().map(|sent| {
        let error = sent.error.as_ref();
        let error = error.map_or_else(String::new, |error| format!(": {}", escape(error)));
        format!(
            "{}: {} delivered, {} refused, {} still waiting{error}\n",
            escape(&sent.service),
            sent.delivered,
            sent.refused,
            sent.waiting
        )
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        "nothing is waiting to be delivered\n".to_owned()
    } else {
        lines
    }
}
