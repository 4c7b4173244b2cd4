//! The real server, started as an operator would start it, with its own settings and credentials.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use svc_model::json::Json;
use tempfile::TempDir;

use crate::http::{self, Reply, Request};
use crate::network::Network;
use crate::random::Random;
use crate::schemas;
use crate::small_disk::SmallDisk;
use crate::{postgres, process, programs};
use svc_engine::testing::postgres_with_schema;

/// The organization of every server under test.
pub const ORGANIZATION: &str = "acme";
/// The client that the ingest token belongs to.
pub const INGEST_CLIENT: &str = "alice";
/// The operator's token.
pub const OPERATOR_TOKEN: &str = "0000000000000000000000000000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// The ingest token.
pub const INGEST_TOKEN: &str = "1111111111111111111111111111111bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// The retrieval token, if retrieval is configured.
pub const RETRIEVAL_TOKEN: &str =
    "2222222222222222222222222222222ccccccccccccccccccccccccccccccccc";
/// The secret with which the forge signs its deliveries.
pub const FORGE_SECRET: &str = "3333333333333333333333333333333ddddddddddddddddddddddddddddddddd";
/// A token that was not given to anybody.
pub const UNKNOWN_TOKEN: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(90);
/// How long a server may take to stop after it was asked to, which includes finishing what it
/// accepted.
const STOP_MAX: Duration = Duration::from_secs(25);
/// Ports that the system never uses for outgoing connections. So between choosing a port and
/// starting the server, only another server under test can take it.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Which store a server keeps its facts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A file of its own.
    Sqlite,
    /// A database of its own in the shared cluster.
    Postgres,
}

/// The Sessions that the retrieval token may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// Retrieval is not configured.
    #[default]
    None,
    /// One Session, in the singular setting.
    Single(String),
    /// A set of Sessions, in the plural setting.
    Plural(Vec<String>),
    /// Both settings at once, which a server refuses.
    Both(String, Vec<String>),
}

/// What differs between servers under test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The Sessions that the retrieval token may read.
    pub grant: Grant,
    /// Additional settings by variable name, which replace the usual ones.
    pub variables: BTreeMap<String, String>,
    /// The soft limit on open files that the server is started with. Without it, the limit of the
    /// tests applies.
    pub open_files: Option<u32>,
}

impl Configuration {
    /// Returns a configuration that grants these Sessions.
    pub fn granting(sessions: &[&str]) -> Self {
        let sessions = sessions.iter().map(|&session| session.to_owned()).collect();
        Self {
            grant: Grant::Plural(sessions),
            ..Self::default()
        }
    }

