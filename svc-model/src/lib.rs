//! The vocabulary of the evidence service: every request, reply, closed set, id, limit and problem,
//! the list of endpoints, and exact JSON.
//!
//! The crate depends on no runtime, database or HTTP library. The server binds the [`endpoint`]
//! types, the client calls them, and the published schemas are generated from the same definitions.
//! So the three cannot disagree.
//!
//! ```
//! use svc_model::json::Json;
//!
//! let captured = br#"{"price":1.10,"note":"a lone \ud800 survives"}"#;
//! let value = Json::parse(captured)?;
//! assert_eq!(value.to_canonical(), captured);
//! # Ok::<(), svc_model::json::ParseError>(())
//! ```
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod capture;
pub mod context;
pub mod endpoint;
pub mod evidence;
pub mod export;
pub mod facts;
pub mod field;
pub mod grant;
pub mod id;
pub mod identity;
pub mod ingest;
pub mod json;
pub mod limit;
#[cfg(feature = "schema")]
pub mod note;
pub mod open;
#[cfg(feature = "schema")]
pub mod openapi;
pub mod overview;
mod parameter;
pub mod problem;
pub mod quarantine;
pub mod query;
pub mod reports;
pub mod repository;
pub mod request;
pub mod search;
pub mod spend;
pub mod time;
pub mod usage;
pub mod version;

pub(crate) use self::field::closed_set;
