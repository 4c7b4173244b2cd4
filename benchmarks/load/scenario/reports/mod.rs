//! Both reports over as much as one report accepts: how much time and memory they take, cold and
//! warm, and an hour after the last one, what it costs them when the organization around the cohort
//! grows, and what they cost everybody who sends facts meanwhile.
//!
//! "Cold" is the first report of a server that has just started. The operating system's file cache
//! is kept. The mirrors are the server's own, fetched from git's daemon after a webhook.

pub(crate) mod first_page;
mod stage;
mod traffic;

use std::time::Duration;

use self::stage::ReportedCohort;
use crate::cohort::{Cohort, CohortShape, Texts};
use crate::population::Population;
use crate::process::Memory;
use crate::report::{Goal, Report, Unit, grouped, median};
use crate::scenario::Bench;
use crate::{Backend, Failure};

/// The starts of a server for each cold figure, and the warm reports of each kind.
const STARTS: usize = 3;
const WARM: usize = 5;
/// How many hours a store grows, and the days that a report then covers.
const HOURS: u64 = 8;
const DAYS: i64 = 29;
/// The number of short reports and commit queries to a warm server.
const SHORT: usize = 100;
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// The two reports.
const REPORTS: [&str; 2] = ["model-outcomes", "accepted-work-lifecycle"];

pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("reports", backend.name());
    small(bench, backend, report)?;
    growing(bench, backend, report)?;
    large(bench, backend, report)?;
    dense(bench, backend, report)
}

/// Measures a small team's month, without mirrors.
fn small(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let cohort = Cohort::new(CohortShape::SMALL)?;
    let reported = ReportedCohort::write(bench, backend, cohort, report)?;
    let calls = grouped(cohort.shape.all_calls() as f64);
    for name in REPORTS {
        let mut cold = Vec::new();
        for _ in 0..STARTS {
            let server = reported.stage.start()?;
            cold.push(reported.ask(&server, name)?.elapsed);
            server.stop()?;
        }
        let figure = format!("{name}, {calls} calls, no mirror, cold");
        report.milliseconds(&figure, median(cold), Goal::None);
        let server = reported.stage.start()?;
        let warm = reported.several(&server, name, SHORT)?;
        let figure = format!("{name}, {calls} calls, no mirror");
        report.milliseconds(&figure, median(warm), Goal::AtMost(40.0));
        server.stop()?;
    }
    Ok(())
}

/// Measures reports over the days before now, an hour after the last ones, while the store grows by
/// a thousand calls an hour and what belongs to them.
fn growing(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let cohort = Cohort::new(CohortShape::GROWING.share(bench.arguments.population))?;
    let all = cohort.shape.all_pull_requests();
    let mut written = all - all * HOURS / 60;
    let hour = (all - written) / HOURS;
    let mut reported = ReportedCohort::write_some(bench, backend, cohort, written, report)?;
    reported.mirror(bench, report)?;
    let server = reported.stage.start()?;
    let mut times = [Vec::new(), Vec::new()];
    for at in 0..=HOURS {
        if at > 0 {
            reported.write_more(written..written + hour)?;
            written += hour;
        }
        let query = cohort.query_after(written - 1, DAYS);
        for (name, times) in REPORTS.iter().zip(&mut times) {
            times.push(ReportedCohort::ask_about(&server, name, &query)?.elapsed);
        }
    }
    for (name, times) in REPORTS.iter().zip(times) {
        let figure = format!("{name}, an hour after the last one");
        report.milliseconds(&figure, median(times[1..].to_vec()), Goal::AtMost(1_500.0));
    }
    server.stop()
}

/// Measures as much as a report accepts, first alone in an organization and then in one of half a
/// year.
fn large(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let cohort = Cohort::new(CohortShape::LARGE.share(bench.arguments.population))?;
    let mut reported = ReportedCohort::write(bench, backend, cohort, report)?;
    reported.mirror(bench, report)?;
    let alone = both(&reported, report, "")?;
    let population = Population::new(bench.arguments.population)?;
    let took = population.write(&reported.stage.store.url())?;
    report.note(&format!(
        "{} more facts of other times, Sessions and repositories, written in {:.0} s",
        grouped(population.facts() as f64),
        took.as_secs_f64()
    ));
    let grown = both(&reported, report, ", grown")?;
    for (name, (alone, grown)) in REPORTS.iter().zip(alone.into_iter().zip(grown)) {
        if alone.body != grown.body {
            return Err(format!("{name} says something else of a larger organization").into());
        }
        report.figure(
            &format!("{name}, grown, times alone"),
            grown.warm.as_secs_f64() / alone.warm.as_secs_f64(),
            Unit::Times,
            Goal::AtMost(1.5),
        );
    }
    commits(&reported, &population, report)?;
    traffic::measure(bench, &reported, report)
}

