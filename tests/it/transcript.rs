//! What was said in a Session, printed exactly and in order.

use harness::delivery::Receipt;
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;

use crate::cli::{done, refused, svc, svc_with};

on_both_backends! {
    a_transcript_holds_every_part_once_and_in_order,
    a_large_call_is_printed_completely,
    a_part_without_a_form_hides_nothing_else,
}

const SESSION: &str = "told";

/// Delivers a call and returns its id.
fn deliver(server: &Server, id: &str, messages: &[Value], answer: &str) -> String {
    let body = json!({
        "provider": "gateway_a",
        "session_id": SESSION,
        "payload": {
            "litellm_call_id": id, "model": "m", "messages": messages,
            "response": {"choices": [{"finish_reason": "stop",
                "message": {"role": "assistant", "content": answer}}]},
        },
    });
    let reply = server.deliver("/ingest/gateway", body.to_string());
    let fact = dig(&reply.json(), "fact_id")
        .and_then(Json::as_str)
        .map(str::to_owned);
    fact.unwrap_or_else(|| panic!("{}", reply.text()))
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// Asserts that texts stand one after another.
fn in_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for expected in expected {
        let found = rest.find(expected);
        let found =
            found.unwrap_or_else(|| panic!("no {expected:?} where it should be in\n{text}"));
        rest = &rest[found + expected.len()..];
    }
}

fn a_transcript_holds_every_part_once_and_in_order(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::granting(&[SESSION])) else {
        return;
    };
    // Nothing was found, which is not a failure.
    let unknown = svc(&server, &["transcript", SESSION]);
    assert_eq!(done(&unknown), "Session told is not known\n");
    assert_eq!(done(&svc(&server, &["session", SESSION])), done(&unknown));

    // More parts than one request reads. One is an image, and one contains terminal control
    // characters.
    let mut history: Vec<Value> = (0..40)
        .map(|n| message("user", &format!("word-{n:02}.")))
        .collect();
    history.push(json!({"role": "user", "content": [
        {"type": "text", "text": "look \u{1b}[31m here "},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]}));
    let first = deliver(&server, "one", &history, "answer-one.");
    history.push(message("assistant", "answer-one."));
    history.push(message("user", "go on."));
    let second = deliver(&server, "two", &history, "answer-two.");

    let transcript = done(&svc(&server, &["transcript", SESSION]));
    let words: Vec<String> = (0..40).map(|n| format!("    word-{n:02}.\n")).collect();
    let left_out =
        "\nleft out by the capture: 1 of a kind that is not kept (images, files, searches)\n";
    let first_call = format!("call {first}  ");
    let mut expected = vec![&*first_call, left_out];
    expected.extend(words.iter().map(String::as_str));
    let second_call = format!("\ncall {second}  ");
    expected.extend([
        // Escaped for a file or a pager too, which would pass it on to the terminal.
        "    look \\u{1b}[31m here \n",
        "    answer-one.\n",
        &second_call,
        "\n42 messages as above\n",
        "    go on.\n",
        "    answer-two.\n",
    ]);
    in_order(&transcript, &expected);
    for once in ["word-07.", "answer-one.", "go on."] {
        assert_eq!(transcript.matches(once).count(), 1, "{once}\n{transcript}");
    }
    let all = done(&svc(&server, &["transcript", SESSION, "--all"]));
    assert_eq!(all.matches("word-07.").count(), 2);

    // A beginning of its id suggests it.
    for command in ["session", "transcript"] {
        let meant = svc(&server, &[command, "tol"]);
        let meant = done(&meant);
        assert!(meant.starts_with("Session tol is not known\n"), "{meant}");
        assert!(
            meant.contains(&format!("svc {command} {SESSION}\n")),
            "{meant}"
        );
    }

    // An agent reads what it was granted, and programs read one part per line.
    let agent = [("SVC_TOKEN", RETRIEVAL_TOKEN)];
    assert_eq!(
        done(&svc_with(&server, &agent, &["transcript", SESSION])),
        transcript
    );
    let lines = done(&svc(&server, &["transcript", SESSION, "--json"]));
    let parts: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a part a line"))
        .collect();
    assert_eq!(parts.len(), 44);
    assert_eq!(parts[40]["part"]["content"], "look \u{1b}[31m here ");

    // The manifest contains the counts, if it is asked to.
    let manifest = |explain: &str| {
        let path = format!(
            "/query/evidence/manifest?session_id={SESSION}&inference_call_id={first}{explain}"
        );
        server
            .send(&Request::get(path).bearer(OPERATOR_TOKEN))
            .json()
    };
    let count = dig(&manifest("&explain=true"), "left_out.unsupported_content").cloned();
    assert_eq!(count, Some(Json::from(1_i64)));
    let plain = manifest("");
    assert_eq!(dig(&plain, "left_out"), None);
    assert_eq!(dig(&plain, "messages.0.digest"), None);
    let shown = done(&svc(&server, &["evidence", "manifest", SESSION, &first]));
    assert!(shown.contains(left_out), "{shown}");

    // The suggested command can be pasted.
    let absent = format!("{first}:input:9:9");
    let error = refused(&svc(&server, &["evidence", "read", SESSION, &absent]), 1);
    let manifest = format!("svc evidence manifest {SESSION} {first}");
    in_order(&error, &["reference 0", &manifest, &absent]);
    let error = refused(&svc(&server, &["evidence", "manifest", SESSION, "none"]), 1);
    assert!(
        error.contains(&format!("svc evidence inventory {SESSION}")),
        "{error}"
    );
}

