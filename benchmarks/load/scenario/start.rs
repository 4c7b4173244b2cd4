//! How soon a restarted server answers.

use crate::report::{Goal, Report, Unit, median};
use crate::scenario::Bench;
use crate::scenario::load::{self, Traffic};
use crate::{Backend, Failure};

const STARTS: usize = 11;

/// Fills a database with a load, and then starts the server on it several times.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("start", backend.name());
    let stage = bench.stage("start", backend, None)?;
    let server = stage.start()?;
    let first = server.start_time;
    let calls = load::measure(bench, &server, Some(&stage.store), &Traffic::Small)?
        .counts
        .all_requests;
    server.stop()?;
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let server = stage.start()?;
        times.push(server.start_time);
        server.stop()?;
    }
    report.milliseconds("to /health, on no database", first, Goal::None);
    report.figure(
        "calls in the database",
        calls as f64,
        Unit::Count,
        Goal::None,
    );
    report.milliseconds(
        "to /health, on an existing database",
        median(times),
        Goal::AtMost(150.0),
    );
    Ok(())
}
