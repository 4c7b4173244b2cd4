//! The scenarios, and the stage for each: a folder, a database, and a way to start the server on
//! it.

pub(crate) mod disk;
pub(crate) mod grants;
pub(crate) mod growth;
pub(crate) mod investigate;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod notes;
pub(crate) mod reports;
pub(crate) mod retrieval;
pub(crate) mod start;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Launch, Server};
use crate::store::{Cluster, Scratch, Store};
use crate::{Arguments, Backend, Failure};

/// The organization of the server under test.
pub(crate) const ORGANIZATION: &str = "acme";
/// The credentials of the server under test.
pub(crate) const OPERATOR_TOKEN: &str =
    "0000000000000000000000000000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const INGEST_TOKEN: &str =
    "1111111111111111111111111111111bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
pub(crate) const RETRIEVAL_TOKEN: &str =
    "2222222222222222222222222222222ccccccccccccccccccccccccccccccccc";
const WEBHOOK_SECRET: &str = "3333333333333333333333333333333ddddddddddddddddddddddddddddddddd";

/// What all scenarios share.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) arguments: Arguments,
    // Before the folder that contains it, because fields are dropped in order.
    cluster: Option<Cluster>,
    scratch: Scratch,
    stages: Cell<usize>,
}

impl Bench {
    /// Creates the scratch folder, and starts PostgreSQL if it is needed.
    pub(crate) fn new(arguments: Arguments, needs_postgres: bool) -> Result<Self, Failure> {
        let scratch = Scratch::new(arguments.scratch.as_deref(), arguments.keep)?;
        let cluster = if needs_postgres {
            Some(Cluster::start(&scratch.folder("postgres")?)?)
        } else {
            None
        };
        Ok(Self {
            arguments,
            cluster,
            scratch,
            stages: Cell::new(0),
        })
    }

    /// Prints where all this runs.
    pub(crate) fn describe(&self) -> Result<(), Failure> {
        let processors = std::thread::available_parallelism()?;
        println!("# {processors} processors; {}", self.scratch.describe()?);
        println!(
            "# {} connections, {} generator thread(s), {} s a load after {} s of warming up, median of {} repetitions",
            self.arguments.connections,
            self.arguments.generator_threads,
            self.arguments.seconds,
            self.arguments.warm_up,
            self.arguments.repetitions,
        );
        Ok(())
    }

    /// Creates an empty folder.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        self.stages.set(self.stages.get() + 1);
        self.scratch
            .folder(&format!("{name}-{}", self.stages.get()))
    }

    /// Creates a new database and a server's settings for it. If a session is named, it is open to
    /// retrieval.
    pub(crate) fn stage(
        &self,
        name: &str,
        backend: Backend,
        granted: Option<&str>,
    ) -> Result<Stage<'_>, Failure> {
        let folder = self.folder(name)?;
        let mirrors = folder.join("mirrors");
        fs::create_dir(&mirrors)?;
        let store = Store::create(backend, &folder, self.cluster.as_ref())?;
        let mut settings = vec![
            ("SVC_DATABASE_URL", store.url()),
            ("SVC_MIRROR_PATH", mirrors.display().to_string()),
            ("SVC_ORG_ID", ORGANIZATION.to_owned()),
            ("SVC_OPERATOR_TOKEN", OPERATOR_TOKEN.to_owned()),
            (
                "SVC_INGEST_TOKENS",
                format!("{{\"gateway\": \"{INGEST_TOKEN}\"}}"),
            ),
            ("SVC_FORGE_WEBHOOK_SECRET", WEBHOOK_SECRET.to_owned()),
            (
                "SVC_SEARCH_PATH",
                folder.join("search.db").display().to_string(),
            ),
        ];
        if let Some(session) = granted {
            settings.push(("SVC_RETRIEVAL_TOKEN", RETRIEVAL_TOKEN.to_owned()));
            settings.push(("SVC_RETRIEVAL_SESSION_IDS", format!("[\"{session}\"]")));
        }
        let program = match &self.arguments.server {
            Some(program) => program.canonicalize()?,
            None => Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../target/dist/svc-server")
                .canonicalize()
                .unwrap_or_else(|_| "target/dist/svc-server".into()),
        };
        if !program.is_file() {
            return Err(format!(
                "{} is missing: cargo build --profile dist -p svc-cli",
                program.display()
            )
            .into());
        }
        let is_command = program.file_name().is_some_and(|name| name == "svc");
        let launch = Launch {
            arguments: is_command.then(|| "serve".to_owned()).into_iter().collect(),
            program,
            settings,
            folder,
        };
        Ok(Stage {
            store,
            launch,
            keep: self.arguments.keep,
        })
    }
}

/// A database, and how to start a server on it.
#[derive(Debug)]
pub(crate) struct Stage<'bench> {
    pub(crate) store: Store<'bench>,
    pub(crate) launch: Launch,
    keep: bool,
}

impl Stage<'_> {
    pub(crate) fn start(&self) -> Result<Server, Failure> {
        Server::start(&self.launch)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // Databases of earlier stages would fill the disk, and the page cache of the next stage.
        for entry in fs::read_dir(&self.launch.folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
        {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("svc.db") || name.starts_with("search.db") {
                fs::remove_file(entry.path()).ok();
            }
        }
    }
}
