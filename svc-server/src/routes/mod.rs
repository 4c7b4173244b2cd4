//! The routes. Each endpoint is bound to the one engine call that answers it.

mod capture;
mod docs;
mod grants;
mod identity;
mod ingest;
mod mcp;
mod otlp;
mod prices;
mod quarantine;
mod reads;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::any;
use svc_model::endpoint::{
    AcceptedWorkLifecycleReport, Access, Capture, CiFailuresQuery, CiOutcomeQuery, CiRunsQuery,
    CohortSpendReport, CommitQuery, Compatibility, ContextRetrieval, Discovery, EvidenceInventory,
    EvidenceManifest, EvidenceReading, Facts, GrantAdd, GrantExplain, GrantInventory,
    GrantManifest, GrantRead, GrantRemove, GrantSessions, Grants, HealthProbe, IngestCalls,
    IngestCi, IngestForge, IngestForgeCi, IngestForgePullRequest, IngestForgePush,
    IngestForgeRepository, IngestGateway, IngestGatewayBatch, Logs, Me, Method,
    ModelOutcomesReport, OverviewQuery, PriceLoad, PriceRates, PriceTables, Quarantine,
    QuarantineLogPage, Release, Search, Selected, SessionCalls, SessionFacts, SessionQuery,
    SessionsQuery, TokenRestore, TokenRevoke, Traces,
};
use svc_model::problem::Problem;

use crate::app::App;
use crate::console;
use crate::dispatch::{Exchange, Handle};
use crate::handler::{Handler, refusing};
use crate::observe::{self, Route};

/// What requests for unknown paths are counted as.
const NO_ROUTE: Route = Route {
    name: "none",
    is_closed: false,
};

/// Binds routes to functions.
macro_rules! bindings {
    ($($endpoint:ident => $function:path;)+) => {
        $(impl Handle for $endpoint {
            async fn handle(
                exchange: Exchange,
                request: Self::Request,
            ) -> Result<Self::Reply, Problem> {
                $function(exchange, request).await
            }
        })+
    };
}

/// Binds routes to the reads of the engine that answer them.
macro_rules! reads {
    ($($endpoint:ident)+) => {
        bindings! { $($endpoint => reads::answer::<$endpoint>;)+ }
    };
}

// A route that is missing here is a compile error below, where all are added.
bindings! {
    HealthProbe => identity::health;
    Me => identity::me;
    IngestGateway => ingest::deliver;
    IngestGatewayBatch => ingest::deliver;
    IngestCalls => ingest::deliver;
    IngestCi => ingest::deliver;
    Capture => capture::counts;
    IngestForge => ingest::forge;
    IngestForgePush => ingest::push;
    IngestForgeRepository => ingest::repository;
    IngestForgeCi => ingest::workflow_run;
    IngestForgePullRequest => ingest::pull_request;
    Quarantine => quarantine::quarantine;
    Release => quarantine::release;
    Grants => grants::list;
    GrantExplain => grants::explain;
    GrantAdd => grants::add;
    GrantRemove => grants::remove;
    TokenRevoke => grants::revoke;
    TokenRestore => grants::restore;
    PriceLoad => prices::load;
    ContextRetrieval => reads::retrieve;
}
reads! {
    QuarantineLogPage
    Facts SessionFacts SessionCalls Compatibility
    EvidenceInventory EvidenceManifest EvidenceReading
    CiOutcomeQuery CiRunsQuery CiFailuresQuery SessionsQuery SessionQuery CommitQuery
    PriceTables PriceRates
    ModelOutcomesReport AcceptedWorkLifecycleReport CohortSpendReport OverviewQuery
    Discovery Selected GrantInventory GrantManifest GrantRead
    GrantSessions Search
}

impl Handle for Logs {
    async fn handle(exchange: Exchange, request: Self::Request) -> Result<Self::Reply, Problem> {
        ingest::deliver(exchange, request).await
    }

    fn handler() -> Handler {
        otlp::handler::<Self>()
    }
}

