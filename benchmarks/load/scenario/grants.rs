//! What stored grants cost: the same questions and the same load with and without them, in turn.
//!
//! One server answers each question for three tokens that may read the same session: by the
//! settings, by a grant of the session, and by a rule. The tokens take turns, and a different one
//! begins each round, so whatever else the machine does affects all three alike. Meanwhile, other
//! tokens have a thousand grants.

use std::time::Duration;

use serde_json::{Value, json};

use super::load::{self, Traffic};
use super::retrieval::{self, DISCOVER, SESSION};
use crate::http::{Client, Reply};
use crate::payload::session_id;
use crate::report::{Goal, Report, Unit, median};
use crate::scenario::{Bench, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Stage};
use crate::{Backend, Failure};

/// The tokens with stored grants: for the session, for the rule, and others.
const BY_SESSION: &str = "4444444444444444444444444444444eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
const BY_RULE: &str = "5555555555555555555555555555555fffffffffffffffffffffffffffffffff";
/// How many other tokens have grants, and how many each has.
const OTHERS: usize = 32;
const GRANTS_OF_EACH: usize = 32;
/// The user of every session in the load.
const USER: &str = "developer-7";
/// The number of questions per token.
const ROUNDS: usize = 300;
const SEARCHES: usize = 60;
/// The maximum cost of a grant relative to the configured set, for reads and for ingest.
const COST_MAX: f64 = 1.03;
const RATE_MIN: f64 = 0.97;

/// Measures reads and ingest.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("grants", backend.name());
    report.note(&format!(
        "{} stored grants of other tokens; medians of questions in turns",
        OTHERS * GRANTS_OF_EACH
    ));
    reads(bench, backend, report)?;
    ingest(bench, backend, report)
}

fn reads(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let mut stage = bench.stage("grants", backend, Some(&session_id(SESSION)))?;
    name_tokens(&mut stage);
    let (last_call, last_input) = retrieval::plant_growing(&stage)?;
    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    grant(&mut client)?;

    let search = |number: usize| {
        let query = format!("why did the pager {number} break");
        Question::Post(DISCOVER, json!({"schema_version": 1, "query": query}))
    };
    in_turns(report, "discover", &mut client, SEARCHES, search)?;
    let references: Vec<Value> = (0..16)
        .map(|index| {
            let message = index * last_input / 16;
            json!({"inference_call_id": last_call, "side": "input", "message_index": message, "part_index": 0})
        })
        .collect();
    for (name, count) in [("read of one part", 1), ("read of 16 parts", 16)] {
        let body = json!({
            "schema_version": 1, "session_id": session_id(SESSION), "references": references[..count],
        });
        let read = |_| Question::Post("/query/context/evidence/read", body.clone());
        in_turns(report, name, &mut client, ROUNDS, read)?;
    }
    let path = format!("/query/context/evidence?session_id={}", session_id(SESSION));
    in_turns(report, "inventory", &mut client, ROUNDS, |_| {
        Question::Get(path.clone())
    })?;
    drop(client);
    server.stop()
}

enum Question {
    Get(String),
    Post(&'static str, Value),
}

/// Asks each question with every token, and prints the medians side by side.
fn in_turns(
    report: &mut Report,
    name: &str,
    client: &mut Client,
    rounds: usize,
    question: impl Fn(usize) -> Question,
) -> Result<(), Failure> {
    let tokens = [
        ("configured", RETRIEVAL_TOKEN),
        ("granted by Session", BY_SESSION),
        ("granted by rule", BY_RULE),
    ];
    let mut times: [Vec<Duration>; 3] = [const { Vec::new() }; 3];
    // The first rounds fill the caches.
    let warm_up = rounds / 10 + 3;
    for round in 0..warm_up + rounds {
        for turn in 0..tokens.len() {
            let place = (round + turn) % tokens.len();
            let token = tokens[place].1;
            let reply = match question(round) {
                Question::Get(path) => client.get(&path, token)?,
                Question::Post(path, body) => client.post(path, token, &body)?,
            };
            expect(&reply)?;
            if round >= warm_up {
                times[place].push(reply.elapsed);
            }
        }
    }
    let medians = times.map(median);
    for ((token, _), time) in tokens.iter().zip(medians) {
        report.milliseconds(&format!("{name}: {token}"), time, Goal::None);
    }
    let configured = medians[0].as_secs_f64().max(f64::MIN_POSITIVE);
    for ((token, _), time) in tokens.iter().zip(medians).skip(1) {
        let times = time.as_secs_f64() / configured;
        let name = format!("{name}: {token}, of configured");
        report.figure(&name, times, Unit::Times, Goal::AtMost(COST_MAX));
    }
    Ok(())
}

/// Plays the same load without named tokens and with named tokens that have grants, in turn.
fn ingest(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for repetition in 0..bench.arguments.repetitions.max(1) {
        for turn in 0..2 {
            let is_named = (repetition + turn) % 2 == 1;
            let mut stage = bench.stage("grants-ingest", backend, None)?;
            if is_named {
                name_tokens(&mut stage);
            }
            let server = stage.start()?;
            if is_named {
                grant(&mut Client::connect(server.address)?)?;
            }
            let run = load::measure(bench, &server, Some(&stage.store), &Traffic::Small)?;
            server.stop()?;
            let rates = if is_named { &mut with } else { &mut without };
            rates.push(run.rate);
        }
    }
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates
            .get(rates.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or_default()
    };
    let (without, with) = (middle(&mut without), middle(&mut with));
    report.figure(
        "gateway calls: no named token",
        without,
        Unit::PerSecond,
        Goal::None,
    );
    report.figure(
        "gateway calls: named tokens and grants",
        with,
        Unit::PerSecond,
        Goal::None,
    );
    let times = with / without.max(f64::MIN_POSITIVE);
    let goal = Goal::AtLeast(RATE_MIN);
    report.figure("gateway calls: with, of without", times, Unit::Times, goal);
    Ok(())
}

/// Adds the named tokens to the settings.
fn name_tokens(stage: &mut Stage<'_>) {
    let mut tokens = json!({"session": BY_SESSION, "rule": BY_RULE});
    for other in 0..OTHERS {
        tokens[format!("other-{other}")] = format!("{other:0>60}6").into();
    }
    let settings = &mut stage.launch.settings;
    settings.push(("SVC_RETRIEVAL_TOKENS", tokens.to_string()));
}

/// Grants the session to one token and its user to another, and to each of the others as much as it
/// may have.
fn grant(client: &mut Client) -> Result<(), Failure> {
    let mut add = |token: &str, what: &str, value: &str| {
        let body = json!({"token": token, what: value, "reason": "measured"});
        expect(&client.post("/v1/grants/add", OPERATOR_TOKEN, &body)?)
    };
    add("session", "session_id", &session_id(SESSION))?;
    add("rule", "user_id", USER)?;
    for other in 0..OTHERS {
        let token = format!("other-{other}");
        for number in 0..GRANTS_OF_EACH {
            // Half of them are rules.
            let what = if number % 2 == 0 {
                "session_id"
            } else {
                "user_id"
            };
            add(&token, what, &format!("{token}-{number}"))?;
        }
    }
    Ok(())
}

fn expect(reply: &Reply) -> Result<(), Failure> {
    if reply.status == 200 {
        return Ok(());
    }
    Err(reply.describe().into())
}
