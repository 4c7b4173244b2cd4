//! The server against senders that stall, break off, flood and lie, with limits small enough to be
//! reached.

mod answers;
mod bodies;
mod client;
mod memory;
mod places;
mod stop;

use std::io::BufReader;
use std::net::TcpStream;
use std::time::Instant;

use svc_model::json::Json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use self::client::{Answer, Client};
use super::*;

const OPERATOR: &str = "operator-operator-operator";

const INGEST: &str = "ingest-ingest-ingest-ingest";

const WEBHOOK: &str = "webhook-webhook-webhook-webhook";

/// Longer than anything here may take. What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A time that no test waits for.
const LONG: Duration = Duration::from_mins(10);

const SHORT: Duration = Duration::from_millis(200);

/// Limits under which nothing times out.
fn patient() -> Limits {
    Limits {
        stranger_for: LONG,
        idle_for: LONG,
        stranger_body_for: LONG,
        body_idle_for: LONG,
        body_idle_when_short_for: LONG,
        body_for: LONG,
        memory_for: LONG,
        reply_idle_for: LONG,
        reply_for: LONG,
        ..Limits::service()
    }
}

struct Server {
    runtime: Runtime,
    running: Option<RunningServer>,
    address: SocketAddr,
    _folder: TempDir,
}

impl Server {
    fn start(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("svc.db").display());
        let tokens = format!(r#"{{"alice":"{INGEST}"}}"#);
        let mut settings = Settings::of(&[
            ("SVC_DATABASE_URL", url.as_str()),
            ("SVC_OPERATOR_TOKEN", OPERATOR),
            ("SVC_INGEST_TOKENS", &tokens),
            ("SVC_FORGE_WEBHOOK_SECRET", WEBHOOK),
            ("SVC_ENABLE_DOCS", "true"),
        ])
        .unwrap();
        settings.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let running = runtime
            .block_on(start_within(limits, Clock::system(), settings))
            .unwrap();
        Self {
            address: running.address(),
            running: Some(running),
            runtime,
            _folder: folder,
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    /// Sends a whole request and returns its answer.
    fn answer(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer().expect("an answer")
    }

    /// Opens a connection and sends this, which is not a whole request.
    fn begin(&self, request: impl AsRef<[u8]>) -> Client {
        let mut client = self.connect();
        client.send(request);
        client
    }

    /// Returns the counts of what is stored.
    fn facts(&self) -> String {
        let get = format!("GET /v1/facts HTTP/1.1\r\nauthorization: Bearer {OPERATOR}\r\n\r\n");
        let answer = self.answer(get);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Returns how often requests for a path were answered with a status.
    fn answered(&self, path: &str, status: u16) -> Option<Json> {
        let get = format!("GET /v1/capture HTTP/1.1\r\nauthorization: Bearer {OPERATOR}\r\n\r\n");
        let counts = Json::parse(self.answer(get).body.as_bytes()).unwrap();
        let answers = counts.as_object()?.get("answers")?.as_object()?;
        answers
            .get(path)?
            .as_object()?
            .get(&status.to_string())
            .cloned()
    }

    /// Stops the server and returns how long it took.
    fn stop(&mut self) -> Duration {
        let running = self.running.take().unwrap();
        let started = Instant::now();
        self.runtime.block_on(running.stop());
        started.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.stop();
        }
    }
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
