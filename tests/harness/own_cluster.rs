//! A PostgreSQL server for one test, which may fill it, kill it, copy it and promote the copy.
//!
//! The server ends with the test process, however that ends: a shell starts the server, and stops
//! it when the shell's input ends.

use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::postgres::{self, Binaries, Cluster};
use crate::server::{free_address, scratch};
use crate::small_disk::{SmallDisk, command};

/// Starts the server, and stops it immediately when the input ends.
const HOLD: &str = r#""$@" & cat >/dev/null; kill -QUIT "$!" 2>/dev/null; wait"#;
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to check whether something has happened.
const LOOK: Duration = Duration::from_millis(20);

/// A PostgreSQL server that no other test can reach.
#[derive(Debug)]
pub struct OwnCluster {
    binaries: Binaries,
    address: SocketAddr,
    /// `None` while the server is stopped.
    holder: Option<Child>,
    /// The small disk that holds its write-ahead log, if there is one.
    log_disk: Option<SmallDisk>,
    folder: TempDir,
}

impl OwnCluster {
    /// Creates and starts a server, or returns `None` if PostgreSQL is skipped in this run.
    pub fn create() -> Option<Self> {
        let mut cluster = Self::without_data(None)?;
        cluster.initialize(&[]);
        cluster.start();
        Some(cluster)
    }

    /// Creates and starts a server whose write-ahead log is on a disk of this many kibibytes.
    /// Returns `None`, with a message on standard error, if this user may not mount one.
    pub fn on_small_log_disk(kibibytes: u32) -> Option<Self> {
        let mut cluster = Self::without_data(Some(kibibytes))?;
        let log = cluster.log_folder();
        cluster.initialize(&[
            OsStr::new("--wal-segsize=1"),
            OsStr::new("-X"),
            log.as_os_str(),
        ]);
        cluster.start();
        Some(cluster)
    }

    /// Copies the server to a hot standby, which follows it from then on.
    #[must_use]
    pub fn standby(&self) -> Self {
        let mut standby = Self::without_data(None).expect("its primary runs");
        let mut copy = standby.command("pg_basebackup");
        copy.arg("-D").arg(standby.data());
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        run(copy.arg("--dbname").arg(self.url()));
        standby.start();
        standby
    }

    fn without_data(kibibytes: Option<u32>) -> Option<Self> {
        let binaries = postgres::binaries()?;
        let folder = scratch();
        let log = folder.path().join("log");
        fs::create_dir(&log).expect("a folder for its log");
        for folder in [folder.path(), &log] {
            let (user, group) = postgres::owner()?;
            chown(folder, Some(user), Some(group)).expect("to give the folder away");
        }
        let log_disk = match kibibytes {
            Some(kibibytes) => Some(SmallDisk::mount_as(postgres::as_owner(), &log, kibibytes)?),
            None => None,
        };
        Some(Self {
            binaries,
            address: free_address(),
            holder: None,
            log_disk,
            folder,
        })
    }

    fn initialize(&self, options: &[&OsStr]) {
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(self.data()).args(options);
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres"]);
        run(initdb.args(["--encoding=UTF8", "--locale=C"]));
    }

    /// Starts the server, and waits until it answers.
    pub fn start(&mut self) {
        let port = self.address.port();
        let mut command = self.command_of(OsStr::new("sh"));
        command
            .args(["-c", HOLD, "sh"])
            .arg(self.binaries.program("postgres"))
            .arg("-D")
            .arg(self.data());
        for setting in [
            "listen_addresses=127.0.0.1",
            &format!("port={port}"),
            "unix_socket_directories=",
            // The machine survives, whatever happens to the server.
            "fsync=off",
        ] {
            command.args(["-c", setting]);
        }
        let server_log = fs::File::create(self.folder.path().join("said")).expect("a file");
        let copy = server_log.try_clone().expect("the file again");
        let holder = command
            .stdin(Stdio::piped())
            .stdout(server_log)
            .stderr(copy)
            .spawn();
        self.holder = Some(holder.expect("sh starts"));
        self.wait_until("it answers", || {
            self.cluster().try_query("select 1").is_ok()
        });
    }

