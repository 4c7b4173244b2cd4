//! Facts for other programs, one line of JSON each.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use svc_engine::clock::Clock;
use svc_engine::deadline::Deadline;
use svc_engine::read::{Export as Wanted, export};
use svc_model::export::ExportedFact;
use svc_model::facts::FactTable;
use svc_model::id::FactId;
use svc_model::json::{self, Json, Object, Text, WriteError};

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

    /// Keep half surrogate pairs as they were captured. Other programs may refuse such a line; by
    /// default each half becomes U+FFFD, and the line lists the places under `inexact`.
    #[arg(long)]
    exact: bool,

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
            return Err(CommandError::misuse("--since", "must be before --until"));
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
            exact: self.exact,
            left_out: 0,
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
        lines.write()?;
        match lines.left_out {
            0 => Ok(()),
            count => Err(CommandError::refused(
                "incomplete",
                format!("{count} facts are left out, because they contain {NO_NUMBER}"),
            )
            .hint("to export those too, without their content: leave out --content")
            .hint(
                "to hide one from exports and answers, which svc release takes back: \
                 svc quarantine KIND ID --reason REASON",
            )),
        }
    }
}

/// What no JSON can write.
const NO_NUMBER: &str = "a number that is infinite or not a number";

/// Buffers lines and writes them in blocks.
struct Lines<'o> {
    output: &'o mut Output,
    bytes: Vec<u8>,
    exact: bool,
    left_out: u64,
}

impl Lines<'_> {
    fn add(
        &mut self,
        kind: FactTable,
        id: FactId,
        fact: &ExportedFact,
    ) -> Result<(), CommandError> {
        let line = line(fact, self.exact).map_err(|error| {
            CommandError::refused("unwritable", format!("{kind}/{id}: {error}"))
        })?;
        let Some(line) = line else {
            self.left_out += 1;
            let message = format!("{kind}/{id} is left out: it contains {NO_NUMBER}");
            self.output.caveat(&message);
            return Ok(());
        };
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

/// Returns the line of a fact; `None` if no JSON can write one of its numbers.
fn line<T: Serialize>(fact: &T, exact: bool) -> Result<Option<Vec<u8>>, WriteError> {
    match json::to_vec(fact, usize::MAX) {
        Ok(line) if exact || !line.windows(3).any(|escape| escape == b"\\ud") => {
            return Ok(Some(line));
        }
        // It has surrogates, or a number beyond doubles, which JSON can write.
        Ok(_) | Err(WriteError::NonFinite) => {}
        Err(error) => return Err(error),
    }
    let mut walk = Walk::default();
    let line = json::to_value(fact)?;
    let mut readable = walk.value(&line);
    if walk.has_no_number {
        return Ok(None);
    }
    if exact {
        return Ok(Some(line.to_canonical()));
    }
    if let (Some(line), false) = (readable.as_object_mut(), walk.inexact.is_empty()) {
        let places = walk.inexact.into_iter().map(Json::from);
        line.insert(INEXACT, Json::Array(places.collect()));
    }
    Ok(Some(readable.to_canonical()))
}

/// The member that lists the changed places of a line, as JSON Pointers.
const INEXACT: &str = "inexact";

/// Replaces half surrogate pairs by U+FFFD.
#[derive(Default)]
struct Walk {
    place: String,
    inexact: Vec<String>,
    has_no_number: bool,
}

impl Walk {
    fn value(&mut self, json: &Json) -> Json {
        match json {
            Json::String(text) => Json::String(self.text(text)),
            Json::Number(number) => {
                self.has_no_number |= matches!(number.as_str(), "NaN" | "Infinity" | "-Infinity");
                json.clone()
            }
            Json::Array(items) => {
                let items = items.iter().enumerate();
                let within = items.map(|(place, item)| self.within(&place.to_string(), item));
                Json::Array(within.collect())
            }
            Json::Object(members) => {
                let mut readable = Object::with_capacity(members.len());
                for (name, member) in members {
                    let step = name.to_string_lossy();
                    let member = self.within(&step, member);
                    let mut name = self.text(name);
                    // Another name may have become the same.
                    while readable.contains_key(&name.to_string_lossy()) {
                        name = Text::from(format!("{}\u{fffd}", name.to_string_lossy()));
                    }
                    readable.insert(name, member);
                }
                Json::Object(readable)
            }
            Json::Null | Json::Bool(_) => json.clone(),
        }
    }

    fn text(&mut self, text: &Text) -> Text {
        if !text.has_surrogate() {
            return text.clone();
        }
        self.inexact.push(self.place.clone());
        Text::from(&*text.to_string_lossy())
    }

    fn within(&mut self, step: &str, json: &Json) -> Json {
        let length = self.place.len();
        let step = step.replace('~', "~0").replace('/', "~1");
        self.place.extend(["/", &step]);
        let readable = self.value(json);
        self.place.truncate(length);
        readable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, exact: bool) -> Option<String> {
        let json = Json::parse(text.as_bytes()).unwrap();
        let line = line(&json, exact).unwrap()?;
        Some(String::from_utf8(line).unwrap())
    }

    #[test]
    fn other_programs_can_read_each_line() {
        for (text, readable) in [
            (
                r#"{"a":"\ud83d\ude42 \\ud83d"}"#,
                r#"{"a":"\ud83d\ude42 \\ud83d"}"#,
            ),
            (
                r#"{"a/b":["x","cut \ud83d"],"n":1e400}"#,
                r#"{"a/b":["x","cut \ufffd"],"n":1e400,"inexact":["/a~1b/1"]}"#,
            ),
            (
                r#"{"\ud83d":1,"\ud83e":2}"#,
                r#"{"\ufffd":1,"\ufffd\ufffd":2,"inexact":["",""]}"#,
            ),
            (
                r#"{"n":123456789012345678901234567890.10}"#,
                r#"{"n":123456789012345678901234567890.10}"#,
            ),
        ] {
            assert_eq!(written(text, false).as_deref(), Some(readable));
            assert_eq!(written(text, true).as_deref(), Some(text));
        }
        for no_number in ["NaN", "Infinity", "-Infinity"] {
            let text = format!(r#"{{"a":[{no_number}]}}"#);
            assert_eq!(
                [false, true].map(|exact| written(&text, exact)),
                [None, None]
            );
        }
    }
}
