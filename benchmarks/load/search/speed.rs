//! What the index costs as it grows: the rate of ingest with and without it, the rate at which it is
//! built, its size, the memory of the server, and the time of a query.
//!
//! The same parts are sent to two servers in turns, one with the index and one without, so whatever
//! else the machine does affects both.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use serde_json::{Value, json};
use svc_model::time::Instant;

use crate::http::Client;
use crate::process::{Memory, Server};
use crate::report::{Goal, Report, Unit};
use crate::scenario::{Bench, Stage};
use crate::search::corpus::Corpus;
use crate::search::metrics::percentile;
use crate::search::server::{ask, is_on, mark, newest, store, wait};
use crate::text::put;
use crate::{Backend, Failure};

/// The parts of a call, and the calls of a Session.
const CALL_PARTS: u64 = 2;
const SESSION_CALLS: u64 = 16;
const SESSION_PARTS: u64 = CALL_PARTS * SESSION_CALLS;
/// The Sessions that one server gets before it is the other one's turn.
const TURN: u64 = 128;
const QUERIES: u64 = 400;
const WARMING: u64 = 40;
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// A server that grows.
struct Side<'bench> {
    client: Client,
    server: Server,
    stage: Stage<'bench>,
    /// The time that it took to store everything so far.
    storing: Duration,
}

/// The figures of one size.
struct Row {
    parts: u64,
    index_share: f64,
    times: [Duration; 3],
    resident: [f64; 2],
}

/// Grows both stores from size to size.
pub(crate) fn measure(
    bench: &Bench,
    backend: Backend,
    sizes: &[u64],
    report: &mut Report,
) -> Result<(), Failure> {
    report.begin("search-speed", backend.name());
    let corpus = Corpus::new();
    let mut with = Side::start(bench, backend, true)?;
    let mut without = Side::start(bench, backend, false)?;
    if !is_on(&mut with.client)? {
        return Err("this server does not search".into());
    }
    let (mut session, mut text_bytes) = (0, 0);
    let mut rows = Vec::new();
    let mut end = None;
    for size in sizes {
        let sessions = size.div_ceil(SESSION_PARTS);
        while session < sessions {
            let last = sessions.min(session + TURN);
            let requests: Vec<Value> = (session..last).map(|one| request(&corpus, one)).collect();
            let parts = session * SESSION_PARTS..last * SESSION_PARTS;
            text_bytes += parts
                .map(|part| corpus.part(part).len() as u64)
                .sum::<u64>();
            // A different one begins each turn.
            let with_first = (session / TURN).is_multiple_of(2);
            if !with_first {
                without.store(&requests)?;
            }
            with.store(&requests)?;
            // The index must not catch up at the cost of the other server.
            let newest = newest(&mut with.client)?;
            wait(&mut with.client, newest)?;
            if with_first {
                without.store(&requests)?;
            }
            session = last;
        }
        let sent = Clock::now();
        let parts = session * SESSION_PARTS;
        end = Some(mark(&mut with.client, &format!("end-{session}"))?);
        let indexed = end.map_or(Ok(0), |end| wait(&mut with.client, end))?;
        report.note(&format!(
            "{parts} parts, {indexed} indexed, {:.1} MiB of text, index caught up {:.2} s after the last call",
            text_bytes as f64 / MEBIBYTE,
            sent.elapsed().as_secs_f64(),
        ));
        rows.push(size_figures(
            report, &corpus, &mut with, &without, parts, text_bytes,
        )?);
    }
    if let Some(end) = end {
        rebuild(report, with, end, text_bytes)?;
    }
    print(&rows);
    Ok(())
}

fn size_figures(
    report: &mut Report,
    corpus: &Corpus,
    with: &mut Side<'_>,
    without: &Side<'_>,
    parts: u64,
    text_bytes: u64,
) -> Result<Row, Failure> {
    let name = |figure: &str| format!("{parts} parts: {figure}");
    let rates = [&*with, without].map(|side| parts as f64 / side.storing.as_secs_f64());
    report.figure(
        &name("ingest, with index, parts"),
        rates[0],
        Unit::PerSecond,
        Goal::None,
    );
    report.figure(
        &name("ingest, without, parts"),
        rates[1],
        Unit::PerSecond,
        Goal::None,
    );
    let share = rates[0] / rates[1].max(f64::MIN_POSITIVE);
    report.figure(
        &name("ingest, with, of without"),
        share,
        Unit::Times,
        Goal::AtLeast(0.9),
    );
    let bytes = index_bytes(&with.stage.launch.folder)?;
    report.figure(
        &name("index"),
        bytes as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::None,
    );
    let index_share = bytes as f64 / text_bytes as f64;
    report.figure(
        &name("index, of text"),
        index_share,
        Unit::Times,
        Goal::None,
    );
    let times = latencies(corpus, &mut with.client, parts)?;
    let goals = [Goal::AtMost(10.0), Goal::AtMost(100.0), Goal::None];
    for ((figure, time), goal) in ["p50", "p95", "p99"].into_iter().zip(times).zip(goals) {
        report.milliseconds(&name(&format!("query, {figure}")), time, goal);
    }
    let resident = [&*with, without].map(|side| Memory::of(side.server.id()));
    let [first, second] = resident;
    let resident = [first?, second?].map(|memory| memory.resident as f64 / MEBIBYTE);
    report.figure(
        &name("memory, with index"),
        resident[0],
        Unit::Mebibytes,
        Goal::None,
    );
    report.figure(
        &name("memory, without"),
        resident[1],
        Unit::Mebibytes,
        Goal::None,
    );
    Ok(Row {
        parts,
        index_share,
        times,
        resident,
    })
}

