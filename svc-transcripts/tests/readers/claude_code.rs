//! Transcripts of Claude Code.

use std::path::Path;

use svc_model::evidence::LeftOut;
use svc_model::id::ForeignId;
use svc_model::usage::TokenCounts;
use svc_transcripts::{Agent, Lost, TranscriptReader};

use crate::support::{FILES, chain, feed, read, reader, said};

const CLAUDE_CODE: Agent = Agent::ClaudeCode;

fn file() -> &'static str {
    FILES[0].1
}

fn line(uuid: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    };
    format!(
        r#"{{"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-11-02T10:00:00Z",{rest}}}"#
    ) + "\n"
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    let rest = format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#);
    line(uuid, parent, &rest)
}

fn answer(uuid: &str, parent: &str, id: &str) -> String {
    let rest = format!(
        r#""type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"of {id}"}}],"stop_reason":"end_turn"}}"#
    );
    line(uuid, parent, &rest)
}

#[test]
fn the_lines_of_one_answer_are_one_call_with_the_counts_of_the_last() {
    let (calls, _) = read(CLAUDE_CODE, file());
    let first = &calls[0];
    let call = &first.call;
    assert_eq!(
        first.session_id.as_str(),
        "11111111-1111-4111-8111-111111111111"
    );
    assert_eq!(first.agent_version.as_deref(), Some("2.1.9"));
    assert_eq!(call.response_id.as_ref().unwrap().as_str(), "msg_1");
    assert_eq!(call.call_id, None);
    assert_eq!(call.request_id.as_ref().unwrap().as_str(), "req_msg_1");
    assert_eq!(
        said(&call.output),
        [r#"assistant: I will look. | toolu_1 Bash{"command":"ls"}"#]
    );
    let usage = TokenCounts {
        input_tokens_uncached: Some(5),
        cache_read_tokens: Some(12_000),
        cache_write_tokens: Some(1_000),
        cache_write_5m_tokens: Some(300),
        cache_write_1h_tokens: Some(700),
        output_tokens: Some(195),
        reasoning_tokens: None,
    };
    assert_eq!(call.usage, Some(usage));
    assert_eq!(usage.input_tokens(), Some(13_005));
    let left_out = LeftOut {
        opaque_reasoning: 1,
        ..LeftOut::default()
    };
    assert_eq!(call.left_out, Some(left_out));
    assert_eq!(call.stop_reason.as_deref(), Some("tool_use"));
    assert_eq!(call.tier.as_deref(), Some("standard"));
    assert_eq!(call.cwd.as_deref(), Some("/home/dev/app"));
    assert_eq!(call.git_branch.as_deref(), Some("main"));
    assert_eq!(call.ended_at.to_string(), "2026-11-02T10:00:04Z");
}

#[test]
fn the_input_of_an_answer_is_what_stands_on_the_way_from_the_answer_before() {
    let (calls, reader) = read(CLAUDE_CODE, file());
    let expected = [
        ("msg_1", None),
        ("msg_2", Some("msg_1")),
        ("msg_3", Some("msg_2")),
        ("msg_4", None),
        ("msg_5", Some("msg_3")),
        ("msg_6", Some("msg_3")),
        ("a9", None),
        ("msg_7", Some("a9")),
    ];
    assert_eq!(chain(&calls), expected);
    let inputs: Vec<Vec<String>> = calls
        .iter()
        .map(|call| said(&call.call.input.messages))
        .collect();
    let again = vec![
        "user: <reminder>be short</reminder> | next".to_owned(),
        "assistant: API Error".to_owned(),
        "user: again".to_owned(),
    ];
    let expected = [
        vec!["user: list the files".to_owned()],
        vec!["user: toolu_1 = result of toolu_1".to_owned()],
        vec!["user: toolu_2 = result of toolu_2 | toolu_3 = result of toolu_3".to_owned()],
        vec!["user: find the tests".to_owned()],
        again.clone(),
        again,
        vec!["user: Summary: files were listed. | go on".to_owned()],
        vec!["user: thanks".to_owned()],
    ];
    assert_eq!(inputs, expected);
    assert_eq!(calls[1].call.output.len(), 1);
    assert_eq!(calls[1].call.output[0].parts.len(), 2);
    let subagents = calls
        .iter()
        .map(|call| call.call.subagent.as_ref().map(ForeignId::as_str));
    let subagents: Vec<Option<&str>> = subagents.collect();
    assert_eq!(subagents[3], Some("agent7"));
    assert_eq!(subagents.iter().flatten().count(), 1);
    assert_eq!(reader.tally().unknown.len(), 0);
    assert!(!reader.tally().format_changed);
    assert_eq!(reader.cwd(), Some("/home/dev/app"));
    assert_eq!(reader.last_answer_text().as_deref(), Some("Welcome."));
}

#[test]
fn an_image_that_was_sent_is_counted_in_the_call_that_sent_it() {
    let (calls, _) = read(CLAUDE_CODE, file());
    let unsupported = calls
        .iter()
        .map(|call| call.call.left_out.unwrap_or_default());
    let unsupported: Vec<u64> = unsupported
        .map(|left_out| left_out.unsupported_content)
        .collect();
    assert_eq!(unsupported, [0, 0, 0, 0, 1, 1, 0, 0]);
}

#[test]
fn an_answer_without_an_end_is_left_until_the_session_ends() {
    let open = answer("a1", "u1", "msg_1").replace(r#""end_turn""#, "null");
    let begin = user("u1", "", "hi") + &open;
    let mut reader = reader(CLAUDE_CODE);
    feed(&mut reader, begin.as_bytes(), 0).unwrap();
    assert_eq!(reader.take(), []);
    assert_eq!(reader.last_answer_text().as_deref(), Some("of msg_1"));
    assert_eq!(reader.bookmark().offset, 0);
    let whole = begin.clone() + &user("u2", "a1", "more");
    feed(&mut reader, whole.as_bytes(), begin.len() as u64).unwrap();
    assert_eq!(chain(&reader.take()), [("msg_1", None)]);
    assert_eq!(reader.bookmark().offset, begin.len() as u64);
    assert_eq!(reader.last_answer_text().as_deref(), Some("of msg_1"));
}

#[test]
fn a_subagents_file_is_a_chain_of_its_own_in_the_session_of_its_lines() {
    let name = Path::new("/home/dev/projects/app/s/subagents/agent-a0ad4f.jsonl");
    let mut reader = TranscriptReader::new(CLAUDE_CODE, name);
    let file = user("u1", "", "look") + &answer("a1", "u1", "msg_1");
    feed(&mut reader, file.as_bytes(), 0).unwrap();
    let calls = reader.take();
    assert_eq!(calls[0].session_id.as_str(), "s");
    assert_eq!(calls[0].call.subagent.as_ref().unwrap().as_str(), "a0ad4f");
}

#[test]
fn copied_lines_are_calls_of_the_session_that_they_name() {
    let copied = user("u1", "", "hi") + &answer("a1", "u1", "msg_1");
    let own = user("u2", "a1", "more") + &answer("a2", "u2", "msg_2");
    let file = copied.replace(r#""s""#, r#""other""#) + &own;
    let (calls, _) = read(CLAUDE_CODE, &file);
    assert_eq!(chain(&calls), [("msg_1", None), ("msg_2", Some("msg_1"))]);
    let sessions: Vec<&str> = calls.iter().map(|call| call.session_id.as_str()).collect();
    assert_eq!(sessions, ["other", "s"]);
}

#[test]
fn a_branch_from_a_line_that_is_not_kept_any_more_is_lost_unless_everything_is_kept() {
    let long = "x".repeat(1024 * 1024);
    let mut file = user("u0", "", "hi") + &answer("a0", "u0", "msg_0");
    for n in 1..=20 {
        file += &user(&format!("u{n}"), &format!("a{}", n - 1), &long);
        file += &answer(&format!("a{n}"), &format!("u{n}"), &format!("msg_{n}"));
    }
    let branch = file.clone() + &answer("b18", "u18", "msg_b18");
    let mut recent = reader(CLAUDE_CODE);
    assert_eq!(feed(&mut recent, branch.as_bytes(), 0), Ok(()));
    assert_eq!(chain(&recent.take())[21], ("msg_b18", Some("msg_17")));
    let branch = file + &answer("b1", "u1", "msg_b1");
    assert_eq!(
        feed(&mut reader(CLAUDE_CODE), branch.as_bytes(), 0),
        Err(Lost)
    );
    let mut keeping = reader(CLAUDE_CODE).keeping_everything();
    assert_eq!(feed(&mut keeping, branch.as_bytes(), 0), Ok(()));
    let calls = keeping.take();
    assert_eq!(chain(&calls)[21], ("msg_b1", Some("msg_0")));
    assert_eq!(calls[21].call.input.messages.len(), 1);
}

#[test]
fn a_resumed_reader_knows_the_last_lines_and_is_lost_at_others() {
    let begin = user("u1", "", "hi") + &answer("a1", "u1", "msg_1");
    let mut reader = reader(CLAUDE_CODE);
    feed(&mut reader, begin.as_bytes(), 0).unwrap();
    assert_eq!(reader.take().len(), 1);
    let bookmark = reader.bookmark();
    assert_eq!(bookmark.offset, begin.len() as u64);
    let name = Path::new("s.jsonl");
    let resume = || TranscriptReader::resume(CLAUDE_CODE, name, &bookmark).unwrap();
    for (next, expected) in [
        (
            user("u2", "a1", "more") + &answer("a2", "u2", "msg_2"),
            Ok(()),
        ),
        (answer("a2", "u1", "msg_2"), Err(Lost)),
        (answer("a2", "somewhere", "msg_2"), Err(Lost)),
        (answer("a1", "u1", "msg_1"), Ok(())),
    ] {
        let whole = begin.clone() + &next;
        let mut resumed = resume();
        assert_eq!(
            feed(&mut resumed, whole.as_bytes(), bookmark.offset),
            expected,
            "{next}"
        );
        let calls = resumed.take();
        let is_new = next.contains("more");
        assert_eq!(
            chain(&calls),
            [("msg_2", Some("msg_1"))][..usize::from(is_new)]
        );
    }
    assert!(TranscriptReader::resume(Agent::Codex, name, &bookmark).is_none());
    let mut other = bookmark.clone();
    other.state = other.state.replace(r#""version":1"#, r#""version":0"#);
    assert!(TranscriptReader::resume(CLAUDE_CODE, name, &other).is_none());
}

#[test]
fn what_is_not_known_is_counted_and_a_changed_format_is_named() {
    let unknown = |n: usize| format!(r#"{{"type":"{}","uuid":"x"}}"#, "k".repeat(n)) + "\n";
    let (_, reader) = read(
        CLAUDE_CODE,
        &(unknown(64) + &unknown(65) + "{}\n[]\nno\n\n"),
    );
    let tally = reader.tally();
    assert_eq!((tally.lines, tally.malformed_lines), (5, 2));
    let counted: Vec<u64> = tally.unknown.values().copied().collect();
    assert_eq!(counted, [1, 2]);
    assert_eq!(tally.unknown.get("other"), Some(&2));
    assert!(!tally.format_changed);
    let changed = |file: &str| read(CLAUDE_CODE, file).1.tally().format_changed;
    assert!(changed(&unknown(5).repeat(10)));
    assert!(!changed(&unknown(5).repeat(9)));
    let silent = r#"{"type":"summary","summary":"x"}"#.to_owned() + "\n";
    assert!(!changed(&silent.repeat(20)));
    assert!(changed("{\"role\":\"assistant\",\"text\":\"x\"}\n"));
    assert!(changed(
        &(silent + "{\"type\":\"x\",\"item\":{\"role\":\"model\"}}\n")
    ));
    assert!(!changed(
        &(user("u1", "", "hi") + &answer("a1", "u1", "msg_1"))
    ));
    let synthetic = answer("a1", "", "m").replace(r#""role""#, r#""model":"<synthetic>","role""#);
    assert!(!changed(&synthetic));
}

#[test]
fn a_line_that_is_too_long_is_counted() {
    let mut reader = reader(CLAUDE_CODE);
    reader.skipped_line(0);
    let file = user("u1", "", "hi") + &answer("a1", "u1", "msg_1");
    feed(&mut reader, file.as_bytes(), 0).unwrap();
    assert_eq!(reader.tally().malformed_lines, 1);
    assert_eq!(reader.take().len(), 1);
}
