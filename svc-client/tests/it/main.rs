//! Tests the client against a scripted peer.

mod connection;
mod exact;
mod investigation;
mod newer;
mod outbox;
mod replies;
mod requests;
mod resume;
mod retries;
mod routes;
mod secrets;
mod streams;
