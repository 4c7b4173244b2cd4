//! Pipelines report their outcomes.

use std::fs;

use harness::case::Credential;
use harness::http::Request;
use harness::player::credential;
use harness::process;
use harness::programs;
use harness::server::{
    Backend, Configuration, INGEST_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};
use svc_model::json::Json;

use super::{Job, SHA, ci_outcomes, jobs};
use crate::cli::{COMMAND_MAX, at, done, json, refused, start};

on_both_backends!(every_system_reports_its_job_once);

fn every_system_reports_its_job_once(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    for (stored, (provider, variables, options)) in (1..).zip(jobs()) {
        let job = Job::new(variables).of(&server);
        let report = [&["ci", "report", "--json"], options].concat();
        let first = json(&job.svc(&report));
        assert_eq!(at(&first, &["provider"]), &Json::from(provider));
        assert_eq!(at(&first, &["result"]), &Json::from("failed"));
        assert_eq!(at(&first, &["stored"]), &Json::from(true));
        assert_eq!(ci_outcomes(&server), stored, "{provider}");
        let again = json(&job.svc(&report));
        assert_eq!(at(&again, &["stored"]), &Json::from(false));
        assert_eq!(at(&again, &["fact_id"]), at(&first, &["fact_id"]));
        assert_eq!(ci_outcomes(&server), stored, "{provider}");
    }
    let job = Job::new(jobs()[1].1).of(&server);
    let line = done(&job.svc(&["ci", "report", "--whole-run", "--result", "passed"]));
    let start = "gitlab-ci run 500 attempt 9001 passed: fact ";
    assert!(
        line.starts_with(start) && line.ends_with(" stored\n"),
        "{line}"
    );
    let whole = ["ci", "report", "--whole-run", "--result", "failed"];
    let retried = job.with(&[("CI_JOB_ID", "9002")]);
    assert!(done(&retried.svc(&whole)).contains("run 500 attempt 9002 failed"));
}

#[test]
fn a_report_of_github_actions_and_its_webhook_never_conflict() {
    let server = start(&Configuration::default());
    let (_, variables, options) = jobs()[0];
    let event = format!(
        r#"{{"action":"completed","workflow_run":{{"id":1658821493,"run_attempt":1,"name":"CI",
            "head_branch":"main","head_sha":"{SHA}","conclusion":"success","workflow_id":77,
            "path":".github/workflows/ci.yml","html_url":"https://github.com/Acme/Shop/actions/runs/1658821493"}},
            "repository":{{"id":514200317,"full_name":"Acme/Shop"}}}}"#
    );
    let step = Job::new(variables).of(&server);
    let of_step = json(&step.svc(&[&["ci", "report", "--json"], options].concat()));
    assert_eq!(at(&of_step, &["run_id"]), &Json::from("1658821493/test"));

    let ended = Job::new(variables).of(&server);
    let path = ended.home.path().join("event.json");
    fs::write(&path, &event).unwrap();
    let ended = ended.with(&[
        ("GITHUB_EVENT_NAME", "workflow_run"),
        ("GITHUB_EVENT_PATH", path.to_str().unwrap()),
    ]);
    let of_run = json(&ended.svc(&["ci", "report", "--json"]));
    assert_eq!(at(&of_run, &["run_id"]), &Json::from("1658821493"));
    assert_eq!(at(&of_run, &["result"]), &Json::from("passed"));

    let webhook =
        Request::post("/ingest/forge", event.clone()).header("X-GitHub-Event", "workflow_run");
    let (name, signature) = credential(Credential::Forge, Some(event.as_bytes())).expect("signed");
    let webhook = server.send(&webhook.header(name, signature));
    assert_eq!(webhook.status, 200, "{}", webhook.text());
    assert_eq!(at(&webhook.json(), &["stored"]), &Json::from(false));
    assert_eq!(at(&webhook.json(), &["fact_id"]), at(&of_run, &["fact_id"]));
    for (run_id, result) in [("1658821493", "passed"), ("1658821493%2Ftest", "failed")] {
        let outcome = server.read_json(&format!(
            "/query/ci/outcome?provider=forge_actions&run_id={run_id}&run_attempt=1"
        ));
        assert_eq!(at(&outcome, &["found"]), &Json::from(true), "{run_id}");
        assert_eq!(at(&outcome, &["outcome", "result"]), &Json::from(result));
    }
    assert_eq!(ci_outcomes(&server), 2);
}

