//! What a long session costs on disk: it sends its history with every turn, and the store must not keep it each time.

use crate::conversation::{Conversation, Plan};
use crate::http::{Client, expect_stored};
use crate::payload::{ModelMap, SessionCalls, plan_of_mean_body};
use crate::report::{Goal, Report, Unit};
use crate::scenario::{Bench, INGEST_TOKEN};
use crate::{Backend, Failure};

const TURNS: usize = 200;
const MEBIBYTE: f64 = 1_024.0 * 1_024.0;

/// Sends one session and weighs the database before and after, with the server stopped.
pub(crate) fn measure(bench: &Bench, backend: Backend, report: &mut Report) -> Result<(), Failure> {
    report.begin("disk", backend.name());
    // Each turn adds what a turn of the sessions of the load adds.
    let plan = Plan {
        turns: TURNS,
        ..plan_of_mean_body(40, 57 * 1_024)
    };
    let mut calls = SessionCalls::new(
        &Conversation::new(&plan),
        TURNS,
        ModelMap::Full,
        INGEST_TOKEN,
    );
    calls.begin_session(1);

    let stage = bench.stage("disk", backend, None)?;
    stage.start()?.stop()?;
    let empty = stage.store.bytes()?;
    let server = stage.start()?;
    let mut client = Client::connect(server.address)?;
    let mut sent = 0;
    for turn in 0..calls.call_count() {
        let request = calls.request(turn, turn as u64);
        sent += request.body_length;
        let reply = client.send(request)?;
        expect_stored(reply.status, &reply.body)?;
    }
    drop(client);
    server.stop()?;
    let grown = stage.store.bytes()?.saturating_sub(empty);
    if grown == 0 {
        return Err("the database did not grow".into());
    }

    report.note(&format!(
        "one session of {TURNS} turns; the empty database has {:.2} MiB",
        empty as f64 / MEBIBYTE
    ));
    report.figure("sent", sent as f64 / MEBIBYTE, Unit::Mebibytes, Goal::None);
    report.figure(
        "database grew by",
        grown as f64 / MEBIBYTE,
        Unit::Mebibytes,
        Goal::None,
    );
    report.figure(
        "of the bytes sent",
        sent as f64 / grown as f64,
        Unit::OnePartOf,
        Goal::AtLeast(20.0),
    );
    Ok(())
}
