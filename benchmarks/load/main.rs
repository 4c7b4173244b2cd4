//! What the service does in a second, on one machine: the figures that its documentation promises.
//!
//! ```sh
//! cargo build --profile dist -p svc-cli
//! cd benchmarks && cargo run --release --bin load -- all --backend both
//! ```
//!
//! Starts the packaged build of `svc-server` as a process of its own, on a database on a disk, plays
//! HTTP to it from here and prints one line for each figure, with its goal where it has one.
//! Server, database and generator share the machine's processors, so the `baseline` scenario shows
//! what is left when a server does nothing: the same requests against a handler that only reads
//! them.
//!
//! | Module | Holds |
//! |---|---|
//! | [`scenario`] | what is measured, one module for each kind |
//! | [`search`] | how well and how fast the search finds |
//! | [`generator`], [`http`] | the load itself |
//! | [`population`], [`cohort`], [`sink`] | an organization of half a year, and a month of work with its repositories, written through the store |
//! | [`payload`], [`session`], [`export`], [`conversation`], [`text`], [`template`] | believable request bodies, built before the clock starts |
//! | [`process`], [`store`], [`empty_server`] | the processes and databases under test |
//! | [`report`] | the table |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "measured and counted values are far from where a conversion would change them noticeably"
)]

mod cohort;
mod conversation;
mod empty_server;
mod export;
mod generator;
mod http;
mod payload;
mod population;
mod process;
mod report;
mod scenario;
mod search;
mod session;
mod sink;
mod store;
mod template;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use crate::report::Report;
use crate::scenario::Bench;
use crate::search::SearchArguments;

/// Whatever ends the program. A person reads it.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Everything below but grants, reports, growth and the search.
    All,
    /// The generator against a handler that only reads the bodies.
    Baseline,
    /// Gateway calls of 5 KiB, each of another session.
    GatewaySmall,
    /// Gateway calls of sessions of 40 turns that send their history again with every turn.
    GatewaySessions,
    /// CI results, each of another run.
    Ci,
    /// Exports of ten log records of Claude Code: five decisions and the results that complete
    /// them.
    Logs,
    /// Selected, discover and the evidence routes over one large session.
    Retrieval,
    /// The same reads and the same ingest with stored grants and without. Not part of all.
    Grants,
    /// Runs, failures, Sessions and commits of an organization with a million CI outcomes.
    Investigate,
    /// From a push to the Sessions that 5,000 commit notes name.
    Notes,
    /// Both reports over as much as one takes, and what they cost everybody else. Not part of all.
    Reports,
    /// The overview and the spend report over as much as one takes. Not part of all.
    FirstPage,
    /// Bytes on disk for the bytes sent: small calls, a session of Claude Code, one of 200 turns.
    Disk,
    /// Rate, latency and bytes on disk while a store grows to millions of calls: in sessions of
    /// twenty calls, and each of another session. Not part of all.
    Growth,
    /// Resident memory at rest and after load.
    Memory,
    /// From starting the process to its first good health.
    Start,
    /// How often the search finds the Session that a question is about. Not part of all.
    SearchQuality,
    /// How often the search finds what was said just before a text. Not part of all.
    SearchAdjacency,
    /// Rate, size, memory and latency of the search while its index grows. Not part of all.
    SearchSpeed,
    /// Writes our own Sessions and questions to two files. Not part of all.
    SearchSet,
    /// The server of the baseline.
    #[value(hide = true)]
    EmptyServer,
}

/// Where the server keeps its facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// Returns the value that belongs to this backend.
    pub(crate) fn choose<T>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backends {
    Sqlite,
    Postgres,
    Both,
}

