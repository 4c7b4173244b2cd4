//! The report commands over a real repository: what a person reads, and what is refused.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Webhook, ci_outcome, log_record, logs};
use harness::git::Repository;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, Server};
use serde_json::{Value, json};
use svc_model::json::Number;

use crate::cli::{done, refused, svc};

on_both_backends!(
    each_report_reads_as_it_was_counted,
    each_report_is_json_of_its_own_members,
    what_no_report_can_be_made_of_is_refused,
    the_moment_of_a_report_bounds_what_counts,
);

/// How long the push may take to be read in the background.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the accepted call wrote, and what the file holds that was committed.
const WRITTEN: &str = "alpha = beta(gamma)\ndelta = epsilon(zeta)\n";
/// What the merge left of it.
const MERGED: &str = "alpha = beta(gamma)\n";
/// A moment after everything, so that the reports say the same whenever they are made.
const LATER: &str = "2261-01-01T00:00:00Z";

/// A call of a Session that writes a file.
fn writing(session: &str, name: &str, model: &str, content: &str) -> Call {
    let arguments = json!({"file_path": "a.py", "content": content}).to_string();
    let call = json!({
        "id": format!("tool-{name}"), "type": "function",
        "function": {"name": "Write", "arguments": arguments},
    });
    let answer = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    Call::new(session, name).model(model).answer(answer)
}

fn decision(session: &str, name: &str, decision: &str) -> Value {
    let attributes = json!({
        "agent": "claude-code", "session.id": session, "tool_use_id": format!("tool-{name}"),
        "decision": decision, "explicit": true, "file_path": "a.py",
    });
    log_record("svc.tool_decision", &attributes)
}

