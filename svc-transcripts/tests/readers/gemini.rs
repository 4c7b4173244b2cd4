//! Transcripts of Gemini CLI.

use svc_model::usage::TokenCounts;
use svc_transcripts::Agent;

use crate::support::{chain, file_of, lines, read, reader, said};

#[test]
fn a_record_that_comes_again_takes_the_place_of_the_first() {
    let (calls, reader) = read(Agent::Gemini, file_of(Agent::Gemini));
    assert_eq!(
        chain(&calls),
        [
            ("g1", None),
            ("g2", Some("g1")),
            ("g3", Some("g2")),
            ("g4", Some("g1")),
        ]
    );
    let first = &calls[0];
    assert_eq!(first.session_id.as_str(), "gemini-1");
    assert_eq!(first.call.model.as_ref().unwrap().as_str(), "gemini-x");
    assert_eq!(first.call.left_out.unwrap().unsupported_content, 1);
    assert_eq!(
        said(&first.call.output),
        ["assistant: (Listing\nI list them.) | I look. | ls-1 ls{\"path\":\".\"}"]
    );
    assert_eq!(reader.tally().unknown.len(), 0);
}

#[test]
fn the_results_of_an_answers_tools_are_sent_before_the_next() {
    let (calls, _) = read(Agent::Gemini, file_of(Agent::Gemini));
    let inputs: Vec<Vec<String>> = calls
        .iter()
        .map(|call| said(&call.call.input.messages))
        .collect();
    let result = r#"tool: ls-1 = {"output":"a.txt\n... [CONTENT TRUNCATED] ...\n"}"#;
    assert_eq!(inputs[0], ["user: List the files."]);
    assert_eq!(inputs[1], [result]);
    assert_eq!(calls[1].call.left_out.unwrap().truncated, 1);
    assert_eq!(inputs[2], ["user: Better."]);
    // What followed the answer before it was taken back.
    assert_eq!(inputs[3], [result, "user: Another way."]);
}

#[test]
fn thoughts_are_counted_as_output_and_tools_as_input() {
    let (calls, _) = read(Agent::Gemini, file_of(Agent::Gemini));
    let usage = TokenCounts {
        input_tokens_uncached: Some(3_420),
        cache_read_tokens: Some(6_000),
        output_tokens: Some(800),
        reasoning_tokens: Some(590),
        ..TokenCounts::default()
    };
    assert_eq!(calls[0].call.usage, Some(usage));
    // More was cached than was sent, so no count of the input is known.
    let contradicting = calls[2].call.usage.unwrap();
    assert_eq!(contradicting.input_tokens_uncached, None);
    assert_eq!(contradicting.cache_read_tokens, None);
    assert_eq!(contradicting.output_tokens, Some(1));
    assert_eq!(calls[3].call.usage, None);
}

/// Returns the records of a file as one document.
fn document(file: &str) -> String {
    let records: Vec<&str> = file.lines().skip(1).collect();
    format!(
        "{{\n\"sessionId\": \"gemini-1\",\n\"messages\": [{}]\n}}",
        records.join(",\n")
    )
}

#[test]
fn an_older_document_has_the_same_calls() {
    let file: String = file_of(Agent::Gemini)
        .lines()
        .filter(|line| !line.contains('$'))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let (expected, _) = read(Agent::Gemini, &file);
    let mut reader = reader(Agent::Gemini);
    reader.line(0, document(&file).as_bytes()).unwrap();
    reader.end();
    assert_eq!(reader.take(), expected);
    assert!(!reader.tally().format_changed);
}

#[test]
fn a_document_without_known_messages_has_another_format() {
    let document = r#"{"history":[{"role":"user","parts":[]},{"role":"model","parts":[]}]}"#;
    let mut drifted = reader(Agent::Gemini);
    drifted.line(0, document.as_bytes()).unwrap();
    assert!(drifted.tally().format_changed);
    assert_eq!(drifted.tally().unknown.get("other"), Some(&1));
    let document = r#"{"sessionId":"s","messages":[{"id":"a","type":"model","parts":[]}]}"#;
    let mut drifted = reader(Agent::Gemini);
    drifted.line(0, document.as_bytes()).unwrap();
    assert!(drifted.tally().format_changed);
    assert_eq!(drifted.tally().unknown.get("model"), Some(&1));
}

#[test]
fn an_answer_waits_until_something_follows() {
    let file = file_of(Agent::Gemini);
    let mut reader = reader(Agent::Gemini);
    for (offset, line) in lines(file.as_bytes(), 0).take(6) {
        reader.line(offset, line).unwrap();
    }
    assert_eq!(reader.take(), [], "more of it may come");
    assert_eq!(reader.last_answer_text().as_deref(), Some("I look."));
    reader.end();
    assert_eq!(reader.take().len(), 1);
}
