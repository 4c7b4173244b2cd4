//! The deliveries of a forge's webhooks become facts.
//!
//! A payload is whatever the forge sends, and forges differ and change. So a member is looked for
//! where the forges put it, only a string is text and only an integer is a number, and what is odd
//! counts as absent. A fact that can do without the member is stored without it; otherwise the
//! delivery is declined with a reason, once and for all: sending it again would change nothing.
//!
//! Names and URLs never identify a repository; its number does. A fact without a number is stored
//! under its name alone, except for a renaming, which would say nothing then.

mod ci;
mod clone_url;
mod delivery;
mod identity;
#[cfg(test)]
mod laws;
mod pull_request;
mod push;
mod rename;
#[cfg(test)]
mod testing;
mod value;

pub use delivery::{Delivery, ForgeFact, Notes, capture};
pub use identity::IdentityDecline;
