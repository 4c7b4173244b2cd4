//! Sessions of transcripts that agents keep on disk: imported by the program under test, and read
//! back from its store.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::run;
use crate::scenario::{Bench, INGEST_TOKEN};
use crate::search::set::{CallRow, MessageRow, SessionRow};
use crate::{Backend, Failure};

/// Returns the Sessions of all transcripts in a folder.
pub(crate) fn read(
    bench: &Bench,
    backend: Backend,
    agent: &str,
    folder: &Path,
) -> Result<Vec<SessionRow>, Failure> {
    let folder = folder.canonicalize()?;
    let stage = bench.stage("transcripts", backend, None)?;
    let program = stage.launch.program.with_file_name("svc");
    let server = stage.start()?;
    let mut import = Command::new(&program);
    import
        .args(["import", agent])
        .arg(&folder)
        .args(["--all", "--url", &format!("http://{}", server.address)])
        .env("SVC_TOKEN", INGEST_TOKEN)
        .env("XDG_STATE_HOME", &stage.launch.folder)
        .env("XDG_DATA_HOME", &stage.launch.folder)
        .env("XDG_CONFIG_HOME", &stage.launch.folder)
        .current_dir(&stage.launch.folder);
    // It also fails if one transcript of many cannot be read.
    if let Err(failure) = run(&mut import) {
        eprintln!("load: {failure}");
    }
    server.stop()?;
    let mut export = Command::new(&program);
    export
        .args(["export", "--content", "--kind", "inference_calls"])
        .env("SVC_DATABASE_URL", stage.store.url())
        .env("SVC_ORG_ID", crate::scenario::ORGANIZATION)
        .current_dir(&stage.launch.folder);
    let lines = run(&mut export)?;
    let calls = lines.lines().map(serde_json::from_str);
    sessions(calls.collect::<Result<Vec<Value>, _>>()?)
}

/// Returns the Sessions of exported calls. Of each call, only messages that its Session did not have
/// before.
fn sessions(mut calls: Vec<Value>) -> Result<Vec<SessionRow>, Failure> {
    let text = |call: &Value, name: &str| call[name].as_str().map(str::to_owned);
    calls.sort_by_cached_key(|call| text(call, "observed_at"));
    let mut sessions: BTreeMap<String, SessionRow> = BTreeMap::new();
    let mut said: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for call in &calls {
        let session = text(call, "session_id").ok_or("an exported call without a Session")?;
        let said = said.entry(session.clone()).or_default();
        let mut new = |name: &str| {
            let messages = call["content"][name].as_array().into_iter().flatten();
            let new = messages.filter(|message| said.insert(message["parts"].to_string()));
            let rows = new.map(|message| {
                let role = message["role"].as_str().unwrap_or_default();
                MessageRow::parts(
                    role,
                    message["parts"].as_array().cloned().unwrap_or_default(),
                )
            });
            rows.collect::<Vec<_>>()
        };
        let row = CallRow {
            input: new("input_messages"),
            output: new("output_messages"),
        };
        let entry = sessions
            .entry(session.clone())
            .or_insert_with(|| SessionRow {
                session,
                time: text(call, "observed_at"),
                user: text(call, "user_id"),
                model: text(call, "model"),
                agent: text(call, "agent"),
                ..SessionRow::default()
            });
        if !row.input.is_empty() || !row.output.is_empty() {
            entry.calls.push(row);
        }
    }
    Ok(sessions
        .into_values()
        .filter(|row| !row.calls.is_empty())
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_history_is_said_once() {
        let message = |role: &str, text: &str| json!({"role": role, "parts": [{"type": "text", "content": text}]});
        let call = |time: &str, input: Vec<Value>, output: Vec<Value>| {
            json!({
                "session_id": "s", "observed_at": time,
                "content": {"input_messages": input, "output_messages": output},
            })
        };
        let [one, two, three] = ["one", "two", "three"].map(|text| message("user", text));
        let rows = sessions(vec![
            call("2026-01-02", vec![one.clone(), two.clone(), three], vec![]),
            call("2026-01-01", vec![one], vec![two]),
        ]);
        let rows = rows.expect("Sessions");
        let counts = rows[0].calls.iter();
        let counts = counts.map(|call| (call.input.len(), call.output.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(1, 1), (1, 0)]);
    }
}
