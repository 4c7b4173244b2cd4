//! Resident memory of the server, at rest and after load.

use std::thread;
use std::time::Duration;

use crate::process::Memory;
use crate::report::{Goal, Report, Unit};
use crate::scenario::Bench;
use crate::scenario::load::{self, Traffic};
use crate::{Backend, Failure};

const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// Measures the memory of one server after each of two loads.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("memory", backend.name());
    let stage = bench.stage("memory", backend, None)?;
    let server = stage.start()?;
    thread::sleep(Duration::from_secs(1));
    let idle = Memory::of(server.id())?;
    report.figure(
        "idle",
        idle.resident as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::AtMost(30.0),
    );
    for (name, traffic) in [
        ("after 5 KiB bodies", Traffic::Small),
        ("after 57 KiB bodies", Traffic::sessions()),
    ] {
        let memory = load::measure(bench, &server, Some(&stage.store), &traffic)?.memory;
        report.figure(
            name,
            memory.resident as f64 / MEBIBYTE,
            Unit::Mebibytes,
            Goal::AtMost(200.0),
        );
    }
    let peak = Memory::of(server.id())?.peak;
    report.figure("peak", peak as f64 / MEBIBYTE, Unit::Mebibytes, Goal::None);
    server.stop()
}
