//! Exact evidence: the content of a call, by reference, never summarised or truncated.

mod inventory;
mod manifest;
mod message;
mod read;
mod reference;

pub use inventory::{CallSummary, CaptureCompleteness, Inventory, InventoryRequest};
pub use manifest::{LeftOut, Manifest, ManifestMessage, ManifestPart, ManifestRequest};
pub use message::{Message, Part, PartType};
pub use read::{EvidenceRead, EvidenceReadItem, EvidenceReadRequest};
pub use reference::{Reference, Side};