#[test]
fn an_incomplete_report_is_not_sent_and_names_what_is_missing() {
    let server = start(&Configuration::default());
    let job = Job::new(&[("GITLAB_CI", "true"), ("CI_PROJECT_PATH", "group/sub/shop")]);
    let job = job.of(&server);
    let error = refused(&job.svc(&["ci", "report", "--soft-fail"]), 1);
    for line in [
        "error: the report is incomplete",
        "  no run id: give --run-id (looked at CI_PIPELINE_ID, CI_JOB_NAME)",
        r#"  the repository "group/sub/shop" of CI_PROJECT_PATH must be owner/name: give --repo"#,
        "  no result: give --result or --status (looked at CI_JOB_STATUS, set in after_script)",
    ] {
        assert!(
            error.lines().any(|shown| shown == line),
            "{line} in\n{error}"
        );
    }
    let nobody = Job::new(&[]).of(&server);
    let error = refused(&nobody.svc(&["ci", "report", "--result", "passed"]), 1);
    assert!(error.contains("--system"), "{error}");
    refused(&nobody.svc(&["ci", "report", "--result", "good"]), 2);
    refused(
        &nobody.svc(&["ci", "report", "--result", "passed", "--status", "x"]),
        2,
    );
    assert_eq!(ci_outcomes(&server), 0);

    let whole = Job::new(jobs()[1].1).of(&server);
    let shown = done(&whole.svc(&["ci", "report", "--dry-run"]));
    assert!(shown.starts_with(
        r#"{"provider":"ci_b","run_id":"500/test","run_attempt":9001,"repo":"acme/shop""#
    ));
    assert_eq!(ci_outcomes(&server), 0);
}

#[test]
fn a_pipeline_continues_if_the_service_is_down_but_not_on_an_invalid_report() {
    let server = start(&Configuration::default());
    let report = ["ci", "report", "--soft-fail"];
    let job = |url: &str, token: &str| {
        Job::new(jobs()[1].1).with(&[("SVC_URL", url), ("SVC_TOKEN", token)])
    };
    for (url, token, warning) in [
        (
            "http://127.0.0.1:1",
            INGEST_TOKEN,
            "warning: not reported yet: ",
        ),
        (&*server.base_url(), "", "warning: not reported: "),
    ] {
        let away = job(url, token);
        let output = away.svc(&report);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout_text(), "");
        let beside = output.stderr_text();
        assert!(beside.starts_with(warning), "{beside}");
        let answer = json(&away.svc(&[&report[..], &["--json"]].concat()));
        assert_eq!(at(&answer, &["delivered"]), &Json::from(false));
        assert!(at(&answer, &["error", "code"]).as_str().is_some());
        refused(&away.svc(&["ci", "report"]), 1);
    }
    for token in [UNKNOWN_TOKEN, RETRIEVAL_TOKEN] {
        let unknown = job(&server.base_url(), token);
        assert_eq!(unknown.svc(&report).status.code(), Some(0));
        assert_eq!(waiting(&unknown), [(server.base_url(), 1)]);
        refused(&unknown.svc(&["ci", "report"]), 1);
    }
    let first = job(&server.base_url(), INGEST_TOKEN);
    done(&first.svc(&report));
    let other = first.with(&[("CI_COMMIT_SHA", &"a".repeat(40))]);
    let error = refused(&other.svc(&report), 1);
    assert!(
        error.contains("repository_identity_conflict") && error.contains("--run-id"),
        "{error}"
    );
}

/// Returns how many deliveries wait in each outbox of a job.
fn waiting(job: &Job) -> Vec<(String, u64)> {
    let status = json(&job.svc(&["outbox", "status", "--json"]));
    let services = status.as_array().expect("a list").iter();
    services
        .map(|outbox| {
            let service = at(outbox, &["service"]).as_str().expect("a URL").to_owned();
            let waiting = match at(outbox, &["waiting"]) {
                Json::Number(number) => number.as_str().parse().expect("a number"),
                other => panic!("{other:?}"),
            };
            (service, waiting)
        })
        .filter(|(_, waiting)| *waiting > 0)
        .collect()
}

