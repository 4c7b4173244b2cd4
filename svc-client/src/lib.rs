//! The Rust client of the evidence service, for sending and reading evidence of coding agents.
//!
//! It has one method for each route. Requests and replies are typed, and keep every value exactly
//! as it was captured (NUL, lone surrogates, `1.10`, integers of forty digits). Errors are a closed
//! set that says what may be retried, and requests are retried only where that is
//! [safe](Client#retries).
//!
//! | To | Use |
//! |---|---|
//! | send the model calls of your own program | [`Client::ingest_next_call`], [`Client::ingest_calls`] |
//! | send one model call in the form of a gateway | [`Client::ingest_call`] |
//! | forward what a gateway logs | [`Client::ingest_gateway`], [`Client::ingest_gateway_batch`] |
//! | report the outcome of a CI run | [`Client::ingest_ci`] |
//! | relay a forge's webhooks | [`Client::ingest_forge`] |
//! | report what became of edits | [`Client::ingest_events`] |
//! | forward an agent's OTLP logs | [`Client::ingest_logs`] |
//! | forward a program's OTLP traces | [`Client::ingest_traces`] |
//! | keep model calls, CI outcomes and log records on disk until the service has acknowledged them | [`Outbox`] |
//! | search everything that the token may read | [`Client::search`] |
//! | find and read evidence of earlier Sessions | [`Client::context`] |
//! | list the Sessions that the token may read | [`Client::granted_sessions`] |
//! | see what became of the last days' work | [`Client::overview`] |
//! | read any Session as an operator | [`Client::evidence`], [`Client::session_dossier`] |
//! | test without a service | `testing::FakeServer`, with the feature `testing` |
//! | call it without an async runtime | `blocking::Blocking`, with the feature `blocking` |
//!
//! # Sending
//!
//! A delivery with an id can be sent again without harm, so the client retries it automatically,
//! within its timeout:
//!
//! ```no_run
#![doc = include_str!("../examples/call.rs")]
//! ```
//!
//! The calls of one Session repeat their history. A
//! [`Conversation`](model::ingest::Conversation) sends each message once:
//!
//! ```no_run
#![doc = include_str!("../examples/conversation.rs")]
//! ```
//!
//! # Sending through an outage
//!
//! A service may be unavailable for longer than a program runs. An [`Outbox`] keeps model calls, CI
//! outcomes and log records on disk until the service has acknowledged them, and sends them as soon
//! as possible. The [module](outbox) explains the details. For example, the hook of an agent:
//!
//! ```no_run
#![doc = include_str!("../examples/outbox.rs")]
//! ```
//!
//! # Resuming earlier work
//!
//! An agent knows a few keywords about the work but not who did it before. It finds the Sessions
//! that match, picks the best part, looks up the parts around it, and reads them in full. `SVC_URL`
//! and `SVC_TOKEN` configure the client; a retrieval token is enough.
//!
//! ```no_run
#![doc = include_str!("../examples/resume.rs")]
//! ```
//!
//! # Newer services
//!
//! A program keeps working after the service was updated and the program was not. Unknown members
//! are ignored, and where a closed set may grow, replies use [`Open`](model::open::Open). Structs
//! and enums of replies are non-exhaustive. In your own tests, read them from JSON with
//! [`model::json::from_slice`].
//!
//! # Design
//!
//! The crate writes the requests and reads the replies of [`model`], the vocabulary that it shares
//! with the service, and knows nothing about the implementation of the service. It runs on the
//! caller's Tokio runtime and starts none.
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The types of requests and replies, by subject.
///
/// | Module | Contains |
/// |---|---|
/// | [`ingest`](model::ingest) | deliveries and their receipts: model calls, CI outcomes, log records, own [events](model::ingest::event) |
/// | [`search`](model::search) | searches, their results, and how text is cut into words |
/// | [`context`](model::context) | queries within a grant, and their results |
/// | [`evidence`](model::evidence) | calls, messages and parts, exactly as captured |
/// | [`query`](model::query) | CI runs, commits and Sessions, and the links between them |
/// | [`spend`](model::spend) | what calls of models cost, and price tables |
/// | [`usage`](model::usage) | what calls of models used and cost |
/// | [`overview`](model::overview) | what became of the last days' work |
/// | [`reports`](model::reports) | what became of the agents' work |
/// | [`facts`](model::facts), [`capture`](model::capture), [`quarantine`](model::quarantine),
/// [`grant`](model::grant), [`identity`](model::identity) | counts, the logs of quarantine and
/// grants, the authority of a token |
/// | [`id`](model::id), [`repository`](model::repository), [`time`](model::time),
/// [`version`](model::version) | common values |
/// | [`json`](model::json) | JSON that keeps NUL, lone surrogates, `1.10` and integers of forty digits |
/// | [`open`](model::open) | values that a newer service may return |
/// | [`endpoint`](model::endpoint), [`problem`](model::problem), [`field`](model::field),
/// [`limit`](model::limit) | the routes, their problems and their limits, for code that is generic
/// over routes |
pub mod model {
    #[cfg(feature = "schema")]
    #[doc(inline)]
    pub use svc_model::openapi;
    // Writing and reading requests; only code that adds routes needs it.
    #[doc(hidden)]
    pub use svc_model::request;
    #[doc(inline)]
    pub use svc_model::{
        capture, context, endpoint, evidence, facts, grant, id, identity, ingest, json, limit,
        open, overview, problem, quarantine, query, reports, repository, search, spend, time,
        usage, version,
    };

    /// Invalid fields of a request: what is wrong, and where.
    pub mod field {
        #[doc(inline)]
        pub use svc_model::field::{FieldError, FieldKind, Step};
    }
}

#[cfg(not(any(feature = "rustls", feature = "native-tls")))]
compile_error!("svc-client needs one of its features `rustls` and `native-tls`");

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
mod prices;
mod quarantine;
mod query;
mod refusal;
mod reply;
mod reports;
mod retry;
mod search;
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
