//! Answers the requests of a route.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request as HttpRequest;
use axum::response::Response;
use svc_model::problem::Problem;

use crate::app::App;
use crate::problem;

/// Answers requests of one route.
pub(crate) type Handler =
    Arc<dyn Fn(App, HttpRequest) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// Returns a handler that always refuses, without looking at the request.
pub(crate) fn refusing(problem: Problem) -> Handler {
    Arc::new(move |_, _| {
        let response = problem::answer(&problem);
        Box::pin(async move { response })
    })
}
