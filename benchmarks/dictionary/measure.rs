//! What calls take on disk: all tables and indexes of a SQLite file.

use std::error::Error;

use svc_engine::clock::Ids;
use svc_engine::store::Append;
use svc_engine::testing::{Backend, TestStore};
use svc_model::json::Json;

use crate::{capture, payload};

/// Measures calls that share nothing but their frame, and sessions that send their history.
pub(crate) fn measure() -> Result<(), Box<dyn Error>> {
    let single: Vec<String> = (1_000_000..1_002_000).map(payload::question).collect();
    weigh("2000 calls whose last message and answer are new", &single)?;
    weigh(
        "a session of 17 calls",
        &payload::session(2_000_000, 17, 9.0),
    )?;
    weigh(
        "a session of 200 calls",
        &payload::session(2_000_001, 200, 4.0),
    )
}

fn weigh(what: &str, payloads: &[String]) -> Result<(), Box<dyn Error>> {
    let database = TestStore::create(Backend::Sqlite).ok_or("SQLite is never skipped")?;
    let ids = Ids::random();
    let store = database.open("acme");
    let mut sent = 0;
    for payload in payloads {
        sent += payload.len() as u64;
        let call = capture(Json::parse(payload.as_bytes())?, &ids)?.ok_or("it has a session")?;
        let id = call.inference_call_id;
        let raw = call.raw.payload.to_canonical();
        let encoded = store.encode(
            call,
            svc_model::time::Instant::from_microseconds(1).ok_or("in range")?,
        );
        store.append_now(vec![Append::InferenceCall(Box::new(encoded))])?;
        if store.snapshot_now().call_raw(id)?.as_deref() != Some(&raw[..]) {
            return Err("a payload did not come back as it was".into());
        }
    }
    store.close();
    drop(store);
    // All pages, those of the empty tables left out.
    let tables = database.rows(
        "SELECT name, CAST(SUM(pgsize) AS TEXT), CAST(SUM(payload) AS TEXT) FROM dbstat
         WHERE name NOT LIKE 'sqlite_schema' GROUP BY name HAVING SUM(payload) > 0
         ORDER BY SUM(pgsize) DESC",
        3,
    );
    let pages = tables
        .iter()
        .filter_map(|row| row.get(1)?.parse::<u64>().ok());
    let stored: u64 = pages.sum();
    println!(
        "{what}: {sent} bytes sent, {stored} stored (1/{}), {} a call",
        sent / stored.max(1),
        stored / payloads.len() as u64
    );
    println!("  table or index, bytes of its pages, bytes in use");
    for row in tables {
        println!("  {}", row.join("  "));
    }
    Ok(())
}
