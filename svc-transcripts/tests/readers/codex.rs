//! Transcripts of Codex.

use svc_model::usage::TokenCounts;
use svc_transcripts::{Agent, TranscriptCall};

use crate::support::{FILES, chain, feed, read, reader, said};

const CODEX: Agent = Agent::Codex;

fn calls(file: usize) -> Vec<TranscriptCall> {
    read(CODEX, FILES[file].1).0
}

fn counts(call: &TranscriptCall) -> Option<[Option<i64>; 4]> {
    call.call.usage.map(|usage| {
        let TokenCounts {
            input_tokens_uncached,
            cache_read_tokens,
            output_tokens,
            reasoning_tokens,
            ..
        } = usage;
        [
            input_tokens_uncached,
            cache_read_tokens,
            output_tokens,
            reasoning_tokens,
        ]
    })
}

fn inputs(calls: &[TranscriptCall]) -> Vec<Vec<String>> {
    calls
        .iter()
        .map(|call| said(&call.call.input.messages))
        .collect()
}

fn outputs(calls: &[TranscriptCall]) -> Vec<Vec<String>> {
    calls.iter().map(|call| said(&call.call.output)).collect()
}

#[test]
fn an_event_with_counts_closes_an_answer() {
    let calls = calls(1);
    let expected = [
        ("rs1", None),
        ("m2", Some("rs1")),
        ("rs2", Some("m2")),
        ("m6", None),
    ];
    assert_eq!(chain(&calls), expected);
    assert_eq!(
        inputs(&calls),
        [
            vec!["system: Be brief.", "user: list"],
            vec!["tool: call_1 = a.txt"],
            vec!["user: more"],
            vec!["user: So far: one file.", "user: go on"],
        ]
    );
    assert_eq!(
        outputs(&calls),
        [
            vec![
                "assistant: (look)",
                r#"assistant: call_1 shell{"command":["ls"]}"#
            ],
            vec!["assistant: One file."],
            vec!["assistant: No."],
            vec!["assistant: Fine."],
        ]
    );
    let counted: Vec<_> = calls.iter().map(|call| counts(call).unwrap()).collect();
    let expected = [
        [1_000, 8_000, 120, 64],
        [300, 9_000, 40, 0],
        [100, 9_300, 5, 2],
        [300, 0, 3, 0],
    ];
    assert_eq!(counted, expected.map(|counts| counts.map(Some)));
    let left_out: Vec<_> = calls
        .iter()
        .map(|call| call.call.left_out.unwrap_or_default())
        .collect();
    assert_eq!(left_out[2].opaque_reasoning, 1);
    assert_eq!(left_out[3].unsupported_content, 1);
}

#[test]
fn a_call_has_what_the_lines_before_it_say() {
    let calls = calls(1);
    let TranscriptCall {
        session_id,
        continues,
        agent_version,
        call,
    } = &calls[0];
    assert_eq!(session_id.as_str(), "019a0000-0000-7000-8000-000000000001");
    assert_eq!(*continues, None);
    assert_eq!(agent_version.as_deref(), Some("0.140.0"));
    assert_eq!(call.model.as_ref().unwrap().as_str(), "gpt-5.2-codex");
    assert_eq!(call.model_provider.as_ref().unwrap().as_str(), "openai");
    assert_eq!(call.cwd.as_deref(), Some("/home/dev/app"));
    assert_eq!(call.git_branch.as_deref(), Some("main"));
    assert_eq!((&call.response_id, &call.tier), (&None, &None));
    assert_eq!(call.ended_at.to_string(), "2026-11-02T11:00:06Z");
}

