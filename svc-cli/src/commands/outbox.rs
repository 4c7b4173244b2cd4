//! Deliveries that could not be made yet.

use clap::{Args, Subcommand};
use serde::Serialize;
use svc_client::outbox::{Ending, OutboxView, Reason};

use super::sending::{ServiceOutbox, views};
use super::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, Table, escape};

/// The code of calls whose earlier calls did not arrive.
const EARLIER_CALLS_MISSING: &str = "after_unknown";

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

    /// Also send what was put with another token or by somebody else, once you have looked at it.
    #[arg(long)]
    unsigned: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

/// What is kept for one service, for programs.
#[derive(Debug, Serialize)]
struct OutboxListing {
    service: String,
    #[serde(flatten)]
    content: OutboxContent,
}

/// What an outbox contains, or why that is unknown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OutboxContent {
    Known(OutboxSummary),
    Unknown { error: String },
}

#[derive(Debug, Serialize)]
struct OutboxSummary {
    folder: String,
    waiting: u64,
    waiting_bytes: u64,
    oldest_seconds: Option<u64>,
    refused: Vec<RefusedRow>,
    /// Why sending has stopped until a person acts.
    stopped: Option<Reason>,
    /// The programs that are using it, as far as the system reports them.
    in_use: Vec<User>,
}

#[derive(Debug, Serialize)]
struct RefusedRow {
    id: String,
    path: String,
    reason: Option<Reason>,
}

#[derive(Debug, Serialize)]
struct User {
    work: &'static str,
    process: Option<u32>,
}

impl OutboxListing {
    fn of(service: String, view: Result<OutboxView, CommandError>) -> Self {
        let known = view.and_then(|view| OutboxSummary::of(&view));
        let content = known.map_or_else(
            |error| OutboxContent::Unknown {
                error: error.message().to_owned(),
            },
            OutboxContent::Known,
        );
        Self { service, content }
    }

    fn known(&self) -> Option<&OutboxSummary> {
        match &self.content {
            OutboxContent::Known(known) => Some(known),
            OutboxContent::Unknown { .. } => None,
        }
    }
}

impl OutboxSummary {
    fn of(view: &OutboxView) -> Result<Self, CommandError> {
        let status = view.status()?;
        let refused = view.refused()?.into_iter().map(|refused| RefusedRow {
            id: refused.id.to_string(),
            path: refused.path.display().to_string(),
            reason: refused.reason,
        });
        let users = view.users().into_iter().map(|user| User {
            work: user.work.as_str(),
            process: user.process,
        });
        Ok(Self {
            folder: view.folder().display().to_string(),
            waiting: status.waiting,
            waiting_bytes: status.waiting_bytes,
            oldest_seconds: status.oldest_age.map(|age| age.as_secs()),
            refused: refused.collect(),
            stopped: status.stopped,
            in_use: users.collect(),
        })
    }

    fn is_empty(&self) -> bool {
        self.waiting == 0 && self.refused.is_empty() && self.stopped.is_none()
    }
}

fn status(output: &mut Output) -> Result<(), CommandError> {
    let views = views()?.into_iter();
    let shown: Vec<OutboxListing> = views
        .map(|(url, view)| OutboxListing::of(url, view))
        .collect();
    output.value(&shown, |shown| render(shown))?;
    let waits = |shown: &OutboxListing| shown.known().is_some_and(|known| known.waiting > 0);
    let next = shown.iter().any(waits);
    let next = next.then(|| "svc outbox drain".to_owned());
    output.next(
        &ServiceOptions::default(),
        &next.into_iter().collect::<Vec<_>>(),
    );
    if shown.iter().all(|shown| shown.known().is_some()) {
        return Ok(());
    }
    Err(CommandError::refused(
        "outbox",
        "not every outbox can be read",
    ))
}

