//! Searching and reading one large session, as an agent does that resumes earlier work.
//!
//! The session has 100 calls with 15,000 part occurrences and 13 MiB of canonical messages. In the
//! first variant they are a growing history, as agents send it, with about 300 distinct parts, each
//! in up to 100 calls. In the second and harder variant, no two calls share a message, as if every
//! call were from a different sub-agent.

use std::time::Duration;

use serde_json::{Value, json};

use crate::conversation::{Conversation, Plan, scale_for};
use crate::generator::Numbers;
use crate::http::{Client, Reply, expect_stored};
use crate::payload::{ModelMap, session_id};
use crate::process::{Memory, Server};
use crate::report::{Goal, Report, Unit, median};
use crate::scenario::{Bench, INGEST_TOKEN, RETRIEVAL_TOKEN, Stage};
use crate::session::SessionCalls;
use crate::text::TOPICS;
use crate::{Backend, Failure};

const CALLS: usize = 100;
const PARTS: usize = 15_000;
const CANONICAL_BYTES: usize = 13 * 1_024 * 1_024;
const RESTARTS: usize = 5;
const WARM_ROUNDS: usize = 50;
const REFERENCES: usize = 16;
pub(super) const SESSION: u64 = 0;

const SELECTED: &str = "/query/context/selected";
pub(super) const DISCOVER: &str = "/query/context/discover";

/// The calls of the session, ready to be sent.
#[derive(Debug)]
struct PlannedCalls {
    /// Each call is the last one of one of these.
    calls: Vec<SessionCalls>,
    parts: usize,
    canonical_bytes: usize,
    /// The number of messages that the last call sends.
    last_input: usize,
}

/// Measures both variants.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("retrieval", backend.name());
    let none = Goals {
        cold: Goal::None,
        warm: Goal::None,
        read: Goal::None,
    };
    let goals = Goals {
        cold: Goal::AtMost(60.0),
        warm: Goal::AtMost(10.0),
        read: Goal::AtMost(3.0),
    };
    variant(bench, backend, report, growing(), goals)?;
    report.begin("retrieval-distinct", backend.name());
    variant(bench, backend, report, distinct(), none)
}

#[derive(Clone, Copy, Debug)]
struct Goals {
    cold: Goal,
    warm: Goal,
    read: Goal,
}

fn variant(
    bench: &Bench,
    backend: Backend,
    report: &mut Report,
    mut planned: PlannedCalls,
    goals: Goals,
) -> Result<(), Failure> {
    report.note(&format!(
        "{CALLS} calls, {} part occurrences, {:.2} MiB of canonical messages",
        planned.parts,
        planned.canonical_bytes as f64 / 1_024.0 / 1_024.0,
    ));
    let stage = bench.stage("retrieval", backend, Some(&session_id(SESSION)))?;
    let last_call = plant(&stage, &mut planned)?;

    let mut queries = Queries::default();
    for (path, name) in [
        (SELECTED, "selected, first after a start"),
        (DISCOVER, "discover, first after a start"),
    ] {
        let mut times = Vec::with_capacity(RESTARTS);
        for _ in 0..RESTARTS {
            let server = stage.start()?;
            let mut client = Client::connect(server.address)?;
            times.push(search(&mut client, path, &queries.next(), &planned)?);
            drop(client);
            server.stop()?;
        }
        report.milliseconds(name, median(times), goals.cold);
    }

    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    for (path, name) in [(SELECTED, "selected, warm"), (DISCOVER, "discover, warm")] {
        let mut search = |query: &str| search(&mut client, path, query, &planned);
        search(&queries.next())?;
        report.milliseconds(name, repeat(|| search(&queries.next()))?, goals.warm);
    }
    warm_reads(
        report,
        &mut client,
        &server,
        &planned,
        &last_call,
        goals.read,
    )?;
    drop(client);
    server.stop()
}

