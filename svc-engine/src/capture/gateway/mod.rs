//! A gateway's description of a model call becomes an inference call.
//!
//! A payload is whatever the gateway logged: its members may be absent or of any type, and no
//! member that is odd may cost the rest of the call. So each field of the fact is read for itself,
//! from the first of its sources that is usable, and what cannot be used is left out and counted
//! ([`Degradation`]). Only two things refuse a call as a whole: an identity that could not be stored
//! or compared, and a gateway that has no adapter. A call without a Session is skipped.
//!
//! The call is read from the payload as it came, so that redaction never changes an identity; then
//! its parts and the kept payload are redacted.

mod call;
mod content;
mod degradation;
mod delivery;
pub(super) mod embedded;
mod identity;
#[cfg(test)]
mod laws;
mod message;
mod metadata;
mod reasoning;
mod redact;
mod response;
pub(super) mod scalar;
mod session;
#[cfg(test)]
mod testing;
mod tool;
mod user;

pub use call::{Captured, GatewayError, Notes, capture};
pub use degradation::Degradation;
pub use delivery::delivery_name;
