//! The published description of the service: `openapi.json`, one JSON Schema for every request and
//! reply, and the index of them.
//!
//! All of it is computed from [`endpoint::all`](crate::endpoint::all) and the types that the
//! endpoints name; the descriptions are the doc comments of those types. Nothing is described twice
//! by hand, so a description cannot become outdated. The files under `schemas/` are the output of
//! [`documents`], and a test compares the two.
//!
//! Requests and replies are described differently: a request's schema says what is accepted (a
//! member with a default may be absent, an undeclared one is refused), a reply's schema says what
//! is sent (such a member is always present). So each type is described in the direction in which
//! it is sent; a type that is sent both ways is published in the stricter form of the request,
//! which holds for both.

mod catalogue;
mod document;
mod example;
mod operation;
mod publication;
mod refusal;
mod variant;

pub use self::publication::{documents, openapi_json};
