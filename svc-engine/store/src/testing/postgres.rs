//! One real PostgreSQL cluster for a whole test run, started by the first test that needs it.
//!
//! A test runner may run every test in its own process, so a static cannot make it "once". Instead,
//! the processes coordinate through locks on files in a folder under the system's temporary folder.
//! Every process that uses the cluster holds a shared lock on `users` until it ends, however it
//! ends. A small shell, the guardian, waits until it can lock `users` exclusively, and then stops
//! the cluster and removes it. So even a killed run leaves nothing behind, and no test cleans up.
//!
//! `SVC_TEST_POSTGRES` says what to do: `auto` (the default: start a cluster, or print one line
//! that the programs are missing, and skip), `required` (fail instead of skipping), `off`, or the
//! URL of a running server, as a user who may create databases.
//!
//! The module needs only the standard library, so it can move wherever it is needed.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that says which PostgreSQL the tests use.
pub const VARIABLE: &str = "SVC_TEST_POSTGRES";

/// How many seconds an unused cluster is kept, so that the next test finds it.
const IDLE_SECONDS: &str = "10";

/// The guardian. `$1` is the lock, `$2` the time to wait, `$3` the folder, and the rest stops the
/// server.
const GUARDIAN: &str = r#"
lock=$1 idle=$2 folder=$3
shift 3
while :; do
  flock --exclusive "$lock" true
  sleep "$idle"
  flock --exclusive --nonblock "$lock" sh -c 'folder=$1; shift; "$@"; rm -rf "$folder"; true' sh "$folder" "$@" && exit 0
done
"#;

/// Whether the cluster waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It does not. This is right for every test that the machine itself survives.
    Relaxed,
    /// It does, as an operator's cluster would. This is right for measurements.
    Full,
}

/// A PostgreSQL server in which databases can be created.
#[derive(Debug)]
pub struct Cluster {
    /// The URL up to the database name, including the slash.
    prefix: String,
    /// What follows the database name in the URL.
    suffix: String,
    /// The database to connect to in order to create others.
    administration: String,
    psql: PathBuf,
    /// Held so that the guardian sees that this process uses the cluster.
    _in_use: Option<File>,
}

/// A database of its own, dropped when this is.
#[derive(Debug)]
pub struct Database<'a> {
    cluster: &'a Cluster,
    name: String,
}

/// Returns the cluster of this run, or `None` if there is none. The reason is then printed once.
pub fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED
        .get_or_init(|| {
            let wanted = std::env::var(VARIABLE).unwrap_or_default();
            match wanted.as_str() {
                "off" | "" | "auto" | "required" => {
                    binaries().map(|binaries| bring_up(&binaries, Durability::Relaxed))
                }
                url => Some(Cluster::at(url)),
            }
        })
        .as_ref()
}

/// Returns the server's programs, for tests with servers of their own. `None` if they are skipped
/// in this run; the reason is then printed.
pub fn binaries() -> Option<Binaries> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    match (wanted.as_str(), Binaries::find()) {
        ("off", _) => skip("switched off"),
        ("required", Err(missing)) => panic!("{missing}"),
        (_, Err(missing)) => skip(&missing),
        (_, Ok(binaries)) => Some(binaries),
    }
}

fn skip<T>(reason: &str) -> Option<T> {
    // Written directly to standard error, past the test runner, which hides what a passing test
    // prints.
    let line = format!("PostgreSQL is skipped: {reason} ({VARIABLE}=auto|required|off|URL)\n");
    let _ignored = std::io::stderr().write_all(line.as_bytes());
    None
}

/// Starts the cluster of this run, or finds it running.
pub fn bring_up(binaries: &Binaries, durability: Durability) -> Cluster {
    let place = Place::new(durability);
    // Blocks while the guardian is stopping an unused cluster.
    let in_use = place.file("users");
    in_use.lock_shared().expect("the lock of the users");
    let starting = place.file("starting");
    starting.lock().expect("the lock of the starters");
    let port = place
        .running()
        .unwrap_or_else(|| place.start(binaries, durability));
    drop(starting);
    Cluster {
        prefix: format!("postgres://postgres@127.0.0.1:{port}/"),
        suffix: String::new(),
        administration: "postgres".into(),
        psql: binaries.program("psql"),
        _in_use: Some(in_use),
    }
}

