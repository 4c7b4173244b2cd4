//! Transcripts of Copilot CLI.

use std::path::Path;

use svc_model::ingest::SentCall;
use svc_transcripts::{Agent, TranscriptReader};

use crate::support::{chain, feed, file_of, read, said};

const COPILOT_CLI: Agent = Agent::CopilotCli;

#[test]
fn the_pieces_of_an_answer_are_one_call() {
    let (calls, reader) = read(COPILOT_CLI, file_of(COPILOT_CLI));
    let first = &calls[0];
    assert_eq!(first.session_id.as_str(), "copilot-1");
    assert_eq!(first.agent_version.as_deref(), Some("1.0.80"));
    let call = &first.call;
    assert_eq!(call.call_id.as_ref().unwrap().as_str(), "m1");
    assert_eq!(call.response_id.as_ref().unwrap().as_str(), "chatcmpl-1");
    assert_eq!(call.model.as_ref().unwrap().as_str(), "gpt-c");
    assert_eq!(call.cwd.as_deref(), Some("/work/app"));
    assert_eq!(call.git_branch.as_deref(), Some("main"));
    assert_eq!(call.ended_at.to_string(), "2026-11-02T10:00:03Z");
    assert_eq!(call.cost_usd_micros, None);
    assert_eq!(
        said(&call.output),
        [r#"assistant: (I list them.) | I look. | call_1 task{"prompt":"ls"}"#]
    );
    let usage = call.usage.unwrap();
    assert_eq!(usage.output_tokens, Some(12));
    assert_eq!(usage.input_tokens_uncached, None);
    assert_eq!(reader.tally().unknown.len(), 0);
    assert_eq!(reader.cwd(), Some("/work/app"));
}

#[test]
fn a_subagent_has_a_chain_of_its_own() {
    let (calls, _) = read(COPILOT_CLI, file_of(COPILOT_CLI));
    assert_eq!(
        chain(&calls),
        [
            ("m1", None),
            ("s1", None),
            ("s2", Some("s1")),
            ("e14", Some("m1")),
            ("m3", Some("e14")),
        ]
    );
    let calls: Vec<&SentCall> = calls.iter().map(|call| &call.call).collect();
    let inputs: Vec<Vec<String>> = calls
        .iter()
        .map(|call| said(&call.input.messages))
        .collect();
    let expected = [
        vec![
            "system: You help.".to_owned(),
            "user: <now/>List".to_owned(),
        ],
        vec![],
        vec!["tool: call_2 = a.txt".to_owned()],
        vec!["tool: call_1 = One file.".to_owned()],
        vec!["user: Thanks".to_owned()],
    ];
    assert_eq!(inputs, expected);
    let subagent = |call: &SentCall| call.subagent.as_ref().map(|id| id.as_str().to_owned());
    let subagents: Vec<Option<String>> = calls.iter().map(|call| subagent(call)).collect();
    let task = Some("call_1".to_owned());
    assert_eq!(subagents, [None, task.clone(), task, None, None]);
    assert_eq!(calls[1].left_out.unwrap().opaque_reasoning, 1);
    // Only some ids are those of a provider.
    assert_eq!(calls[1].response_id, None);
    assert_eq!(calls[4].response_id.as_ref().unwrap().as_str(), "resp_3");
    assert_eq!(calls[4].model.as_ref().unwrap().as_str(), "gpt-b");
}

#[test]
fn the_folder_of_a_file_tells_its_session() {
    let line = r#"{"type":"assistant.message","data":{"messageId":"m","content":"Hi.","outputTokens":1},"id":"e","timestamp":"2026-11-02T10:00:00Z","parentId":null}"#;
    let name = Path::new("/home/dev/.copilot/session-state/0199-copilot/events.jsonl");
    let mut reader = TranscriptReader::new(COPILOT_CLI, name);
    feed(&mut reader, line.as_bytes(), 0).unwrap();
    assert_eq!(reader.take()[0].session_id.as_str(), "0199-copilot");
}

#[test]
fn an_event_of_an_unknown_kind_is_counted() {
    let file = concat!(
        r#"{"type":"assistant.thought","data":{},"id":"a","timestamp":"2026-11-02T10:00:00Z"}"#,
        "\n",
        r#"{"type":"session.info","id":"b","timestamp":"2026-11-02T10:00:00Z"}"#,
        "\n",
    );
    let (calls, reader) = read(COPILOT_CLI, file);
    assert_eq!(calls, []);
    assert_eq!(reader.tally().unknown.get("assistant.thought"), Some(&1));
    assert_eq!(reader.tally().unknown.len(), 1);
}