fn warm_reads(
    report: &mut Report,
    client: &mut Client,
    server: &Server,
    planned: &PlannedCalls,
    last_call: &str,
    goal: Goal,
) -> Result<(), Failure> {
    let session = session_id(SESSION);
    let broad = repeat(|| {
        let reply = client.post(
            SELECTED,
            RETRIEVAL_TOKEN,
            &selected_body("error result value request session"),
        )?;
        // The state limit may refuse it. How soon it says so is just as informative.
        if matches!(reply.status, 200 | 409) {
            Ok(reply.elapsed)
        } else {
            Err(describe(&reply))
        }
    })?;
    report.milliseconds("selected, warm, words of most parts", broad, Goal::None);

    let inventory = repeat(|| {
        let reply = client.get(
            &format!("/query/context/evidence?session_id={session}"),
            RETRIEVAL_TOKEN,
        )?;
        expect_count(&reply, &reply.json()?["calls"], CALLS)
    })?;
    report.milliseconds("inventory", inventory, goal);
    let manifest = repeat(|| {
        let path = format!(
            "/query/context/evidence/manifest?session_id={session}&inference_call_id={last_call}"
        );
        let reply = client.get(&path, RETRIEVAL_TOKEN)?;
        expect_count(&reply, &reply.json()?["messages"], planned.last_input + 1)
    })?;
    report.milliseconds("manifest of the last call", manifest, goal);
    let references: Vec<Value> = (0..REFERENCES)
        .map(|index| {
            let message = index * planned.last_input / REFERENCES;
            json!({"inference_call_id": last_call, "side": "input", "message_index": message, "part_index": 0})
        })
        .collect();
    let body = json!({"schema_version": 1, "session_id": session, "references": references});
    let read = repeat(|| {
        let reply = client.post("/query/context/evidence/read", RETRIEVAL_TOKEN, &body)?;
        expect_count(&reply, &reply.json()?["items"], REFERENCES)
    })?;
    report.milliseconds("read of 16 parts of the last call", read, goal);
    let memory = Memory::of(server.id())?;
    report.figure(
        "server memory afterwards",
        memory.resident as f64 / 1_024.0 / 1_024.0,
        Unit::Mebibytes,
        Goal::None,
    );
    Ok(())
}

/// Stores the session that grows. Returns the id of its last call, and how many messages that call
/// sends.
pub(super) fn plant_growing(stage: &Stage<'_>) -> Result<(String, usize), Failure> {
    let mut planned = growing();
    let last_call = plant(stage, &mut planned)?;
    Ok((last_call, planned.last_input))
}

/// Sends the session through a server of its own, and returns the id of its last call.
fn plant(stage: &Stage<'_>, planned: &mut PlannedCalls) -> Result<String, Failure> {
    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    let numbers = Numbers::default();
    let mut last_call = None;
    for calls in &mut planned.calls {
        calls.begin_session(SESSION);
        for index in 0..calls.call_count() {
            let reply = client.send(calls.request(index, numbers.call()))?;
            expect_stored(reply.status, &reply.body)?;
            last_call = reply.json()?["fact_id"].as_str().map(str::to_owned);
        }
    }
    drop(client);
    server.stop()?;
    last_call.ok_or_else(|| "a stored call has no fact_id".into())
}

fn search(
    client: &mut Client,
    path: &str,
    query: &str,
    planned: &PlannedCalls,
) -> Result<Duration, Failure> {
    let body = if path == SELECTED {
        selected_body(query)
    } else {
        json!({"schema_version": 1, "query": query})
    };
    let reply = client.post(path, RETRIEVAL_TOKEN, &body)?;
    let value = reply.json()?;
    let coverage = &value["coverage"];
    if coverage["visible_inference_calls"] != CALLS
        || coverage["scanned_parts"] != planned.parts
        || value["status"] != "matched"
    {
        return Err(format!(
            "{path} did not search everything, or found nothing: {}",
            describe(&reply)
        )
        .into());
    }
    Ok(reply.elapsed)
}

fn selected_body(query: &str) -> Value {
    json!({"schema_version": 1, "session_id": session_id(SESSION), "query": query})
}

fn expect_count(reply: &Reply, list: &Value, count: usize) -> Result<Duration, Failure> {
    if list.as_array().map(Vec::len) == Some(count) {
        Ok(reply.elapsed)
    } else {
        Err(describe(reply))
    }
}

fn describe(reply: &Reply) -> Failure {
    let text: String = String::from_utf8_lossy(&reply.body)
        .chars()
        .take(600)
        .collect();
    format!("status {}: {text}", reply.status).into()
}