    /// Returns a configuration that grants one Session.
    pub fn granting_one(session: &str) -> Self {
        Self {
            grant: Grant::Single(session.to_owned()),
            ..Self::default()
        }
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let ingest = format!(r#"{{"{INGEST_CLIENT}":"{INGEST_TOKEN}"}}"#);
        let mut variables: BTreeMap<String, String> = [
            ("SVC_ORG_ID", ORGANIZATION),
            ("SVC_OPERATOR_TOKEN", OPERATOR_TOKEN),
            ("SVC_INGEST_TOKENS", &ingest),
            ("SVC_FORGE_WEBHOOK_SECRET", FORGE_SECRET),
            // Tests need not wait for more notes to arrive.
            ("SVC_MIRROR_SETTLE_SECONDS", "0"),
            // No test may reach the outside world.
            ("SVC_ALLOWED_CLONE_HOSTS", r#"["127.0.0.1"]"#),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
        if self.grant != Grant::None {
            set("SVC_RETRIEVAL_TOKEN", RETRIEVAL_TOKEN.to_owned());
        }
        if let Grant::Single(session) | Grant::Both(session, _) = &self.grant {
            set("SVC_RETRIEVAL_SESSION_ID", session.clone());
        }
        if let Grant::Plural(sessions) | Grant::Both(_, sessions) = &self.grant {
            let sessions = sessions
                .iter()
                .map(|session| Json::from(session.as_str()))
                .collect();
            let list = Json::Array(sessions).to_canonical();
            set(
                "SVC_RETRIEVAL_SESSION_IDS",
                String::from_utf8(list).expect("ASCII JSON"),
            );
        }
        variables.extend(self.variables.clone());
        variables
    }
}

/// A store, empty at first, which outlives the servers that use it.
#[derive(Debug)]
pub struct Store {
    url: String,
    scratch: TempDir,
    // Dropped after the servers, which hold the store in an `Arc`.
    database: Option<postgres::Database<'static>>,
    /// The small disk that holds the store, if there is one.
    disk: Option<SmallDisk>,
}

impl Store {
    /// Creates a store to start servers on, or returns `None` if the backend is skipped in this
    /// run.
    pub fn create(backend: Backend) -> Option<Arc<Self>> {
        Some(match backend {
            Backend::Sqlite => Self::of(None),
            Backend::Postgres => Self::of(Some(postgres_with_schema()?)),
        })
    }

    /// Creates a store without a schema, or returns `None` if the backend is skipped in this run.
    pub fn create_empty(backend: Backend) -> Option<Arc<Self>> {
        Some(match backend {
            Backend::Sqlite => Self::of(None),
            Backend::Postgres => Self::of(Some(postgres::shared()?.create_database())),
        })
    }

    fn of(database: Option<postgres::Database<'static>>) -> Arc<Self> {
        let scratch = scratch();
        let url = match &database {
            None => format!("sqlite://{}", scratch.path().join("svc.db").display()),
            Some(database) => database.url(),
        };
        Arc::new(Self {
            url,
            scratch,
            database,
            disk: None,
        })
    }

    /// Returns a store in a database that the test creates and drops.
    pub fn at(url: String) -> Arc<Self> {
        let scratch = scratch();
        Arc::new(Self {
            url,
            scratch,
            database: None,
            disk: None,
        })
    }

    /// Creates a SQLite store on a disk of this many kibibytes. Returns `None`, with a message on
    /// standard error, if this user may not mount one.
    pub fn on_small_disk(kibibytes: u32) -> Option<Arc<Self>> {
        let mut store = Arc::into_inner(Self::create(Backend::Sqlite)?)?;
        let folder = store.scratch.path().join("disk");
        fs::create_dir(&folder).expect("a folder to mount the disk on");
        store.url = format!("sqlite://{}", folder.join("svc.db").display());
        store.disk = Some(SmallDisk::mount(&folder, kibibytes)?);
        Some(Arc::new(store))
    }

    /// Returns the small disk that holds the store.
    pub const fn disk(&self) -> Option<&SmallDisk> {
        self.disk.as_ref()
    }

    /// Returns the command for a program that sees the store's disk.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.disk {
            None => Command::new(program),
            Some(disk) => disk.command(program.as_ref()),
        }
    }

    /// Creates a PostgreSQL store behind a network, or returns `None` if PostgreSQL is skipped in
    /// this run.
    pub fn behind_network() -> Option<(Arc<Self>, Network)> {
        let mut store = Arc::into_inner(Self::create(Backend::Postgres)?)?;
        let (before, rest) = store.url.rsplit_once('@').expect("a user");
        let (address, database) = rest.split_once('/').expect("a database");
        let target = address.to_socket_addrs().ok()?.next()?;
        let network = Network::before(target).expect("a port to listen on");
        store.url = format!("{before}@{}/{database}", network.address());
        Some((Arc::new(store), network))
    }

    /// Returns the store's database, if it is in the PostgreSQL cluster.
    pub const fn database(&self) -> Option<&postgres::Database<'static>> {
        self.database.as_ref()
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A running server. It is killed on drop.
#[derive(Debug)]
pub struct Server {
    store: Arc<Store>,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server on a new store, or returns `None` if the backend is skipped in this run.
    pub fn start(backend: Backend, configuration: &Configuration) -> Option<Self> {
        Store::create(backend).map(|store| Self::start_on(&store, configuration))
    }

    /// Starts a server on a store, which may contain facts and have other servers.
    pub fn start_on(store: &Arc<Store>, configuration: &Configuration) -> Self {
        Self::try_start_on(store, configuration).unwrap_or_else(|log| {
            panic!("the server did not start:\n{log}");
        })
    }

    /// Starts a server on a store.
    ///
    /// # Errors
    ///
    /// The server's log, if it ends or does not become healthy.
    pub fn try_start_on(store: &Arc<Store>, configuration: &Configuration) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("server-")
            .tempdir_in(store.scratch.path());
        let folder = folder.expect("a folder for the server").keep();
        let mut environment = configuration.environment();
        environment.insert("SVC_DATABASE_URL".into(), store.url.clone());
        let mirror = folder.join("mirror");
        fs::create_dir(&mirror).expect("a folder for the mirrors");
        environment
            .entry("SVC_MIRROR_PATH".into())
            .or_insert_with(|| mirror.display().to_string());
        // Servers of one database must not wait for each other's index.
        environment
            .entry("SVC_SEARCH_PATH".into())
            .or_insert_with(|| folder.join("search.db").display().to_string());
        loop {
            let address = free_address();
            environment.insert("SVC_LISTEN".into(), address.to_string());
            let child = spawn(store, &folder, &environment, configuration.open_files);
            let store = Arc::clone(store);
            let folder = folder.clone();
            let mut server = Self {
                store,
                folder,
                environment: environment.clone(),
                address,
                child,
            };
            match server.wait_until_healthy() {
                Ok(()) => return Ok(server),
                // Another server under test took this port first.
                Err(log) if log.to_lowercase().contains("address already in use") => {}
                Err(log) => return Err(log),
            }
        }
    }

    fn wait_until_healthy(&mut self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server can be waited for") {
                return Err(format!("{status}\n{}", self.log()));
            }
            let healthy = http::send(self.address, &Request::get("/health"));
            // Another server may be answering on the port, while this one has just died.
            if healthy.is_ok_and(|reply| reply.status == 200) && self.is_running() {
                return Ok(());
            }
            if start.elapsed() > START_MAX {
                return Err(format!("not healthy after {START_MAX:?}\n{}", self.log()));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the server can be waited for")
            .is_none()
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a setting that it was started with.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// Returns the id of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its store.
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns everything that the server logged.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Returns where it serves its metrics. It answers before it has written that to its log, so
    /// this waits.
    pub fn metrics_address(&self) -> SocketAddr {
        let start = Instant::now();
        loop {
            let log = self.log();
            let address = log.lines().find_map(|line| {
                let (_, address) = line.split_once("metrics.started address=")?;
                address.split(' ').next()?.parse().ok()
            });
            if let Some(address) = address {
                return address;
            }
            assert!(
                start.elapsed() < START_MAX,
                "no address of metrics in\n{log}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a request, and checks the answer against the published schemas.
    pub fn send(&self, request: &Request) -> Reply {
        let reply = self.try_send(request).unwrap_or_else(|error| {
            panic!("{} {}: {error}", request.method, request.path);
        });
        schemas::check(request, &reply).unwrap_or_else(|violation| panic!("{violation}"));
        reply
    }

    /// Reads a path as the operator.
    pub fn read(&self, path: &str) -> Reply {
        self.send(&Request::get(path).bearer(OPERATOR_TOKEN))
    }

    /// Reads a path as the operator and returns the answer, which must be a success.
    pub fn read_json(&self, path: &str) -> Json {
        let reply = self.read(path);
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.text());
        reply.json()
    }

    /// Posts a query as the operator.
    pub fn ask(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        self.send(&Request::post(path, body).bearer(OPERATOR_TOKEN))
    }

    /// Posts a delivery as the ingest client.
    pub fn deliver(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        self.send(&Request::post(path, body).bearer(INGEST_TOKEN))
    }

    /// Sends a request that may find no server.
    ///
    /// # Errors
    ///
    /// If no complete answer comes.
    pub fn try_send(&self, request: &Request) -> std::io::Result<Reply> {
        http::send(self.address, request)
    }

    /// Kills the process without any signal that it could handle, like a power failure.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server can be waited for");
    }

    /// Asks the server to stop and returns how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        let signal = format!("kill -TERM {}", self.child.id());
        let sent = Command::new("sh")
            .args(["-c", &signal])
            .status()
            .expect("sh starts");
        assert!(
            sent.success(),
            "the server had already ended:\n{}",
            self.log()
        );
        process::wait(&mut self.child, STOP_MAX).unwrap_or_else(|| {
            panic!("the server does not stop:\n{}", self.log());
        })
    }

    /// Returns the operator's shell, set up for this server as an operator would do it.
    pub fn shell(&self) -> Command {
        let mut command = self.store.command(programs::path(programs::SHELL));
        isolate(&mut command, &self.folder);
        command
            .envs(&self.environment)
            .env("SVC_URL", self.base_url())
            .env("SVC_TOKEN", OPERATOR_TOKEN)
            .env("PATH", programs::search_path())
            .current_dir(&self.folder);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ignored = self.child.kill();
        let _ignored = self.child.wait();
        if thread::panicking() {
            show(&self.log());
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a failing test must show what its server logged"
)]
fn show(log: &str) {
    let lines: Vec<&str> = log.lines().collect();
    let tail = &lines[lines.len().saturating_sub(40)..];
    eprintln!(
        "the server's last {} lines of log:\n{}",
        tail.len(),
        tail.join("\n")
    );
}

fn spawn(
    store: &Store,
    folder: &Path,
    environment: &BTreeMap<String, String>,
    open_files: Option<u32>,
) -> Child {
    let log = File::create(folder.join("log")).expect("a log");
    let copy = log.try_clone().expect("the log again");
    let mut command = match open_files {
        None => store.command(programs::path(programs::SERVER)),
        Some(open_files) => {
            let mut command = Command::new("sh");
            command
                .args(["-c", r#"ulimit -Sn "$1" && exec "$0""#])
                .arg(programs::path(programs::SERVER))
                .arg(open_files.to_string());
            command
        }
    };
    isolate(&mut command, folder);
    command
        .envs(environment)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(copy)
        .spawn()
        .expect("the server starts")
}

/// Removes the configuration of the person who runs the tests.
fn isolate(command: &mut Command, home: &Path) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SVC_") {
            command.env_remove(name);
        }
    }
    command.env("HOME", home);
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
    ] {
        command.env_remove(name);
    }
}

/// Creates a folder that is removed on drop.
pub(crate) fn scratch() -> TempDir {
    let folder = tempfile::Builder::new().prefix("svc-test-").tempdir();
    folder.expect("a folder")
}

pub(crate) fn free_address() -> SocketAddr {
    let nanoseconds = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |elapsed| elapsed.subsec_nanos());
    let mut random = Random::new(u64::from(std::process::id()) << 32 | u64::from(nanoseconds));
    loop {
        let offset =
            u16::try_from(random.below(PORTS.len())).expect("it is below the range's length");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORTS.start + offset));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
