//! What calls cost on disk, compared with what was sent: small calls with little that is new, and
//! sessions that send their history with every turn. Every payload is read back from the store and
//! compared byte by byte.

use std::time::{Duration, Instant};

use svc_engine::store::{DatabaseUrl, Ledger};
use svc_model::id::{FactId, OrgId};
use svc_model::json::{Json, to_vec};

use crate::conversation::{Conversation, Plan, Recorded, scale_for};
use crate::http::{Client, Request, expect_stored};
use crate::payload::{ModelMap, SingleCall};
use crate::report::{Goal, Report, Unit, grouped};
use crate::scenario::load::{SMALL_BODY, SMALL_SESSION};
use crate::scenario::{Bench, INGEST_TOKEN, ORGANIZATION};
use crate::session::{SessionCalls, plan_of_mean_body};
use crate::store::Store;
use crate::{Backend, Failure};

/// The number of small calls, and of texts that they use in turn. There are more texts than calls
/// in a session, so each text is new to it.
const SMALL_CALLS: u64 = 2_000;
const SMALL_TEXTS: u64 = 64;
/// The calls of the session of Claude Code, and the bytes of their bodies.
const RECORDED_TURNS: usize = 17;
const RECORDED_BYTES: f64 = 2_190_000.0;
/// The turns of the long session.
const LONG_TURNS: usize = 200;

/// The first session of a database starts a page of each table and index, and on PostgreSQL the
/// maps of their free space. The next session shows what a session adds.
const WHICH: [&str; 2] = ["", ", the next session"];

const KIBIBYTE: f64 = 1_024.0;
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// What was sent, and how much the database grew.
#[derive(Clone, Copy, Debug)]
struct DiskGrowth {
    sent: usize,
    grown: u64,
}

/// A stored call, and its payload as sent.
#[derive(Debug)]
struct SentCall {
    fact_id: FactId,
    payload: Json,
}

/// Measures each kind of traffic on a database of its own.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("disk", backend.name());
    small(bench, backend, report)?;
    recorded(bench, backend, report)?;
    long(bench, backend, report)
}

/// Measures calls of 5 KiB whose last message and answer are new: each from a different session,
/// and in sessions that continue.
fn small(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    for (sessions_of, what) in [(1, ""), (SMALL_SESSION, ", in sessions of 20")] {
        let mut calls: Vec<SingleCall> = (0..SMALL_TEXTS)
            .map(|seed| SingleCall::new_turn(seed, SMALL_BODY, INGEST_TOKEN))
            .collect();
        let [weighed] = weigh(bench, backend, report, SMALL_CALLS, |number, send| {
            send(calls[(number % SMALL_TEXTS) as usize].request(number / sessions_of, number))
        })?;
        report.figure(
            &format!("5 KiB, last message and answer new: a call{what}"),
            weighed.grown as f64 / SMALL_CALLS as f64,
            Unit::Bytes,
            Goal::AtMost(1_200.0),
        );
    }
    Ok(())
}

/// Measures sessions of Claude Code of the same size: in one, all bytes are messages; in the other,
/// every call repeats the tools.
fn recorded(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    let most = Goal::AtMost(90_000.0 / KIBIBYTE);
    for (what, with_tools, goal) in [("", false, most), (" with tools", true, Goal::None)] {
        let build = |scale| {
            let Recorded {
                conversation,
                tools,
            } = Recorded::new(RECORDED_TURNS, scale);
            let tools = if with_tools { &*tools } else { "" };
            let map = ModelMap::Full;
            SessionCalls::with_tools(&conversation, RECORDED_TURNS, map, tools, INGEST_TOKEN)
        };
        let mut calls = build(scale_for(RECORDED_BYTES, |scale| {
            build(scale).body_bytes() as f64
        }));
        let weighed: [DiskGrowth; 2] =
            sessions(bench, backend, report, &mut calls, RECORDED_TURNS)?;
        for (weighed, which) in weighed.into_iter().zip(WHICH) {
            let name = format!("{RECORDED_TURNS} of Claude Code{what}{which}");
            report.figure(
                &format!("{name}: database grew by"),
                weighed.grown as f64 / KIBIBYTE,
                Unit::Kibibytes,
                goal,
            );
            share(report, &name, weighed, Goal::None);
        }
    }
    Ok(())
}

