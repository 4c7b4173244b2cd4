//! A store that grows: how much it accepts per second, how long a call waits, what it costs on disk
//! and how long the counts take, from empty to millions of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::generator::{Numbers, SessionNumbers};
use crate::http::Client;
use crate::http::head;
use crate::payload::payload_line;
use crate::process::Server;
use crate::report::{Goal, Report, Unit, grouped, median};
use crate::scenario::load::{self, SMALL_BODY, Traffic};
use crate::scenario::{Bench, INGEST_TOKEN, OPERATOR_TOKEN};
use crate::template::Template;
use crate::{Backend, Failure};

/// The shares of the final calls that the store has when it is measured.
const POINTS: [f64; 4] = [0.0, 0.2, 0.4, 1.0];
/// The payloads per request, and the connections that send such requests, while the store is filled
/// between two points.
const LINES: u64 = 1_000;
const FILLERS: usize = 6;
/// The number of different texts in the payloads that one of these connections sends.
const TEXTS: u64 = 16;
/// How often the counts are requested at each point.
const QUESTIONS: usize = 25;

/// The measurements at one point.
#[derive(Clone, Copy, Debug)]
struct Point {
    calls: u64,
    rate: f64,
    p50: Duration,
    p99: Duration,
    /// The bytes on disk per call so far, without those of the empty database.
    bytes: f64,
    facts: Duration,
    facts_slowest: Duration,
}

/// Measures a store that grows by sessions of one call, and one that grows by sessions that
/// continue.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    for (name, traffic) in [
        ("growth-in-sessions", Traffic::SmallInSessions),
        ("growth", Traffic::Small),
    ] {
        report.begin(name, backend.name());
        grow(bench, backend, report, &traffic)?;
    }
    Ok(())
}

/// Fills one store from point to point, and measures it at each.
fn grow(
    bench: &Bench,
    backend: Backend,
    report: &mut Report,
    traffic: &Traffic,
) -> Result<(), Failure> {
    report.note(&format!(
        "{}; between the points {FILLERS} connections send batches of {LINES}",
        traffic.describe(bench.arguments.connections)
    ));
    let stage = bench.stage("growth", backend, None)?;
    stage.start()?.stop()?;
    let empty = stage.store.bytes()?;
    let numbers = Arc::new(Numbers::default());
    let mut stored = 0;
    let mut points: Vec<Point> = Vec::new();
    for share in POINTS {
        let wanted = (bench.arguments.calls as f64 * share) as u64;
        let mut server = stage.start()?;
        let missing = wanted.saturating_sub(stored);
        if missing > 0 {
            let begin = Instant::now();
            fill(&server, missing, &numbers, traffic.calls_of_session())?;
            stored += missing;
            let rate = missing as f64 / begin.elapsed().as_secs_f64();
            report.note(&format!(
                "{} more calls in batches, {} a second",
                grouped(missing as f64),
                grouped(rate)
            ));
            // What the batches left in the log is not a cost of these calls.
            server.stop()?;
            server = stage.start()?;
        }
        let calls = stored;
        let (facts, facts_slowest) = count(&server, stored)?;
        let run = load::measure(bench, &server, Some(&stage.store), traffic)?;
        stored += run.counts.all_requests;
        server.stop()?;
        let grown = stage.store.bytes()?.saturating_sub(empty);
        let point = Point {
            calls,
            rate: run.rate,
            p50: run.counts.percentile(0.5),
            p99: run.counts.percentile(0.99),
            bytes: grown as f64 / stored.max(1) as f64,
            facts,
            facts_slowest,
        };
        print(report, point, points.first().copied());
        points.push(point);
    }
    table(report, &points);
    Ok(())
}

