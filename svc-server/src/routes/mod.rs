//! The routes: each endpoint is bound to the one engine call that answers it.

mod capture;
mod context;
mod docs;
mod evidence;
mod facts;
mod forge;
mod identity;
mod ingest;
mod logs;
mod query;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::any;
use svc_model::endpoint::{
    Capture, CiFailuresQuery, CiOutcomeQuery, CommitQuery, Compatibility, ContextRetrieval,
    Discovery, Endpoint, EvidenceInventory, EvidenceManifest, EvidenceReading, Facts,
    GrantInventory, GrantManifest, GrantRead, HealthProbe, IngestCi, IngestForge, IngestForgeCi,
    IngestForgePullRequest, IngestForgePush, IngestForgeRepository, IngestGateway,
    IngestGatewayBatch, Logs, Me, Method, Selected, SessionCalls, SessionFacts, SessionQuery,
};
use svc_model::problem::Problem;

use crate::app::App;
use crate::dispatch::bind;
use crate::handler::{Handler, refusing};
use crate::observe;

/// What requests of unknown paths are counted as.
const NO_ROUTE: &str = "none";

#[derive(Default)]
struct Routes(BTreeMap<&'static str, Vec<(Method, Handler)>>);

impl Routes {
    fn add<E: Endpoint>(&mut self, handler: Handler) {
        self.insert(E::PATH, E::METHOD, handler);
    }

    fn insert(&mut self, path: &'static str, method: Method, handler: Handler) {
        self.0.entry(path).or_default().push((method, handler));
    }
}

/// Returns the router of the whole service.
pub(crate) fn router(app: &App) -> Router {
    let mut routes = Routes::default();
    routes.add::<HealthProbe>(bind::<HealthProbe, _, _>(identity::health));
    routes.add::<Me>(bind::<Me, _, _>(identity::me));
    routes.add::<IngestGateway>(bind::<IngestGateway, _, _>(ingest::gateway));
    routes.add::<IngestGatewayBatch>(bind::<IngestGatewayBatch, _, _>(ingest::gateway_batch));
    routes.add::<IngestCi>(bind::<IngestCi, _, _>(ingest::ci));
    routes.add::<Logs>(logs::handler());
    routes.add::<Capture>(bind::<Capture, _, _>(capture::counts));
    routes.add::<IngestForge>(bind::<IngestForge, _, _>(forge::any));
    routes.add::<IngestForgePush>(bind::<IngestForgePush, _, _>(forge::push));
    routes.add::<IngestForgeRepository>(bind::<IngestForgeRepository, _, _>(forge::repository));
    routes.add::<IngestForgeCi>(bind::<IngestForgeCi, _, _>(forge::ci));
    routes.add::<IngestForgePullRequest>(bind::<IngestForgePullRequest, _, _>(forge::pull_request));
    routes.add::<Facts>(bind::<Facts, _, _>(facts::facts));
    routes.add::<SessionFacts>(bind::<SessionFacts, _, _>(facts::session));
    routes.add::<SessionCalls>(bind::<SessionCalls, _, _>(facts::calls));
    routes.add::<Compatibility>(bind::<Compatibility, _, _>(facts::compatibility));
    routes.add::<EvidenceInventory>(bind::<EvidenceInventory, _, _>(evidence::inventory));
    routes.add::<EvidenceManifest>(bind::<EvidenceManifest, _, _>(evidence::manifest));
    routes.add::<EvidenceReading>(bind::<EvidenceReading, _, _>(evidence::read));
    routes.add::<CiOutcomeQuery>(bind::<CiOutcomeQuery, _, _>(query::ci_outcome));
    routes.add::<CiFailuresQuery>(bind::<CiFailuresQuery, _, _>(query::ci_failures));
    routes.add::<SessionQuery>(bind::<SessionQuery, _, _>(query::session));
    routes.add::<CommitQuery>(bind::<CommitQuery, _, _>(query::commit));
    routes.add::<ContextRetrieval>(bind::<ContextRetrieval, _, _>(context::retrieve));
    routes.add::<Discovery>(bind::<Discovery, _, _>(context::discover));
    routes.add::<Selected>(bind::<Selected, _, _>(context::selected));
    routes.add::<GrantInventory>(bind::<GrantInventory, _, _>(context::inventory));
    routes.add::<GrantManifest>(bind::<GrantManifest, _, _>(context::manifest));
    routes.add::<GrantRead>(bind::<GrantRead, _, _>(context::read));

    if app.docs {
        docs::add(&mut routes);
    }

    let mut router = Router::new();
    for (path, methods) in routes.0 {
        let app = app.clone();
        let allow: &'static str = match methods.as_slice() {
            [(Method::Get, _)] => "GET, HEAD",
            [(Method::Post, _)] => "POST",
            _ => "GET, HEAD, POST",
        };
        let refusal = refusing(Problem::MethodNotAllowed { allow });
        router = router.route(
            path,
            any(move |request: HttpRequest| {
                let handler = methods
                    .iter()
                    .find(|(method, _)| answers(*method, request.method()))
                    .map_or(&refusal, |(_, handler)| handler);
                observe::request(path, app.clone(), request, Arc::clone(handler))
            }),
        );
    }
    let app = app.clone();
    let refusal = refusing(Problem::NotFound);
    router.fallback(move |request: HttpRequest| {
        observe::request(NO_ROUTE, app.clone(), request, Arc::clone(&refusal))
    })
}

/// Returns whether a route of this method answers a request of that one: `HEAD` is `GET` without the
/// body, which is left out where the answer is written.
fn answers(method: Method, requested: &axum::http::Method) -> bool {
    method.as_str() == requested.as_str()
        || (method == Method::Get && requested == axum::http::Method::HEAD)
}
