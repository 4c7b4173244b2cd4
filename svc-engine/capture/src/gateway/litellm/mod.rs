//! The payload of LiteLLM's logging callbacks.

mod call;
mod delivery;
mod kind;
mod metadata;
mod said;
pub(crate) mod scalar;
mod segments;
mod session;
mod user;

pub(super) use call::capture;
pub use delivery::{delivery_moment, delivery_name};
