//! Starting, serving and stopping.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::Request as HttpRequest;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use svc_engine::clock::{Clock, Ids};
use svc_engine::engine::Engine;
use svc_engine::mirror::{AllowedHosts, MirrorConfig};
use svc_engine::store::StoreError;
use svc_model::version::SERVICE_VERSION;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::settings::Settings;
use crate::{metrics, observe, routes};

/// How long a sender may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long accepted requests may take to finish once the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store cannot be opened.
    #[error("cannot open the fact store: {}", causes(.0))]
    Store(#[from] StoreError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The runtime cannot be started.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// Writes an error with its causes. No cause holds a value of a setting.
fn causes(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    engine: Engine,
}

impl Running {
    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns where the counts are served for Prometheus.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Stops: accepts nothing more, finishes what was accepted, drains the writer.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for serving in self.serving {
            if serving.await.is_err() {
                tracing::error!("server.panicked");
            }
        }
        let engine = self.engine;
        if tokio::task::spawn_blocking(move || engine.close())
            .await
            .is_err()
        {
            tracing::error!("writer.panicked");
        }
        tracing::info!("server.stopped");
    }
}

/// Starts a server on the current runtime, which must have several threads.
///
/// # Errors
///
/// When the store cannot be opened or the address is taken.
pub async fn start(settings: Settings) -> Result<Running, ServeError> {
    let config = settings.engine.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let clock = Clock::system();
        Engine::open(&config, clock.clone(), Ids::ordered(clock))
    });
    let engine = opened.await.map_err(std::io::Error::other)??;
    let (listener, address) = listen(settings.listen).await?;
    let metrics = match settings.metrics_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let metrics_address = metrics.as_ref().map(|(_, address)| *address);
    let app = App::new(&settings, engine.clone());
    let (stop, stopped) = watch::channel(false);
    let router = routes::router(&app);
    let mut serving = vec![tokio::spawn(accept(listener, router, stopped.clone()))];
    if let Some((listener, address)) = metrics {
        let router = metrics::router(app);
        serving.push(tokio::spawn(accept(listener, router, stopped)));
        tracing::info!(%address, "metrics.started");
    }
    if let Some(mirror) = &settings.engine.mirror {
        say(mirror);
    }
    tracing::info!(
        %address,
        version = SERVICE_VERSION,
        org_id = engine.org_id().as_str(),
        store = settings.engine.store.url.backend(),
        "server.started"
    );
    Ok(Running {
        address,
        metrics_address,
        stop,
        serving,
        engine,
    })
}

/// Says how mirrors are kept, and warns where more is allowed than it seems.
fn say(mirror: &MirrorConfig) {
    let path = mirror.path.display();
    match mirror.remotes.allowed() {
        AllowedHosts::Listed(hosts) => {
            tracing::info!(%path, hosts = hosts.join(","), "mirrors.started");
        }
        AllowedHosts::Public => tracing::warn!(%path, "mirrors.any_public_host"),
        AllowedHosts::Anything => tracing::warn!(%path, "mirrors.unconfined"),
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error| ServeError::Listen(address, error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Accepts connections until it is told to stop, then waits for those that are served.
async fn accept(listener: TcpListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, mostly: trying again at once would only burn a core.
                tracing::warn!(%error, "server.accept_failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "server.nodelay_failed");
        }
        let service = tower_service(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection.ended");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_TIMEOUT, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("server.stop_timed_out");
    }
}

fn tower_service(
    router: Router,
) -> impl hyper::service::Service<
    hyper::Request<hyper::body::Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> {
    TowerToHyperService::new(MapBody(router))
}

/// Gives hyper's body to the router as axum's.
#[derive(Clone)]
struct MapBody(Router);

impl tower_service::Service<hyper::Request<hyper::body::Incoming>> for MapBody {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = <Router as tower_service::Service<HttpRequest>>::Future;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        tower_service::Service::<HttpRequest>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, request: hyper::Request<hyper::body::Incoming>) -> Self::Future {
        self.0.call(request.map(axum::body::Body::new))
    }
}

/// Serves until the process is told to stop (SIGTERM or SIGINT), then stops gracefully. It blocks.
///
/// # Errors
///
/// See [`start`].
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    observe::start(&settings);
    if let Some(file) = &settings.secrets_file {
        tracing::info!(file = %file.display(), "server.secrets_file");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let running = start(settings).await?;
        told_to_stop().await?;
        tracing::info!("server.stopping");
        running.stop().await;
        Ok(())
    })
}

async fn told_to_stop() -> Result<(), std::io::Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