/// Measures a session of 200 turns.
fn long(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    // Each turn adds as much as a turn in the sessions of the load scenario.
    let plan = Plan {
        turns: LONG_TURNS,
        ..plan_of_mean_body(40, 57 * 1_024)
    };
    let conversation = Conversation::new(&plan);
    let mut calls = SessionCalls::new(&conversation, LONG_TURNS, ModelMap::Full, INGEST_TOKEN);
    let weighed: [DiskGrowth; 2] = sessions(bench, backend, report, &mut calls, LONG_TURNS)?;
    for (weighed, which) in weighed.into_iter().zip(WHICH) {
        let name = format!("{LONG_TURNS} turns{which}");
        report.figure(
            &format!("{name}: database grew by"),
            weighed.grown as f64 / MEBIBYTE,
            Unit::Mebibytes,
            Goal::None,
        );
        share(report, &name, weighed, Goal::AtLeast(60.0));
    }
    Ok(())
}

/// Sends one session after another. Every message is new.
fn sessions<const SESSIONS: usize>(
    bench: &Bench,
    backend: Backend,
    report: &Report,
    calls: &mut SessionCalls,
    turns: usize,
) -> Result<[DiskGrowth; SESSIONS], Failure> {
    let turns = turns as u64;
    weigh(bench, backend, report, turns, |number, send| {
        if number % turns == 0 {
            calls.begin_session(1 + number / turns);
        }
        send(calls.request((number % turns) as usize, number))
    })
}

fn share(report: &mut Report, name: &str, weighed: DiskGrowth, goal: Goal) {
    report.figure(
        &format!("{name}: sent"),
        weighed.sent as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::None,
    );
    report.figure(
        &format!("{name}: of the bytes sent"),
        weighed.sent as f64 / weighed.grown as f64,
        Unit::OnePartOf,
        goal,
    );
}

/// Sends requests, by number, to a new database, one after the other, in `TIMES` groups. Measures
/// the database before and after each group, with the server stopped, and reads every payload back.
fn weigh<const TIMES: usize>(
    bench: &Bench,
    backend: Backend,
    report: &Report,
    requests: u64,
    mut request: impl FnMut(
        u64,
        &mut dyn FnMut(Request<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure>,
) -> Result<[DiskGrowth; TIMES], Failure> {
    let stage = bench.stage("disk", backend, None)?;
    stage.start()?.stop()?;
    let empty = stage.store.bytes()?;
    let mut before = empty;
    let mut all = Vec::new();
    let mut weighed = [DiskGrowth { sent: 0, grown: 0 }; TIMES];
    for (weighed, first) in weighed.iter_mut().zip((0..).step_by(requests as usize)) {
        let server = stage.start()?;
        let mut client = Client::connect(server.address)?;
        for number in first..first + requests {
            request(number, &mut |request| {
                weighed.sent += request.body_length;
                let sent = request.pieces.concat();
                let reply = client.send(request)?;
                expect_stored(reply.status, &reply.body)?;
                let body = &sent[sent.len() - request.body_length..];
                all.push(SentCall::new(body, &reply.json()?)?);
                Ok(())
            })?;
        }
        drop(client);
        server.stop()?;
        let after = stage.store.bytes()?;
        weighed.grown = after.saturating_sub(before);
        before = after;
        if weighed.grown == 0 {
            return Err("the database did not grow".into());
        }
    }
    let slowest = read_back(&stage.store, &all)?;
    report.note(&format!(
        "{} calls in a database that has {:.2} MiB when it is empty; all payloads were read back byte by byte, the slowest \
         in {:.2} ms",
        grouped(all.len() as f64),
        empty as f64 / MEBIBYTE,
        slowest.as_secs_f64() * 1e3,
    ));
    Ok(weighed)
}

impl SentCall {
    fn new(body: &[u8], receipt: &serde_json::Value) -> Result<Self, Failure> {
        let fact_id = receipt["fact_id"]
            .as_str()
            .ok_or("a receipt without an id")?;
        let mut body = Json::parse(body)?.into_object().ok_or("no object")?;
        Ok(Self {
            fact_id: serde_json::from_value(fact_id.into())?,
            payload: body.remove("payload").ok_or("no payload")?,
        })
    }
}

/// Compares each stored payload with what was sent, and returns how long the slowest one took to
/// read.
fn read_back(store: &Store<'_>, all: &[SentCall]) -> Result<Duration, Failure> {
    let ledger = Ledger::open(
        &DatabaseUrl::parse(&store.url())?,
        OrgId::new(ORGANIZATION)?,
    )?;
    let mut slowest = Duration::ZERO;
    for sent in all {
        let begin = Instant::now();
        let stored = ledger.snapshot()?.call_raw(sent.fact_id)?;
        slowest = slowest.max(begin.elapsed());
        if stored.as_deref() != Some(&to_vec(&sent.payload, usize::MAX)?) {
            return Err(format!("call {} is not stored as it was sent", sent.fact_id).into());
        }
    }
    Ok(slowest)
}