/// Returns a server that knows of two calls: one was accepted, committed, tested and merged, of the
/// other only that it was rejected.
fn world(backend: Backend) -> Option<(Server, Repository)> {
    let mut configuration = Configuration::default();
    let dev_mode = ("SVC_DEV_MODE".to_owned(), "true".to_owned());
    configuration.variables.extend([dev_mode]);
    let server = Server::start(backend, &configuration)?;
    let repository = Repository::create();
    let base = repository.commit("base");
    let write = |content: &str| {
        let blob = repository.run_with(&["hash-object", "-w", "--stdin"], content);
        let entry = format!("100644,{blob},a.py");
        repository.run(&["update-index", "--add", "--cacheinfo", &entry]);
    };
    repository.run(&["checkout", "-q", "-b", "feat"]);
    write(WRITTEN);
    let head = repository.commit("feature");
    repository.stamp(&head, &["kept"]);
    repository.run(&["checkout", "-q", "-f", "main"]);
    write(MERGED);
    let merged = repository.commit("squashed");
    repository.push();

    for call in [
        writing("kept", "one", "model-a", WRITTEN),
        writing("dropped", "two", "model-b", "eta = theta(iota)\n"),
    ] {
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let decisions = [
        decision("kept", "one", "accept"),
        decision("dropped", "two", "reject"),
        decision("nobody", "three", "accept"),
    ];
    let decisions = logs(&decisions).to_string().into_bytes();
    assert_eq!(server.deliver("/v1/logs", decisions).status, 200);
    let of = json!({"id": 7, "full_name": "own/repo", "clone_url": repository.url()});
    let hook = |event: &str, path: &str, body: Value| {
        let reply = server.send(&Webhook::new(event, &body).to(path));
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    let push = json!({
        "ref": "refs/heads/feat", "before": base, "after": head,
        "deleted": false, "forced": false, "repository": of,
    });
    hook("push", "/ingest/forge/push", push);
    let pull_request = json!({
        "action": "closed",
        "pull_request": {
            "number": 5, "merged": true, "merged_at": "2026-02-03T04:05:06Z",
            "merge_commit_sha": merged,
            "head": {"ref": "feat", "sha": head, "repo": of},
            "base": {"ref": "main", "sha": base},
        },
        "repository": of,
    });
    hook("pull_request", "/ingest/forge/pull-request", pull_request);
    let mut outcome = ci_outcome("run-1");
    outcome["repo"] = json!("own/repo");
    outcome["commit_sha"] = json!(head);
    outcome["result"] = json!("failed");
    outcome["workflow_name"] = json!("Te\u{1b}st");
    for (name, value) in [("provider", "github"), ("host", "github.com"), ("id", "7")] {
        outcome[format!("repository_{name}")] = json!(value);
    }
    let outcome = outcome.to_string().into_bytes();
    assert_eq!(server.deliver("/ingest/ci", outcome).status, 200);
    let start = Instant::now();
    while observations(&server) == 0 {
        assert!(start.elapsed() < PATIENCE, "the note is not seen");
        thread::sleep(Duration::from_millis(50));
    }
    Some((server, repository))
}

fn observations(server: &Server) -> i64 {
    let facts = server.read_json("/v1/facts");
    let total = dig(&facts, "tables.session_commit_observations.total").expect("a count");
    let total = total.as_number().and_then(Number::as_i64);
    total.expect("a number")
}

/// Runs a report for a program.
fn read(server: &Server, arguments: &[&str]) -> Value {
    let text = done(&svc(server, &[arguments, &["--json"]].concat()));
    serde_json::from_str(&text).expect("JSON")
}

/// Runs a report of all there is, and returns its lines with one blank between words and a fixed word
/// for each moment of receipt.
fn transcript(server: &Server, arguments: &[&str]) -> String {
    let text = done(&svc(server, &[arguments, &["--as-of", LATER]].concat()));
    let word = |word: &str| match word {
        LATER => word.to_owned(),
        word if word.starts_with("20") && word.ends_with('Z') => "TIME".to_owned(),
        word => word.to_owned(),
    };
    let line = |line: &str| {
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        words.join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

fn each_report_reads_as_it_was_counted(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    for (name, arguments) in [
        ("model", &["model"][..]),
        (
            "comparison",
            &[
                "model",
                "--compare",
                "model-a",
                "model-b",
                "--non-inferiority-margin",
                "0.2",
            ],
        ),
        ("lifecycle", &["lifecycle"]),
        ("abandonment", &["abandonment"]),
        (
            "attribution-share",
            &["attribution-share", "--target-margin", "0.1"],
        ),
        ("merge-retention", &["merge-retention", "--explain"]),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reports");
        let path = path.join(format!("{name}.txt"));
        let shown = transcript(&server, &[&["report"], arguments].concat());
        let expected = fs::read_to_string(path).expect("a transcript");
        assert_eq!(shown, expected, "{name}");
    }
}

fn each_report_is_json_of_its_own_members(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let members = |arguments: &[&str]| {
        let report = read(&server, arguments);
        let members = report.as_object().expect("an object").keys();
        let mut names: Vec<&str> = members.map(String::as_str).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let plain = members(&["report", "model"]);
    assert!(!plain.contains("comparison"), "{plain}");
    let compared = members(&["report", "model", "--compare", "model-a", "model-b"]);
    assert!(compared.contains("comparison"), "{compared}");
    assert!(!compared.contains("non_inferiority"), "{compared}");
    assert_eq!(
        members(&["report", "attribution-share", "--target-margin", "0.5"]),
        "alerts baseline current min_cases_for_decline_verdict"
    );
    assert_eq!(
        members(&["report", "abandonment"]),
        "abandoned_sessions accepted_session_outcomes as_of org_id policy_version skipped"
    );
    let retention = members(&["report", "merge-retention"]);
    assert_eq!(retention.split(' ').count(), 18, "{retention}");
    let explained = members(&["report", "merge-retention", "--explain"]);
    assert_eq!(explained, format!("{retention} unchecked_pull_requests"));
}

fn what_no_report_can_be_made_of_is_refused(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    for (arguments, status) in [
        (&["model", "--since-days", "0"][..], 2),
        (&["model", "--compare", "a", "a"], 1),
        (&["model", "--compare", "a"], 2),
        (&["model", "--non-inferiority-margin", "0.1"], 2),
        (
            &[
                "model",
                "--compare",
                "a",
                "b",
                "--non-inferiority-margin",
                "0",
            ],
            1,
        ),
        (
            &[
                "model",
                "--compare",
                "a",
                "b",
                "--non-inferiority-margin",
                "1.1",
            ],
            1,
        ),
        (
            &[
                "model",
                "--compare",
                "a",
                "b",
                "--non-inferiority-margin",
                "nan",
            ],
            1,
        ),
        (&["lifecycle", "--as-of", "yesterday"], 1),
        (&["attribution-share"], 2),
        (&["attribution-share", "--target-margin", "-1"], 1),
        (&["attribution-share", "--target-margin", "inf"], 1),
        (&["nonsense"], 2),
    ] {
        refused(&svc(&server, &[&["report"], arguments].concat()), status);
    }
    // Nothing is known of another organization, and that is an answer.
    for arguments in [
        &["model"][..],
        &["lifecycle"],
        &["abandonment"],
        &["attribution-share", "--target-margin", "0.1"],
        &["merge-retention"],
    ] {
        let of_another = [&["report"], arguments, &["--org", "other"]].concat();
        done(&svc(&server, &of_another));
    }
}

fn the_moment_of_a_report_bounds_what_counts(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let calls = |arguments: &[&str]| {
        let report = read(&server, &[&["report", "model"], arguments].concat());
        report["rows"].as_array().expect("rows").len()
    };
    assert_eq!(calls(&["--as-of", "-1d"]), 0);
    assert_eq!(calls(&["--since-days", "1"]), 2);
    assert_eq!(calls(&["--since-days", "1", "--as-of", LATER]), 0);
}
