//! Sustained ingest: as many requests as a number of connections can get answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::conversation::{Conversation, Plan};
use crate::export::{EDITS, RECORDS};
use crate::generator::{Numbers, Player, SessionPlayer, SinglePlayer, Window, WindowCounts, play};
use crate::http::Client;
use crate::payload::{ModelMap, SingleCall};
use crate::process::{Launch, Memory, Server, processor_seconds};
use crate::report::{Goal, Report, Unit};
use crate::scenario::{Bench, INGEST_TOKEN, OPERATOR_TOKEN};
use crate::session::{SessionCalls, plan_of_mean_body};
use crate::store::Store;
use crate::{Backend, Failure};

pub(crate) const SMALL_BODY: usize = 5 * 1_024;
/// The small calls of a session that continues.
pub(crate) const SMALL_SESSION: u64 = 20;
const SESSION_BODY: usize = 57 * 1_024;
const SESSION_TURNS: usize = 40;

/// The bodies with different texts that one connection sends in turn.
const TEMPLATES_PER_CONNECTION: usize = 8;

const KIBIBYTE: f64 = 1_024.0;
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// The kinds of requests.
#[derive(Clone, Debug)]
pub(crate) enum Traffic {
    Small,
    SmallInSessions,
    Sessions(Plan),
    Ci,
    Logs,
}

impl Traffic {
    /// Sessions of forty turns whose bodies have 57 KiB on average.
    pub(crate) fn sessions() -> Self {
        Self::Sessions(plan_of_mean_body(SESSION_TURNS, SESSION_BODY))
    }

    /// Describes what is sent, and how the requests differ.
    pub(crate) fn describe(&self, connections: usize) -> String {
        match self {
            Self::Small | Self::SmallInSessions => format!(
                "bodies of {SMALL_BODY} bytes, each session of {} calls; {} texts, and in each message of each call words \
                 that no other call has; metadata and price map as a proxy sends them",
                self.calls_of_session(),
                connections * TEMPLATES_PER_CONNECTION,
            ),
            Self::Sessions(_) => format!(
                "sessions of {SESSION_TURNS} turns, each turn sending all turns before it; {connections} conversations, and in \
                 each message of each session words, one every 300 bytes, that no other session has"
            ),
            Self::Ci => "every one another run of another commit".to_owned(),
            Self::Logs => format!(
                "exports of {RECORDS} records of Claude Code, every one another session: {EDITS} decisions and the results \
                 that complete them; {} texts, and in each record words that no other has",
                connections * TEMPLATES_PER_CONNECTION,
            ),
        }
    }

    /// Returns how many of the small calls a session has.
    pub(crate) const fn calls_of_session(&self) -> u64 {
        match self {
            Self::SmallInSessions => SMALL_SESSION,
            Self::Small | Self::Sessions(_) | Self::Ci | Self::Logs => 1,
        }
    }

    /// Returns how many things a request is about, and what they are, if there are several.
    const fn parts(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Small | Self::SmallInSessions | Self::Sessions(_) | Self::Ci => None,
            Self::Logs => Some(("records", RECORDS)),
        }
    }

    /// Builds the requests of each connection.
    pub(crate) fn players(&self, connections: usize) -> Vec<Box<dyn Player>> {
        let numbers = Arc::new(Numbers::default());
        (0..connections)
            .map(|index| {
                let numbers = Arc::clone(&numbers);
                let seed = index as u64 + 1;
                let player: Box<dyn Player> = match self {
                    Self::Small | Self::SmallInSessions => {
                        let seeds = 0..TEMPLATES_PER_CONNECTION as u64;
                        let templates = seeds
                            .map(|part| {
                                SingleCall::gateway(seed * 1_000 + part, SMALL_BODY, INGEST_TOKEN)
                            })
                            .collect();
                        Box::new(SinglePlayer::new(
                            templates,
                            self.calls_of_session(),
                            numbers,
                        ))
                    }
                    Self::Ci => {
                        let templates = vec![SingleCall::ci(seed, INGEST_TOKEN)];
                        Box::new(SinglePlayer::new(templates, 1, numbers))
                    }
                    Self::Logs => {
                        let seeds = 0..TEMPLATES_PER_CONNECTION as u64;
                        let templates = seeds
                            .map(|part| SingleCall::logs(seed * 1_000 + part, INGEST_TOKEN))
                            .collect();
                        Box::new(SinglePlayer::new(templates, 1, numbers))
                    }
                    Self::Sessions(plan) => {
                        let plan = Plan {
                            seed,
                            ..plan.clone()
                        };
                        let calls = SessionCalls::new(
                            &Conversation::new(&plan),
                            plan.turns,
                            ModelMap::Full,
                            INGEST_TOKEN,
                        );
                        let next = index * plan.turns / connections;
                        Box::new(SessionPlayer {
                            calls,
                            next,
                            begun: false,
                            numbers,
                        })
                    }
                };
                player
            })
            .collect()
    }
}