impl Cluster {
    /// Returns a handle to the running server at this URL.
    pub fn at(url: &str) -> Self {
        let (address, suffix) = url.split_at(url.find('?').unwrap_or(url.len()));
        let authority = address.find("://").map_or(0, |scheme| scheme + 3);
        let (prefix, administration) = match address[authority..].find('/') {
            Some(slash) => address.split_at(authority + slash + 1),
            None => (address, ""),
        };
        let administration = if administration.is_empty() {
            "postgres"
        } else {
            administration
        };
        Self {
            prefix: format!("{}/", prefix.trim_end_matches('/')),
            suffix: suffix.to_owned(),
            administration: administration.to_owned(),
            psql: Binaries::find().map_or_else(|_| "psql".into(), |found| found.program("psql")),
            _in_use: None,
        }
    }

    /// Creates an empty database.
    pub fn create_database(&self) -> Database<'_> {
        let database = self.new_database();
        self.create(&database.name, "template1")
            .unwrap_or_else(|error| panic!("{}: {error}", database.name));
        database
    }

    /// Creates a database with what `fill` puts into an empty one, given its URL. This is done once
    /// for each `content`, and then copied, which takes a third of the time.
    pub fn create_filled_database(&self, content: u64, fill: impl FnOnce(&str)) -> Database<'_> {
        let template = format!("svc_template_{content:016x}");
        let database = self.new_database();
        if self.create(&database.name, &template).is_err() {
            self.fill_template(&template, fill);
            self.create(&database.name, &template)
                .unwrap_or_else(|error| panic!("{template}: {error}"));
        }
        database
    }

    fn new_database(&self) -> Database<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Database {
            cluster: self,
            name: format!("svc_test_{}_{count}", std::process::id()),
        }
    }

    fn create(&self, name: &str, template: &str) -> Result<String, String> {
        // An earlier process with the same id may have been killed before it cleaned up.
        let replace = [
            format!("drop database if exists {name} with (force)"),
            format!("create database {name} template {template}"),
        ];
        self.try_run(&self.administration, &replace)
    }

    /// Creates a database to copy, unless another process has just created it.
    fn fill_template(&self, template: &str, fill: impl FnOnce(&str)) {
        let filling = Place::new(Durability::Relaxed).file("filling");
        filling.lock().expect("the lock of the template");
        let exists = format!("select count(*) from pg_database where datname = '{template}'");
        if self.run(&self.administration, &exists) != "0" {
            return;
        }
        let new = Database {
            cluster: self,
            name: format!("{template}_new"),
        };
        self.create(&new.name, "template1")
            .unwrap_or_else(|error| panic!("{template}: {error}"));
        fill(&new.url());
        // A database that is connected to can be neither renamed nor copied.
        new.refuse_connections();
        self.execute(&format!("alter database {} rename to {template}", new.name));
    }

    /// Runs one statement in the administration database.
    pub fn execute(&self, statement: &str) {
        self.run(&self.administration, statement);
    }

    /// Runs one statement in the database for administration and returns what it prints, one row
    /// per line.
    ///
    /// # Errors
    ///
    /// The server's error message, or that there is no server.
    pub fn try_query(&self, statement: &str) -> Result<String, String> {
        self.try_run(&self.administration, &[statement])
    }

    fn run(&self, database: &str, statement: &str) -> String {
        self.try_run(database, &[statement])
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Runs statements, each in a transaction of its own.
    fn try_run(&self, database: &str, statements: &[impl AsRef<str>]) -> Result<String, String> {
        let url = self.url(database);
        let mut psql = Command::new(&self.psql);
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args([
                "-v",
                "ON_ERROR_STOP=1",
                "-v",
                "VERBOSITY=terse",
                "--dbname",
                &url,
            ])
            .env("PGOPTIONS", "--client-min-messages=warning");
        for statement in statements {
            psql.args(["--command", statement.as_ref()]);
        }
        run(&mut psql)
    }

    fn url(&self, database: &str) -> String {
        format!("{}{database}{}", self.prefix, self.suffix)
    }
}

