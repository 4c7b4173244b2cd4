//! How long capture takes. Run it in release with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use svc_model::ingest::LogsRequest;
use svc_model::json::{Json, Object};

use super::testing::{captured_as, event, export, written};
use super::{CapturedLogs, Export, protobuf};
use crate::capture::Redaction;
use crate::testing::otlp;

/// Ordinary source code, for the inputs of tools.
const SOURCE: &str = include_str!("own.rs");

/// Returns the shortest of many runs of `work`, each on a value of its own. What it returns is
/// dropped after it was taken, as a caller does; that is no part of the time.
fn shortest<T, R>(mut prepare: impl FnMut() -> T, work: impl Fn(T) -> R) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..1_000 {
        let prepared = prepare();
        let start = Instant::now();
        let result = work(prepared);
        shortest = shortest.min(start.elapsed());
        drop(result);
    }
    shortest
}

/// Returns what Claude Code exports of so many edits that a person allowed.
fn edits(count: usize) -> Object {
    let common = r#""user.id":"7f3a9c517f3a9c517f3a9c517f3a9c51","session.id":"4a1f6f3c-90a7-4d52-8a6e-2f3b1c9d7e10",
        "organization.id":"0c0f4c1a-5f0e-4a57-9a55-6f4b9ad0f3d2","user.email":"developer-7@acme.example",
        "terminal.type":"iTerm.app","event.timestamp":"2026-11-20T00:00:00.000Z","event.sequence":7,
        "prompt.id":"23279188-c89f-40fe-8122-d8796501faad","tool_name":"Edit""#;
    let mut records = Vec::new();
    for number in 0..count {
        let call = format!(r#""tool_use_id":"toolu_01abcdefghijklmnop{number}""#);
        let decision = format!(
            r#"{{{common},{call},"event.name":"tool_decision","decision":"accept","source":"user_temporary"}}"#
        );
        records.push(event("claude_code.tool_decision", &decision));
        let (old, new) = (&SOURCE[number * 90..][..480], &SOURCE[number * 90..][..512]);
        let input = Object::from_iter([
            ("file_path", "src/own.rs"),
            ("old_string", old),
            ("new_string", new),
        ]);
        let input = written(&Json::from(written(&input.into())));
        let result = format!(
            r#"{{{common},{call},"event.name":"tool_result","success":"true","duration_ms":"38","tool_input":{input}}}"#
        );
        records.push(event("claude_code.tool_result", &result));
    }
    export(
        r#"{"service.name":"claude-code","user.id":"developer-7"}"#,
        records,
    )
}

fn captured(export: Object, redaction: Redaction) -> CapturedLogs {
    captured_as(LogsRequest::Json(export), redaction)
}

#[test]
#[ignore = "prints times, asserts none"]
fn times_of_capture() {
    for count in [5, 50] {
        let export = edits(count);
        let json = Json::from(export.clone());
        let (text, message) = (json.to_canonical(), otlp::protobuf(&json));
        let parse = shortest(|| (), |()| Json::parse(&text));
        let decode = shortest(|| message.clone(), protobuf::decode);
        let apart = shortest(|| export.clone(), Export::of);
        let plain = shortest(|| export.clone(), |export| captured(export, Redaction::Off));
        let whole = shortest(|| export.clone(), |export| captured(export, Redaction::On));
        println!(
            "{} records, {} bytes of JSON, {} of protobuf: parse {parse:?}, decode {decode:?}, capture {whole:?}, \
             without redaction {plain:?}, taking apart {apart:?}",
            2 * count,
            text.len(),
            message.len(),
        );
    }
}
