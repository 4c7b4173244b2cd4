//! The program as somebody uses it who has configured nothing: a local service, a first session,
//! and an agent that resumes it.

mod connection;
mod examples;
mod first_use;
mod local_service;
mod notes;
mod outbox;
mod parts;
mod revision;
mod shell;
