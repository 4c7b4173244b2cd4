//! An operator's questions about an organization of half a year: a run, the failures of a
//! repository, a Session, a commit.
//!
//! Each question is about a different fact every time, so nothing is answered from what the last
//! one left behind. "First" is the first question to a server that has just started. The operating
//! system's file cache is kept.

use std::fmt::Write as _;
use std::time::Duration;

use svc_model::id::RunId;
use svc_model::ingest::CiResult;
use svc_model::query::{
    CiCursor, CiFailuresRequest, CiOutcomeRequest, CommitRequest, PageLimit, RepositorySelector,
};
use svc_model::request::{Outgoing, Request as _};
use svc_model::time::Instant;

use crate::generator::WindowCounts;
use crate::http::Client;
use crate::population::{LARGE_CALLS, NamedRepository, Population, RUNS, WORKFLOWS, mix};
use crate::process::Memory;
use crate::report::{Goal, Report, Unit, median};
use crate::scenario::{Bench, OPERATOR_TOKEN, Stage};
use crate::{Backend, Failure};

/// How often a question is asked of a warm server.
const ROUNDS: u64 = 400;
/// How many questions of each kind warm up a server.
const WARMING: u64 = 20;
/// How many times a server is started for the first question of each kind.
const STARTS: u64 = 5;
const GOAL: Goal = Goal::AtMost(10.0);
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// A kind of question: its name, how its path is derived from a number, and how a good answer
/// begins or what it contains.
struct Question {
    name: &'static str,
    path: Box<dyn Fn(u64) -> Result<String, Failure>>,
    holds: String,
}

/// Writes the organization and asks the questions.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("investigate", backend.name());
    let population = Population::new(bench.arguments.population)?;
    let stage = bench.stage("investigate", backend, None)?;
    let took = population.write(&stage.store.url())?;
    let bytes = stage.store.bytes()?;
    report.note(&format!(
        "{} CI outcomes, {} pushes, {} Sessions, written in {:.0} s, {:.0} MiB",
        population.pushes * RUNS,
        population.pushes,
        population.sessions,
        took.as_secs_f64(),
        bytes as f64 / MEBIBYTE,
    ));
    let questions = questions(population);
    for question in &questions {
        first(&stage, report, question)?;
    }
    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    for question in &questions {
        for number in 0..WARMING {
            ask(&mut client, question, 1_000_000 + number)?;
        }
        let mut times = WindowCounts::default();
        for number in 0..ROUNDS {
            let elapsed = ask(&mut client, question, number)?;
            times.latencies.push(elapsed.as_micros() as u32);
        }
        times.latencies.sort_unstable();
        let p50 = format!("{}, p50", question.name);
        report.milliseconds(&p50, times.percentile(0.5), GOAL);
        let p99 = format!("{}, p99", question.name);
        report.milliseconds(&p99, times.percentile(0.99), Goal::None);
    }
    walk(&mut client, report, population)?;
    let memory = Memory::of(server.id())?;
    report.figure(
        "server memory afterwards",
        memory.resident as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::None,
    );
    drop(client);
    server.stop()
}

fn first(stage: &Stage<'_>, report: &mut Report, question: &Question) -> Result<(), Failure> {
    let mut times = Vec::new();
    for start in 0..STARTS {
        let server = stage.start()?;
        let mut client = Client::connect(server.address)?;
        times.push(ask(&mut client, question, 2_000_000 + start)?);
        drop(client);
        server.stop()?;
    }
    let name = format!("{}, first", question.name);
    report.milliseconds(&name, median(times), Goal::None);
    Ok(())
}

fn ask(client: &mut Client, question: &Question, number: u64) -> Result<Duration, Failure> {
    let reply = client.get(&(question.path)(number)?, OPERATOR_TOKEN)?;
    let text = String::from_utf8_lossy(&reply.body);
    if reply.status == 200 && text.contains(&question.holds) {
        return Ok(reply.elapsed);
    }
    Err(format!("{}: {}", question.name, reply.describe()).into())
}

/// Reads all failures of the shared repository, in pages of a hundred.
fn walk(client: &mut Client, report: &mut Report, population: Population) -> Result<(), Failure> {
    let mut request = failures(&population, by_name(&Population::shared()));
    request.limit = PageLimit::new(100).ok_or("a limit")?;
    let mut times = WindowCounts::default();
    let mut outcomes = 0;
    loop {
        let path = target("/query/ci/failures", &request.write()?);
        let reply = client.get(&path, OPERATOR_TOKEN)?;
        let page = reply.json()?;
        times.latencies.push(reply.elapsed.as_micros() as u32);
        outcomes += page["outcomes"].as_array().map_or(0, Vec::len);
        match page["next_cursor"].as_str() {
            Some(cursor) => request.cursor = Some(CiCursor::new(cursor)),
            None => break,
        }
    }
    times.latencies.sort_unstable();
    report.note(&format!(
        "{outcomes} failures of the shared repository in {} pages",
        times.latencies.len()
    ));
    report.milliseconds("failures, pages of 100, p50", times.percentile(0.5), GOAL);
    report.milliseconds(
        "failures, pages of 100, p99",
        times.percentile(0.99),
        Goal::None,
    );
    Ok(())
}

