//! Transcripts of `OpenCode`.

use svc_model::usage::TokenCounts;
use svc_transcripts::{Agent, Bookmark, TranscriptReader};

use crate::support::{chain, file_of, read, reader, said};

const OPENCODE: Agent = Agent::OpenCode;

#[test]
fn each_step_of_a_message_is_a_call() {
    let (calls, reader) = read(OPENCODE, file_of(OPENCODE));
    assert_eq!(
        chain(&calls),
        [
            ("msg_2/1", None),
            ("msg_2/2", Some("msg_2/1")),
            ("msg_6", Some("msg_2/2")),
            ("msg_8", Some("msg_6")),
            ("msg_a", None),
            ("msg_d", None),
        ]
    );
    let [first, second, third, ..] = &calls[..] else {
        panic!("{}", calls.len());
    };
    assert_eq!(first.session_id.as_str(), "ses_1");
    assert_eq!(first.agent_version.as_deref(), Some("1.2.0"));
    assert_eq!(first.call.model.as_ref().unwrap().as_str(), "m");
    assert_eq!(first.call.model_provider.as_ref().unwrap().as_str(), "p");
    assert_eq!(first.call.cwd.as_deref(), Some("/work/app/sub"));
    assert_eq!(first.call.stop_reason.as_deref(), Some("tool-calls"));
    assert_eq!(first.call.ended_at.to_string(), "2026-11-02T10:00:09Z");
    let usage = TokenCounts {
        input_tokens_uncached: Some(12),
        cache_read_tokens: Some(900),
        cache_write_tokens: Some(40),
        output_tokens: Some(30),
        reasoning_tokens: Some(9),
        ..TokenCounts::default()
    };
    assert_eq!(first.call.usage, Some(usage));
    // Of reasoning that is more than all output nothing is known.
    assert_eq!(second.call.usage.unwrap().reasoning_tokens, None);
    let costs = [first, second, third].map(|call| call.call.cost_usd_micros);
    assert_eq!(costs, [Some(12_346), Some(10_000), None]);
    assert_eq!(third.call.stop_reason.as_deref(), Some("stop"));
    assert_eq!(third.call.cwd.as_deref(), Some("/work/app"));
    assert_eq!(reader.cwd(), Some("/work/app"));
    assert_eq!(reader.tally().unknown.len(), 0);
}

#[test]
fn the_results_of_a_step_are_sent_with_the_next() {
    let (calls, _) = read(OPENCODE, file_of(OPENCODE));
    assert_eq!(
        said(&calls[0].call.output),
        [
            r#"assistant: (I list them.) | I look. | call_1 bash{"command":"ls"} | call_2 read{"path":"b"}"#
        ]
    );
    let inputs: Vec<Vec<String>> = calls
        .iter()
        .map(|call| said(&call.call.input.messages))
        .collect();
    assert_eq!(inputs[0], ["user: List the files. | The file's content"]);
    assert_eq!(calls[0].call.left_out.unwrap().unsupported_content, 1);
    assert_eq!(inputs[1], ["tool: call_1 = a.txt | call_2 = No such file"]);
    assert_eq!(
        inputs[2],
        ["user: And?", "assistant: Half an ans", "user: Again."]
    );
}

#[test]
fn a_compaction_begins_the_input_anew() {
    let (calls, _) = read(OPENCODE, file_of(OPENCODE));
    let input = |call: usize| said(&calls[call].call.input.messages);
    // The summary itself is made of everything before it.
    assert_eq!(input(3), [""; 0]);
    assert_eq!(input(4), ["assistant: Files were listed.", "user: Go on."]);
    assert_eq!(input(5), ["user: Anew."]);
}

/// Returns the lines of a file with offsets that grow with the times of the messages.
fn timed(file: &str) -> Vec<(u64, &str)> {
    let lines = file.lines().enumerate();
    lines
        .map(|(index, line)| ((index as u64) << 24, line))
        .collect()
}

fn fed(mut reader: TranscriptReader, lines: &[(u64, &str)], from: u64) -> TranscriptReader {
    for (offset, line) in lines.iter().filter(|line| line.0 >= from) {
        reader.line(*offset, line.as_bytes()).unwrap();
    }
    reader
}

fn resumed(bookmark: &Bookmark) -> TranscriptReader {
    TranscriptReader::resume(OPENCODE, "x".as_ref(), bookmark).unwrap()
}

#[test]
fn a_message_that_is_not_completed_is_left_for_the_next_time() {
    let file = file_of(OPENCODE);
    let open = file.replacen(r#","completed":1793613614000"#, "", 1);
    let (lines, completed) = (timed(&open), timed(file));
    let mut first = fed(reader(OPENCODE), &lines[..7], 0);
    first.end();
    assert_eq!(first.take().len(), 2);
    assert!(!first.tally().format_changed);
    let bookmark = first.bookmark();
    assert!(bookmark.offset <= lines[3].0, "its input is needed again");
    let mut second = fed(resumed(&bookmark), &completed[..7], bookmark.offset);
    let calls = second.take();
    assert_eq!(chain(&calls), [("msg_6", Some("msg_2/2"))]);
    assert_eq!(calls, read(OPENCODE, file).0[2..3]);
    // Behind all that was read there is nothing to read again.
    let bookmark = second.bookmark();
    assert!(bookmark.offset > lines[6].0 && bookmark.offset <= lines[7].0);
    let mut third = fed(resumed(&bookmark), &completed, bookmark.offset);
    assert_eq!(third.take(), read(OPENCODE, file).0[3..]);
}

#[test]
fn parts_and_lines_of_unknown_kinds_are_counted() {
    let file = concat!(
        r#"{"session":{"id":"s"}}"#,
        "\n",
        r#"{"message":{"id":"m","role":"assistant","time":{"completed":1793613614000}},"parts":[{"type":"hologram"},{"type":"text","text":"Hi."}]}"#,
        "\n",
        r#"{"permission":{}}"#,
        "\n",
    );
    let (calls, reader) = read(OPENCODE, file);
    assert_eq!(calls.len(), 1);
    let unknown: Vec<&str> = reader.tally().unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["hologram", "permission"]);
}