/// The result of one repetition.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredLoad {
    pub(crate) counts: WindowCounts,
    pub(crate) rate: f64,
    seconds: f64,
    server_processor: f64,
    database_processor: f64,
    generator_processor: f64,
    pub(crate) memory: Memory,
    database_bytes: Option<u64>,
}

/// Plays traffic to a running server.
pub(crate) fn measure(
    bench: &Bench,
    server: &Server,
    store: Option<&Store<'_>>,
    traffic: &Traffic,
) -> Result<MeasuredLoad, Failure> {
    let arguments = &bench.arguments;
    let players = traffic.players(arguments.connections);
    let begin = Instant::now() + Duration::from_secs_f64(arguments.warm_up.max(0.1));
    let window = Window {
        begin,
        end: begin + Duration::from_secs_f64(arguments.seconds),
    };
    let mut processors = Vec::new();
    let counts = play(
        server.address,
        players,
        arguments.generator_threads,
        window,
        || {
            let database = store.map_or(Ok(0.0), Store::processor_seconds)?;
            processors.push([
                processor_seconds(server.id())?,
                database,
                processor_seconds(std::process::id())?,
            ]);
            Ok(())
        },
    )?;
    let [first, last] = processors.as_slice() else {
        return Err("the window has two edges".into());
    };
    Ok(MeasuredLoad {
        rate: counts.latencies.len() as f64 / arguments.seconds,
        counts,
        seconds: arguments.seconds,
        server_processor: last[0] - first[0],
        database_processor: last[1] - first[1],
        generator_processor: last[2] - first[2],
        memory: Memory::of(server.id())?,
        database_bytes: None,
    })
}

/// The goals of a load.
#[derive(Clone, Copy, Debug)]
struct Goals {
    rate: Goal,
    /// The goal for the parts of requests, if they have several.
    parts: Goal,
    slowest: Goal,
}

fn print(
    report: &mut Report,
    traffic: &Traffic,
    mut runs: Vec<MeasuredLoad>,
    goals: Goals,
) -> Result<(), Failure> {
    runs.sort_by(|left, right| left.rate.total_cmp(&right.rate));
    if let [slowest, .., fastest] = runs.as_slice() {
        report.note(&format!(
            "{:.0} to {:.0} a second over {} repetitions",
            slowest.rate,
            fastest.rate,
            runs.len()
        ));
    }
    let run = runs
        .get(runs.len().saturating_sub(1) / 2)
        .ok_or("no repetition")?;
    let requests = run.counts.latencies.len().max(1) as f64;
    report.figure("requests", run.rate, Unit::PerSecond, goals.rate);
    if let Some((name, count)) = traffic.parts() {
        let rate = run.rate * count as f64;
        report.figure(name, rate, Unit::PerSecond, goals.parts);
    }
    report.milliseconds("p50", run.counts.percentile(0.5), Goal::None);
    report.milliseconds("p99", run.counts.percentile(0.99), goals.slowest);
    report.milliseconds("slowest", run.counts.percentile(1.0), Goal::None);
    report.figure(
        "bodies",
        run.counts.body_bytes as f64 / MEBIBYTE / run.seconds,
        Unit::MebibytesPerSecond,
        Goal::None,
    );
    report.figure(
        "mean body",
        run.counts.body_bytes as f64 / requests / KIBIBYTE,
        Unit::Kibibytes,
        Goal::None,
    );
    report.figure(
        "processor: server",
        run.server_processor,
        Unit::Seconds,
        Goal::None,
    );
    if run.database_processor > 0.0 {
        report.figure(
            "processor: PostgreSQL",
            run.database_processor,
            Unit::Seconds,
            Goal::None,
        );
    }
    report.figure(
        "processor: generator",
        run.generator_processor,
        Unit::Seconds,
        Goal::None,
    );
    let each = (run.server_processor + run.database_processor) / requests * 1e6;
    report.figure(
        "processor per request, without the generator",
        each,
        Unit::Microseconds,
        Goal::None,
    );
    report.figure(
        "server memory afterwards",
        run.memory.resident as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::None,
    );
    if let Some(bytes) = run.database_bytes {
        let sent = run.counts.all_body_bytes as f64;
        report.figure(
            "database",
            bytes as f64 / MEBIBYTE,
            Unit::Mebibytes,
            Goal::None,
        );
        report.figure(
            "database, of the bytes sent",
            sent / bytes.max(1) as f64,
            Unit::OnePartOf,
            Goal::None,
        );
    }
    Ok(())
}

