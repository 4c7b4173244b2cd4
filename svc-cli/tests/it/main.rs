//! The program as it is used without any configuration: a local service, a first session, and an
//! agent that resumes it.

mod connection;
mod examples;
mod first_use;
mod links;
mod local_service;
mod notes;
mod outbox;
mod parts;
mod readme;
mod revision;
mod search;
mod shell;
mod transcripts;