    /// Stops the server as a crash would.
    pub fn kill(&mut self) {
        let Some(mut holder) = self.holder.take() else {
            return;
        };
        drop(holder.stdin.take());
        holder.wait().expect("the shell can be waited for");
    }

    /// Waits until the server has ended by itself.
    pub fn wait_for_end(&mut self) {
        self.wait_until("it ends", || TcpStream::connect(self.address).is_err());
        self.kill();
    }

    /// Promotes a standby to a primary.
    pub fn promote(&self) {
        assert_eq!(self.query("select pg_promote()"), "t");
    }

    /// Waits until a standby shows everything that its primary has written.
    pub fn catch_up(&self, primary: &Self) {
        let written = primary.query("select pg_current_wal_lsn()");
        let shows = format!("select pg_last_wal_replay_lsn() >= '{written}'");
        self.wait_until("it has caught up", || self.query(&shows) == "t");
    }

    /// Stops a standby from showing anything new.
    pub fn pause_replay(&self) {
        self.query("select pg_wal_replay_pause()");
        let state = "select pg_get_wal_replay_pause_state()";
        self.wait_until("it pauses", || self.query(state) == "paused");
    }

    /// Makes a standby show what it has received meanwhile.
    pub fn resume_replay(&self) {
        self.query("select pg_wal_replay_resume()");
    }

    /// Disconnects a standby from its primary.
    pub fn cut_off(&self) {
        self.query("alter system set primary_conninfo = ''");
        self.query("select pg_reload_conf()");
        let receivers = "select count(*) from pg_stat_wal_receiver";
        self.wait_until("it receives nothing", || self.query(receivers) == "0");
    }

    /// Makes a primary acknowledge only what its standby has too.
    pub fn wait_for_standby(&self) {
        self.query("alter system set synchronous_standby_names = '*'");
        self.query("select pg_reload_conf()");
        let synchronous = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        self.wait_until("the standby is synchronous", || {
            self.query(synchronous) == "1"
        });
    }

    /// Runs one statement and returns what it prints, one row per line.
    pub fn query(&self, statement: &str) -> String {
        let answer = self.cluster().try_query(statement);
        answer.unwrap_or_else(|error| panic!("{statement}: {error}\n{}", self.server_log()))
    }

    /// Returns what the server logged.
    pub fn server_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of its database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address)
    }

    /// Returns the small disk that holds its write-ahead log.
    pub const fn log_disk(&self) -> Option<&SmallDisk> {
        self.log_disk.as_ref()
    }

    fn cluster(&self) -> Cluster {
        Cluster::at(&self.url())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log_folder(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn command(&self, program: &str) -> Command {
        self.command_of(self.binaries.program(program).as_os_str())
    }

    /// Returns a command that runs a program as the server's user and sees the small disk.
    fn command_of(&self, program: &OsStr) -> Command {
        let mut command = match &self.log_disk {
            None => command(&postgres::as_owner(), program),
            // Whoever mounts a disk is root in a namespace, and PostgreSQL refuses to run as root.
            // In a namespace inside that one, it is its own user again.
            Some(disk) => {
                let (user, group) = postgres::owner().expect("the server runs as somebody");
                let mut command = disk.command(OsStr::new("unshare"));
                command
                    .arg("--user")
                    .arg(format!("--map-user={user}"))
                    .arg(format!("--map-group={group}"))
                    .arg(program);
                command
            }
        };
        command.current_dir("/");
        command
    }

    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(
                start.elapsed() < PATIENCE,
                "{what}: no\n{}",
                self.server_log()
            );
            thread::sleep(LOOK);
        }
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
}