fn a_large_call_is_printed_completely(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    // Each fits into a reply, but no two of them do.
    let large = ["a", "b", "c"].map(|letter| letter.repeat(700_000));
    let messages: Vec<Value> = large.iter().map(|text| message("user", text)).collect();
    let call = deliver(&server, "large", &messages, "yes.");
    deliver(&server, "other", &[message("user", "apart.")], "no.");

    // A call can also be named by the beginning of its id.
    let transcript = done(&svc(&server, &["transcript", SESSION, &call[..24]]));
    in_order(
        &transcript,
        &[&large[0], &large[1], &large[2], "    yes.\n"],
    );
    assert!(!transcript.contains("apart."), "another call");
    let none = refused(&svc(&server, &["transcript", SESSION, "no-such"]), 1);
    assert!(none.contains("no visible call"), "{none}");
}

fn a_part_without_a_form_hides_nothing_else(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let result = |number: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"t","content":"{{\"n\":{number}}}"}}"#)
    };
    let messages = [
        r#"{"role":"user","content":"before. \ud83d"}"#.to_owned(),
        result("NaN"),
        result("1e400"),
        r#"{"role":"user","content":"after."}"#.to_owned(),
    ];
    let body = |id: &str, messages: &str| {
        format!(
            r#"{{"provider":"gateway_a","session_id":"{SESSION}","payload":{{"litellm_call_id":"{id}","model":"m","messages":[{messages}]}}}}"#
        )
    };
    let first = Receipt::of(&server.deliver("/ingest/gateway", body("one", &messages.join(","))));
    deliver(&server, "two", &[message("user", "another.")], "yes.");
    let number = format!("part {}:input:1:0 is not shown: ", first.fact);
    for json in [&[][..], &["--json"]] {
        let shown = svc(&server, &[&["transcript", SESSION], json].concat());
        assert_eq!(shown.status.code(), Some(1));
        let [parts, errors] =
            [&shown.stdout, &shown.stderr].map(|text| String::from_utf8_lossy(text));
        in_order(&parts, &["before.", "after.", "another.", "yes."]);
        assert!(errors.contains(&number), "{errors}");
        assert!(errors.contains("parts cannot be shown"), "{errors}");
    }

    // A line for every fact that JSON can write.
    let exported = svc(&server, &["export", "--content"]);
    assert_eq!(exported.status.code(), Some(1));
    let [lines, errors] =
        [&exported.stdout, &exported.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let left_out = format!("inference_calls/{} is left out: ", first.fact);
    assert!(errors.contains(&left_out), "{errors}");
    let finite = [&messages[..1], &messages[2..]].concat();
    let second = Receipt::of(&server.deliver("/ingest/gateway", body("three", &finite.join(","))));
    let line = |exact: &[&str]| {
        let exported = svc(&server, &[&["export", "--content"], exact].concat());
        let lines = String::from_utf8_lossy(&exported.stdout).into_owned();
        let found = lines.lines().find(|line| line.contains(&second.fact));
        found.expect("the call").to_owned()
    };
    let readable: Value = serde_json::from_str(&line(&[]).replace("1e400", "1")).expect("JSON");
    assert_eq!(
        readable["content"]["input_messages"][0]["parts"][0]["content"],
        "before. \u{fffd}"
    );
    let places = readable["inexact"].as_array().expect("places");
    assert!(
        places.contains(&json!("/content/input_messages/0/parts/0/content")),
        "{places:?}"
    );
    assert!(line(&["--exact"]).contains("before. \\ud83d"));
}
