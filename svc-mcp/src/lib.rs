//! The evidence service as tools of the Model Context Protocol.
//!
//! One definition of the tools serves both transports: `svc mcp` speaks the protocol over standard
//! input and output and asks a service over HTTP, and the server speaks it at `/mcp` and asks its own
//! routes. Each implements [`Service`]; all else is here.
//!
//! A tool asks one [`Question`], which is one route of the service, and its structured result is the
//! body of that route. A refusal is a result too: it says the closed code and what to do about it, so
//! that an agent can go on. What the protocol's libraries cannot carry (half a surrogate pair, an
//! integer of forty digits) is named beside the result and can be read exactly as a resource.
#![warn(missing_docs)]

mod arguments;
mod page;
mod question;
mod refusal;
mod resource;
mod schema;
mod server;
mod structured;
mod text;
mod tool;

pub use self::question::{Question, Service};
pub use self::refusal::Refusal;
pub use self::server::McpServer;

/// The most bytes of a reply that a tool passes on. A longer one is refused: no agent could read it.
pub const REPLY_BYTES_MAX: usize = svc_model::limit::EVIDENCE_REPLY_BYTES_MAX;