impl Handle for Traces {
    async fn handle(exchange: Exchange, request: Self::Request) -> Result<Self::Reply, Problem> {
        ingest::deliver(exchange, request).await
    }

    fn handler() -> Handler {
        otlp::handler::<Self>()
    }
}

/// What answers a path.
#[derive(Default)]
struct Methods {
    /// Whether any of the methods needs a credential.
    is_closed: bool,
    /// Whether `HEAD` is answered like `GET` but without the body. Browsers and load balancers use
    /// it for pages and for the health of the service. The interface has no such method for
    /// anything else.
    answers_head: bool,
    handlers: Vec<(Method, Handler)>,
}

#[derive(Default)]
struct Routes(BTreeMap<&'static str, Methods>);

impl Routes {
    fn add<E: Handle>(&mut self) {
        let is_open = E::ACCESS == Access::Open;
        self.insert(E::PATH, E::METHOD, is_open, E::handler());
    }

    fn add_page(&mut self, path: &'static str, method: Method, is_open: bool, handler: Handler) {
        self.insert(path, method, is_open, handler).answers_head = true;
    }

    fn insert(
        &mut self,
        path: &'static str,
        method: Method,
        is_open: bool,
        handler: Handler,
    ) -> &mut Methods {
        let methods = self.0.entry(path).or_default();
        methods.is_closed |= !is_open;
        methods.answers_head |= is_open;
        methods.handlers.push((method, handler));
        methods
    }
}

/// Returns the router of the whole service.
pub(crate) fn router(app: &App) -> Router {
    let mut routes = Routes::default();
    macro_rules! add_all {
        ($($endpoint:ident)+) => {
            $(routes.add::<$endpoint>();)+
        };
    }
    svc_model::for_each_endpoint!(add_all);

    if app.docs {
        docs::add(&mut routes);
    }
    if let Some(settings) = &app.mcp {
        mcp::add(&mut routes, settings);
    }

    if app.console.is_some() {
        for (route, handler) in console::handlers() {
            routes.add_page(route.path, route.method, route.is_open, handler);
        }
    }

    let mut router = Router::new();
    for (path, methods) in routes.0 {
        let app = app.clone();
        let Methods {
            is_closed,
            answers_head,
            handlers,
        } = methods;
        let allow: &'static str = match handlers.as_slice() {
            // `HEAD` is not listed, even where it is answered.
            [(Method::Get, _)] => "GET",
            [(Method::Post, _)] => "POST",
            _ => "GET, POST",
        };
        let refusal = refusing(Problem::MethodNotAllowed { allow });
        let route = Route {
            name: path,
            is_closed,
        };
        router = router.route(
            path,
            any(move |request: HttpRequest| {
                let is_head = answers_head && request.method() == axum::http::Method::HEAD;
                let requested = if is_head {
                    "GET"
                } else {
                    request.method().as_str()
                };
                let handler = handlers
                    .iter()
                    .find(|(method, _)| method.as_str() == requested)
                    .map_or(&refusal, |(_, handler)| handler);
                observe::request(route, app.clone(), request, Arc::clone(handler))
            }),
        );
    }
    let app = app.clone();
    let refusal = refusing(Problem::NotFound);
    router.fallback(move |request: HttpRequest| {
        observe::request(NO_ROUTE, app.clone(), request, Arc::clone(&refusal))
    })
}

#[cfg(test)]
mod tests {
    use svc_model::endpoint::Endpoint as _;

    use super::*;

    #[test]
    fn only_evidence_routes_decline_replies_over_their_limit() {
        macro_rules! check_all {
            ($($endpoint:ident)+) => {$(
                if $endpoint::METHOD == Method::Get && $endpoint::STATUSES.contains(&409) {
                    let is_evidence = $endpoint::PATH.starts_with("/query/evidence")
                        || $endpoint::PATH.starts_with("/query/context/evidence");
                    let declines = matches!($endpoint::OVERSIZE, Problem::Declined(_));
                    assert_eq!(declines, is_evidence, "{}", $endpoint::PATH);
                }
            )+};
        }
        svc_model::for_each_endpoint!(check_all);
    }
}
