//! What reports cost others: those who send facts, and those who read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::REPORTS;
use super::stage::ReportedCohort;
use crate::Failure;
use crate::generator::{Window, WindowCounts, play};
use crate::http::{Client, Reply};
use crate::process::Server;
use crate::report::{Goal, Report, Unit};
use crate::scenario::load::Traffic;
use crate::scenario::{Bench, OPERATOR_TOKEN};

/// The connections that send calls: a team's, rather than as many as the server can serve, because
/// then even the senders make every reader wait.
const CONNECTIONS: usize = 4;
/// The pause between two reads that are timed while a report is made.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends calls to a server that does nothing else, and to one that makes one report after another.
pub(super) fn measure(
    bench: &Bench,
    reported: &ReportedCohort<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let server = reported.stage.start()?;
    for name in REPORTS {
        reported.ask(&server, name)?;
    }
    let quiet = ingest(bench, &server)?;
    let stop = AtomicBool::new(false);
    let (busy, reports) = thread::scope(|scope| -> Result<(WindowCounts, u64), Failure> {
        let asking = scope.spawn(|| -> Result<u64, Failure> {
            let mut reports = 0;
            while !stop.load(Ordering::Relaxed) {
                reported.ask(&server, REPORTS[reports % REPORTS.len()])?;
                reports += 1;
            }
            Ok(reports as u64)
        });
        let busy = ingest(bench, &server);
        stop.store(true, Ordering::Relaxed);
        let reports = asking.join().map_err(|_| "the asking thread panicked")??;
        Ok((busy?, reports))
    })?;
    server.stop()?;
    report.note(&format!(
        "{CONNECTIONS} connections send calls, {reports} reports meanwhile"
    ));
    let (quiet_p99, busy_p99) = (quiet.percentile(0.99), busy.percentile(0.99));
    report.milliseconds("ingest p50, quiet", quiet.percentile(0.5), Goal::None);
    report.milliseconds("ingest p50, with reports", busy.percentile(0.5), Goal::None);
    report.milliseconds("ingest p99, quiet", quiet_p99, Goal::None);
    report.milliseconds("ingest p99, with reports", busy_p99, Goal::None);
    report.figure(
        "ingest p99, with reports, times quiet",
        busy_p99.as_secs_f64() / quiet_p99.as_secs_f64(),
        Unit::Times,
        Goal::AtMost(2.0),
    );
    Ok(())
}

fn ingest(bench: &Bench, server: &Server) -> Result<WindowCounts, Failure> {
    let begin = Instant::now() + Duration::from_secs_f64(bench.arguments.warm_up.max(0.1));
    let window = Window {
        begin,
        end: begin + Duration::from_secs_f64(bench.arguments.seconds),
    };
    let players = Traffic::Small.players(CONNECTIONS);
    play(server.address, players, 1, window, || Ok(()))
}

/// Asks for a report, whatever its answer, and meanwhile keeps asking for something short. Returns
/// the answer and the slowest of the short ones.
pub(super) fn beside(
    reported: &ReportedCohort<'_>,
    server: &Server,
    name: &str,
) -> Result<(Reply, Duration), Failure> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| -> Result<Duration, Failure> {
            let mut client = Client::connect(server.address)?;
            let mut slowest = Duration::ZERO;
            while !is_done.load(Ordering::Relaxed) {
                for path in ["/v1/facts", "/query/session/work-0-0"] {
                    let reply = client.get(path, OPERATOR_TOKEN)?;
                    if reply.status != 200 {
                        return Err(format!("{path}: {}", reply.describe()).into());
                    }
                    slowest = slowest.max(reply.elapsed);
                }
                thread::sleep(PAUSE);
            }
            Ok(slowest)
        });
        let reply = reported.try_ask(server, name);
        is_done.store(true, Ordering::Relaxed);
        let slowest = reading
            .join()
            .map_err(|_| "the reading thread panicked")??;
        Ok((reply?, slowest))
    })
}
