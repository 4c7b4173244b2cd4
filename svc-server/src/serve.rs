//! Starting, serving and stopping.

use std::net::SocketAddr;
use std::time::Duration;

use svc_engine::capture::Redaction;
use svc_engine::clock::{Clock, Ids};
use svc_engine::engine::Engine;
use svc_engine::mirror::{AllowedHosts, MirrorConfig};
use svc_engine::search::SearchPathError;
use svc_engine::store::{MirrorStatus, SchemaState, StoreError};
use svc_model::version::SERVICE_VERSION;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::accept::accept;
use crate::app::App;
use crate::limits::Limits;
use crate::presence::Presence;
use crate::settings::Settings;
use crate::{allocator, metrics, observe, open_files, routes};

/// The number of connections that the system queues until the server accepts them.
const WAITING_CONNECTIONS_MAX: u32 = 1_024;

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store cannot be opened.
    #[error("cannot open the fact store: {}", causes(.0))]
    Store(#[from] StoreError),
    /// The server cannot listen on the address.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The search index cannot be used.
    #[error(transparent)]
    Search(#[from] SearchPathError),
    /// The runtime cannot be started.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}

/// Formats an error with its causes, and how to fix it on a line of its own. No cause contains a
/// setting's value.
fn causes(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let cause_text = error.to_string();
        // The driver of PostgreSQL repeats the cause in its own text.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        cause = error.source();
    }
    if let Some(obstacle) = error.obstacle() {
        text.push('\n');
        text.push_str(obstacle.mend());
    }
    if let StoreError::Schema(SchemaState::Absent | SchemaState::Behind(_)) = error {
        text.push_str("\nrun svc db upgrade, or leave SVC_MIGRATE_ON_START at true");
    }
    if let StoreError::Schema(SchemaState::Ahead(_)) = error {
        text.push_str("\na newer version has upgraded it: start that version");
    }
    text
}

/// A running server.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    engine: Engine,
    /// How long stopping may take.
    stop_for: Duration,
}

impl RunningServer {
    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the Prometheus metrics.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Returns the state of each repository's mirror, or `None` if the store does not answer.
    pub async fn mirrors(&self) -> Option<Vec<MirrorStatus>> {
        self.engine.mirrors().await.ok()
    }

    /// Stops the server: accepts no more requests, finishes the accepted ones, and drains the
    /// writer. This takes at most 25 seconds, even if the store does not answer. Nothing is
    /// acknowledged that is not stored.
    pub async fn stop(self) {
        let end = Instant::now() + self.stop_for;
        self.stop.send_replace(true);
        for serving in self.serving {
            if serving.await.is_err() {
                tracing::error!("server.panicked");
            }
        }
        let engine = self.engine;
        let closed = tokio::task::spawn_blocking(move || engine.close());
        match timeout_at(end, closed).await {
            Ok(Ok(())) => tracing::info!("server.stopped"),
            Ok(Err(_)) => tracing::error!("writer.panicked"),
            Err(_) => tracing::error!("writer.stop_timed_out"),
        }
    }
}

/// Starts a server on the current runtime, which must be multi-threaded.
///
/// # Errors
///
/// If the store cannot be opened or the address is in use.
pub async fn start(settings: Settings) -> Result<RunningServer, ServeError> {
    start_by(Clock::system(), settings).await
}

/// Starts a server as [`start`] does, with another clock.
///
/// # Errors
///
/// See [`start`].
pub async fn start_by(clock: Clock, settings: Settings) -> Result<RunningServer, ServeError> {
    let open_files = open_files::raise();
    let limits = Limits::service().within_open_files(open_files);
    start_within(limits, clock, settings).await
}

