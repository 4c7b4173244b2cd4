//! Reads messages in the forms of the models' interfaces, whoever logged them.
//!
//! Gateways log chat completions, the responses interface and content blocks, freely mixed. Each
//! item becomes a message, and what is unusable is left out and counted ([`Degradation`]). The
//! whole call is refused only for an identity that cannot be stored or compared, or if its messages
//! need too much memory.
//!
//! What senders report of tokens, costs and tiers is brought to one form in [`usage`].

mod content;
mod degradation;
pub mod embedded;
mod error;
pub mod identity;
mod media;
mod message;
mod reasoning;
mod response;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;
pub mod usage;

pub use degradation::Degradation;
pub use error::MessagesError;
pub use message::{Normaliser, Origin};
pub use response::output;
