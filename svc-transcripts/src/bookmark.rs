//! What a bookmark has.

use serde::{Deserialize, Serialize};
use svc_model::id::ForeignId;
use svc_model::json;
use svc_model::time::Instant;

use crate::format::Format;

/// The version of the state. A bookmark of another version cannot be read.
const VERSION: u32 = 1;
/// The bytes of a state.
const BYTES_MAX: usize = 1024 * 1024;

/// The state of a reader at the offset of its bookmark.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    pub(crate) format: Format,
    /// The number of the last line before the offset.
    pub(crate) number: u64,
    pub(crate) time: Option<Instant>,
    pub(crate) cwd: Option<String>,
    /// What the line at the offset follows if it names no line.
    pub(crate) tip: Anchor,
    /// The last lines before the offset that later lines may name.
    pub(crate) lines: Vec<(String, Anchor)>,
    /// The last answers that were given.
    pub(crate) taken: Vec<Taken>,
    /// The lines before this offset were counted.
    pub(crate) counted_to: u64,
    pub(crate) totals: Totals,
}

/// Counts of a whole file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) lines: u64,
    pub(crate) known: u64,
    /// Lines that look like answers.
    pub(crate) answers: u64,
    pub(crate) calls: u64,
}

/// An answer that was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) key: String,
    /// The id by which later calls name it. None if it became a part of an earlier one.
    pub(crate) id: Option<ForeignId>,
}

/// What is before a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Anchor {
    /// Nothing.
    Start,
    /// An answer, with its id.
    Answer(ForeignId),
    /// Something that the bookmark does not have.
    Gone,
}

impl State {
    pub(crate) fn new(format: Format, number: u64, tip: Anchor) -> Self {
        Self {
            version: VERSION,
            format,
            number,
            time: None,
            cwd: None,
            tip,
            lines: Vec::new(),
            taken: Vec::new(),
            counted_to: 0,
            totals: Totals::default(),
        }
    }

    /// Writes the state. One that is too long is empty, and cannot be read.
    pub(crate) fn write(&self) -> String {
        let bytes = json::to_vec(self, BYTES_MAX).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let state: Self = json::from_slice(text.as_bytes()).ok()?;
        (state.version == VERSION).then_some(state)
    }
}
