//! Accepts connections and serves the requests on them, each within its limits.
//!
//! What is written beneath the routes (a request line that cannot be read, a head too large, two
//! `Host` or `Authorization`, a `Transfer-Encoding` other than `chunked`) has the same JSON body as
//! every refusal. A stop closes the listener, ends what is idle or a stranger's, waits for accepted
//! requests, and then drains the writer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use tokio::io::AsyncWrite as _;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service as _;

use crate::limits::Limits;
use crate::log_limit::LogLimit;
use crate::places::{ConnectionPlace, Places, Seat};
use crate::socket::Socket;

/// How often a connection checks its deadline.
const CHECK_EVERY: Duration = Duration::from_millis(250);
/// Bytes that a sender may still send after its answer. A sender that does not read while it sends
/// then gets the answer instead of a connection reset.
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

static ACCEPT_FAILED: LogLimit = LogLimit::new();

/// Accepts connections until the server stops, then waits for the accepted requests.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    // Deadlines are enforced through the places.
    http.header_read_timeout(None)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(2 * limits.head_bytes_max);
    let http = Arc::new(http);
    let places = Places::new(limits);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        while connections.try_join_next().is_some() {}
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Usually there are no free file descriptors. Trying again at once would only waste
                // a processor.
                if let Some(left_out) = ACCEPT_FAILED.due() {
                    tracing::warn!(%error, left_out, "server.accept_failed");
                }
                places.end_lowest();
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "server.nodelay_failed");
        }
        let seat = tokio::select! {
            seat = places.admit() => seat,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        connections.spawn(serve(
            stream,
            seat,
            Arc::clone(&http),
            router.clone(),
            stopped.clone(),
        ));
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    if timeout(places.limits().stop_requests_for, rest)
        .await
        .is_err()
    {
        tracing::warn!(requests = connections.len(), "server.stop_timed_out");
    }
}

/// Serves the requests on a connection, one after another.
async fn serve(
    stream: TcpStream,
    seat: Seat,
    http: Arc<http1::Builder>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let place: &ConnectionPlace = &seat;
    let socket = Socket::new(stream, place.clone());
    let service = Service {
        router,
        place: place.clone(),
    };
    let mut connection = http.serve_connection(socket, service);
    let mut check = std::pin::pin!(sleep_until(Instant::now() + CHECK_EVERY));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            () = place.must_end() => return,
            served = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)) => {
                if let Err(error) = served {
                    tracing::debug!(%error, "connection.ended");
                }
                break;
            }
            () = &mut check => check.as_mut().reset(Instant::now() + CHECK_EVERY),
            _ = stopped.wait_for(|stopped| *stopped), if !stopping => {
                stopping = true;
                place.stop();
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
        if place.cut_at().is_some_and(|cut| cut <= Instant::now()) {
            tracing::debug!("connection.cut");
            return;
        }
    }
    place.lingers();
    if stopping {
        place.stop();
    }
    tokio::select! {
        () = linger(connection.into_parts().io.into_stream()) => {}
        () = place.must_end() => {}
        () = async {
            while let Some(cut) = place.cut_at() && cut > Instant::now() {
                tokio::select! {
                    () = sleep_until(cut) => {}
                    _ = stopped.wait_for(|stopped| *stopped), if !stopping => {
                        stopping = true;
                        place.stop();
                    }
                }
            }
        } => {}
    }
}

/// Closes the sending side, and drops what still arrives. Closing everything at once would reset
/// the connection, and the sender might never see its answer.
async fn linger(mut stream: TcpStream) {
    let ended = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await;
    let mut dropped = 0;
    let mut bytes = vec![0; 8 * 1024];
    while ended.is_ok() && dropped <= LINGER_BYTES_MAX && stream.readable().await.is_ok() {
        match stream.try_read(&mut bytes) {
            Ok(0) => return,
            Ok(read) => dropped += read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// The routes, for the requests of one connection.
struct Service {
    router: Router,
    place: ConnectionPlace,
}

impl hyper::service::Service<hyper::Request<Incoming>> for Service {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        let place = self.place.clone();
        place.request_received();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(place.clone());
        // A router without state is always ready.
        let answered = self.router.clone().call(request);
        Box::pin(async move {
            let response = answered.await?;
            place.reply_begins();
            Ok(response.map(|body| Reply { body, place }))
        })
    }
}

/// The body of an answer. When it is dropped, the place learns that the answer was handed over.
struct Reply {
    body: Body,
    place: ConnectionPlace,
}

impl hyper::body::Body for Reply {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.place.reply_handed_over();
    }
}
