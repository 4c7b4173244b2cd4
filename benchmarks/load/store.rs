//! The databases that the server is measured on: files in a scratch folder, and a PostgreSQL
//! cluster of this program's own. Both keep what they acknowledge, and nothing here disables a
//! safeguard.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{family_processor_seconds, file_system, free_address, run, signal};
use crate::report::median;
use crate::{Backend, Failure};

/// A folder for everything that a run writes, removed when the run ends.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
    keep: bool,
    file_system: String,
}

impl Scratch {
    /// Creates the folder. Refuses one in memory, where syncing costs nothing.
    pub(crate) fn new(parent: Option<&Path>, keep: bool) -> Result<Self, Failure> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        fs::create_dir_all(&parent)?;
        let file_system = file_system(&parent)?;
        if matches!(file_system.as_str(), "tmpfs" | "ramfs") {
            let parent = parent.display();
            return Err(format!(
                "{parent} is in memory ({file_system}); name a folder on a disk with --scratch"
            )
            .into());
        }
        let folder = parent
            .canonicalize()?
            .join(format!("svc-load-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self {
            folder,
            keep,
            file_system,
        })
    }

    /// Creates a folder inside it.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Describes the disk: its file system, and how long a small write takes to reach it.
    pub(crate) fn describe(&self) -> Result<String, Failure> {
        let path = self.folder.join("probe");
        let mut file = fs::File::create(&path)?;
        file.write_all(&vec![7; 65_536])?;
        file.sync_all()?;
        let mut times = Vec::new();
        for round in 0..50 {
            let begin = Instant::now();
            file.write_all_at(&[round; 4_096], u64::from(round) % 16 * 4_096)?;
            file.sync_data()?;
            times.push(begin.elapsed());
        }
        fs::remove_file(path)?;
        Ok(format!(
            "{} on {}; 4 KiB written and synced in {:.2} ms",
            self.folder.display(),
            self.file_system,
            median(times).as_secs_f64() * 1e3
        ))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("kept {}", self.folder.display());
        } else {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

/// A PostgreSQL cluster with its default settings, which are durable.
#[derive(Debug)]
pub(crate) struct Cluster {
    child: Child,
    postmaster: u32,
    port: u16,
    programs: PathBuf,
}

impl Cluster {
    /// Creates a cluster in a folder, and starts it.
    pub(crate) fn start(folder: &Path) -> Result<Self, Failure> {
        let programs = programs()?;
        let data = folder.join("data");
        let as_root = run(Command::new("id").arg("-u"))? == "0";
        if as_root {
            run(Command::new("chown").arg("postgres").arg(folder))?;
        }
        // The server refuses to run as root.
        let command = |program: &str| {
            let path = programs.join(program);
            if as_root {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(path);
                command
            } else {
                Command::new(path)
            }
        };
        run(command("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"])
            .current_dir(folder))?;
        let port = free_address()?.port();
        let log = fs::File::create(folder.join("postgres.log"))?;
        let child = command("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-k"])
            .arg(folder)
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "fsync=on",
                "-c",
                "synchronous_commit=on",
                "-c",
                "full_page_writes=on",
            ])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut cluster = Self {
            child,
            postmaster: 0,
            port,
            programs,
        };
        let begin = Instant::now();
        while cluster.query("postgres", "select 1").is_err() {
            if begin.elapsed() > Duration::from_secs(30) || cluster.child.try_wait()?.is_some() {
                let log = fs::read_to_string(folder.join("postgres.log")).unwrap_or_default();
                return Err(format!("PostgreSQL does not answer:\n{log}").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        let identity = fs::read_to_string(data.join("postmaster.pid"))?;
        cluster.postmaster = identity
            .lines()
            .next()
            .ok_or("an empty postmaster.pid")?
            .trim()
            .parse()?;
        Ok(cluster)
    }

    fn query(&self, database: &str, statement: &str) -> Result<String, Failure> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            "postgres",
            "-d",
            database,
            "-XAtqc",
            statement,
        ]);
        run(&mut command)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown: it ends the connections and waits for nobody.
        if self.postmaster != 0 {
            signal(self.postmaster, "INT").ok();
        } else {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

/// Returns the folder of PostgreSQL's programs: the one on the path, or else the newest of
/// Debian's.
fn programs() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions
            .filter_map(Result::ok)
            .map(|entry| entry.path().join("bin"))
            .collect();
        versions.sort_by_key(|folder| {
            let version = folder
                .parent()
                .and_then(Path::file_name)
                .and_then(|name| name.to_str());
            std::cmp::Reverse(version.and_then(|name| name.parse::<u32>().ok()))
        });
        folders.extend(versions);
    }
    folders
        .into_iter()
        .find(|folder| {
            ["initdb", "postgres", "psql"]
                .iter()
                .all(|program| folder.join(program).is_file())
        })
        .ok_or_else(|| {
            "PostgreSQL's programs are neither on the path nor in /usr/lib/postgresql".into()
        })
}

