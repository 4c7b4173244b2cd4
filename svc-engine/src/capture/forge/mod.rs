//! Turns the deliveries of a forge's webhooks into facts.
//!
//! Forges differ and change, and a payload may contain anything. So a member is looked up where the
//! forges put it, only a string is text and only an integer is a number, and an unusable value
//! counts as absent. A fact that does not need the member is stored without it. Otherwise the
//! delivery is declined with a reason, permanently: sending it again would change nothing.
//!
//! Only its number identifies a repository, not its names or URLs. A fact without a number is
//! stored under its name alone, except a rename, which would then have no meaning.

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