/// Measures the service under load.
#[derive(Clone, Debug, Parser)]
#[command(name = "load")]
pub(crate) struct Arguments {
    /// What to measure.
    scenario: Scenario,
    /// The database to measure on; PostgreSQL is started here, from its installed programs.
    #[arg(long, value_enum, default_value_t = Backends::Sqlite)]
    backend: Backends,
    /// Seconds that a load is measured for.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// Seconds of load before measuring begins.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) warm_up: f64,
    /// Connections that send at the same time.
    #[arg(long, default_value_t = 32)]
    pub(crate) connections: usize,
    /// How often a load is repeated, each time on a new database; the run of median rate is
    /// reported.
    #[arg(long, default_value_t = 3)]
    pub(crate) repetitions: usize,
    /// Threads of the generator.
    #[arg(long, default_value_t = 1)]
    pub(crate) generator_threads: usize,
    /// The share of the whole organization that is investigated.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) population: f64,
    /// Calls that a growing store ends with; it is measured empty, at a fifth, at two fifths and at
    /// the end.
    #[arg(long, default_value_t = 5_000_000)]
    pub(crate) calls: u64,
    /// The server's program: svc-server, or svc [default: target/dist/svc-server of the workspace].
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
    /// A folder on a disk for databases and logs [default: the system's temporary folder].
    #[arg(long)]
    pub(crate) scratch: Option<PathBuf>,
    /// Keep the scratch folder.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Exit with 1 when a figure misses its goal.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    pub(crate) search: SearchArguments,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match measure(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            println!("{missed} figures missed their goals");
            if arguments.check {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Runs what was asked for and returns how many figures missed their goals.
fn measure(arguments: &Arguments) -> Result<usize, Failure> {
    let scenario = arguments.scenario;
    if scenario == Scenario::EmptyServer {
        return empty_server::serve().map(|()| 0);
    }
    if scenario == Scenario::SearchSet {
        return search::write_set(&arguments.search).map(|()| 0);
    }
    let backends: &[Backend] = match arguments.backend {
        Backends::Sqlite => &[Backend::Sqlite],
        Backends::Postgres => &[Backend::Postgres],
        Backends::Both => &[Backend::Sqlite, Backend::Postgres],
    };
    let wanted = |one: Scenario| scenario == one || scenario == Scenario::All;
    let needs_postgres = scenario != Scenario::Baseline && backends.contains(&Backend::Postgres);
    let bench = Bench::new(arguments.clone(), needs_postgres)?;
    // These print tables of their own.
    if scenario == Scenario::SearchQuality {
        return all(backends, |backend| search::quality(&bench, backend));
    }
    if scenario == Scenario::SearchAdjacency {
        return all(backends, |backend| search::adjacency(&bench, backend));
    }
    bench.describe()?;
    let mut report = Report::new();
    if wanted(Scenario::Baseline) {
        scenario::load::baseline(&bench, &mut report)?;
    }
    for &backend in backends {
        if wanted(Scenario::GatewaySmall) {
            scenario::load::gateway_small(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::GatewaySessions) {
            scenario::load::gateway_sessions(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Ci) {
            scenario::load::ci(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Logs) {
            scenario::load::logs(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Retrieval) {
            scenario::retrieval::measure(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Investigate) {
            scenario::investigate::measure(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Notes) {
            scenario::notes::measure(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Disk) {
            scenario::disk::measure(&bench, backend, &mut report)?;
        }
        // Its pairs say something on a quiet machine only.
        if scenario == Scenario::Grants {
            scenario::grants::measure(&bench, backend, &mut report)?;
        }
        // It writes more than a million facts.
        if scenario == Scenario::Reports {
            scenario::reports::measure(&bench, backend, &mut report)?;
        }
        if scenario == Scenario::FirstPage {
            scenario::reports::first_page::measure(&bench, backend, &mut report)?;
        }
        // It takes an hour, so it is measured when it is asked for.
        if scenario == Scenario::Growth {
            scenario::growth::measure(&bench, backend, &mut report)?;
        }
        // It writes up to millions of parts.
        if scenario == Scenario::SearchSpeed {
            search::speed(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Memory) {
            scenario::memory::measure(&bench, backend, &mut report)?;
        }
        if wanted(Scenario::Start) {
            scenario::start::measure(&bench, backend, &mut report)?;
        }
    }
    Ok(report.missed())
}

/// Measures what has no goals on each backend.
fn all(
    backends: &[Backend],
    measure: impl Fn(Backend) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    for backend in backends {
        measure(*backend)?;
    }
    Ok(0)
}
