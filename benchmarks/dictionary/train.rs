//! Training: on what the store makes of payloads of our own.

use std::error::Error;
use std::fs;
use std::path::Path;

use svc_engine::clock::Ids;
use svc_engine::store::samples;
use svc_model::json::Json;

use crate::{capture, path, payload};

/// Twice as much gains less than a hundredth.
const DICTIONARY_BYTES: usize = 64 * 1_024;
/// What is longer is compressed without a dictionary, or has little of its size from one.
const SAMPLE_BYTES_MAX: usize = 8 * 1_024;

/// What a real proxy sends.
const DELIVERED: [&str; 2] = [
    "../tests/fixtures/litellm/generic_api_json_array.json",
    "../tests/fixtures/litellm/generic_api_ndjson_correlation_off.ndjson",
];
/// Prose and code, as agents read and write them.
const TEXTS: [&str; 9] = [
    "../README.md",
    "../docs/architecture.md",
    "../docs/integrate/ci.md",
    "../svc-client/src/transport.rs",
    "../svc-client/tests/it/outbox/sending.rs",
    "../svc-cli/src/commands/session/mod.rs",
    "../schemas/SessionAnswer.json",
    "../svc-cli/snippets/jenkins.groovy",
    "../svc-engine/store/migrations/sqlite/0001_facts.sql",
];

/// Trains a dictionary and writes it to a file.
pub(crate) fn train(file: &Path) -> Result<(), Box<dyn Error>> {
    let ids = Ids::counting();
    let mut payloads = Vec::new();
    for delivered in DELIVERED {
        let text = fs::read_to_string(path(delivered))?;
        match Json::parse(text.as_bytes()) {
            Ok(Json::Array(list)) => payloads.extend(list),
            Ok(other) => payloads.push(other),
            Err(_) => {
                for line in text.lines() {
                    payloads.push(Json::parse(line.as_bytes())?);
                }
            }
        }
    }
    // What stands in few files must weigh as much as what is made by the hundred.
    let delivered = payloads.len();
    for _ in 1..8 {
        payloads.extend_from_within(..delivered);
    }
    for seed in 0..240 {
        payloads.push(Json::parse(payload::question(seed).as_bytes())?);
    }
    for seed in 1_000..1_012 {
        for call in payload::session(seed, 12, 1.0) {
            payloads.push(Json::parse(call.as_bytes())?);
        }
    }
    for text in TEXTS {
        payloads.extend(conversations(&fs::read_to_string(path(text))?));
    }
    let mut trained = Vec::new();
    for payload in payloads {
        if let Some(call) = capture(payload, &ids)? {
            trained.extend(samples(call));
        }
    }
    trained.retain(|sample| sample.len() <= SAMPLE_BYTES_MAX);
    let dictionary = zstd::dict::from_samples(&trained, DICTIONARY_BYTES)?;
    fs::write(file, &dictionary)?;
    println!(
        "{} bytes from {} samples: {}",
        dictionary.len(),
        trained.len(),
        file.display()
    );
    Ok(())
}

/// Returns calls of the two common interfaces that are about a text.
fn conversations(text: &str) -> Vec<Json> {
    let quoted =
        |text: &str| String::from_utf8(Json::from(text).to_canonical()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let calls = lines.chunks(24).enumerate().map(|(number, lines)| {
        let (first, rest) = lines.split_at(lines.len() / 3);
        let (second, third) = rest.split_at(rest.len() / 2);
        let [first, second, third] = [first, second, third].map(|lines| lines.join("\n"));
        let arguments = format!(r#"{{"path":"src/{number}.rs","new_text":{}}}"#, quoted(&second));
        let item = if number % 2 == 0 {
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{number}","type":"function","function":{{"name":"edit_file","arguments":{}}}}}]}},{{"role":"tool","tool_call_id":"call_{number}","content":{}}}"#,
                quoted(&arguments),
                quoted(&third)
            )
        } else {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":{}}},{{"type":"tool_use","id":"toolu_{number}","name":"Edit","input":{arguments}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{number}","content":{}}}]}}"#,
                quoted(&first),
                quoted(&third)
            )
        };
        format!(
            r#"{{"session_id":"0000000a-0000-4000-8000-0123456789ab","messages":[{{"role":"user","content":{}}},{item}],"response":{{"choices":[{{"finish_reason":"stop","index":0,"message":{{"role":"assistant","content":{}}}}}]}}}}"#,
            quoted(&first),
            quoted(&second)
        )
    });
    calls
        .filter_map(|call| Json::parse(call.as_bytes()).ok())
        .collect()
}