#[test]
fn a_record_closes_an_answer_and_names_its_response() {
    let calls = calls(2);
    let expected = [
        ("rs1", None),
        ("m2", Some("rs1")),
        ("line-16", Some("m2")),
        ("ct1", None),
        ("ws1", Some("ct1")),
    ];
    assert_eq!(chain(&calls), expected);
    let responses = calls
        .iter()
        .map(|call| call.call.response_id.as_ref().unwrap().as_str());
    let responses: Vec<&str> = responses.collect();
    assert_eq!(
        responses,
        ["resp_1", "resp_2", "resp_3", "resp_4", "resp_5"]
    );
    assert_eq!(
        inputs(&calls),
        [
            vec!["system: Be brief.", "user: list"],
            vec!["tool: call_1 = a.txt", "tool: call_2 = ab"],
            vec![],
            vec!["user: Summary.", "user: go on"],
            vec![r#"tool: call_3 = {"content":"Done","success":true}"#],
        ]
    );
    let outputs = outputs(&calls);
    assert_eq!(outputs[0].len(), 3);
    assert_eq!(outputs[2], Vec::<String>::new());
    assert_eq!(
        outputs[3],
        [r#"assistant: call_3 fs.apply_patch{"input":"*** Begin"}"#]
    );
    assert_eq!(
        outputs[4],
        [r#"assistant: ws1 web_search{"type":"search","query":"x"}"#]
    );
    assert_eq!(counts(&calls[2]), Some([200, 9_300, 700, 0].map(Some)));
    assert_eq!(calls[0].call.tier.as_deref(), Some("flex"));
}

#[test]
fn without_counts_an_answer_ends_where_the_model_stops() {
    let calls = calls(3);
    let expected = [
        ("rs1", None),
        ("fc2", Some("rs1")),
        ("m2", Some("fc2")),
        ("call_4", Some("m2")),
        ("m4", Some("call_4")),
    ];
    assert_eq!(chain(&calls), expected);
    assert_eq!(
        inputs(&calls),
        [
            vec!["user: list"],
            vec!["tool: call_1 = a.txt"],
            vec![r#"tool: call_2 = {"exit":0}"#],
            vec!["user: more"],
            vec!["tool: call_4 = ... [120 lines truncated] ..."],
        ]
    );
    assert!(calls.iter().all(|call| call.call.usage.is_none()));
    assert_eq!(calls[4].call.left_out.unwrap().truncated, 1);
}

#[test]
fn what_a_fork_repeats_is_input_and_no_call() {
    let calls = calls(4);
    assert_eq!(chain(&calls), [("m4", None)]);
    let call = &calls[0];
    assert_eq!(
        call.session_id.as_str(),
        "019a0000-0100-7000-8000-000000000002"
    );
    let continues = call.continues.as_ref().unwrap();
    assert_eq!(
        continues.session_id.as_str(),
        "019a0000-0000-7000-8000-000000000001"
    );
    assert_eq!(continues.response_id, None);
    let input = [
        "system: Be brief.",
        "user: list",
        "assistant: One file.",
        "user: and now?",
    ];
    assert_eq!(inputs(&calls), [input]);
    assert_eq!(counts(call), Some([100, 9_000, 6, 0].map(Some)));
    // A subagent repeats the first line of its parent only.
    let subagent = FILES[4]
        .1
        .replace(r#""forked_from_id""#, r#""parent_thread_id""#);
    let (calls, _) = read(CODEX, &subagent);
    assert_eq!(chain(&calls), [("m2", None), ("m4", Some("m2"))]);
    assert!(calls.iter().all(|call| call.continues.is_none()));
}

#[test]
fn the_counts_of_the_last_answer_finish_it() {
    let file = FILES[1].1;
    let mut reader = reader(CODEX);
    feed(&mut reader, file.as_bytes(), 0).unwrap();
    assert_eq!(reader.take().len(), 4);
    assert_eq!(reader.last_answer_text().as_deref(), Some("Fine."));
    assert_eq!(reader.bookmark().offset, file.len() as u64);
}

#[test]
fn an_interrupted_answer_ends_at_the_next_message_of_the_user() {
    let stop = FILES[1]
        .1
        .lines()
        .position(|line| line.contains(r#""id":"m4""#))
        .unwrap();
    let without = |line: &(usize, &str)| line.0 != stop + 1;
    let lines = FILES[1].1.lines().enumerate().filter(without);
    let file: String = lines.map(|(_, line)| line.to_owned() + "\n").collect();
    let (calls, _) = read(CODEX, &file);
    assert_eq!(calls.len(), 4);
    assert_eq!(counts(&calls[2]), None);
}

#[test]
fn an_answer_that_is_written_again_is_given_once() {
    for (agent, file) in &FILES[1..4] {
        let again = (*file).to_owned() + file;
        assert_eq!(read(*agent, &again).0, read(*agent, file).0);
    }
}

#[test]
fn items_and_lines_of_unknown_kinds_are_counted() {
    let file = r#"{"type":"response_item","payload":{"type":"tool_call","id":"x"}}
{"type":"new_line","payload":{}}
{"type":"some_metadata","payload":{}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_hologram"}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[]}}
"#;
    let (calls, reader) = read(CODEX, file);
    assert_eq!(calls, []);
    let kinds: Vec<&str> = reader.tally().unknown.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["input_hologram", "new_line", "tool_call"]);
    assert!(reader.tally().format_changed, "an answer, but no Session");
}
