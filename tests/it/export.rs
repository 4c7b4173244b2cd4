//! Facts as lines of JSON for other programs.

use harness::server::{Backend, Configuration, Server};
use serde_json::Value;
use svc_model::json::Json;

use crate::cli::{LAST_CALL, at, done, svc};
use crate::payload_schemas::schema;

on_both_backends! {
    visible_facts_are_exported_in_one_order,
}

fn lines(server: &Server, arguments: &[&str]) -> Vec<Json> {
    let text = done(&svc(server, &[&["export"], arguments].concat()));
    let line = |line: &str| Json::parse(line.as_bytes()).expect("JSON");
    text.lines().map(line).collect()
}

fn kinds(lines: &[Json]) -> Vec<&str> {
    let kind = |line| at(line, &["kind"]).as_str().expect("a kind");
    lines.iter().map(kind).collect()
}

fn visible_facts_are_exported_in_one_order(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    assert!(lines(&server, &[]).is_empty());
    done(&svc(&server, &["demo", "--small"]));
    let all = lines(&server, &[]);
    let calls = "inference_calls";
    assert_eq!(
        kinds(&all),
        [
            calls,
            calls,
            calls,
            calls,
            "developer_decisions",
            "ci_outcomes"
        ]
    );
    assert_eq!(all, lines(&server, &["--json"]));
    let ids: Vec<&str> = all[..4]
        .iter()
        .map(|line| at(line, &["inference_call_id"]).as_str().expect("a text"))
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");
    let schema = schema("ExportedFact");
    let check = |line: &Json| {
        let value: Value = serde_json::from_slice(&line.to_canonical()).expect("JSON");
        let faults: Vec<_> = schema
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(faults.is_empty(), "{faults:#?}\n{value}");
    };
    let has_content = |line: &Json| {
        line.as_object()
            .expect("an object")
            .get("content")
            .is_some()
    };
    for line in &all {
        assert!(!has_content(line), "{line:?}");
        check(line);
    }

    let with_content = lines(&server, &["--content"]);
    assert_eq!(kinds(&with_content), kinds(&all));
    for line in &with_content {
        assert!(has_content(line), "{line:?}");
        check(line);
    }
    let content = at(&with_content[0], &["content"]);
    let count = |name| match at(content, &[name]) {
        Json::Array(messages) => messages.len(),
        other => panic!("{other:?}"),
    };
    assert!(count("input_messages") > 0 && count("output_messages") > 0);
    assert!(at(content, &["raw"]).as_object().is_some());

    assert_eq!(
        kinds(&lines(&server, &["--kind", "ci_outcomes"])),
        ["ci_outcomes"]
    );
    assert!(lines(&server, &["--until", "1d"]).is_empty());
    assert_eq!(lines(&server, &["--since", "1d"]).len(), 6);
    // Quarantined facts appear in no answer.
    let hide = ["quarantine", calls, LAST_CALL, "--reason", "a leak"];
    done(&svc(&server, &hide));
    let visible = lines(&server, &[]);
    assert_eq!(visible.len(), 5);
    assert!(visible.iter().all(|line| all.contains(line)));
}
