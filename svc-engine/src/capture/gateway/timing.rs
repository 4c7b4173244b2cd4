//! How long capture takes. Run it in release with `--ignored --nocapture`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use svc_model::json::Json;

use super::testing::{json, request};
use super::{Captured, capture};
use crate::capture::redaction::{Counts, redact_json};
use crate::capture::{Receipt, Redaction};

const ARRAY: &str = include_str!("../../../../tests/fixtures/litellm/generic_api_json_array.json");
/// Ordinary source code, and such that is full of credentials.
const CLEAN: &str = include_str!("message.rs");
const DIRTY: &str = include_str!("../redaction/rewrite.rs");

/// Returns the shortest of many runs of `work`, each on a value of its own.
fn shortest<T>(mut prepare: impl FnMut() -> T, work: impl Fn(T) -> bool) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..300 {
        let prepared = prepare();
        let start = Instant::now();
        assert!(work(prepared));
        shortest = shortest.min(start.elapsed());
    }
    shortest
}

fn captured(payload: Json, redaction: Redaction) -> bool {
    let mut request = request(payload);
    request.session_id = svc_model::id::SessionId::new("s").ok();
    let receipt = Receipt {
        org_id: &svc_model::id::OrgId::new("acme").unwrap(),
        received_at: svc_model::time::Instant::from_microseconds(1).unwrap(),
        ids: &crate::clock::Ids::counting(),
        redaction,
    };
    let captured = capture(request, receipt);
    // The answer is dropped after it was taken, as a caller does; that is part of the time.
    matches!(captured, Ok((Captured::Call(_), _)))
}

/// Returns a payload with so many messages of an agent at work on this very crate, beside the
/// metadata of a real proxy.
fn conversation(source: &str, messages: usize, bytes: usize) -> Json {
    let each = bytes / messages;
    let source = source.repeat(2 + bytes / source.len());
    let mut texts = source.as_bytes().chunks(each).map(|chunk| {
        String::from_utf8(Json::from(String::from_utf8_lossy(chunk).into_owned()).to_canonical())
            .unwrap()
    });
    let mut list = String::new();
    for index in 0..messages {
        let text = texts.next().unwrap();
        let comma = if index > 0 { "," } else { "" };
        let message = match index % 4 {
            0 => format!(r#"{{"role":"user","content":{text}}}"#),
            1 => format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}]}}"#),
            2 => {
                let arguments = format!(r#"{{"path":"src/call.rs","new":{text}}}"#);
                let arguments = String::from_utf8(Json::from(arguments).to_canonical()).unwrap();
                format!(
                    r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{index}","type":"function","function":{{"name":"edit","arguments":{arguments}}}}}]}}"#
                )
            }
            _ => format!(r#"{{"role":"tool","tool_call_id":"call_{index}","content":{text}}}"#),
        };
        write!(list, "{comma}{message}").unwrap();
    }
    let mut payload = json(ARRAY)
        .into_array()
        .unwrap()
        .swap_remove(0)
        .into_object()
        .unwrap();
    payload.insert("messages", json(&format!("[{list}]")));
    payload.into()
}

#[test]
#[ignore = "prints times, asserts none"]
fn times_of_capture() {
    let mut payloads = json(ARRAY).into_array().unwrap();
    payloads.push(conversation(CLEAN, 10, 3_000));
    payloads.push(conversation(CLEAN, 80, 40_000));
    payloads.push(conversation(CLEAN, 400, 1_000_000));
    payloads.push(conversation(DIRTY, 80, 40_000));
    for payload in payloads {
        let bytes = payload.canonical_len();
        let text = payload.to_canonical();
        let parse = shortest(|| (), |()| Json::parse(&text).is_ok());
        let whole = shortest(
            || payload.clone(),
            |payload| captured(payload, Redaction::On),
        );
        let plain = shortest(
            || payload.clone(),
            |payload| captured(payload, Redaction::Off),
        );
        let redact = shortest(
            || payload.clone(),
            |mut payload| {
                redact_json(&mut payload)
                    != Counts {
                        web_token: 1,
                        ..Counts::default()
                    }
            },
        );
        let counts = redact_json(&mut payload.clone());
        println!(
            "{bytes:>8} bytes: parse {parse:?}, capture {whole:?}, without redaction {plain:?}, redaction of the payload {redact:?}, {counts:?}"
        );
    }
}
