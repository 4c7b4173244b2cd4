//! Facts for other programs, one line of JSON each.

use std::time::Duration;

use clap::Args;
use svc_engine::clock::Clock;
use svc_engine::deadline::Deadline;
use svc_engine::read::{Export as Wanted, export};
use svc_model::export::ExportedFact;
use svc_model::facts::FactTable;
use svc_model::id::FactId;
use svc_model::json;

use super::interruption::by_the_operator;
use super::moment::optional_moment;
use super::one_of::one_of;
use super::store::{ledger, settings};
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::Output;

/// The time limit. Usually the work is done, or the operator interrupts it, much earlier.
const AT_MOST: Duration = Duration::from_hours(24);
/// The number of bytes that are written at a time.
const WRITTEN_BYTES: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Only facts of this kind; may be repeated.
    #[arg(long = "kind", value_name = "KIND", value_parser = one_of(FactTable::ALL, FactTable::as_str))]
    kinds: Vec<FactTable>,

    /// Only facts captured at or after this moment.
    #[arg(long, value_name = "MOMENT", allow_hyphen_values = true)]
    since: Option<String>,

    /// Only facts captured before this moment.
    #[arg(long, value_name = "MOMENT", allow_hyphen_values = true)]
    until: Option<String>,

    /// Include the text that people, models and machines wrote.
    #[arg(long)]
    content: bool,

    #[command(flatten)]
    store: StoreOptions,
}

impl Export {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let since = optional_moment("--since", self.since.as_deref(), now)?;
        let until = optional_moment("--until", self.until.as_deref(), now)?;
        if let (Some(since), Some(until)) = (since, until)
            && since >= until
        {
            return Err(CommandError::argument("--since", "must be before --until"));
        }
        let mut kinds = self.kinds;
        if kinds.is_empty() {
            kinds = FactTable::ALL.to_vec();
        }
        kinds.sort_unstable();
        kinds.dedup();
        let wanted = Wanted {
            kinds,
            captured: (since, until),
            with_content: self.content,
        };
        let settings = settings(&self.store)?;
        let ledger = ledger(&settings.url, &settings.org_id, output)?;
        let cancellation = by_the_operator()?;
        let deadline = Deadline::after(AT_MOST).cancelled_by(&cancellation);
        let mut lines = Lines {
            output,
            bytes: Vec::with_capacity(2 * WRITTEN_BYTES),
        };
        let mut snapshot = ledger.snapshot_until(&deadline)?;
        export(&mut snapshot, &wanted, |kind, id, fact| {
            lines.add(kind, id, &fact)
        })
        .map_err(|error: CommandError| {
            if cancellation.is_cancelled() {
                CommandError::refused("interrupted", "interrupted before all facts were written")
            } else {
                error
            }
        })?;
        lines.write()
    }
}

/// Buffers lines and writes them in blocks.
struct Lines<'o> {
    output: &'o mut Output,
    bytes: Vec<u8>,
}

impl Lines<'_> {
    fn add(
        &mut self,
        kind: FactTable,
        id: FactId,
        fact: &ExportedFact,
    ) -> Result<(), CommandError> {
        let line = json::to_vec(fact, usize::MAX).map_err(|error| {
            CommandError::refused("unwritable", format!("{kind}/{id}: {error}"))
                .hint("to export the facts without their content: leave out --content")
                .hint(format!(
                    "to hide this fact from exports and answers, which svc release takes back: \
                     svc quarantine {kind} {id} --reason REASON"
                ))
        })?;
        self.bytes.extend(line);
        self.bytes.push(b'\n');
        if self.bytes.len() >= WRITTEN_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), CommandError> {
        self.output.lines(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}
