//! The published description of the service: `openapi.json`, one JSON Schema for every request and
//! reply, and the index of them.
//!
//! All of it is computed from [`endpoint::all`](crate::endpoint::all) and from the types that the
//! endpoints name; the sentences are the doc comments of those types. Nothing is described a second
//! time by hand, so a description cannot fall behind what the service does. The files under
//! `schemas/` are the output of [`documents`], and a test compares the two.
//!
//! A request and a reply are described differently: a request says what is accepted (a member with
//! a default may be left out, an undeclared one is refused), a reply says what is sent (such a member
//! is always there). Each type is therefore described in the direction in which it travels; one that
//! travels both ways is published in the stricter form of the request, which holds for both.

mod catalogue;
mod document;
mod example;
mod operation;
mod publication;
mod refusal;
mod variant;

pub use self::publication::{documents, openapi_json};
