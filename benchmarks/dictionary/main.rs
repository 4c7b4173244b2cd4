//! Trains a dictionary of the store, and measures what calls take on disk with the current one.
//!
//! ```sh
//! cargo run --bin dictionary -- train 2
//! cargo run --bin dictionary -- measure
//! ```

#![expect(clippy::print_stdout, reason = "it is a program for the shell")]

use std::error::Error;
use std::path::{Path, PathBuf};

use svc_engine::capture::gateway::{self, Captured};
use svc_engine::capture::redaction::Secrets;
use svc_engine::capture::{Receipt, Redaction};
use svc_engine::clock::Ids;
use svc_engine::fact::InferenceCall;
use svc_model::id::OrgId;
use svc_model::ingest::{GatewayIngestRequest, GatewayProvider};
use svc_model::json::{Json, NodeBudget};
use svc_model::time::Instant;

mod measure;
mod payload;
mod train;

#[path = "../load/conversation.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the load program uses more of it, and its numbers are small"
)]
mod conversation;
#[path = "../load/template.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "the load program uses more of it, and its numbers are small"
)]
mod template;
#[path = "../load/text.rs"]
#[expect(clippy::cast_possible_truncation, reason = "its numbers are small")]
mod text;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", number] => train::train(&path(format!(
            "../svc-engine/store/src/pack/dictionary/{}.zdict",
            number.parse::<u8>()?
        ))),
        ["measure"] => measure::measure(),
        _ => Err("usage: dictionary train NUMBER | measure".into()),
    }
}

/// Returns a path of this crate.
fn path(relative: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Captures a payload of the first kind of gateway, as the service does.
fn capture(payload: Json, ids: &Ids) -> Result<Option<InferenceCall>, Box<dyn Error>> {
    let request = GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload,
        capture: None,
        compare: false,
    };
    let receipt = Receipt {
        org_id: &OrgId::new("acme")?,
        received_at: Instant::from_microseconds(1_795_132_800_000_000).ok_or("in range")?,
        ids,
        redaction: Redaction::On,
        secrets: &Secrets::default(),
    };
    Ok(
        match gateway::capture(request, receipt, &NodeBudget::unlimited())?.0 {
            Captured::Call(call) => Some(*call),
            Captured::Skipped { .. } => None,
        },
    )
}