impl Database<'_> {
    /// Returns the URL for connecting to the database.
    pub fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// Creates a role that may read and change every row of the database's tables and owns none of
    /// them, and returns the URL for connecting as this role. The database must have its tables.
    pub fn url_of_role_that_owns_nothing(&self) -> String {
        let role = format!("{}_rows", self.name);
        // Privileges on a database that is gone are gone, too.
        self.cluster
            .execute(&format!("drop role if exists {role}; create role {role}"));
        self.query(&format!(
            "grant select, insert, update, delete on all tables in schema public to {role};
             grant usage, select, update on all sequences in schema public to {role}"
        ));
        let url = self.url();
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}options[role]={role}")
    }

    /// Creates the database anew, in this encoding.
    pub fn create_again_in(&self, encoding: &str) {
        let name = &self.name;
        self.cluster
            .execute(&format!("drop database {name} with (force)"));
        self.cluster.execute(&format!(
            "create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C'
             template template0"
        ));
    }

    /// Ends all connections to the database and accepts no new ones, as in an outage.
    pub fn refuse_connections(&self) {
        let name = &self.name;
        self.cluster
            .execute(&format!("alter database {name} allow_connections false"));
        self.cluster.execute(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        ));
    }

    /// Ends the outage.
    pub fn accept_connections(&self) {
        let name = &self.name;
        self.cluster
            .execute(&format!("alter database {name} allow_connections true"));
    }

    /// Copies the database as it is now. Ends all connections to it.
    pub fn back_up(&self) {
        let name = &self.name;
        self.refuse_connections();
        self.cluster
            .execute(&format!("create database {name}_copy template {name}"));
        self.accept_connections();
    }

    /// Resets the database to the copy, as a lagging standby or a backup would. Ends all
    /// connections to it.
    pub fn restore(&self) {
        let name = &self.name;
        self.refuse_connections();
        self.cluster
            .execute(&format!("drop database {name} with (force)"));
        self.cluster
            .execute(&format!("alter database {name}_copy rename to {name}"));
    }

    /// Runs one statement in the database and returns what it prints, one row per line.
    pub fn query(&self, statement: &str) -> String {
        self.cluster.run(&self.name, statement)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let name = &self.name;
            let drop = [
                format!("drop database if exists {name} with (force)"),
                format!("drop role if exists {name}_rows"),
            ];
            let administration = &self.cluster.administration;
            self.cluster
                .try_run(administration, &drop)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// The folder of the server's programs.
#[derive(Clone, Debug)]
pub struct Binaries(PathBuf);

impl Binaries {
    /// Looks in the search path, and where Debian and Fedora put them, newest version first.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn find() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        for (parent, inside) in [("/usr/lib/postgresql", "bin"), ("/usr", "bin")] {
            let versions = fs::read_dir(parent).into_iter().flatten().flatten();
            let mut versions: Vec<PathBuf> = versions
                .map(|entry| entry.path())
                .filter(|path| parent != "/usr" || path.to_string_lossy().contains("pgsql-"))
                .collect();
            versions.sort_by_key(|path| {
                let digits = path.to_string_lossy();
                let digits = digits
                    .rsplit(|c: char| !c.is_ascii_digit())
                    .next()
                    .unwrap_or_default();
                std::cmp::Reverse(digits.parse::<u32>().unwrap_or(0))
            });
            folders.extend(versions.into_iter().map(|version| version.join(inside)));
        }
        let found = folders.iter().find(|folder| {
            ["initdb", "pg_ctl", "psql"]
                .iter()
                .all(|program| folder.join(program).exists())
        });
        let Some(folder) = found else {
            return Err("initdb, pg_ctl and psql are not installed".into());
        };
        if !std::env::split_paths(&path).any(|folder| folder.join("flock").exists()) {
            return Err("flock, which the tests share the server by, is not installed".into());
        }
        if is_root() && user_id("postgres").is_none() {
            return Err("the server does not run as root, and there is no user postgres".into());
        }
        Ok(Self(folder.clone()))
    }

    /// Returns the path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the command line for one of the server's programs, which refuse to run as root.
    fn server_program(&self, name: &str) -> Vec<OsString> {
        let mut line = as_owner();
        line.push(self.program(name).into_os_string());
        line
    }
}