/// The measurements of a report.
struct MeasuredReport {
    body: Vec<u8>,
    warm: Duration,
}

/// Measures both reports, cold and warm, and their memory.
fn both(
    reported: &ReportedCohort<'_>,
    report: &mut Report,
    when: &str,
) -> Result<Vec<MeasuredReport>, Failure> {
    let mut measured = Vec::new();
    for name in REPORTS {
        let mut cold = Vec::new();
        let mut added = Vec::new();
        for _ in 0..STARTS {
            let server = reported.stage.start()?;
            let idle = Memory::of(server.id())?.resident;
            cold.push(reported.ask(&server, name)?.elapsed);
            let first = Memory::of(server.id())?.peak;
            added.push(first.saturating_sub(idle));
            server.stop()?;
        }
        let figure = format!("{name}, cold{when}");
        report.milliseconds(&figure, median(cold), Goal::AtMost(1_500.0));
        let figure = format!("{name}, cold{when}: more memory");
        added.sort_unstable();
        let added = added[added.len() / 2] as f64 / MEBIBYTE;
        report.figure(&figure, added, Unit::Mebibytes, Goal::AtMost(300.0));
    }
    let server = reported.stage.start()?;
    let idle = Memory::of(server.id())?.resident;
    for name in REPORTS {
        let body = reported.ask(&server, name)?.body;
        let warm = median(reported.several(&server, name, WARM)?);
        let figure = format!("{name}, warm{when}");
        report.milliseconds(&figure, warm, Goal::AtMost(1_000.0));
        measured.push(MeasuredReport { body, warm });
    }
    let memory = Memory::of(server.id())?;
    let mebibytes = |bytes: u64| bytes as f64 / MEBIBYTE;
    report.figure(
        &format!("both, peak{when}: more memory"),
        mebibytes(memory.peak.saturating_sub(idle)),
        Unit::Mebibytes,
        Goal::AtMost(300.0),
    );
    report.figure(
        &format!("both, afterwards{when}: more memory"),
        mebibytes(memory.resident.saturating_sub(idle)),
        Unit::Mebibytes,
        Goal::None,
    );
    server.stop()?;
    Ok(measured)
}

/// Asks about commits, both the cohort's and others.
fn commits(
    reported: &ReportedCohort<'_>,
    population: &Population,
    report: &mut Report,
) -> Result<(), Failure> {
    let server = reported.stage.start()?;
    for (name, commits) in [
        ("commit, of a mirror", reported.some_commits(SHORT)),
        (
            "commit, without a mirror",
            population.some_observed_commits(SHORT),
        ),
    ] {
        let times = ReportedCohort::commits(&server, &commits)?;
        let worst = times.iter().max().copied().unwrap_or_default();
        report.milliseconds(name, median(times), Goal::AtMost(30.0));
        report.milliseconds(&format!("{name}, slowest"), worst, Goal::None);
    }
    server.stop()
}

/// Measures as many calls within one hour as a report accepts, with 5,000 commits of 20 files
/// pushed in that hour.
fn dense(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    for (texts, how) in [(Texts::Ordinary, "dense"), (Texts::Alike, "dense, alike")] {
        let shape = CohortShape {
            texts,
            ..CohortShape::DENSE.share(bench.arguments.population)
        };
        let mut reported = ReportedCohort::write(bench, backend, Cohort::new(shape)?, report)?;
        reported.mirror(bench, report)?;
        for name in REPORTS {
            let server = reported.stage.start()?;
            let idle = Memory::of(server.id())?.resident;
            let (reply, others) = traffic::beside(&reported, &server, name)?;
            report.note(&format!("{name}, {how}: {}", reply.describe()));
            report.milliseconds(
                &format!("{name}, {how}"),
                reply.elapsed,
                Goal::AtMost(30_000.0),
            );
            let added = Memory::of(server.id())?.peak.saturating_sub(idle) as f64 / MEBIBYTE;
            report.figure(
                &format!("{name}, {how}: more memory"),
                added,
                Unit::Mebibytes,
                Goal::AtMost(500.0),
            );
            report.milliseconds(
                &format!("{name}, {how}: slowest other read"),
                others,
                Goal::AtMost(1_000.0),
            );
            server.stop()?;
        }
    }
    Ok(())
}
