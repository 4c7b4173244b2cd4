//! A gateway's description of a model call becomes an inference call.
//!
//! Each gateway has a folder of its own, which knows the names of its payload; the forms of messages
//! are those of the models and are read by `capture::messages`.
//!
//! A payload is whatever the gateway logged: its members may be absent or of any type, and no
//! member that is odd may cost the rest of the call. So each field of the fact is read for itself,
//! from the first of its sources that is usable, and what cannot be used is left out and counted
//! ([`Degradation`]). Only two things refuse a call as a whole: an identity that could not be stored
//! or compared, and a gateway that has no adapter. A call without a Session is skipped.
//!
//! The call is read from the payload as it came, so that redaction never changes an identity; then
//! its parts and the kept payload are redacted. A folder also names what of its payload repeats from
//! call to call, so that the store keeps it once.

mod call_id;
mod captured;
#[cfg(test)]
mod laws;
pub(super) mod litellm;
mod redact;
#[cfg(test)]
mod testing;

pub use captured::{Captured, GatewayError, Notes, capture};
pub use litellm::{delivery_moment, delivery_name};

pub use super::messages::Degradation;
