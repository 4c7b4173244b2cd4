//! Turns a gateway's description of a model call into an inference call.
//!
//! Each gateway has a folder that knows the names in its payload. The forms of messages depend on
//! the models, and are read by `capture::messages`.
//!
//! A payload is whatever the gateway logged: its members may be absent or of any type, and an
//! unusable member must not cost the rest of the call. So each field of the fact is read from the
//! first usable one of its sources, and what is unusable is left out and counted ([`Degradation`]).
//! Only two things refuse a whole call: an identity that cannot be stored or compared, and a
//! gateway without an adapter. A call without a Session is skipped.
//!
//! The call is read from the original payload, so redaction never changes an identity. Then its
//! parts and the kept payload are redacted. A folder also names the segments of its payload that
//! repeat from call to call, so the store keeps them once.

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
