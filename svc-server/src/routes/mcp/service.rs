//! Calls the routes for a tool.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use svc_mcp::{Ask, Service, ToolRefusal};
use svc_model::identity::Authority;
use svc_model::problem::Problem;
use tracing::{Instrument as _, Span};

use super::refusal::refusal;
use crate::admission::{self, Encoding};
use crate::app::App;
use crate::auth::Caller;
use crate::dispatch::{Exchange, Handle, check_caller};
use crate::memory::ReservedBytes;
use crate::reply;

/// Calls the routes for one caller, as the caller would over HTTP.
pub(super) struct Asker {
    app: App,
    caller: Caller,
    /// The span of the HTTP request, for everything that is logged.
    span: Span,
    /// The memory reserved for replies until the answer is written.
    held: Mutex<Vec<ReservedBytes>>,
}

impl Asker {
    pub(super) fn new(app: App, caller: Caller) -> Self {
        Self {
            app,
            caller,
            span: Span::current(),
            held: Mutex::default(),
        }
    }

    /// Calls a route: checks authority and grant, does the work, and limits the reply to the
    /// route's maximum.
    async fn put<E: Handle>(&self, request: E::Request) -> Result<Bytes, Problem> {
        check_caller::<E>(&self.app, &self.caller)?;
        let exchange = Exchange::of(self.app.clone(), self.caller.clone());
        let reply = E::handle(exchange, request).await?;
        let bytes_max = E::REPLY_BYTES_MAX.min(svc_mcp::REPLY_BYTES_MAX);
        let body = reply::write::<E>(&reply, bytes_max)?;
        let bytes = admission::estimate(&body, Encoding::Json);
        let held = admission::admit(&self.app.work, bytes, admission::WAIT).await?;
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(held);
        Ok(body.into())
    }
}

impl<E: Handle> Ask<E> for Asker {
    async fn ask(&self, request: E::Request) -> Result<Bytes, ToolRefusal> {
        let answer = self.put::<E>(request).instrument(self.span.clone());
        answer.await.map_err(|problem| refusal(&problem))
    }
}

impl Service for Asker {
    async fn authority(&self) -> Result<Authority, ToolRefusal> {
        Ok(self.caller.authority)
    }
}