fn repeat(mut once: impl FnMut() -> Result<Duration, Failure>) -> Result<Duration, Failure> {
    Ok(median(
        (0..WARM_ROUNDS).map(|_| once()).collect::<Result<_, _>>()?,
    ))
}

/// Questions of four words that some parts contain. No two are the same.
#[derive(Debug, Default)]
struct Queries(usize);

impl Queries {
    fn next(&mut self) -> String {
        let word =
            |step: usize| TOPICS[(self.0 * 3 + step * (5 + self.0 / TOPICS.len())) % TOPICS.len()];
        let query = format!(
            "why did the {} {} break {} and {}",
            word(0),
            word(1),
            word(2),
            word(3)
        );
        self.0 += 1;
        query
    }
}

/// Returns one conversation of a hundred turns.
fn growing() -> PlannedCalls {
    let plan = |scale| Plan {
        seed: 1,
        first_word: 0,
        turns: CALLS,
        scale,
        silent: silent_turns(),
        user_every: 0,
    };
    let bytes = |scale| Conversation::new(&plan(scale)).canonical_bytes(&(0..CALLS));
    let conversation = Conversation::new(&plan(scale_for(CANONICAL_BYTES as f64, |scale| {
        bytes(scale) as f64
    })));
    PlannedCalls {
        parts: conversation.part_occurrences(0..CALLS),
        canonical_bytes: conversation.canonical_bytes(&(0..CALLS)),
        last_input: conversation.input(CALLS - 1).count(),
        calls: vec![SessionCalls::new(
            &conversation,
            CALLS,
            ModelMap::Full,
            INGEST_TOKEN,
        )],
    }
}

/// Returns the turns whose reply must lose its sentence so that the calls of [`growing`] have
/// [`PARTS`] parts.
fn silent_turns() -> Vec<usize> {
    // Two parts of the opening, three of each earlier turn, two of the reply.
    let mut excess = (0..CALLS).map(|turn| 2 + 3 * turn + 2).sum::<usize>() - PARTS;
    // A turn's sentence is in its own call and in all later ones.
    let mut silent = Vec::new();
    for turn in 0..CALLS {
        if CALLS - turn <= excess {
            excess -= CALLS - turn;
            silent.push(turn);
        }
    }
    silent
}

/// Returns the last calls of a hundred conversations, in one session.
fn distinct() -> PlannedCalls {
    // Two parts of the opening, three of each of 49 turns but one, two of the reply.
    const TURNS: usize = PARTS / CALLS / 3;
    let plan = |call: usize, scale| Plan {
        seed: 1_000 + call as u64,
        first_word: call as u32 * 990,
        turns: TURNS,
        scale,
        silent: vec![0],
        user_every: 0,
    };
    let all = |scale| (0..CALLS).map(move |call| Conversation::new(&plan(call, scale)));
    let last = TURNS - 1..TURNS;
    let bytes = |scale| {
        all(scale)
            .map(|conversation| conversation.canonical_bytes(&last))
            .sum::<usize>()
    };
    let scale = scale_for(CANONICAL_BYTES as f64, |scale| bytes(scale) as f64);
    PlannedCalls {
        parts: all(scale)
            .map(|conversation| conversation.part_occurrences(last.clone()))
            .sum(),
        canonical_bytes: bytes(scale),
        last_input: Conversation::new(&plan(CALLS - 1, scale))
            .input(TURNS - 1)
            .count(),
        calls: all(scale)
            .map(|conversation| SessionCalls::new(&conversation, 1, ModelMap::Full, INGEST_TOKEN))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_variants_have_the_wanted_parts_and_bytes() {
        for planned in [growing(), distinct()] {
            assert_eq!(planned.parts, PARTS);
            assert!(
                planned.canonical_bytes.abs_diff(CANONICAL_BYTES) < CANONICAL_BYTES / 200,
                "{}",
                planned.canonical_bytes
            );
            assert_eq!(
                planned
                    .calls
                    .iter()
                    .map(SessionCalls::call_count)
                    .sum::<usize>(),
                CALLS
            );
        }
    }

    #[test]
    fn no_two_questions_are_alike() {
        let mut queries = Queries::default();
        let all: std::collections::HashSet<String> = (0..120).map(|_| queries.next()).collect();
        assert_eq!(all.len(), 120);
    }
}
