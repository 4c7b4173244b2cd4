//! The payload of LiteLLM's logging callbacks.

mod call;
mod delivery;
mod metadata;
pub(in crate::capture) mod scalar;
mod segments;
mod session;
mod user;

pub(super) use call::capture;
pub use delivery::{delivery_moment, delivery_name};