async fn start_within(
    limits: Limits,
    clock: Clock,
    settings: Settings,
) -> Result<RunningServer, ServeError> {
    // Before the store is opened, so that an address in use costs nothing and is the only error.
    let socket = bind(settings.listen)?;
    let metrics = settings.metrics_listen.map(bind).transpose()?;
    let mut config = settings.engine.clone();
    config.search = settings.search.place()?;
    let opened = tokio::task::spawn_blocking(move || {
        Engine::open(&config, clock.clone(), Ids::ordered(clock))
    });
    let engine = opened.await.map_err(std::io::Error::other)??;
    let (listener, address) = socket.listen()?;
    let metrics = metrics.map(BoundSocket::listen).transpose()?;
    let metrics_address = metrics.as_ref().map(|(_, address)| *address);
    let app = App::new(&settings, engine.clone());
    let (stop, stopped) = watch::channel(false);
    let router = routes::router(&app);
    let stop_for = limits.stop_for;
    let accepting = accept(listener, router, limits, stopped.clone());
    let mut serving = vec![tokio::spawn(accepting)];
    if let Some((listener, address)) = metrics {
        let router = metrics::router(app);
        let accepting = accept(listener, router, Limits::metrics(), stopped);
        serving.push(tokio::spawn(accepting));
        tracing::info!(%address, "metrics.started");
    }
    if let Some(mirror) = &settings.engine.mirror {
        log_mirrors(mirror);
    }
    tracing::info!(
        %address,
        version = SERVICE_VERSION,
        org_id = engine.org_id().as_str(),
        store = settings.engine.store.url.backend(),
        "server.started"
    );
    Ok(RunningServer {
        address,
        metrics_address,
        stop,
        serving,
        engine,
        stop_for,
    })
}

/// Logs how mirrors are configured, and warns of settings that allow more than they seem to.
fn log_mirrors(mirror: &MirrorConfig) {
    let path = mirror.path.display();
    match mirror.remotes.allowed() {
        AllowedHosts::Listed(hosts) => {
            tracing::info!(%path, hosts = hosts.join(","), "mirrors.started");
        }
        AllowedHosts::Public => tracing::warn!(%path, "mirrors.any_public_host"),
        AllowedHosts::Anything => tracing::warn!(%path, "mirrors.unconfined"),
    }
}

/// A socket that nobody can connect to yet.
struct BoundSocket {
    socket: TcpSocket,
    address: SocketAddr,
}

fn bind(address: SocketAddr) -> Result<BoundSocket, ServeError> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restarted server does not wait for the connections of the previous one.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    match bind() {
        Ok(socket) => Ok(BoundSocket { socket, address }),
        Err(error) => Err(ServeError::Listen(address, error)),
    }
}

impl BoundSocket {
    /// Lets others connect. Also returns the address, because the system may have chosen the port.
    fn listen(self) -> Result<(TcpListener, SocketAddr), ServeError> {
        let Self { socket, address } = self;
        let listen = || {
            let listener = socket.listen(WAITING_CONNECTIONS_MAX)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        listen().map_err(|error| ServeError::Listen(address, error))
    }
}

/// Serves until SIGTERM or SIGINT, then stops gracefully. SIGHUP is ignored and logged: there is
/// nothing to reload, and a closed terminal or a habitual reload must not end a server. Blocks.
///
/// # Errors
///
/// See [`start`].
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    allocator::keep_little();
    observe::start(&settings);
    if let Some(file) = &settings.secrets_file {
        tracing::info!(file = %file.display(), "server.secrets_file");
    }
    if settings.engine.redaction == Redaction::Off {
        tracing::warn!("redaction.off");
    }
    if settings.dev_mode {
        tracing::warn!("server.dev_mode");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let database = settings.engine.store.url.clone();
    let served = runtime.block_on(async {
        // Listened to before anything is accepted, because by default it ends a process at once.
        let hang_up = signal(SignalKind::hangup())?;
        let running = start(settings).await?;
        let presence = Presence::announce(&database, running.address());
        // A server that cannot be found through its store can still be reached by its URL.
        let unfound = |error: &std::io::Error| tracing::debug!(%error, "server.address_file");
        let presence = presence.inspect_err(unfound).ok();
        stop_signal(hang_up).await?;
        tracing::info!("server.stopping");
        if let Some(Err(error)) = presence.map(Presence::withdraw) {
            unfound(&error);
        }
        running.stop().await;
        Ok(())
    });
    // A thread that waits for an unresponsive store must not keep the process alive.
    runtime.shutdown_background();
    served
}

/// Waits for a signal to stop.
async fn stop_signal(mut hang_up: Signal) -> Result<(), std::io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hang_up.recv() => tracing::warn!(
                mend = "settings are read at start: restart the server to change them",
                "server.hangup_ignored"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
