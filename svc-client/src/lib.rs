//! The client of the evidence service: what agents do goes in, and comes out exactly.
//!
//! One method per route, typed requests and replies that keep every value as it was captured (NUL,
//! lone surrogates, `1.10`, integers of forty digits), errors as a closed set that says what may be
//! tried again, and repetitions only where they are safe.
//!
//! | To | Use |
//! |---|---|
//! | deliver a model call of your own program | [`Client::ingest_call`] |
//! | pass on what a gateway logs | [`Client::ingest_gateway`], [`Client::ingest_gateway_batch`] |
//! | deliver the outcome of a CI run | [`Client::ingest_ci`] |
//! | relay a forge's webhooks | [`Client::ingest_forge`] |
//! | report what became of edits | [`Client::ingest_events`] |
//! | pass on an agent's OTLP logs | [`Client::ingest_logs`] |
//! | lose none of these while the service is away | [`Outbox`] |
//! | find what earlier Sessions knew, and read it | [`Client::context`] |
//! | read any Session as an operator | [`Client::evidence`], [`Client::facts`] and its siblings |
//! | test all of it without a service | `testing::FakeServer`, with the feature `testing` |
//! | do all of it without a runtime | `blocking::Blocking`, with the feature `blocking` |
//!
//! # A sender
//!
//! A delivery that names itself may be sent again without harm, so the client repeats it by itself
//! for a while:
//!
//! ```no_run
#![doc = include_str!("../examples/call.rs")]
//! ```
//!
//! # A sender that loses nothing
//!
//! A service may be away for longer than a program lives. An [`Outbox`] keeps deliveries on disk
//! until they are acknowledged, and sends them when it can; the [module](outbox) says what becomes
//! of each. The hook of an agent, for example:
//!
//! ```no_run
#![doc = include_str!("../examples/outbox.rs")]
//! ```
//!
//! # An agent that resumes work
//!
//! The agent knows a few words about the work and nothing of who did it before. It asks which
//! Sessions answer them, picks the best part, looks up what stood around it, and reads that in full.
//! The variables `SVC_URL` and `SVC_TOKEN` say where the service is; a retrieval token is enough.
//!
//! ```no_run
#![doc = include_str!("../examples/resume.rs")]
//! ```
//!
//! # A newer service
//!
//! A program goes on reading when the service is updated before it is. Members that it does not know
//! are passed over, and where a set of words or kinds may grow, a reply holds
//! [`Open`](model::open::Open). Structs and enums of replies are non-exhaustive; for tests of your own
//! they are read from JSON ([`model::json::from_slice`]).
//!
//! # Layer
//!
//! The crate sits on both arrows from outside: it writes the requests and reads the replies of
//! [`model`], the vocabulary that the service speaks too, and knows nothing of how the service works.
//! It runs on the caller's Tokio runtime and starts none.
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// What is sent and what comes back, by what it is about.
///
/// | Module | Holds |
/// |---|---|
/// | [`ingest`](model::ingest) | deliveries and their receipts: model calls, CI outcomes, log records, own [events](model::ingest::event) |
/// | [`context`](model::context) | queries within a grant, and what answers them |
/// | [`evidence`](model::evidence) | calls, messages and parts, exactly as they were captured |
/// | [`query`](model::query) | CI runs, commits and Sessions, from one to the next |
/// | [`reports`](model::reports) | what became of the work of models |
/// | [`facts`](model::facts), [`capture`](model::capture), [`quarantine`](model::quarantine), [`grant`](model::grant), [`identity`](model::identity) | counts, the logs of quarantine and of grants, what a token is |
/// | [`id`](model::id), [`repository`](model::repository), [`time`](model::time), [`version`](model::version) | the values that all of these are made of |
/// | [`json`](model::json) | JSON that keeps NUL, lone surrogates, `1.10` and integers of forty digits |
/// | [`open`](model::open) | words and kinds that a newer service may answer with |
/// | [`endpoint`](model::endpoint), [`problem`](model::problem), [`field`](model::field), [`limit`](model::limit) | the routes, their refusals and their bounds, for code that is generic over them |
pub mod model {
    #[cfg(feature = "schema")]
    #[doc(inline)]
    pub use svc_model::openapi;
    // How requests are written and read: only code that adds routes needs it.
    #[doc(hidden)]
    pub use svc_model::request;
    #[doc(inline)]
    pub use svc_model::{
        capture, context, endpoint, evidence, facts, grant, id, identity, ingest, json, limit,
        open, problem, quarantine, query, reports, repository, time, version,
    };

    /// Violated fields of a request: what is wrong, and where.
    pub mod field {
        #[doc(inline)]
        pub use svc_model::field::{FieldError, FieldKind, Step};
    }
}

mod address;
mod base_url;
#[cfg(feature = "blocking")]
pub mod blocking;
mod build_error;
mod builder;
mod client;
mod context;
pub mod environment;
mod error;
mod evidence;
mod facts;
mod forge;
mod grants;
mod identity;
mod ingest;
pub mod outbox;
mod pages;
mod parts;
mod quarantine;
mod query;
mod refusal;
mod reply;
mod reports;
mod retry;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod transport;

#[cfg(feature = "reqwest")]
pub use reqwest;
pub use secrecy::SecretString;

pub use self::base_url::BaseUrlError;
pub use self::build_error::BuildError;
pub use self::builder::ClientBuilder;
pub use self::client::Client;
pub use self::context::Context;
pub use self::error::{Denial, Error, ErrorKind};
pub use self::evidence::Evidence;
pub use self::outbox::{Outbox, OutboxError, OutboxLimits};
pub use self::pages::Pages;
pub use self::parts::PartStream;
pub use self::reply::RawReply;
pub use self::retry::RetryPolicy;
pub use self::trace::{Answered, Trace};