/// Stores this many calls, in groups as large as the service accepts.
fn fill(
    server: &Server,
    calls: u64,
    numbers: &Numbers,
    calls_of_session: u64,
) -> Result<(), Failure> {
    let left = AtomicU64::new(calls);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..FILLERS as u64)
            .map(|sender| {
                let left = &left;
                let sessions = SessionNumbers::of_calls(calls_of_session);
                scope.spawn(move || send_lines(server, sender, left, numbers, sessions))
            })
            .collect();
        for sender in senders {
            sender.join().map_err(|_| "a filling thread panicked")??;
        }
        Ok(())
    })
}

/// Sends batches of lines until none are left.
fn send_lines(
    server: &Server,
    sender: u64,
    left: &AtomicU64,
    numbers: &Numbers,
    mut sessions: SessionNumbers,
) -> Result<(), Failure> {
    let mut client = Client::connect(server.address)?;
    // No other load uses seeds from here on.
    let seeds = (1_000_000 + sender * TEXTS)..(1_000_000 + (sender + 1) * TEXTS);
    let mut texts: Vec<Template> = seeds.map(|seed| payload_line(seed, SMALL_BODY)).collect();
    loop {
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left - left.min(LINES))
        });
        let Ok(before) = taken else {
            return Ok(());
        };
        let lines = before.min(LINES);
        let mut body = Vec::with_capacity(lines as usize * (SMALL_BODY + 1));
        for line in 0..lines {
            let text = &mut texts[(line % TEXTS) as usize];
            text.patch_session(sessions.next(numbers));
            text.patch_call(numbers.call());
            body.extend_from_slice(text.bytes());
            body.push(b'\n');
        }
        let mut request = head("/ingest/gateway/gateway_a", INGEST_TOKEN, body.len()).into_bytes();
        request.append(&mut body);
        let receipt = client.exchange(&request)?.json()?;
        if receipt["stored"] != lines {
            return Err(format!("of {lines} payloads: {receipt}").into());
        }
    }
}

/// Requests the counts, checks them, and returns how long that takes: the median and the maximum.
fn count(server: &Server, stored: u64) -> Result<(Duration, Duration), Failure> {
    let mut client = Client::connect(server.address)?;
    let mut times = Vec::with_capacity(QUESTIONS);
    for _ in 0..QUESTIONS {
        let reply = client.get("/v1/facts", OPERATOR_TOKEN)?;
        times.push(reply.elapsed);
        let found = &reply.json()?["tables"]["inference_calls"]["total"];
        if *found != stored {
            return Err(format!("{found} calls are counted, and {stored} were stored").into());
        }
    }
    let slowest = times.iter().copied().max().unwrap_or_default();
    Ok((median(times), slowest))
}

fn print(report: &mut Report, point: Point, first: Option<Point>) {
    let at = |figure: &str| format!("at {} calls: {figure}", grouped(point.calls as f64));
    // The rate may fall by 15 percent.
    let rate = first.map_or(Goal::None, |first| Goal::AtLeast(first.rate * 0.85));
    report.figure(&at("requests"), point.rate, Unit::PerSecond, rate);
    report.milliseconds(&at("p50"), point.p50, Goal::None);
    report.milliseconds(&at("p99"), point.p99, Goal::AtMost(25.0));
    report.figure(&at("bytes a call"), point.bytes, Unit::Bytes, Goal::None);
    report.milliseconds(&at("/v1/facts"), point.facts, Goal::AtMost(5.0));
    report.milliseconds(&at("/v1/facts, slowest"), point.facts_slowest, Goal::None);
}

fn table(report: &Report, points: &[Point]) {
    report.note(&format!(
        "{:>10} {:>9} {:>9} {:>9} {:>12} {:>10}",
        "calls", "rate /s", "p50 ms", "p99 ms", "bytes a call", "facts ms"
    ));
    for point in points {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        report.note(&format!(
            "{:>10} {:>9} {:>9.2} {:>9.2} {:>12} {:>10.2}",
            grouped(point.calls as f64),
            grouped(point.rate),
            milliseconds(point.p50),
            milliseconds(point.p99),
            grouped(point.bytes),
            milliseconds(point.facts),
        ));
    }
}
