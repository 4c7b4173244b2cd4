//! What became of the work of the last days: the sentence, the flow, the strip of days, and what
//! needs a look.
//!
//! What has no evidence is said to be unknown, and never to have failed. A figure of zero is left
//! out where other figures say as much.

mod attention;
mod flow;
mod sentence;
#[cfg(test)]
mod tests;

pub use self::flow::{Evidence, FlowPart, FlowRow, OutcomeBar, bar, flow};
pub use self::sentence::{Absence, Behind, Piece};