/// Returns the beginning of a command line that runs a program as the server's user.
pub fn as_owner() -> Vec<OsString> {
    let words: &[&str] = if is_root() {
        &["runuser", "-u", "postgres", "--"]
    } else {
        &[]
    };
    words.iter().map(OsString::from).collect()
}

/// Returns the ids of the server's user and group.
pub fn owner() -> Option<(u32, u32)> {
    if is_root() {
        user_id("postgres")
    } else {
        let own = fs::metadata("/proc/self").ok()?;
        Some((own.uid(), own.gid()))
    }
}

/// Where the cluster of one user and one workspace is kept.
struct Place {
    folder: PathBuf,
    locks: PathBuf,
}

impl Place {
    fn new(durability: Durability) -> Self {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_MANIFEST_DIR"), current_user_id()).hash(&mut hasher);
        let kind = match durability {
            Durability::Relaxed => "relaxed",
            Durability::Full => "full",
        };
        let name = format!("svc-test-postgres-{kind}-{:016x}", hasher.finish());
        let folder = std::env::temp_dir().join(&name);
        let place = Self {
            locks: folder.with_extension("locks"),
            folder,
        };
        fs::create_dir_all(&place.locks).expect("a folder for the locks");
        place
    }

    fn file(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        options.open(self.locks.join(name)).expect("a file to lock")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns the port of the cluster, if it is running.
    fn running(&self) -> Option<u16> {
        let port = fs::read_to_string(self.folder.join("port"))
            .ok()?
            .parse()
            .ok()?;
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some(port)
    }

    fn start(&self, binaries: &Binaries, durability: Durability) -> u16 {
        // Left behind when the machine was interrupted.
        let _ignored = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("a folder for the cluster");
        if let Some((user, group)) = is_root().then(|| user_id("postgres")).flatten() {
            chown(&self.folder, Some(user), Some(group)).expect("to give the folder away");
        }
        self.initialize(binaries);
        let port = free_port();
        // Statistics that are gathered during a test would change the plans that it checks.
        let upkeep = match durability {
            Durability::Relaxed => "-c fsync=off -c full_page_writes=off -c autovacuum=off",
            Durability::Full => "-c fsync=on -c synchronous_commit=on",
        };
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' \
             -c max_connections=300 {upkeep}"
        );
        self.server(binaries, "pg_ctl", &["start", "-w", "-t", "60", "-s", "-l"])
            .arg(self.folder.join("log"))
            .arg("-o")
            .arg(options)
            .run();
        self.guard(binaries);
        fs::write(self.folder.join("port"), port.to_string()).expect("to write the port down");
        port
    }

    /// Creates the cluster with a linguistic default collation, where the server has one. A
    /// statement that forgets to order by bytes is then found; the C collation would hide it.
    fn initialize(&self, binaries: &Binaries) {
        let arguments = [
            "--no-sync",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
        ];
        let linguistic = ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"];
        let plain = ["--locale=C"];
        let attempt = |order: &[&str]| {
            self.server(binaries, "initdb", &arguments)
                .args(order)
                .try_run()
        };
        if attempt(&linguistic).is_err() {
            let _ignored = fs::remove_dir_all(self.data());
            attempt(&plain).unwrap_or_else(|error| panic!("initdb: {error}"));
        }
    }