#[test]
fn reports_of_pipelines_and_editors_are_kept_while_the_service_is_down() {
    let server = start(&Configuration::default());
    let url = server.base_url();
    let report = ["ci", "report", "--soft-fail"];
    let job = Job::new(jobs()[1].1).of(&server);
    // The service is away: nobody listens on its port.
    let away = "http://127.0.0.1:1";
    let job = job.with(&[("SVC_URL", away)]);
    assert_eq!(job.svc(&report).status.code(), Some(0));
    let write = r#"{"conversation_id":"c-1","hook_event_name":"postToolUse","tool_name":"Write",
        "tool_use_id":"tool_1","tool_input":{"file_path":"/w/a.rs"}}"#;
    let mut hook = job.command(programs::path(programs::SHELL));
    let hooked = process::run(hook.args(["hook", "cursor"]), write.as_bytes(), COMMAND_MAX);
    let hooked = hooked.expect("the hook ends");
    assert_eq!(
        (hooked.status.code(), &*hooked.stdout_text()),
        (Some(0), "{}\n")
    );
    assert!(
        hooked.stderr_text().contains("svc outbox status"),
        "{hooked:?}"
    );
    assert_eq!(waiting(&job), [(away.to_owned(), 2)]);
    let shown = done(&job.svc(&["outbox", "status"]));
    assert!(shown.contains("\nnext:\n  svc outbox drain\n"), "{shown}");
    let output = job.svc(&["outbox", "drain"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.stdout_text().contains("2 still waiting"),
        "{output:?}"
    );

    // Each service has its own outbox. What waits for one never goes to another.
    let job = job.with(&[("SVC_URL", &url)]);
    done(&job.svc(&report));
    assert_eq!(ci_outcomes(&server), 1);
    assert_eq!(waiting(&job), [(away.to_owned(), 2)]);

    // Deliveries that somebody moves to the outbox of another service are not sent there, until a
    // person says so.
    let kept = job.home.path().join(".local/share/svc/outbox");
    let names: Vec<_> = fs::read_dir(&kept)
        .expect("the outboxes")
        .map(|entry| entry.expect("an outbox").path())
        .collect();
    let of = |port: &str| {
        names
            .iter()
            .find(|name| name.to_string_lossy().ends_with(port))
            .expect("one")
    };
    let (gone, back) = (
        of("%3A1"),
        of(&format!("%3A{}", url.rsplit(':').next().unwrap())),
    );
    for entry in fs::read_dir(gone).expect("an outbox") {
        let path = entry.expect("a file").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "delivery")
        {
            fs::rename(&path, back.join(path.file_name().unwrap())).expect("moved");
        }
    }
    assert_eq!(waiting(&job), [(url.clone(), 2)]);
    let output = job.svc(&report);
    assert_eq!(output.status.code(), Some(0));
    let warning = "warning: 2 kept deliveries were not sent but set aside: svc outbox status\n";
    assert_eq!(output.stderr_text(), warning);
    let shown = done(&job.svc(&["outbox", "status"]));
    let (command, count) = ("svc outbox drain --unsigned", 2);
    assert_eq!(shown.matches(command).count(), count, "{shown}");
    done(&job.svc(&["outbox", "drain", "--unsigned"]));
    assert_eq!(waiting(&job), []);
    let facts = server.read_json("/v1/facts");
    let decisions = at(&facts, &["tables", "developer_decisions", "total"]);
    assert_eq!(decisions, &Json::from(1_u64));
    assert_eq!(ci_outcomes(&server), 1, "the same run once");
    assert_eq!(
        done(&job.svc(&["outbox", "status"])),
        "nothing is waiting to be delivered\n"
    );
}

#[test]
fn a_report_that_contradicts_the_stored_result_says_so() {
    let server = start(&Configuration::default());
    let job = Job::new(jobs()[1].1).of(&server);
    done(&job.svc(&["ci", "report", "--result", "failed"]));
    let again = done(&job.svc(&["ci", "report", "--result", "failed"]));
    assert!(again.ends_with("was already stored\n"), "{again}");
    let other = job.svc(&["ci", "report", "--result", "passed"]);
    assert_eq!(other.status.code(), Some(0));
    let (shown, beside) = (other.stdout_text(), other.stderr_text());
    assert!(
        shown.ends_with("was already stored as failed, which stands\n"),
        "{shown}"
    );
    assert!(
        beside.starts_with("warning: this run is already stored with the result failed"),
        "{beside}"
    );
    let other = json(&job.svc(&["ci", "report", "--result", "passed", "--json"]));
    assert_eq!(at(&other, &["stored_result"]), &Json::from("failed"));
}

#[test]
fn a_report_uses_the_capture_token_of_a_login() {
    let server = start(&Configuration::default());
    let job = Job::new(jobs()[1].1);
    let mut command = job.command(programs::path(programs::SHELL));
    command.args(["login", &server.base_url(), "--capture", "--with-token"]);
    done(&process::run(&mut command, INGEST_TOKEN.as_bytes(), COMMAND_MAX).unwrap());
    done(&job.svc(&["ci", "report"]));
    assert_eq!(ci_outcomes(&server), 1);
    // The token was stored for sending, so it is not used for asking.
    refused(&job.svc(&["facts"]), 1);
}
