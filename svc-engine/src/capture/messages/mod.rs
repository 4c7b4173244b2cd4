//! Messages in the forms of the interfaces that models have, whoever carries them.
//!
//! Chat completions, the responses interface and content blocks mix freely in what gateways log. An
//! item becomes a message, what cannot be used is left out and counted ([`Degradation`]), and only an
//! identity that could not be stored or compared refuses the whole.

mod content;
mod degradation;
pub(super) mod embedded;
mod error;
pub(super) mod identity;
mod message;
mod reasoning;
mod response;
#[cfg(test)]
pub(super) mod testing;
mod tool;

pub use degradation::Degradation;
pub(super) use error::MessagesError;
pub(super) use message::{Normaliser, Origin};
pub(super) use response::output;
