//! The immutable facts, as capture makes them and the store keeps them.
//!
//! A fact is complete when it is made: nothing is ever added to it or changed.

mod call;
mod ci;

pub use call::InferenceCall;
pub use ci::CiOutcome;
