//! What a search prints: for people, for a terminal and for programs.

use std::process::Output;

use svc_client::model::endpoint::{Endpoint as _, Search};
use svc_client::model::problem::Problem;
use svc_client::testing::{Answer, FakeServer};

use super::first_use::svc;

/// An answer with one Session, whose title and excerpt hold what would steer a terminal.
const FOUND: &str = r#"{"schema_version":1,"policy_version":2,"quarantine_revision":0,"capture_completeness":"unknown","status":"matched","indexed_up_to":null,"index_complete":false,"coverage":{"sessions":3,"indexed_parts":7,"candidates":1,"all_scored":true},"skipped":{"withdrawn":1,"non_finite_number":0,"session_limit":0,"part_limit":0,"response_budget":0},"items":[{"session_id":"fix/the pager","title":"Fix\u001b[2J it","user_ids":["ann"],"score":1000,"matched_parts":1,"first_observed_at":"2026-01-01T00:00:00Z","last_observed_at":"2026-01-01T00:00:00Z","parts":[{"score":1000,"reference":{"inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","side":"output","message_index":0,"part_index":0},"observed_at":"2026-01-01T00:00:00Z","role":"assistant","finish_reason":"stop","type":"text","whole":true,"part":{"type":"text","content":"the windows\u001b[2J of the pager"}}]}]}"#;
const NOTHING: &str = r#"{"schema_version":1,"policy_version":2,"quarantine_revision":0,"capture_completeness":"unknown","status":"no_match","indexed_up_to":"2026-01-01T00:00:00Z","index_complete":true,"coverage":{"sessions":3,"indexed_parts":7,"candidates":0,"all_scored":true},"skipped":{"withdrawn":0,"non_finite_number":0,"session_limit":0,"part_limit":0,"response_budget":0},"items":[]}"#;

fn search(answer: Answer, arguments: &[&str]) -> (Output, String) {
    let home = tempfile::tempdir().expect("a folder");
    let server = FakeServer::start([answer]);
    let output = svc(home.path())
        .arg("search")
        .args(arguments)
        .env("SVC_URL", server.url())
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
        .output()
        .expect("svc runs");
    let bodies = server.received().into_iter().map(|request| {
        assert_eq!(request.target, Search::PATH);
        String::from_utf8(request.body).expect("text")
    });
    (output, bodies.collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_was_found_is_shown_without_what_would_steer_a_terminal() {
    let answer = || Answer::text(200, FOUND);
    let (output, asked) = search(answer(), &["window", "of", "--kind", "text"]);
    assert_eq!(
        asked,
        r#"{"schema_version":1,"query":"window of","max_bytes":16384,"limit":8,"filters":{"kind":"text"}}"#
    );
    assert!(output.status.success(), "{output:?}");
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "{shown}");
    for line in [
        "1 of 3 Sessions, best first\n",
        "The index is still being built (7 parts so far), so more may be found later.\n",
        "not shown: 1 no longer visible\n",
        "  ann  Fix\\u{1b}[2J it\n",
        "  f8d5f475-40a1-5ebb-9796-b05b24001822:output:0:0  assistant\n",
        "    the windows\\u{1b}[2J of the pager\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    let next = text(&output.stderr);
    let command = "transcript 'fix/the pager' f8d5f475-40a1-5ebb-9796-b05b24001822\n";
    assert!(next.contains(command), "{next}");

    let (output, _) = search(answer(), &["window", "--color", "always"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("the \u{1b}[1mwindows\u{1b}[0m\\u{1b}[2J of"),
        "{shown}"
    );
}

#[test]
fn a_program_gets_the_reply_as_it_is() {
    let (output, _) = search(Answer::text(200, FOUND), &["window", "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), format!("{FOUND}\n"));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn nothing_found_is_a_success_that_says_what_was_searched() {
    let (output, _) = search(Answer::text(200, NOTHING), &["window"]);
    assert!(output.status.success(), "{output:?}");
    let shown = text(&output.stdout);
    assert!(
        shown.starts_with("no Session matches; 3 were searched\n"),
        "{shown}"
    );
    assert!(shown.contains("may still have happened"), "{shown}");
}

#[test]
fn a_server_without_an_index_says_so() {
    let disabled = Answer::problem(404, &Problem::SearchDisabled);
    let (output, _) = search(disabled, &["window", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains(r#""code":"search_disabled""#),
        "{output:?}"
    );
}

#[test]
fn a_search_without_words_is_refused_before_it_is_sent() {
    let (output, asked) = search(Answer::closed(), &["what", "is", "the"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(asked, "");
}
