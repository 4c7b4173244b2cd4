//! The published description of the service: `openapi.json`, one JSON Schema for every request and
//! reply, and the index of them.
//!
//! All of this is computed from [`endpoint::all`](crate::endpoint::all) and the types that the
//! endpoints name. The descriptions are the doc comments of those types, so they need not be
//! written twice and cannot contradict each other. The files under `schemas/` are the output of
//! [`documents`], and a test compares the two.
//!
//! Requests and replies are described differently. The schema of a request says what is accepted: a
//! member with a default may be absent, and an undeclared member is refused. The schema of a reply
//! says what is sent: a member with a default is always present. So each type is described in the
//! direction in which it is sent. A type that is sent in both directions is published in the
//! stricter form of the request, which holds for both.

mod area;
mod catalogue;
mod document;
mod downgrade;
mod example;
mod operation;
mod publication;
mod refusal;
mod route;
mod variant;

pub use self::publication::{documents, openapi_json};
