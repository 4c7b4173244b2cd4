//! A visit to a page, which asks the routes with the authority of the signed-in user.

use std::sync::{Arc, Mutex, PoisonError};

use svc_engine::engine::Engine;
use svc_model::endpoint::{Access, Endpoint};
use svc_model::field::{Violation, Violations};
use svc_model::json::{Json, NodeBudget, Object, Text};
use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::{Problem, RequiredAuthority};
use svc_model::request::{Incoming, Request as _};
use svc_model::time::Instant;
use svc_view::midnight;

use crate::admission::{self, Encoding};
use crate::app::App;
use crate::auth::{self, Caller};
use crate::dispatch::{Exchange, Handle, check_caller};
use crate::memory::ReservedBytes;
use crate::reply;

/// A signed-in user's visit to a page.
#[derive(Clone)]
pub(super) struct Visit {
    app: App,
    caller: Caller,
    query: Arc<Object>,
    /// The current time, the same for the whole page.
    pub(super) now: Instant,
    /// The memory held for replies until the page is written.
    held: Arc<Mutex<Vec<ReservedBytes>>>,
}

impl Visit {
    pub(super) fn new(app: App, caller: Caller, query: Object) -> Self {
        let now = app.engine.now();
        // An empty form field counts as absent.
        let given = query
            .into_iter()
            .filter(|(_, value)| value.as_str().is_none_or(|text| !text.trim().is_empty()));
        Self {
            app,
            caller,
            query: Arc::new(given.collect()),
            now,
            held: Arc::default(),
        }
    }

    /// Returns a parameter of the address.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.query.get(name).and_then(Json::as_str)
    }

    /// Returns a numeric parameter of the address, or the default.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        let given = self.given(name).and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    }

    /// Reads a route's request from the address, as the route itself would. A date means midnight
    /// UTC.
    pub(super) fn request<E: Endpoint>(
        &self,
        defaults: &[(&str, String)],
    ) -> Result<E::Request, Problem> {
        let mut query = self.query.as_ref().clone();
        for (name, value) in defaults {
            if !query.contains_key(name) {
                query.insert((*name).to_owned(), value.clone());
            }
        }
        let dated: Object = query
            .into_iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => (name, Json::from(&*midnight(text))),
                None => (name, value),
            })
            .collect();
        read::<E>(&dated, &[])
    }

    /// Calls a route with the request that the address holds, and nothing else.
    pub(super) async fn ask_given<E: Handle>(
        &self,
        defaults: &[(&str, String)],
    ) -> Result<E::Reply, Problem> {
        // A misspelt parameter may be why the others conflict.
        self.refuse_others::<E>()?;
        let request = self.request::<E>(defaults)?;
        self.ask::<E>(request).await
    }

    /// Refuses parameters that the route does not have: a filter that is ignored would show other
    /// rows than those asked for.
    fn refuse_others<E: Endpoint>(&self) -> Result<(), Problem> {
        let is_declared = |name: &Text| E::PARAMETERS.iter().any(|known| *name == known.name);
        let others = self.query.iter().filter(|(name, _)| !is_declared(name));
        let others: Object = others
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let memory = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
        let incoming = Incoming {
            path: &Object::new(),
            query: &others,
            headers: &Object::new(),
            body: &[],
            memory: &memory,
        };
        let read = incoming.with_declared_query(E::PARAMETERS, Ok(()));
        read.map_err(Problem::from)
    }

    /// Calls a route with a request: checks authority, does the work, and limits the reply to the
    /// route's maximum.
    pub(super) async fn ask<E: Handle>(&self, request: E::Request) -> Result<E::Reply, Problem> {
        check_caller::<E>(&self.app, &self.caller)?;
        let exchange = Exchange::of(self.app.clone(), self.caller.clone());
        let reply = E::handle(exchange, request).await?;
        self.hold(&reply::write::<E>(&reply, E::REPLY_BYTES_MAX)?)
            .await?;
        Ok(reply)
    }

    /// Asks the engine, with operator authority, for something that no route offers.
    pub(super) async fn ask_engine<T, A>(&self, ask: impl FnOnce(Engine) -> A) -> Result<T, Problem>
    where
        A: Future<Output = Result<T, svc_engine::error::Error>>,
    {
        let operator = auth::authorize(Access::Operator, &self.caller);
        operator.map_err(|_| Problem::Forbidden(RequiredAuthority::Operator))?;
        ask(self.app.engine.clone()).await.map_err(Problem::from)
    }

    /// Returns the service itself, for information that needs no store.
    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// Reserves the memory of a reply until the page is written.
    async fn hold(&self, reply: &[u8]) -> Result<(), Problem> {
        let bytes = admission::estimate(reply, Encoding::Json);
        let held = admission::admit(&self.app.work, bytes, admission::WAIT).await?;
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(held);
        Ok(())
    }
}

/// Reads a route's request from a body that a page writes, as the route itself would.
pub(super) fn request_of<E: Endpoint>(body: Object) -> Result<E::Request, Problem> {
    read::<E>(&Object::new(), &Json::Object(body).to_canonical())
}

fn read<E: Endpoint>(parameters: &Object, body: &[u8]) -> Result<E::Request, Problem> {
    let memory = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
    let incoming = Incoming {
        path: parameters,
        query: parameters,
        headers: &Object::new(),
        body,
        memory: &memory,
    };
    E::Request::read(&incoming).map_err(Problem::from)
}

/// Refuses the query parameter of this name.
pub(super) fn invalid(name: &'static str, rule: &'static str) -> Problem {
    let place = vec!["query".into(), name.into()];
    Problem::Invalid(Violations::one(Violation::rule(rule).at(place)))
}
