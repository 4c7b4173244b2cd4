//! Turns a gateway's description of a model call into an inference call.
//!
//! Each gateway has a folder with its [`Adapter`], which knows the names in its payload. The form of messages depends on
//! the model; `capture::messages` reads them.
//!
//! A payload is whatever the gateway logged: its members may be absent or of any type, and an
//! unusable member must not cost the rest of the call. So each field of the fact comes from the
//! first of its sources that is usable, and what is unusable is left out and counted
//! ([`Degradation`]). Only three things refuse a whole call: an identity that cannot be stored or
//! compared, messages that need too much memory, and a gateway without an adapter. A call without a
//! Session is skipped.
//!
//! The call is read from the original payload, so redaction never changes an identity. Then its
//! parts and the kept payload are redacted. A gateway's folder also says which segments of the
//! payload repeat from call to call, so that the store keeps them once.

mod adapter;
pub(crate) mod call_id;
mod captured;
#[cfg(test)]
mod laws;
pub(super) mod litellm;
pub(crate) mod redact;
#[cfg(test)]
pub(super) mod testing;

pub use adapter::{Adapter, adapter, capture};
pub use captured::{Captured, GatewayError, PayloadNotes};

pub use svc_messages::Degradation;