fn render(shown: &[OutboxListing]) -> String {
    let is_empty = |outbox: &OutboxListing| outbox.known().is_some_and(OutboxSummary::is_empty);
    let mut blocks = if shown.iter().all(is_empty) {
        vec!["nothing is waiting to be delivered\n".to_owned()]
    } else {
        vec![table(shown)]
    };
    for outbox in shown {
        let service = escape(&outbox.service);
        let known = match &outbox.content {
            OutboxContent::Known(known) => known,
            OutboxContent::Unknown { error } => {
                let error = escape(error);
                blocks.push(format!("the outbox of {service} cannot be read: {error}\n"));
                continue;
            }
        };
        if !known.in_use.is_empty() {
            let users: Vec<_> = known.in_use.iter().map(User::description).collect();
            let users = users.join(", ");
            blocks.push(format!("the outbox of {service} is in use: {users}\n"));
        }
        if let Some(reason) = &known.stopped {
            blocks.push(format!(
                "deliveries to {service} have stopped: {}\n",
                escape(&reason.message)
            ));
        }
        for refused in &known.refused {
            let path = escape(&refused.path);
            blocks.push(match &refused.reason {
                None => format!("{service} refused {path}: unknown\n"),
                Some(reason) if reason.code == Reason::UNSIGNED => format!(
                    "for {service}, {path} was set aside: {}; look at it, then remove it or send it: \
                     svc outbox drain --unsigned\n",
                    escape(&reason.message)
                ),
                Some(reason) if reason.code == EARLIER_CALLS_MISSING => format!(
                    "{service} refused {path}: {}; read the transcript again: \
                     svc import AGENT FILE --full\n",
                    escape(&reason.message)
                ),
                Some(reason) => {
                    format!("{service} refused {path}: {}\n", escape(&reason.message))
                }
            });
        }
    }
    blocks.join("\n")
}

fn table(shown: &[OutboxListing]) -> String {
    let mut table =
        Table::new(["service", "waiting", "bytes", "oldest", "refused"]).numbers(&[1, 2, 4]);
    for outbox in shown {
        let of = |cell: fn(&OutboxSummary) -> String| {
            outbox.known().map_or_else(|| "?".to_owned(), cell)
        };
        table.row([
            escape(&outbox.service),
            of(|known| known.waiting.to_string()),
            of(|known| known.waiting_bytes.to_string()),
            of(|known| known.oldest_seconds.map_or_else(|| "-".to_owned(), age)),
            of(|known| known.refused.len().to_string()),
        ]);
    }
    table.render()
}

impl User {
    fn description(&self) -> String {
        let Self { work, process } = self;
        match process {
            Some(process) => format!("process {process} is {work}"),
            None => format!("another program is {work}"),
        }
    }
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
struct SendingResult {
    service: String,
    delivered: u64,
    refused: u64,
    /// How many are still waiting. `None` if that is unknown.
    waiting: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Drain {
    fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        let kept = match service::given(&self.service)? {
            Some(_) => {
                let kept = ServiceOutbox::of(&self.service)?;
                vec![(kept.url.clone(), Ok(kept))]
            }
            None => ServiceOutbox::all()?,
        };
        let mut sent = Vec::new();
        for (url, kept) in kept {
            let done = kept.and_then(|kept| self.drain(&kept));
            sent.push(done.unwrap_or_else(|error| SendingResult {
                service: url,
                delivered: 0,
                refused: 0,
                waiting: None,
                error: Some(error.message().to_owned()),
            }));
        }
        output.value(&sent, |sent| rendered(sent))?;
        if sent.iter().all(SendingResult::is_all) {
            return Ok(());
        }
        let error = CommandError::refused("not_delivered", "not everything was delivered");
        Err(error.hint("see what is left, and why: svc outbox status"))
    }

    fn drain(&self, kept: &ServiceOutbox) -> Result<SendingResult, CommandError> {
        if self.unsigned {
            kept.outbox.restore_unsigned()?;
        }
        if self.refused {
            kept.outbox.restore_refused()?;
        }
        send(kept)
    }
}

impl SendingResult {
    /// Returns whether nothing is left.
    fn is_all(&self) -> bool {
        self.refused == 0 && self.waiting == Some(0)
    }
}

/// Sends what is waiting for a service.
fn send(kept: &ServiceOutbox) -> Result<SendingResult, CommandError> {
    let waiting_before = kept.outbox.status()?.waiting;
    let mut sent = SendingResult {
        service: kept.url.clone(),
        delivered: 0,
        refused: 0,
        waiting: Some(waiting_before),
        error: None,
    };
    if waiting_before == 0 {
        return Ok(sent);
    }
    let refused_before = kept.outbox.refused()?.len();
    let drained = kept
        .client()
        .and_then(|client| service::block_on(async { Ok(kept.outbox.drain(&client).await?) }));
    match drained {
        Err(error) => {
            // Some of it may have been sent before the error.
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
    sent.waiting = Some(kept.outbox.status()?.waiting);
    Ok(sent)
}

fn rendered(sent: &[SendingResult]) -> String {
    let lines = sent.iter().map(|sent| {
        let error = sent.error.as_ref();
        let error = error.map_or_else(String::new, |error| format!(": {}", escape(error)));
        let service = escape(&sent.service);
        let Some(waiting) = sent.waiting else {
            return format!("{service}{error}\n");
        };
        format!(
            "{service}: {} delivered, {} refused, {waiting} still waiting{error}\n",
            sent.delivered, sent.refused,
        )
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        "nothing is waiting to be delivered\n".to_owned()
    } else {
        lines
    }
}
