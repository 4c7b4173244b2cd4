//! The black-box cases of `cases/`, played on both backends.
//!
//! `cases/pending.txt` names the cases that need routes or commands which do not exist yet. They
//! are skipped; with `SVC_CASES_PENDING=1` they are played too, and one that passes fails the test,
//! so that the list can only shrink.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use harness::case::{self, Case};
use harness::pattern::Mismatch;
use harness::player;
use harness::server::{Backend, Configuration, Server, Store};

/// The variable that has the pending cases played.
const PENDING_VARIABLE: &str = "SVC_CASES_PENDING";

/// Makes two tests of each area, and the list of the areas.
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
    reports_decisions = "reports-decisions",
    reports_lifecycle = "reports-lifecycle",
    reports_scope = "reports-scope",
    smoke = "smoke",
}

/// Returns the cases that need what does not exist yet.
fn pending() -> BTreeSet<String> {
    let list = fs::read_to_string(case::folder().join("pending.txt")).expect("the pending list");
    list.lines().map(str::to_owned).collect()
}

fn play_area(area: &str, backend: Backend) {
    let pending = pending();
    let (left, cases): (Vec<Case>, Vec<Case>) = case::read(area)
        .into_iter()
        .partition(|case| pending.contains(&case.id()));
    let Some(outcomes) = play_all(&cases, backend) else {
        return;
    };
    say(&format!(
        "{area}: {} cases played, {} pending",
        cases.len(),
        left.len()
    ));
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

/// Plays cases, those of equal configuration on one server; nothing when the backend is skipped.
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

#[expect(clippy::print_stdout, reason = "what is skipped must be seen")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn the_pending_list_is_sorted_and_every_entry_is_a_case() {
    let list = fs::read_to_string(case::folder().join("pending.txt")).expect("the pending list");
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines.is_sorted_by(|first, second| first < second),
        "not sorted, or an entry twice"
    );
    let cases: BTreeSet<String> = case::areas()
        .iter()
        .flat_map(|area| case::read(area))
        .map(|case| case.id())
        .collect();
    let unknown: Vec<String> = pending().difference(&cases).cloned().collect();
    assert!(unknown.is_empty(), "no such cases: {unknown:#?}");
}

#[test]
fn every_area_with_a_playable_case_is_played() {
    let pending = pending();
    let playable: Vec<String> = case::areas()
        .into_iter()
        .filter(|area| {
            case::read(area)
                .iter()
                .any(|case| !pending.contains(&case.id()))
        })
        .collect();
    assert_eq!(
        playable, PLAYED,
        "the list of areas in this file is out of date"
    );
}

#[test]
fn no_pending_case_passes() {
    if std::env::var(PENDING_VARIABLE).is_ok_and(|wanted| wanted == "1") {
        let pending = pending();
        let cases: Vec<Case> = case::areas()
            .iter()
            .flat_map(|area| case::read(area))
            .filter(|case| pending.contains(&case.id()))
            .collect();
        let outcomes = play_all(&cases, Backend::Sqlite).expect("SQLite is never skipped");
        let passed: Vec<String> = outcomes
            .into_iter()
            .filter(|(_, outcome)| outcome.is_ok())
            .map(|(case, _)| case.id())
            .collect();
        assert!(
            passed.is_empty(),
            "to be taken off the pending list:\n{}",
            passed.join("\n")
        );
    } else {
        // Past the test runner, which hides what a passing test prints.
        let line = format!(
            "{} pending cases are not played ({PENDING_VARIABLE}=1)
",
            pending().len()
        );
        let _ignored = std::io::stderr().write_all(line.as_bytes());
    }
}
