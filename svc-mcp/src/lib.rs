//! The evidence service as tools of the Model Context Protocol.
//!
//! One definition of the tools serves both transports: `svc mcp` speaks the protocol over standard
//! input and output and asks a service over HTTP, and the server speaks it at `/mcp` and asks its
//! own routes. Each implements [`Service`]; everything else is here. A tool is a row of `tool::TOOLS`,
//! and what it asks is a row of the questions, with the text that says what the reply holds.
//!
//! A tool asks questions, each of which corresponds to one route of the service. Its structured
//! result is a short answer that is complete in itself: excerpts, the references of what they are
//! from, what was left out, and the next call. Dossiers and reports are the body of the route's
//! reply. A refusal is a result too. It contains the closed code and what to do about it, so that an
//! agent can continue. Values that the protocol's libraries cannot represent (a lone surrogate, an
//! integer of forty digits) are listed beside the result and can be read exactly as a resource.
#![warn(missing_docs)]

mod answer;
mod arguments;
mod moment;
mod page;
mod question;
mod refusal;
mod resource;
mod schema;
mod server;
mod structured;
mod text;
mod tool;

pub use self::question::Ask;
pub use self::refusal::ToolRefusal;
pub use self::server::McpServer;
pub use self::tool::Service;

/// The maximum size of a reply in bytes. A larger one is refused, because no agent could read it.
pub const REPLY_BYTES_MAX: usize = svc_model::limit::EVIDENCE_REPLY_BYTES_MAX;
