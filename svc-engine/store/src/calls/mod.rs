//! Inference calls: scalars, the ordered ids of their messages, and their raw payload.

mod reading;
mod writing;

use svc_model::evidence::LeftOut;
use svc_model::id::FactId;
use svc_model::json;

pub use self::reading::{CallContents, CallRow, CallScalars, CallSide, ScanMeasure};
pub(super) use self::reading::{contents, measure, one, outputs, raw, scalars, summaries};
use super::StoreError;
use super::append::Outcome;
use super::error::corrupt;
use super::table::Table;

/// What becomes of a call, given the stored calls that share an id with it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// None does, so it is stored.
    New,
    /// All that share the model's id started at other times, so it is stored too, under this id.
    Further(FactId),
    /// It is not stored.
    Decided(Outcome),
}

/// What every kind of fact has. Calls also have statements of their own.
pub(super) const TABLE: Table = Table {
    name: "inference_calls",
    members: &[
        "inference_call_id",
        "session_id",
        "observed_at_us",
        "captured_at_us",
    ],
    derived: &[],
    insert: writing::INSERT,
    select: "SELECT f.inference_call_id, f.session_id, f.observed_at_us, f.captured_at_us
        FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1",
    names: &[],
};

/// Returns what was left out in its stored form; `None` if nothing was.
fn written(left_out: &LeftOut) -> Option<String> {
    if *left_out == LeftOut::default() {
        return None;
    }
    let bytes = json::to_vec(left_out, usize::MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Reads what was left out from its stored form.
pub(super) fn left_out(text: Option<String>) -> Result<LeftOut, StoreError> {
    let Some(text) = text else {
        return Ok(LeftOut::default());
    };
    json::from_slice(text.as_bytes()).map_err(|_| corrupt("inference_calls", "its left_out"))
}