/// An empty database for one server.
#[derive(Debug)]
pub(crate) enum Store<'cluster> {
    Sqlite {
        file: PathBuf,
    },
    Postgres {
        cluster: &'cluster Cluster,
        name: String,
    },
}

impl<'cluster> Store<'cluster> {
    /// Creates a database in a folder, or in the cluster under the folder's name.
    pub(crate) fn create(
        backend: Backend,
        folder: &Path,
        cluster: Option<&'cluster Cluster>,
    ) -> Result<Self, Failure> {
        match (backend, cluster) {
            (Backend::Postgres, Some(cluster)) => {
                let name = folder
                    .file_name()
                    .map_or_else(String::new, |name| name.to_string_lossy().replace('-', "_"));
                cluster.query("postgres", &format!("create database {name}"))?;
                Ok(Self::Postgres { cluster, name })
            }
            (Backend::Postgres, None) => Err("no cluster was started".into()),
            (Backend::Sqlite, _) => Ok(Self::Sqlite {
                file: folder.join("svc.db"),
            }),
        }
    }

    /// Returns the URL that the server is given.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite { file } => format!("sqlite://{}", file.display()),
            Self::Postgres { cluster, name } => {
                format!("postgres://postgres@127.0.0.1:{}/{name}", cluster.port)
            }
        }
    }

    /// Returns the processor time of the database's own processes. SQLite works inside the server.
    pub(crate) fn processor_seconds(&self) -> Result<f64, Failure> {
        match self {
            Self::Sqlite { .. } => Ok(0.0),
            Self::Postgres { cluster, .. } => family_processor_seconds(cluster.postmaster),
        }
    }

    /// Returns the bytes on disk. The server must have stopped.
    ///
    /// For SQLite: the file and its write-ahead log, if a clean shutdown left one. For PostgreSQL:
    /// the size of the database after dead rows were removed and pages were written. Its
    /// write-ahead log is recycled and not counted.
    pub(crate) fn bytes(&self) -> Result<u64, Failure> {
        match self {
            Self::Sqlite { file } => {
                let mut log = file.clone().into_os_string();
                log.push("-wal");
                let missing = |error| format!("{} was not written: {error}", file.display());
                Ok(fs::metadata(file).map_err(missing)?.len()
                    + fs::metadata(log).map_or(0, |metadata| metadata.len()))
            }
            Self::Postgres { cluster, name } => {
                cluster.query(name, "vacuum")?;
                cluster.query(name, "checkpoint")?;
                Ok(cluster
                    .query(name, "select pg_database_size(current_database())")?
                    .parse()?)
            }
        }
    }
}

impl Drop for Store<'_> {
    fn drop(&mut self) {
        if let Self::Postgres { cluster, name } = self {
            cluster
                .query(
                    "postgres",
                    &format!("drop database if exists {name} with (force)"),
                )
                .ok();
        }
    }
}