/// Measures the generator against a handler that does nothing.
pub(crate) fn baseline(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    report.begin("baseline", "-");
    let goals = Goals {
        rate: Goal::None,
        parts: Goal::None,
        slowest: Goal::None,
    };
    for (name, traffic) in [
        ("5 KiB bodies", Traffic::Small),
        ("57 KiB bodies", Traffic::sessions()),
        ("CI results", Traffic::Ci),
        ("exports of logs", Traffic::Logs),
    ] {
        report.note(name);
        let mut runs = Vec::new();
        for _ in 0..bench.arguments.repetitions.max(1) {
            let server = Server::start(&Launch {
                program: std::env::current_exe()?,
                arguments: vec!["empty-server".to_owned()],
                settings: Vec::new(),
                folder: bench.folder("baseline")?,
            })?;
            runs.push(measure(bench, &server, None, &traffic)?);
            server.stop()?;
        }
        print(report, &traffic, runs, goals)?;
    }
    Ok(())
}

pub(crate) fn gateway_small(
    bench: &Bench,
    backend: Backend,
    report: &mut Report,
) -> Result<(), Failure> {
    report.begin("gateway-small", backend.name());
    let rate = Goal::AtLeast(backend.choose(6_000.0, 3_500.0));
    service(
        bench,
        backend,
        report,
        &Traffic::Small,
        Goals {
            rate,
            parts: Goal::None,
            slowest: Goal::AtMost(25.0),
        },
    )
}

pub(crate) fn gateway_sessions(
    bench: &Bench,
    backend: Backend,
    report: &mut Report,
) -> Result<(), Failure> {
    report.begin("gateway-sessions", backend.name());
    let rate = Goal::AtLeast(backend.choose(1_200.0, 900.0));
    service(
        bench,
        backend,
        report,
        &Traffic::sessions(),
        Goals {
            rate,
            parts: Goal::None,
            slowest: Goal::None,
        },
    )
}

pub(crate) fn ci(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("ci", backend.name());
    let rate = backend.choose(Goal::AtLeast(8_000.0), Goal::None);
    service(
        bench,
        backend,
        report,
        &Traffic::Ci,
        Goals {
            rate,
            parts: Goal::None,
            slowest: Goal::None,
        },
    )
}

pub(crate) fn logs(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("logs", backend.name());
    let goal = |rate| backend.choose(Goal::AtLeast(rate), Goal::None);
    service(
        bench,
        backend,
        report,
        &Traffic::Logs,
        Goals {
            rate: goal(3_000.0),
            parts: goal(30_000.0),
            slowest: Goal::None,
        },
    )
}

fn service(
    bench: &Bench,
    backend: Backend,
    report: &mut Report,
    traffic: &Traffic,
    goals: Goals,
) -> Result<(), Failure> {
    report.note(&traffic.describe(bench.arguments.connections));
    let mut runs = Vec::new();
    for _ in 0..bench.arguments.repetitions.max(1) {
        let stage = bench.stage("load", backend, None)?;
        let server = stage.start()?;
        let mut run = measure(bench, &server, Some(&stage.store), traffic)?;
        if matches!(traffic, Traffic::Logs) {
            expect_decisions(&server, run.counts.all_requests * EDITS as u64)?;
        }
        server.stop()?;
        run.database_bytes = Some(stage.store.bytes()?);
        runs.push(run);
    }
    print(report, traffic, runs, goals)
}

/// Checks how many decisions the server has, because the answer to an export does not say what
/// became of it.
fn expect_decisions(server: &Server, wanted: u64) -> Result<(), Failure> {
    let facts = Client::connect(server.address)?.get("/v1/facts", OPERATOR_TOKEN)?;
    let found = &facts.json()?["tables"]["developer_decisions"]["total"];
    if *found == wanted {
        return Ok(());
    }
    Err(format!("{found} decisions are stored, and {wanted} were sent").into())
}