fn questions(population: Population) -> Vec<Question> {
    // Any push, but the same one for the same number.
    let any = move |number: u64| mix(number, 71) % population.pushes;
    let observed = move |number: u64| {
        let session = mix(number, 72) % population.sessions;
        (session, population.first_push(session))
    };
    let question =
        |name, holds: &str, path: Box<dyn Fn(u64) -> Result<String, Failure>>| Question {
            name,
            path,
            holds: holds.to_owned(),
        };
    vec![
        question(
            "outcome",
            "\"found\":true",
            Box::new(move |number| outcome(any(number), number, RepositorySelector::default())),
        ),
        question(
            "outcome, by name",
            "\"found\":true",
            Box::new(move |number| {
                let push = any(number);
                outcome(push, number, by_name(&population.repository(push)))
            }),
        ),
        question(
            "outcome, by identity",
            "\"found\":true",
            Box::new(move |number| {
                let push = identified(&population, any(number))?;
                outcome(push, number, by_identity(&population.repository(push)))
            }),
        ),
        question(
            "failures, any repository, by name",
            "\"result\":\"failed\"",
            Box::new(move |number| {
                let repository = population.repository(any(number));
                page(&failures(&population, by_name(&repository)))
            }),
        ),
        question(
            "failures, renamed repository, by identity",
            "\"run_id\":",
            Box::new(move |number| {
                let push = population
                    .nearest(any(number), |repository| {
                        repository.name.as_str().contains("former")
                    })
                    .ok_or("no repository was renamed")?;
                page(&failures(
                    &population,
                    by_identity(&population.repository(push)),
                ))
            }),
        ),
        question(
            "failures, known by name alone",
            "\"result\":\"failed\"",
            Box::new(move |number| {
                let push = population
                    .nearest(any(number), |repository| repository.identity.is_none())
                    .ok_or("every repository has an identity")?;
                page(&failures(
                    &population,
                    by_name(&population.repository(push)),
                ))
            }),
        ),
        question(
            "failures, shared repository, a week",
            "\"run_id\":",
            Box::new(move |number| {
                let mut request = failures(&population, by_name(&Population::shared()));
                let end = population.pushes / 10 + mix(number, 73) % (population.pushes * 9 / 10);
                request.captured_before = population.pushed_at(end);
                request.captured_after = population.pushed_at(end - population.pushes / 26);
                page(&request)
            }),
        ),
        question(
            "failures, shared repository, one workflow",
            "\"run_id\":",
            Box::new(move |number| {
                let mut request = failures(&population, by_name(&Population::shared()));
                let workflow = mix(number, 74) % RUNS;
                request.workflow_name = Some(WORKFLOWS[workflow as usize].to_owned());
                page(&request)
            }),
        ),
        question(
            "failures, shared repository, a rare result",
            "\"result\":\"timed_out\"",
            Box::new(move |number| {
                let mut request = failures(&population, by_name(&Population::shared()));
                request.result = CiResult::TimedOut;
                request.captured_before = population.pushed_at(population.pushes + number % 999);
                page(&request)
            }),
        ),
        question(
            "session",
            "\"attributed_commits\":[{",
            Box::new(move |number| {
                Ok(format!(
                    "/query/session/{}",
                    Population::session(observed(number).0)
                ))
            }),
        ),
        question(
            "session, 490 calls and 100 commits",
            &format!("\"total\":{LARGE_CALLS}"),
            Box::new(|_| Ok(format!("/query/session/{}", Population::large_session()))),
        ),
        question(
            "commit, observed",
            "\"attributed\":true",
            Box::new(move |number| commit(observed(number).1, RepositorySelector::default(), None)),
        ),
        question(
            "commit, by name",
            "\"repos\":[{",
            Box::new(move |number| {
                let push = any(number);
                commit(push, by_name(&population.repository(push)), None)
            }),
        ),
        question(
            "commit, by identity, an earlier moment",
            "\"repos\":[{",
            Box::new(move |number| {
                let push = identified(&population, any(number))?;
                let as_of = population.pushed_at(push + 1);
                commit(push, by_identity(&population.repository(push)), Some(as_of))
            }),
        ),
    ]
}

fn identified(population: &Population, push: u64) -> Result<u64, Failure> {
    population
        .nearest(push, |repository| repository.identity.is_some())
        .ok_or_else(|| "no repository has an identity".into())
}

fn by_name(repository: &NamedRepository) -> RepositorySelector {
    RepositorySelector::named(repository.name.clone())
}

fn by_identity(repository: &NamedRepository) -> RepositorySelector {
    RepositorySelector {
        repo: None,
        identity: repository.identity.clone(),
    }
}

fn outcome(push: u64, number: u64, repository: RepositorySelector) -> Result<String, Failure> {
    let run = mix(number, 75) % RUNS;
    let request = CiOutcomeRequest {
        provider: Population::run_provider(run),
        run_id: RunId::new(&Population::run_id(push, run))?,
        run_attempt: Population::run_attempt(run),
        latest: false,
        repository,
        as_of: None,
    };
    Ok(target("/query/ci/outcome", &request.write()?))
}

fn failures(population: &Population, repository: RepositorySelector) -> CiFailuresRequest {
    let begin = population.pushed_at(0);
    let end = population.pushed_at(population.pushes + 1_000);
    CiFailuresRequest::new(repository, begin, end)
}

fn page(request: &CiFailuresRequest) -> Result<String, Failure> {
    Ok(target("/query/ci/failures", &request.write()?))
}

fn commit(
    push: u64,
    repository: RepositorySelector,
    as_of: Option<Instant>,
) -> Result<String, Failure> {
    let request = CommitRequest {
        commit_sha: Population::commit(push),
        repository,
        as_of,
        explain: true,
    };
    let path = format!("/query/commit/{}", request.commit_sha);
    Ok(target(&path, &request.write()?))
}

/// Returns the path with a request's parameters.
fn target(path: &str, outgoing: &Outgoing) -> String {
    let mut target = format!("{path}?");
    for (name, value) in &outgoing.query {
        target.push_str(name);
        target.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                target.push(char::from(byte));
            } else {
                write!(target, "%{byte:02X}").expect("writing to a string cannot fail");
            }
        }
        target.push('&');
    }
    target.pop();
    target
}
