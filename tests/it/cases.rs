//! The black-box cases of `cases/`, played on both backends.

use harness::case::{self, Case};
use harness::pattern::Mismatch;
use harness::player;
use harness::server::{Backend, Configuration, Server, Store};

/// Creates two tests for each area, and the list of the areas.
macro_rules! areas {
    ($($name:ident = $area:literal),+ $(,)?) => {
        const PLAYED: &[&str] = &[$($area),+];
        $(
            mod $name {
                #[test]
                fn sqlite() {
                    super::play_area($area, harness::server::Backend::Sqlite);
                }

                #[test]
                fn postgres() {
                    super::play_area($area, harness::server::Backend::Postgres);
                }
            }
        )+
    };
}

areas! {
    evidence_context = "evidence-context",
    evidence_limits = "evidence-limits",
    evidence_operator = "evidence-operator",
    evidence_scan_limits = "evidence-scan-limits",
    forge_ci = "forge-ci",
    forge_http = "forge-http",
    forge_mirror = "forge-mirror",
    forge_pull_request = "forge-pull-request",
    forge_push = "forge-push",
    forge_repository = "forge-repository",
    ingest_access = "ingest-access",
    ingest_gateway = "ingest-gateway",
    ingest_logs = "ingest-logs",
    query_auth = "query-auth",
    query_beyond = "query-beyond",
    query_ci = "query-ci",
    query_cli = "query-cli",
    query_commit = "query-commit",
    query_facts = "query-facts",
    query_quarantine = "query-quarantine",
    query_session = "query-session",
    reports_attribution = "reports-attribution",
    reports_ci = "reports-ci",
    reports_cli = "reports-cli",
    reports_decisions = "reports-decisions",
    reports_differential = "reports-differential",
    reports_lifecycle = "reports-lifecycle",
    reports_scope = "reports-scope",
    smoke = "smoke",
}

fn play_area(area: &str, backend: Backend) {
    let cases = case::read(area);
    let Some(outcomes) = play_all(&cases, backend) else {
        return;
    };
    let failures: Vec<String> = outcomes
        .into_iter()
        .filter_map(|(case, outcome)| Some(format!("{}: {}", case.name, outcome.err()?)))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases of {area} fail:\n  {}",
        failures.len(),
        cases.len(),
        failures.join("\n  ")
    );
}

type Outcome<'a> = (&'a Case, Result<(), Mismatch>);

/// Plays cases, those with equal configurations on one server. Returns `None` if the backend is
/// skipped.
fn play_all(cases: &[Case], backend: Backend) -> Option<Vec<Outcome<'_>>> {
    let mut groups: Vec<(&Configuration, Vec<&Case>)> = Vec::new();
    for case in cases {
        let known = groups.iter_mut().find(|(configuration, cases)| {
            **configuration == case.configuration && !case.isolated && !cases[0].isolated
        });
        match known {
            Some((_, cases)) => cases.push(case),
            None => groups.push((&case.configuration, vec![case])),
        }
    }
    let mut outcomes = Vec::new();
    for (configuration, cases) in groups {
        match Server::try_start_on(&Store::create(backend)?, configuration) {
            Ok(server) => outcomes.extend(
                cases
                    .into_iter()
                    .map(|case| (case, player::play(case, &server))),
            ),
            Err(log) => {
                let reason = Mismatch(format!("the server did not start: {log}"));
                outcomes.extend(cases.into_iter().map(|case| (case, Err(reason.clone()))));
            }
        }
    }
    Some(outcomes)
}

#[test]
fn every_area_is_played() {
    assert_eq!(
        case::areas(),
        PLAYED,
        "the list of areas in this file is out of date"
    );
}
