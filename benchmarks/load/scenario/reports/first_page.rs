//! The overview and the spend report over as many calls as one takes, cold and warm: they are what
//! an operator sees first.

use super::stage::ReportedCohort;
use super::{STARTS, WARM};
use crate::cohort::{Cohort, CohortShape};
use crate::http::Client;
use crate::process::Server;
use crate::report::{Goal, Report, median};
use crate::scenario::{Bench, OPERATOR_TOKEN};
use crate::{Backend, Failure};

/// The days that an overview covers at most: the cohort begins this long before now.
const DAYS: i64 = 31;

pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("first page", backend.name());
    let shape = CohortShape::LARGE.share(bench.arguments.population);
    let cohort = Cohort::before_now(shape, DAYS);
    let mut reported = ReportedCohort::write(bench, backend, cohort, report)?;
    reported.mirror(bench, report)?;
    let query = reported.cohort.query();
    // Whoever names a moment gets an answer that is derived then.
    let at_a_moment = format!("/v1/overview?days=31&as_of={}", reported.cohort.end());
    let spend = |more: &str| format!("/v1/reports/spend?{query}{more}");
    let questions = [
        ("overview", "/v1/overview?days=31", (1_000.0, 150.0)),
        (
            "overview of a moment",
            at_a_moment.as_str(),
            (1_000.0, 1_000.0),
        ),
        ("spend", &spend(""), (5_000.0, 1_000.0)),
        (
            "spend by pull request",
            &spend("&by=pull-request"),
            (5_000.0, 1_000.0),
        ),
        (
            "spend without outcomes",
            &spend("&outcomes=false"),
            (1_000.0, 1_000.0),
        ),
    ];
    for (name, path, (cold_max, warm_max)) in questions {
        let mut cold = Vec::new();
        let mut warm = Vec::new();
        for _ in 0..STARTS {
            let server = reported.stage.start()?;
            cold.push(ask(&server, path)?);
            for _ in 0..WARM {
                warm.push(ask(&server, path)?);
            }
            server.stop()?;
        }
        report.milliseconds(
            &format!("{name}, cold"),
            median(cold),
            Goal::AtMost(cold_max),
        );
        report.milliseconds(
            &format!("{name}, warm"),
            median(warm),
            Goal::AtMost(warm_max),
        );
    }
    Ok(())
}

/// Asks a question, and returns how long a good answer took.
fn ask(server: &Server, path: &str) -> Result<std::time::Duration, Failure> {
    let reply = Client::connect(server.address)?.get(path, OPERATOR_TOKEN)?;
    if reply.status != 200 {
        return Err(format!("{path}: {}", reply.describe()).into());
    }
    Ok(reply.elapsed)
}