    /// Starts the guardian, detached from the test that happens to run first.
    fn guard(&self, binaries: &Binaries) {
        let mut guardian = Command::new("sh");
        guardian
            .args(["-c", GUARDIAN, "svc-test-postgres"])
            .arg(self.locks.join("users"))
            .arg(IDLE_SECONDS)
            .arg(&self.folder)
            .args(binaries.server_program("pg_ctl"))
            .args(["stop", "-s", "-m", "immediate", "-D"])
            .arg(self.data())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        drop(guardian.spawn().expect("the guardian starts"));
    }

    fn server(&self, binaries: &Binaries, name: &str, arguments: &[&str]) -> ServerCommand {
        let line = binaries.server_program(name);
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .arg("-D")
            .arg(self.data())
            .args(arguments)
            .current_dir("/");
        // The server outlives this process and must not hold any of its streams.
        command.stdin(Stdio::null());
        ServerCommand {
            command,
            log: self.folder.join("log"),
        }
    }
}

/// A command whose failure shows the server's log.
struct ServerCommand {
    command: Command,
    log: PathBuf,
}

impl ServerCommand {
    fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    fn try_run(mut self) -> Result<(), String> {
        // Files rather than pipes, because a server that inherits a pipe would keep its reader
        // waiting.
        let output = self.log.with_extension("output");
        let file = File::create(&output).map_err(|error| error.to_string())?;
        let copy = file.try_clone().map_err(|error| error.to_string())?;
        let status = self.command.stdout(file).stderr(copy).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{status}: {}{}", text(&output), text(&self.log))),
            Err(error) => Err(format!("{}: {error}", self.command.get_program().display())),
        }
    }

    fn run(self) {
        self.try_run()
            .unwrap_or_else(|error| panic!("the PostgreSQL server does not start: {error}"));
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned())
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn current_user_id() -> u32 {
    fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid())
}

fn is_root() -> bool {
    current_user_id() == 0
}

/// Returns the ids of a user and its group.
fn user_id(name: &str) -> Option<(u32, u32)> {
    let number = |option| {
        run(Command::new("id").args([option, name]))
            .ok()?
            .parse()
            .ok()
    };
    Some((number("-u")?, number("-g")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced_and_the_rest_kept() {
        for (given, wanted, administration) in [
            (
                "postgres://u:p@h:5/main?sslmode=disable",
                "postgres://u:p@h:5/x?sslmode=disable",
                "main",
            ),
            ("postgresql://h", "postgresql://h/x", "postgres"),
            ("postgres://h/", "postgres://h/x", "postgres"),
        ] {
            let cluster = Cluster::at(given);
            assert_eq!(cluster.url("x"), wanted);
            assert_eq!(cluster.administration, administration);
        }
    }

    #[test]
    fn databases_are_separate_and_gone_afterwards() {
        let Some(cluster) = shared() else { return };
        let (first, second) = (cluster.create_database(), cluster.create_database());
        first.query("create table only_here (n bigint)");
        let count = "select count(*) from pg_class where relname = 'only_here'";
        assert_eq!(
            (first.query(count), second.query(count)),
            ("1".to_owned(), "0".to_owned())
        );
        let name = first.name.clone();
        drop(first);
        let left = format!("select count(*) from pg_database where datname = '{name}'");
        assert_eq!(second.query(&left), "0");
    }

    #[test]
    fn a_second_bring_up_finds_the_running_cluster() {
        let Ok(binaries) = Binaries::find() else {
            return;
        };
        if std::env::var(VARIABLE).is_ok_and(|wanted| wanted != "auto" && wanted != "required") {
            return;
        }
        let first = bring_up(&binaries, Durability::Relaxed);
        let second = bring_up(&binaries, Durability::Relaxed);
        assert_eq!(first.prefix, second.prefix);
    }
}
