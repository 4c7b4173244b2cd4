//! The report commands on a real repository: what people see, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use harness::delivery::{Call, Webhook, ci_outcome, log_record, logs};
use harness::git::Repository;
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use harness::{process, processes, programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use svc_model::json::Number;
use svc_model::time::Instant as Moment;

use crate::cli::{done, refused, svc, svc_with};
use crate::console::{open, signed_in};
use crate::mcp::agent::{Agent, Transport};
use crate::payload_schemas::schema;

on_both_backends!(
    each_report_matches_its_recorded_transcript,
    each_report_can_be_printed_as_json,
    reports_of_the_shell_alone_satisfy_their_published_schemas,
    invalid_report_arguments_are_refused,
    a_report_counts_only_facts_up_to_its_as_of,
    a_report_of_the_service_equals_that_of_its_store_and_mirrors,
    every_report_names_lost_mirrors,
    a_rate_that_nobody_could_observe_is_shown_as_unknown,
    every_surface_says_how_many_calls_could_be_observed,
);

/// How long reading the push in the background may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the accepted call wrote, which is also the content of the committed file.
const WRITTEN: &str = "alpha = beta(gamma)\ndelta = epsilon(zeta)\n";
/// What was left of it after the merge.
const MERGED: &str = "alpha = beta(gamma)\n";
/// A moment after everything, so that the reports are the same whenever they are made.
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

/// Returns a server that knows two calls and what people said about them, and nothing else.
fn of_two_calls(backend: Backend) -> Option<Server> {
    let mut configuration = Configuration::default();
    let names = ["SVC_DEV_MODE", "SVC_ENABLE_CONSOLE", "SVC_ENABLE_MCP"];
    let switched_on = names.map(|name| (name.to_owned(), "true".to_owned()));
    configuration.variables.extend(switched_on);
    let server = Server::start(backend, &configuration)?;
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
    Some(server)
}

/// Returns a server that knows two calls. One was accepted, committed, tested and merged; of the
/// other it knows only that it was rejected.
fn world(backend: Backend) -> Option<(Server, Repository)> {
    let server = of_two_calls(backend)?;
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

/// Runs a report with JSON output.
fn read(server: &Server, arguments: &[&str]) -> Value {
    let text = done(&svc(server, &[arguments, &["--json"]].concat()));
    serde_json::from_str(&text).expect("JSON")
}

/// Runs a report over everything, and returns its lines with one blank between words and a fixed
/// word for each time of receipt.
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

fn each_report_matches_its_recorded_transcript(backend: Backend) {
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

fn each_report_can_be_printed_as_json(backend: Backend) {
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

fn reports_of_the_shell_alone_satisfy_their_published_schemas(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let share = ["report", "attribution-share", "--target-margin", "0.5"];
    for (name, arguments) in [
        ("AbandonmentReport", &["report", "abandonment"][..]),
        ("AttributionShareReport", &share),
        ("MergeRetentionReport", &["report", "merge-retention"]),
        (
            "MergeRetentionReport",
            &["report", "merge-retention", "--explain"],
        ),
    ] {
        let schema = schema(name);
        let arguments = [arguments, &["--json"]].concat();
        // With the mirrors and without them. Without them, most is left out, and is counted.
        for mirrors in [&[][..], &[("SVC_MIRROR_PATH", "")]] {
            let output = svc_with(&server, mirrors, &arguments);
            let (printed, warning) = (output.stdout_text(), output.stderr_text());
            assert_eq!(output.status.code(), Some(0), "{warning}");
            // Programs too are told what is missing, beside the report.
            assert!(warning.is_empty() || !mirrors.is_empty(), "{warning}");
            let printed: Value = serde_json::from_str(&printed).expect("JSON");
            let faults = schema.iter_errors(&printed).map(|fault| fault.to_string());
            let faults: Vec<_> = faults.collect();
            assert!(faults.is_empty(), "{name}: {faults:#?}\n{printed}");
            if name == "AttributionShareReport" {
                let has_skips = printed.get("attribution_skips").is_some();
                assert_eq!(has_skips, !mirrors.is_empty(), "{printed}");
            }
        }
    }
}

fn invalid_report_arguments_are_refused(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    for (arguments, status) in [
        (&["model", "--since-days", "0"][..], 2),
        (&["model", "--compare", "a", "a"], 1),
        (&["model", "--compare", "a"], 2),
        (&["model", "--compare", "a", "b", "--compare", "a", "c"], 2),
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
        (&["lifecycle", "--as-of", "yesterday"], 2),
        (&["attribution-share"], 2),
        (&["attribution-share", "--target-margin", "-1"], 1),
        (&["attribution-share", "--target-margin", "inf"], 1),
        (&["nonsense"], 2),
    ] {
        refused(&svc(&server, &[&["report"], arguments].concat()), status);
    }
    // Nothing is known about another organization, which is a valid answer.
    for arguments in [
        &["model"][..],
        &["lifecycle"],
        &["abandonment"],
        &["attribution-share", "--target-margin", "0.1"],
        &["merge-retention"],
    ] {
        let of_another = [&["report"], arguments, &["--org", "other"]].concat();
        done(&svc(&server, &of_another));
        // A blank name stands for no organization, rather than for the one that is served.
        for blank in ["", " ", "\t"] {
            let of_none = [&["report"], arguments, &["--org", blank]].concat();
            refused(&svc(&server, &of_none), 2);
        }
    }
}

fn a_report_counts_only_facts_up_to_its_as_of(backend: Backend) {
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
    let accepted = |arguments: &[&str]| {
        let report = read(&server, &[&["report", "abandonment"], arguments].concat());
        report["accepted_session_outcomes"]
            .as_array()
            .expect("Sessions")
            .len()
    };
    // One of the two has no call.
    assert_eq!(accepted(&[]), 2);
    assert_eq!(accepted(&["--since-days", "1"]), 1);
    let attributed = |arguments: &[&str]| {
        let arguments = [&["report", "merge-retention"], arguments].concat();
        read(&server, &arguments)["attributed_file_candidates"].clone()
    };
    assert_eq!(attributed(&["--since-days", "1"]), json!(1));
    assert_eq!(
        attributed(&["--since-days", "1", "--as-of", LATER]),
        json!(0)
    );
}

/// No store is named, so the service is asked.
const NO_STORE: [(&str, &str); 2] = [("SVC_DATABASE_URL", ""), ("SVC_MIRROR_PATH", "")];

/// Returns a moment after everything that has happened.
fn soon() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let later = i64::try_from(now.as_secs() + 60).expect("a time") * 1_000_000;
    Moment::from_microseconds(later)
        .expect("a moment")
        .to_string()
}

/// Returns the moment seven days before another.
fn week_before(moment: &str) -> String {
    hours_before(moment, 7 * 24)
}

fn hours_before(moment: &str, hours: i64) -> String {
    let moment = Moment::parse(moment).expect("a moment").microseconds();
    let before = Moment::from_microseconds(moment - hours * 60 * 60 * 1_000_000);
    before.expect("a moment").to_string()
}

fn a_report_of_the_service_equals_that_of_its_store_and_mirrors(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let soon = soon();
    let ask = |arguments: &[&str]| svc_with(&server, &NO_STORE, arguments);
    for report in ["model", "lifecycle"] {
        let arguments = ["report", report, "--since-days", "7", "--as-of", &soon];
        let of_store = read(&server, &arguments);
        let served = done(&ask(&[&arguments[..], &["--json"]].concat()));
        let served: Value = serde_json::from_str(&served).expect("JSON");
        assert_eq!(served, of_store, "{report}");
        assert_eq!(done(&ask(&arguments)), done(&svc(&server, &arguments)));
        let error = refused(&ask(&["report", report]), 1);
        assert!(error.contains("--since-days 31"), "{error}");
        let error = refused(&ask(&["report", report, "--since-days", "32"]), 1);
        assert!(error.contains("31 days at most"), "{error}");
        let another = ["report", report, "--since-days", "1", "--org", "other"];
        let error = refused(&ask(&another), 1);
        assert!(error.contains("--database-url"), "{error}");
    }
    for arguments in [
        &["abandonment"][..],
        &["attribution-share", "--target-margin", "0.1"],
        &["merge-retention"],
    ] {
        let error = refused(&ask(&[&["report"], arguments].concat()), 1);
        assert!(error.contains("--database-url"), "{error}");
    }
}

/// A folder that is not mounted looks like one that never had anything, but the store knows that it
/// had mirrors.
fn a_rate_that_nobody_could_observe_is_shown_as_unknown(backend: Backend) {
    let Some(server) = of_two_calls(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let agent = Agent::connect(&server, Transport::Http, OPERATOR_TOKEN);
    let soon = soon();
    let scope = json!({"cohort_start": week_before(&soon), "cohort_end": soon, "as_of": soon});
    for (command, tool) in [
        ("model", "model_outcomes_report"),
        ("lifecycle", "accepted_work_lifecycle_report"),
    ] {
        let arguments = ["report", command, "--since-days", "7", "--as-of", &soon];
        for text in [
            done(&svc(&server, &arguments)),
            done(&svc_with(&server, &NO_STORE, &arguments)),
            agent.answer(tool, scope.clone()),
        ] {
            assert!(text.contains("not observable: no "), "{text}");
            assert!(text.contains("It is unknown, not 0."), "{text}");
            let counts = "of 2 calls, 2 not observable: no push was received near the calls (2)";
            let by_model = "of 1 calls, 1 not observable: no push was received near the calls (1)";
            let has_counts = text.contains(counts) || text.contains(by_model);
            assert!(has_counts || command != "model", "{text}");
            assert!(!text.contains(" 0.0%"), "{text}");
        }
    }
    let report = read(&server, &["report", "model"]);
    for row in report["rows"].as_array().expect("rows") {
        assert_eq!(row["attribution_rate"], json!(0.0), "{row}");
        assert_eq!(row["attribution_observable"], json!(0), "{row}");
    }
    for page in ["models", "lifecycle"] {
        let text = open(&server, &cookies, &format!("/console/{page}")).text();
        assert!(text.contains("not observable: no "), "{text}");
        assert!(!text.contains("0 of 2"), "{text}");
    }
}

/// Two calls near the push, and two of long before it.
fn every_surface_says_how_many_calls_could_be_observed(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let soon = soon();
    let before = hours_before(&soon, 3);
    for (id, model) in [(1, "model-a"), (2, "model-c")] {
        let call = writing(
            "early",
            &format!("early-{id}"),
            model,
            "iota = kappa(lambda)\n",
        );
        let call = call.captured(&format!("00000000-0000-4000-8000-00000000000{id}"), &before);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let report = read(&server, &["report", "model", "--as-of", &soon]);
    let rows = report["rows"].as_array().expect("rows");
    let said = |row: &Value| {
        let members = [
            "attribution_rate",
            "attribution_observable",
            "attribution_unobservable",
        ];
        members.map(|member| row[member].clone())
    };
    let said: Vec<[Value; 3]> = rows.iter().map(said).collect();
    let early = json!({"push_absent": 1});
    let expected = [
        [json!(0.5), json!(1), early.clone()],
        [json!(0.0), Value::Null, Value::Null],
        [json!(0.0), json!(0), early],
    ];
    assert_eq!(said, expected);

    let arguments = ["report", "model", "--since-days", "7", "--as-of", &soon];
    let compared = [&arguments[..], &["--compare", "model-a", "model-c"]].concat();
    let why = "not observable: no push was received near the calls";
    for text in [
        done(&svc(&server, &compared)),
        done(&svc_with(&server, &NO_STORE, &compared)),
    ] {
        for expected in [
            "100.0% (1 of 1; 20.7% to 100.0%)",
            "0.0% (0 of 1; 0.0% to 79.3%)",
            "- (not observable)",
            &format!("model-a: attribution_rate: of 2 calls, 1 {why} (1)"),
            &format!("model-c: attribution_rate: of 1 calls, 1 {why} (1)"),
            &format!("attribution_rate of model-c is {why}. It is unknown, not 0."),
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
    let cookies = signed_in(&server);
    let text = open(&server, &cookies, "/console/models").text();
    for expected in [
        "100.0 % (1 of 1; 20.7 % to 100.0 %)",
        &format!("attribution_rate of model-a: of 2 calls, 1 {why} (1)."),
        &format!("{why}; cases: 1"),
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let agent = Agent::connect(&server, Transport::Http, OPERATOR_TOKEN);
    let scope = json!({"cohort_start": week_before(&soon), "cohort_end": soon, "as_of": soon});
    let text = agent.answer("model_outcomes_report", scope);
    for expected in [
        &format!("attribution_rate: of 4 calls, 2 {why} (2)."),
        "Where attribution_observable is 0, attribution_rate is unknown, not 0",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

fn every_report_names_lost_mirrors(backend: Backend) {
    let Some((server, _repository)) = world(backend) else {
        return;
    };
    let mirrors = Path::new(server.variable("SVC_MIRROR_PATH").expect("a folder"));
    let elsewhere = mirrors.with_extension("elsewhere");
    let cookies = signed_in(&server);
    let agent = Agent::connect(&server, Transport::Http, OPERATOR_TOKEN);
    for is_lost in [false, true, false] {
        match (is_lost, elsewhere.exists()) {
            (true, _) => fs::rename(mirrors, &elsewhere).expect("mirrors"),
            (false, true) => fs::rename(&elsewhere, mirrors).expect("mirrors"),
            (false, false) => {}
        }
        let soon = soon();
        let week = week_before(&soon);
        let scope = json!({"cohort_start": week, "cohort_end": soon, "as_of": soon});
        let lost = if is_lost { json!(1) } else { Value::Null };
        for (route, tool, command, page) in [
            ("model-outcomes", "model_outcomes_report", "model", "models"),
            (
                "accepted-work-lifecycle",
                "accepted_work_lifecycle_report",
                "lifecycle",
                "lifecycle",
            ),
        ] {
            let query = format!("cohort_start={week}&cohort_end={soon}&as_of={soon}");
            let path = format!("/v1/reports/{route}?{query}");
            let reply = server.send(&Request::get(path).bearer(OPERATOR_TOKEN));
            let served: Value = serde_json::from_slice(&reply.body).expect("JSON");
            assert_eq!(served["report"]["lost_mirrors"], lost, "{}", reply.text());
            let answered = agent.structured(tool, scope.clone());
            assert_eq!(answered["report"], served["report"]);
            for row in served["report"]["rows"].as_array().into_iter().flatten() {
                let of_mirror = json!({"mirror_lost": 1});
                let reasons = if is_lost { &of_mirror } else { &Value::Null };
                assert_eq!(row["attribution_unobservable"], *reasons, "{row}");
            }

            let arguments = ["report", command, "--since-days", "7", "--as-of", &soon];
            assert_eq!(read(&server, &arguments)["lost_mirrors"], lost);
            for text in [
                done(&svc(&server, &arguments)),
                done(&svc_with(&server, &NO_STORE, &arguments)),
                open(&server, &cookies, &format!("/console/{page}")).text(),
            ] {
                let is_shown = text.contains("Mirrors that cannot be found now: 1.");
                assert_eq!(is_shown, is_lost, "{text}");
            }
        }
        let compared = open(&server, &cookies, "/console/comparison").text();
        let is_shown = compared.contains("Mirrors that cannot be found now: 1.");
        assert_eq!(is_shown, is_lost, "{compared}");
    }
}

#[test]
fn a_report_without_mirrors_says_that_no_call_is_attributed() {
    let (server, _repository) = world(Backend::Sqlite).expect("SQLite is never skipped");
    let store = server.store().url().to_owned();
    let arguments = ["report", "model", "--database-url", &store];
    let output = svc_with(&server, &[("SVC_MIRROR_PATH", "")], &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stderr = output.stderr_text();
    assert!(
        stderr.starts_with("warning: without mirrors, no call is linked to a commit"),
        "{stderr}"
    );
    assert!(stderr.contains("--mirror-path"), "{stderr}");
}

#[test]
fn ctrl_c_ends_a_report_and_its_git_at_once() {
    let (server, _repository) = world(Backend::Sqlite).expect("SQLite is never skipped");
    let folder = tempfile::tempdir().expect("a folder");
    let git = folder.path().join("git");
    // It answers everything except questions about objects.
    let script = "#!/bin/sh\ncase \" $* \" in *\" cat-file \"*) exec sleep 100;; esac\n\
                  PATH=${PATH#*:} exec git \"$@\"\n";
    fs::write(&git, script).expect("a script");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").expect("a path");
    let mut command = server.shell();
    command
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .args(["report", "merge-retention"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut report = command.spawn().expect("the command starts");
    let start = Instant::now();
    let group = loop {
        let running = processes::running();
        let leader = |group: u32| {
            let leader = running.iter().find(|process| process.id == group);
            leader.is_some_and(|leader| leader.parent == report.id())
        };
        let stuck = running
            .iter()
            .find(|process| process.program == "sleep" && leader(process.group));
        if let Some(stuck) = stuck {
            break stuck.group;
        }
        assert!(start.elapsed() < PATIENCE, "git is not asked");
        thread::sleep(Duration::from_millis(20));
    };
    let interrupted = Instant::now();
    kill_process(Pid::from_child(&report), Signal::INT).expect("it runs");
    let status = report.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
    assert!(interrupted.elapsed() < Duration::from_secs(5));
    assert!(processes::group_is_gone(group), "git is still running");
}

#[test]
fn the_documented_example_prints_the_documented_output() {
    let home = tempfile::tempdir().expect("a folder");
    let documentation = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reports.md");
    let documentation = fs::read_to_string(documentation).expect("the documentation");
    let (_, example) = documentation
        .split_once("## An example")
        .expect("an example");
    let block = |kind: &str| {
        let (_, block) = example
            .split_once(&format!("```{kind}\n"))
            .expect("a block");
        let (block, _) = block.split_once("```").expect("its end");
        block.to_owned()
    };
    let mut printed = String::new();
    for command in block("sh").lines() {
        let command = command.replace('~', &home.path().display().to_string());
        let mut shell = Command::new(programs::path(programs::SHELL));
        let path = std::env::var_os("PATH").unwrap_or_default();
        shell.env_clear().env("HOME", home.path()).env("PATH", path);
        shell.args(command.split(' ').skip(1));
        let result = process::run(&mut shell, b"", Duration::from_mins(1)).expect("it ends");
        printed = done(&result);
    }
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = printed.lines().map(words).collect();
    for line in block("text").lines() {
        assert!(
            printed.contains(&line.to_owned()),
            "{line} is not in {printed:#?}"
        );
    }
}
