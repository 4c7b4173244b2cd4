//! Turns the webhook deliveries of a forge into facts.
//!
//! Forges differ and change, and a payload may contain anything. So a member is looked up wherever
//! forges put it, only a string counts as text and only an integer as a number, and an unusable
//! value counts as absent. A fact that does not need the member is stored without it. Otherwise the
//! delivery is declined for good, with a reason: sending it again would change nothing.
//!
//! A repository is identified by its number only, not by its names or URLs. A fact without the
//! number is stored under the name alone, except a rename, which would mean nothing without it.
//!
//! What cannot be stored is skipped even if it is only too long: a sender that gets 503 would send
//! it again for ever. Any other event, such as a ping, is skipped with success and without using
//! the store.

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

pub use delivery::{DeliveryNotes, ForgeFact, WebhookDelivery, capture};
pub use identity::IdentityDecline;
