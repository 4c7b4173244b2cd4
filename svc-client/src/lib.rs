//! The client of the evidence service: what its captured model calls say, exactly.
//!
//! One method per route, typed requests and replies that keep every value as it was captured (NUL,
//! lone surrogates, `1.10`, integers of forty digits), errors as a closed set that says what may be
//! tried again, and repetitions only where they are safe.
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
//! # Layer
//!
//! The crate sits on both arrows from outside: it writes the requests and reads the replies of
//! [`model`], the vocabulary that the service speaks too, and knows nothing of how the service works.
//! It runs on the caller's Tokio runtime and starts none.
#![warn(missing_docs)]

mod address;
mod base_url;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod client;
mod context;
pub mod environment;
mod error;
mod evidence;
mod facts;
mod identity;
mod ingest;
pub mod outbox;
mod refusal;
mod reply;
mod retry;
#[cfg(feature = "testing")]
pub mod testing;
mod transport;

pub use reqwest;
pub use secrecy::SecretString;
pub use svc_model as model;

pub use self::base_url::BaseUrlError;
pub use self::builder::{BuildError, ClientBuilder};
pub use self::client::Client;
pub use self::context::Context;
pub use self::error::{Denial, Error, ErrorKind};
pub use self::evidence::Evidence;
pub use self::outbox::{Outbox, OutboxError, OutboxLimits};
pub use self::reply::RawReply;
pub use self::retry::RetryPolicy;
