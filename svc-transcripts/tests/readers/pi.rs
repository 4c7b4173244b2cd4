//! Transcripts of pi.

use std::path::Path;

use svc_model::evidence::LeftOut;
use svc_model::usage::TokenCounts;
use svc_transcripts::{Agent, TranscriptReader};

use crate::support::{chain, feed, file_of, read, said};

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-02T10:00:00Z","cwd":"/work/app"}"#;

fn entry(id: &str, parent: &str, message: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-11-02T10:00:01Z","message":{message}}}"#
    )
}

#[test]
fn an_answer_is_a_call_with_its_own_counts_and_cost() {
    let (calls, reader) = read(Agent::Pi, file_of(Agent::Pi));
    let first = &calls[0];
    assert_eq!(first.session_id.as_str(), "0199-pi");
    let continues = first.continues.as_ref().unwrap();
    assert_eq!(continues.session_id.as_str(), "0198-pi");
    assert_eq!(continues.response_id, None);
    let call = &first.call;
    assert_eq!(call.call_id.as_ref().unwrap().as_str(), "e4");
    assert_eq!(call.response_id.as_ref().unwrap().as_str(), "resp_1");
    assert_eq!(call.model.as_ref().unwrap().as_str(), "claude-x");
    assert_eq!(call.model_provider.as_ref().unwrap().as_str(), "anthropic");
    assert_eq!(call.ended_at.to_string(), "2026-11-02T10:00:04Z");
    assert_eq!(call.stop_reason.as_deref(), Some("toolUse"));
    assert_eq!(call.cwd.as_deref(), Some("/work/app"));
    assert_eq!(
        said(&call.output),
        [r#"assistant: (I list them.) | I look. | call_1 bash{"command":"ls"}"#]
    );
    let left_out = LeftOut {
        unsupported_content: 1,
        opaque_reasoning: 1,
        ..LeftOut::default()
    };
    assert_eq!(call.left_out, Some(left_out));
    let usage = TokenCounts {
        input_tokens_uncached: Some(12),
        cache_read_tokens: Some(900),
        cache_write_tokens: Some(40),
        output_tokens: Some(30),
        ..TokenCounts::default()
    };
    assert_eq!(call.usage, Some(usage));
    let costs: Vec<Option<i64>> = calls.iter().map(|call| call.call.cost_usd_micros).collect();
    let rounded = [Some(12_346), Some(12_345), None, None, None, None];
    assert_eq!(costs, rounded, "0 for tokens is not known");
    assert_eq!(reader.cwd(), Some("/work/app"));
    assert_eq!(reader.tally().unknown.len(), 0);
}

#[test]
fn the_input_follows_the_tree_and_begins_anew_with_what_a_compaction_keeps() {
    let (calls, _) = read(Agent::Pi, file_of(Agent::Pi));
    assert_eq!(
        chain(&calls),
        [
            ("e4", None),
            ("e9", Some("e4")),
            ("e12", Some("e4")),
            ("e15", Some("e12")),
            ("e18", None),
            ("e21", None),
        ]
    );
    let inputs: Vec<Vec<String>> = calls
        .iter()
        .map(|call| said(&call.call.input.messages))
        .collect();
    let result = r#"tool: call_1 = [{"type":"text","text":"a.txt"}]"#;
    assert_eq!(inputs[0], ["user: List the files."]);
    assert_eq!(inputs[1], [result, "user: Go on."]);
    assert_eq!(inputs[2], [result, "user: Or so."]);
    assert_eq!(inputs[3], ["user: Last."]);
    // What is kept begins behind the label, which says nothing.
    assert_eq!(
        inputs[4],
        [
            "user: Files were listed.",
            "user: Last.",
            "assistant: Done.",
            "user: And now?",
        ]
    );
    // The second summary takes the place of the first.
    assert_eq!(
        inputs[5],
        [
            "user: All is done.",
            "user: Last.",
            "assistant: Done.",
            "user: And now?",
            "assistant: Nothing.",
            "user: Bye.",
        ]
    );
    // A command of the user, and the summary of a branch.
    for call in &calls[1..3] {
        let left_out = call.call.left_out.unwrap();
        assert_eq!(left_out.unsupported_content, 1);
    }
}

#[test]
fn an_answer_without_response_id_has_one_that_its_copies_share() {
    let message = r#"{"role":"assistant","content":[{"type":"text","text":"Hi."}],"timestamp":1}"#;
    let file = |id: &str| [HEADER.to_owned(), entry(id, "none", message)].join("\n") + "\n";
    let (calls, _) = read(Agent::Pi, &file("a"));
    let id = calls[0].call.response_id.as_ref().unwrap().as_str();
    assert_eq!(id.len(), 35);
    assert!(id.starts_with("pi-") && id[3..].bytes().all(|digit| digit.is_ascii_hexdigit()));
    let (copies, _) = read(Agent::Pi, &file("b"));
    assert_eq!(copies[0].call.response_id, calls[0].call.response_id);
    assert_ne!(copies[0].call.call_id, calls[0].call.call_id);
    let later = file("a").replace(r#""timestamp":1}"#, r#""timestamp":2}"#);
    let (later, _) = read(Agent::Pi, &later);
    assert_ne!(later[0].call.response_id, calls[0].call.response_id);
}

#[test]
fn two_answers_under_one_response_id_are_two_calls() {
    let message = r#"{"role":"assistant","content":[],"responseId":"same","stopReason":"stop"}"#;
    let lines = [
        HEADER.to_owned(),
        entry("a", "none", message),
        entry("b", "a", message),
    ];
    let (calls, _) = read(Agent::Pi, &(lines.join("\n") + "\n"));
    assert_eq!(chain(&calls), [("a", None), ("b", Some("a"))]);
    assert_eq!(calls[0].call.response_id, calls[1].call.response_id);
}

#[test]
fn a_failure_with_content_or_tokens_is_an_answer() {
    let failure = |content: &str, output: u32| {
        format!(
            r#"{{"role":"assistant","content":{content},"usage":{{"input":0,"output":{output}}},"stopReason":"error"}}"#
        )
    };
    for (content, output, is_answer) in [
        ("[]", 0, false),
        (r#""""#, 0, false),
        ("[]", 1, true),
        (r#"[{"type":"text","text":"Hal"}]"#, 0, true),
    ] {
        let lines = [
            HEADER.to_owned(),
            entry("a", "none", &failure(content, output)),
        ];
        let (calls, reader) = read(Agent::Pi, &(lines.join("\n") + "\n"));
        assert_eq!(calls.len(), usize::from(is_answer), "{content} {output}");
        assert!(!reader.tally().format_changed);
    }
}

#[test]
fn the_first_version_is_linear_and_its_calls_are_named_by_line() {
    let file = concat!(
        r#"{"type":"session","id":"v1","timestamp":"2025-11-02T10:00:00Z","cwd":"/work/app","provider":"p","modelId":"m","branchedFrom":"C:\\pi\\2025-11-01_v0.jsonl"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:01Z","message":{"role":"user","content":"One"}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"1"}]}}"#,
        "\n",
        r#"{"type":"model_change","timestamp":"2025-11-02T10:00:03Z","provider":"p","modelId":"n"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:03Z","message":{"role":"user","content":"Two"}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:04Z","message":{"role":"assistant","content":[{"type":"text","text":"2"}]}}"#,
        "\n",
        r#"{"type":"compaction","timestamp":"2025-11-02T10:00:05Z","summary":"Counted.","firstKeptEntryIndex":3}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:06Z","message":{"role":"user","content":"Three"}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-02T10:00:07Z","message":{"role":"assistant","content":[{"type":"text","text":"3"}]}}"#,
        "\n",
    );
    let (calls, _) = read(Agent::Pi, file);
    assert_eq!(
        chain(&calls),
        [
            ("line-3", None),
            ("line-6", Some("line-3")),
            ("line-9", None)
        ]
    );
    let continues = calls[0].continues.as_ref().unwrap();
    assert_eq!(continues.session_id.as_str(), "v0");
    assert_eq!(calls[0].call.model.as_ref().unwrap().as_str(), "m");
    assert_eq!(
        said(&calls[2].call.input.messages),
        ["user: Counted.", "user: Two", "assistant: 2", "user: Three"]
    );
}

#[test]
fn the_name_of_a_file_tells_its_session() {
    let message = r#"{"role":"assistant","content":[{"type":"text","text":"Hi."}]}"#;
    let name = Path::new("/home/dev/--work-app--/2026-11-02T10-00-00-000Z_0199-pi.jsonl");
    let mut reader = TranscriptReader::new(Agent::Pi, name);
    feed(&mut reader, entry("a", "none", message).as_bytes(), 0).unwrap();
    assert_eq!(reader.take()[0].session_id.as_str(), "0199-pi");
}
