//! The yardstick: a server on the same stack that reads each body and does nothing with it.

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use tokio::net::TcpListener;

use crate::Failure;

/// Its answer to exports of logs.
const EMPTY: &str = "{}";
/// Its answer to everything else, which is as long as the service's.
const REPLY: &str = "{\"fact_id\":\"00000000-0000-4000-a000-000000000000\",\"stored\":true}";

/// Serves on `SVC_LISTEN` until the process is ended.
pub(crate) fn serve() -> Result<(), Failure> {
    let address = std::env::var("SVC_LISTEN")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let routes = Router::new()
            .route("/v1/logs", post(async |body: Bytes| reply(&body, EMPTY)))
            .fallback(async |body: Bytes| reply(&body, REPLY))
            .layer(DefaultBodyLimit::disable());
        axum::serve(TcpListener::bind(address).await?, routes).await?;
        Ok(())
    })
}

fn reply(body: &Bytes, answer: &'static str) -> impl IntoResponse + use<> {
    std::hint::black_box(body.len());
    ([(CONTENT_TYPE, "application/json")], answer)
}