/// Measures the index of a stopped server, deletes it, and measures how it is built anew.
fn rebuild(
    report: &mut Report,
    side: Side<'_>,
    end: Instant,
    text_bytes: u64,
) -> Result<(), Failure> {
    let Side {
        client,
        server,
        stage,
        ..
    } = side;
    drop(client);
    server.stop()?;
    // At rest, without its write-ahead log.
    let share = index_bytes(&stage.launch.folder)? as f64 / text_bytes as f64;
    report.figure(
        "index at rest, of text",
        share,
        Unit::Times,
        Goal::AtMost(0.4),
    );
    for file in index_files(&stage.launch.folder)? {
        fs::remove_file(file)?;
    }
    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    let begin = Clock::now();
    let parts = wait(&mut client, end)?;
    let rate = parts as f64 / begin.elapsed().as_secs_f64();
    report.figure(
        "index built anew, parts",
        rate,
        Unit::PerSecond,
        Goal::AtLeast(5_000.0),
    );
    let peak = Memory::of(server.id())?.peak as f64 / MEBIBYTE;
    report.figure(
        "memory, peak while built",
        peak,
        Unit::Mebibytes,
        Goal::None,
    );
    drop(client);
    server.stop()
}

/// Asks all queries, and returns p50, p95 and p99.
fn latencies(corpus: &Corpus, client: &mut Client, parts: u64) -> Result<[Duration; 3], Failure> {
    let mut times = Vec::new();
    for number in 0..WARMING + QUERIES {
        let query = corpus.query(number, parts);
        if svc_model::search::SearchQuery::new(&query).is_err() {
            continue;
        }
        let reply = ask(client, &query)?;
        if reply.status != 200 {
            return Err(format!("{query}: {}", reply.describe()).into());
        }
        if number >= WARMING {
            times.push(reply.elapsed);
        }
    }
    times.sort_unstable();
    Ok([0.5, 0.95, 0.99].map(|share| percentile(&times, share)))
}

impl<'bench> Side<'bench> {
    fn start(bench: &'bench Bench, backend: Backend, has_index: bool) -> Result<Self, Failure> {
        let mut stage = bench.stage("search-speed", backend, None)?;
        if !has_index {
            stage
                .launch
                .settings
                .retain(|(name, _)| *name != "SVC_SEARCH_PATH");
            stage
                .launch
                .settings
                .push(("SVC_SEARCH_PATH", "off".to_owned()));
        }
        let server = stage.start()?;
        Ok(Self {
            client: Client::connect(server.address)?,
            server,
            stage,
            storing: Duration::ZERO,
        })
    }

    fn store(&mut self, requests: &[Value]) -> Result<(), Failure> {
        let begin = Clock::now();
        for request in requests {
            store(&mut self.client, request)?;
        }
        self.storing += begin.elapsed();
        Ok(())
    }
}

fn session_name(number: u64) -> String {
    format!("grown-{number}")
}

/// Returns a Session of calls that continue one another. Each adds a question and an answer.
fn request(corpus: &Corpus, session: u64) -> Value {
    let calls = (0..SESSION_CALLS).map(|number| {
        let first = session * SESSION_PARTS + number * CALL_PARTS;
        let said = |role: &str, part: u64| json!({"role": role, "parts": [{"type": "text", "content": corpus.part(part)}]});
        let mut input = json!({"messages": [said("user", first)]});
        if let Some(before) = number.checked_sub(1) {
            input["after"] = format!("call-{before}").into();
        }
        json!({
            "call_id": format!("call-{number}"), "model": "gpt-5",
            "ended_at": format!("2026-02-{:02}T10:{number:02}:00Z", session % 28 + 1),
            "input": input, "output": [said("assistant", first + 1)],
        })
    });
    json!({
        "source": {"kind": "sdk", "agent": "search-bench"}, "session_id": session_name(session),
        "calls": calls.collect::<Vec<_>>(),
    })
}

/// Returns the bytes of the index on disk.
fn index_bytes(folder: &Path) -> Result<u64, Failure> {
    let sizes = index_files(folder)?.into_iter().map(fs::metadata);
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    Ok(sizes.iter().map(fs::Metadata::len).sum())
}

fn index_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("search.db") {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Prints how the figures grow, as a table in Markdown.
fn print(rows: &[Row]) {
    let mut text = String::from(
        "\n| parts | index of text | p50 ms | p95 ms | p99 ms | memory MiB | without index |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let [p50, p95, p99] = row.times.map(|time| time.as_secs_f64() * 1e3);
        let [with, without] = row.resident;
        put(
            &mut text,
            format_args!(
                "| {} | {:.2} | {p50:.1} | {p95:.1} | {p99:.1} | {with:.0} | {without:.0} |\n",
                row.parts, row.index_share
            ),
        );
    }
    println!("{text}");
}
