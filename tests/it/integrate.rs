//! What sources of evidence are told, run as they would run it: the snippets of the guide and the
//! commands in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use harness::case::Credential;
use harness::http::Request;
use harness::player::credential;
use harness::process::{self, Output};
use harness::programs;
use harness::server::{
    Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};
use svc_model::json::{Json, Number};
use tempfile::TempDir;

use crate::cli::{COMMAND_MAX, at, done, json, refused, start};

/// Every page of the guide, one after the other.
static GUIDE: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/integrate");
    let pages = fs::read_dir(folder).expect("the guide");
    let mut pages: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    pages.sort();
    let pages = pages.iter().map(fs::read_to_string);
    pages.map(|page| page.expect("text")).collect()
});
const SHA: &str = "ffac537e6cbbf934b08745a378932722df287a53";

/// A job of a CI system, which knows nothing but its variables.
struct Job {
    home: TempDir,
    variables: BTreeMap<String, String>,
}

impl Job {
    fn new(variables: &[(&str, &str)]) -> Self {
        let job = Self {
            home: tempfile::tempdir().expect("a folder"),
            variables: BTreeMap::new(),
        };
        job.with(variables)
    }

    /// Returns a job of the same home with more variables.
    fn with(mut self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.variables.extend(variables);
        self
    }

    fn of(self, server: &Server) -> Self {
        self.with(&[("SVC_URL", &server.base_url()), ("SVC_TOKEN", INGEST_TOKEN)])
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let programs = programs::path(programs::SHELL);
        let folder = programs.parent().expect("a folder of programs");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("HOME", self.home.path())
            .envs(&self.variables)
            .current_dir(self.home.path());
        command
    }

    fn svc(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(programs::path(programs::SHELL));
        process::run(command.args(arguments), b"", COMMAND_MAX).expect("the command ends")
    }

    /// Runs a script as a shell of the job would.
    fn bash(&self, script: &str) -> Output {
        let mut command = self.command("bash");
        command.args(["-eu", "-c", script]);
        process::run(&mut command, b"", COMMAND_MAX).expect("the script ends")
    }
}

/// The name of a system on the wire, the variables of a job of it, and what its report is given.
type Example = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

/// Returns a job of each system, each of which failed.
fn jobs() -> Vec<Example> {
    vec![
        (
            "forge_actions",
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_EVENT_NAME", "push"),
                ("GITHUB_JOB", "test"),
                ("GITHUB_REF", "refs/heads/main"),
                ("GITHUB_REF_NAME", "main"),
                ("GITHUB_REF_TYPE", "branch"),
                ("GITHUB_REPOSITORY", "Acme/Shop"),
                ("GITHUB_REPOSITORY_ID", "514200317"),
                ("GITHUB_RUN_ATTEMPT", "1"),
                ("GITHUB_RUN_ID", "1658821493"),
                ("GITHUB_SERVER_URL", "https://github.com"),
                ("GITHUB_SHA", SHA),
                ("GITHUB_WORKFLOW", "CI"),
                (
                    "GITHUB_WORKFLOW_REF",
                    "Acme/Shop/.github/workflows/ci.yml@refs/heads/main",
                ),
            ],
            &["--status", "failure"],
        ),
        (
            "ci_b",
            &[
                ("GITLAB_CI", "true"),
                ("CI_COMMIT_BRANCH", "main"),
                ("CI_COMMIT_SHA", SHA),
                ("CI_CONFIG_PATH", ".gitlab-ci.yml"),
                ("CI_JOB_ID", "9001"),
                ("CI_JOB_NAME", "test"),
                ("CI_JOB_STATUS", "failed"),
                ("CI_JOB_URL", "https://gitlab.example/acme/shop/-/jobs/9001"),
                ("CI_PIPELINE_ID", "500"),
                ("CI_PROJECT_PATH", "acme/shop"),
            ],
            &[],
        ),
        (
            "ci_a",
            &[
                ("JENKINS_URL", "https://jenkins.example/"),
                ("BRANCH_NAME", "main"),
                ("BUILD_NUMBER", "153"),
                (
                    "BUILD_URL",
                    "https://jenkins.example/job/shop/job/main/153/",
                ),
                ("GIT_COMMIT", SHA),
                ("GIT_URL", "git@github.com:acme/shop.git"),
                ("JOB_NAME", "shop/main"),
            ],
            &["--status", "UNSTABLE", "--repository-id", "514200317"],
        ),
        (
            "ci_c",
            &[
                ("CIRCLECI", "true"),
                ("CIRCLE_BRANCH", "main"),
                ("CIRCLE_JOB", "test"),
                ("CIRCLE_PROJECT_REPONAME", "shop"),
                ("CIRCLE_PROJECT_USERNAME", "acme"),
                ("CIRCLE_SHA1", SHA),
                ("CIRCLE_WORKFLOW_ID", "1c6e0a5c"),
                ("CIRCLE_WORKFLOW_JOB_ID", "7a1d93f0"),
            ],
            &["--status", "failed"],
        ),
        (
            "ci_d",
            &[
                ("BUILDKITE", "true"),
                ("BUILDKITE_BRANCH", "main"),
                ("BUILDKITE_BUILD_ID", "4735ba57"),
                ("BUILDKITE_COMMAND_EXIT_STATUS", "2"),
                ("BUILDKITE_COMMIT", SHA),
                ("BUILDKITE_JOB_ID", "e44f9784"),
                ("BUILDKITE_LABEL", ":hammer: Specs"),
                ("BUILDKITE_PIPELINE_ID", "d18439cc"),
                ("BUILDKITE_REPO", "git@github.com:acme/shop.git"),
            ],
            &[],
        ),
    ]
}

fn ci_outcomes(server: &Server) -> u64 {
    let facts = server.read_json("/v1/facts");
    let count = at(&facts, &["tables", "ci_outcomes", "visible"]);
    let count = count.as_number().and_then(Number::as_i64);
    count
        .and_then(|count| count.try_into().ok())
        .expect("a count")
}

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
fn a_report_that_is_not_whole_is_not_sent_and_says_what_it_needs() {
    let server = start(&Configuration::default());
    let job = Job::new(&[("GITLAB_CI", "true"), ("CI_PROJECT_PATH", "group/sub/shop")]);
    let job = job.of(&server);
    let said = refused(&job.svc(&["ci", "report", "--soft-fail"]), 1);
    for line in [
        "error: the report is incomplete",
        "  no run id: give --run-id (looked at CI_PIPELINE_ID, CI_JOB_NAME)",
        r#"  the repository "group/sub/shop" of CI_PROJECT_PATH must be owner/name: give --repo"#,
        "  no result: give --result or --status (looked at CI_JOB_STATUS, set in after_script)",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} in\n{said}");
    }
    let nobody = Job::new(&[]).of(&server);
    let said = refused(&nobody.svc(&["ci", "report", "--result", "passed"]), 1);
    assert!(said.contains("--system"), "{said}");
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
fn a_pipeline_goes_on_when_the_service_is_away_and_not_when_the_report_is_wrong() {
    let server = start(&Configuration::default());
    let report = ["ci", "report", "--soft-fail"];
    let job = |url: &str, token: &str| {
        Job::new(jobs()[1].1).with(&[("SVC_URL", url), ("SVC_TOKEN", token)])
    };
    for (url, token, said) in [
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
        assert!(beside.starts_with(said), "{beside}");
        let said = json(&away.svc(&[&report[..], &["--json"]].concat()));
        assert_eq!(at(&said, &["delivered"]), &Json::from(false));
        assert!(at(&said, &["error", "code"]).as_str().is_some());
        refused(&away.svc(&["ci", "report"]), 1);
    }
    for token in [UNKNOWN_TOKEN, RETRIEVAL_TOKEN] {
        refused(&job(&server.base_url(), token).svc(&report), 1);
    }
    let first = job(&server.base_url(), INGEST_TOKEN);
    done(&first.svc(&report));
    let other = first.with(&[("CI_COMMIT_SHA", &"a".repeat(40))]);
    let said = refused(&other.svc(&report), 1);
    assert!(
        said.contains("repository_identity_conflict") && said.contains("--run-id"),
        "{said}"
    );
}

/// Returns how many deliveries wait in the outboxes of a job.
fn waiting(job: &Job) -> Vec<(String, u64)> {
    let status = json(&job.svc(&["outbox", "status", "--json"]));
    let services = status.as_array().expect("a list").iter();
    services
        .map(|it| {
            let service = at(it, &["service"]).as_str().expect("a URL").to_owned();
            let waiting = match at(it, &["waiting"]) {
                Json::Number(number) => number.as_str().parse().expect("a number"),
                other => panic!("{other:?}"),
            };
            (service, waiting)
        })
        .filter(|(_, waiting)| *waiting > 0)
        .collect()
}

#[test]
fn what_a_pipeline_and_an_editor_report_is_kept_while_the_service_is_away() {
    let server = start(&Configuration::default());
    let url = server.base_url();
    let report = ["ci", "report", "--soft-fail"];
    let job = Job::new(jobs()[1].1).of(&server);
    // The service is away: on its port nobody listens.
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
    let said = job.svc(&["outbox", "drain"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stdout_text().contains("2 still waiting"), "{said:?}");

    // Each service has an outbox of its own: what waits for one never goes to another.
    let job = job.with(&[("SVC_URL", &url)]);
    done(&job.svc(&report));
    assert_eq!(ci_outcomes(&server), 1);
    assert_eq!(waiting(&job), [(away.to_owned(), 2)]);

    // The service comes back where it was. The next report brings what waited with it.
    let kept = job.home.path().join(".local/share/svc/outbox");
    let names: Vec<_> = fs::read_dir(&kept)
        .expect("the outboxes")
        .map(|entry| entry.expect("an outbox").path())
        .collect();
    let of = |port: &str| {
        names
            .iter()
            .find(|it| it.to_string_lossy().ends_with(port))
            .expect("one")
    };
    let (gone, back) = (
        of("%3A1"),
        of(&format!("%3A{}", url.rsplit(':').next().unwrap())),
    );
    for entry in fs::read_dir(gone).expect("an outbox") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|it| it == "delivery") {
            fs::rename(&path, back.join(path.file_name().unwrap())).expect("moved");
        }
    }
    assert_eq!(waiting(&job), [(url.clone(), 2)]);
    done(&job.svc(&report));
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
fn a_report_with_another_result_than_the_stored_one_says_so() {
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
    // It was stored for sending, so it is not used for asking.
    refused(&job.svc(&["facts"]), 1);
}

#[test]
fn a_snippet_is_printed_for_the_service_that_is_meant_and_nothing_is_changed() {
    let job = Job::new(&[]);
    let run = |arguments: &[&str]| job.svc(&[&["install"], arguments].concat());
    let plain = run(&["claude-code"]);
    assert_eq!(plain.status.code(), Some(0), "{}", plain.stderr_text());
    assert!(plain.stderr_text().contains("~/.claude/settings.json"));
    let asked = run(&["claude-code", "--print"]);
    assert_eq!(plain.stdout_text(), asked.stdout_text());
    refused(&run(&["nobody", "--print"]), 2);
    refused(
        &run(&["claude-code", "--print", "--url", "http://svc.example"]),
        1,
    );

    let output = run(&[
        "claude-code",
        "--print",
        "--url",
        "https://evidence.acme.dev/",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let settings = Json::parse(&output.stdout).expect("nothing but the snippet is on stdout");
    assert_eq!(
        at(&settings, &["env", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"]),
        &Json::from("https://evidence.acme.dev/v1/logs")
    );
    assert!(
        output
            .stderr_text()
            .contains("note: it goes into ~/.claude/settings.json")
    );
    let here = json(&run(&["codex", "--print", "--json"]));
    let snippet = at(&here, &["snippet"]).as_str().unwrap();
    assert!(
        snippet.contains("http://127.0.0.1:8000/v1/logs"),
        "{snippet}"
    );
    assert_eq!(fs::read_dir(job.home.path()).unwrap().count(), 0);
}

/// What Cursor tells its hook after a file was written.
const WRITTEN: &str = r#"{"conversation_id":"c-1","generation_id":"g","hook_event_name":"postToolUse",
    "cursor_version":"3.1.0","workspace_roots":["/w"],"tool_name":"Write","tool_use_id":"tool_1",
    "tool_input":{"file_path":"/w/a.rs","content":"fn main() {}"},"tool_output":"{}","duration":12}"#;

#[test]
fn a_write_of_cursor_is_a_decision_and_never_fails_the_editor() {
    let server = start(&Configuration::default());
    let hook = |job: &Job, input: &str| {
        let mut command = job.command(programs::path(programs::SHELL));
        command.args(["hook", "cursor"]);
        let output = process::run(&mut command, input.as_bytes(), COMMAND_MAX);
        let output = output.expect("the hook ends");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout_text(), "{}\n", "what Cursor reads");
        output.stderr_text()
    };
    let job = Job::new(&[]).of(&server);
    // Told twice, at two moments, it is one decision.
    assert_eq!(hook(&job, WRITTEN), "");
    assert_eq!(hook(&job, WRITTEN), "");
    assert_eq!(hook(&job, &WRITTEN.replace("Write", "Read")), "");
    let evidence = server.read_json("/v1/facts/session/c-1/compatibility-evidence");
    assert_eq!(
        at(&evidence, &["developer_decisions"]),
        &Json::parse(
            br#"[{"agent_harness":"cursor","accepted":true,"explicit":false,"interaction_mode":"agent","call_id":"tool_1"}]"#
        )
        .unwrap()
    );

    for (job, input, said) in [
        (&job, "no JSON", "no JSON object"),
        (&job, &*WRITTEN.replace("c-1", " "), "conversation_id"),
        (&Job::new(&[]), WRITTEN, "no token"),
        (
            &Job::new(&[("SVC_URL", "http://127.0.0.1:1"), ("SVC_TOKEN", "t")]),
            WRITTEN,
            "reached",
        ),
        (
            &Job::new(&[
                ("SVC_URL", &server.base_url()),
                ("SVC_TOKEN", UNKNOWN_TOKEN),
            ]),
            WRITTEN,
            "token",
        ),
    ] {
        let complaint = hook(job, input);
        assert!(
            complaint.starts_with("error: ") && complaint.contains(said),
            "{complaint}"
        );
        assert!(!complaint.contains(UNKNOWN_TOKEN), "{complaint}");
    }
}

/// Returns the blocks of the guide in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = GUIDE.split(&fence).skip(1);
    blocks
        .map(|rest| rest.split("```").next().expect("an end of the block"))
        .collect()
}

#[test]
fn every_shell_block_of_the_guide_is_shell() {
    let blocks = blocks("sh");
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for block in blocks {
        let mut command = Command::new("bash");
        command.args(["-n", "-c", block]);
        done(&process::run(&mut command, b"", COMMAND_MAX).expect("bash ends"));
    }
}

#[test]
fn the_commands_of_the_guide_do_what_they_say() {
    let server = start(&Configuration::default());
    // A job of GitLab in a clone, which is where all of them make sense.
    let job = Job::new(jobs()[1].1).with(&[("SVC_URL", &server.base_url())]);
    let git = "git -c init.defaultBranch=main init --quiet .";
    done(&job.bash(git));
    let mut run = 0;
    for block in blocks("sh") {
        let of_svc = |line: &&str| line.starts_with("svc ");
        // A script of another system is run as that system runs it, in a test of its own.
        if block.starts_with("#!") {
            continue;
        }
        let lines: Vec<&str> = block.lines().filter(of_svc).collect();
        for line in lines {
            let mut line = line.replace("https://svc.example", &server.base_url());
            let mut command = job.command("bash");
            if line.starts_with("svc login ") {
                // No terminal is there to ask for the token.
                line.push_str(" --with-token");
            } else {
                command.env("SVC_TOKEN", OPERATOR_TOKEN);
            }
            command.args(["-eu", "-c", &line]);
            let token = format!("{INGEST_TOKEN}\n");
            let output = process::run(&mut command, token.as_bytes(), COMMAND_MAX);
            let output = output.expect("the command ends");
            assert_eq!(output.status.code(), Some(0), "{line}\n{output:?}");
            run += 1;
        }
    }
    assert_eq!(run, 7, "each command of the guide");
    assert_eq!(ci_outcomes(&server), 1);
}

#[test]
fn the_requests_of_the_guide_are_answered() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let server = start(&Configuration::default());
    let job = Job::new(&[]).of(&server);
    let requests = blocks("sh").into_iter().filter(|block| {
        // Those to a forge are looked at below.
        block.contains("curl") && block.contains("$SVC_URL")
    });
    let mut sent = 0;
    for request in requests {
        let output = job.bash(request);
        assert!(
            output.status.success(),
            "{request}\n{}",
            output.stderr_text()
        );
        sent += 1;
    }
    assert_eq!(sent, 3);
    assert_eq!(ci_outcomes(&server), 1);
    let session = server.read_json("/v1/facts/session/session-1");
    let decisions = at(&session, &["tables", "developer_decisions", "visible"]);
    assert_eq!(decisions, &Json::from(1_u64));
}

/// Puts a program into the home of a job that keeps what it is given.
fn stand_in(job: &Job, program: &str) {
    let folder = job.home.path().join("bin");
    let path = folder.join(program);
    let script = "#!/bin/sh\necho \"$@\" > arguments\ncat > body\n";
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, script))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .expect("a program");
}

#[test]
fn webhooks_are_made_with_the_address_and_the_secret_of_the_service() {
    for (source, program, events) in [
        ("github", "gh", 4),
        ("gitea", "curl", 3),
        ("forgejo", "curl", 2),
    ] {
        let job = Job::new(&[
            ("SVC_FORGE_WEBHOOK_SECRET", "0123456789abcdef"),
            ("GITEA_URL", "https://git.example"),
            ("GITEA_TOKEN", "t"),
            ("FORGEJO_URL", "https://git.example"),
            ("FORGEJO_TOKEN", "t"),
        ]);
        stand_in(&job, program);
        let install = [
            "install",
            source,
            "--print",
            "--json",
            "--url",
            "https://e.acme.dev",
        ];
        let snippet = json(&job.svc(&install));
        let snippet = at(&snippet, &["snippet"]).as_str().unwrap().to_owned();
        done(&job.bash(&format!("PATH=\"$HOME/bin:$PATH\"\n{snippet}")));
        let body = fs::read(job.home.path().join("body")).unwrap();
        let body = Json::parse(&body).unwrap_or_else(|error| panic!("{source}: {error}"));
        for (member, value) in [
            ("url", "https://e.acme.dev/ingest/forge"),
            ("secret", "0123456789abcdef"),
            ("content_type", "json"),
        ] {
            assert_eq!(
                at(&body, &["config", member]),
                &Json::from(value),
                "{source}"
            );
        }
        assert_eq!(at(&body, &["events"]).as_array().unwrap().len(), events);
        let arguments = fs::read_to_string(job.home.path().join("arguments")).unwrap();
        assert!(arguments.contains("repos/OWNER/NAME/hooks"), "{arguments}");
        assert!(
            !arguments.contains("0123456789abcdef"),
            "{source}: a secret is an argument"
        );
    }
}

#[test]
fn the_steps_of_the_pipelines_report_what_they_are_run_in() {
    let server = start(&Configuration::default());
    let print = |source: &str| {
        let job = Job::new(&[]);
        let url = server.base_url();
        let snippet = json(&job.svc(&["install", source, "--print", "--json", "--url", &url]));
        at(&snippet, &["snippet"]).as_str().unwrap().to_owned()
    };
    let token = [("SVC_TOKEN", INGEST_TOKEN)];
    let url = [("SVC_URL", &*server.base_url())];

    // The hook of Buildkite is a script, and knows the service by itself.
    let buildkite = Job::new(jobs()[4].1).with(&token);
    assert!(
        done(&buildkite.bash(&print("buildkite"))).starts_with("buildkite run e44f9784 failed")
    );

    // The others hold their command in a file of another language.
    for (source, job, command, reported) in [
        (
            "gitlab-ci",
            1,
            "svc ci report --soft-fail",
            "gitlab-ci run 500/test attempt 9001 failed",
        ),
        (
            "circleci",
            3,
            "svc ci report --soft-fail --status success",
            "circleci run 7a1d93f0 passed",
        ),
        (
            "jenkins",
            2,
            "svc ci report --soft-fail --status ${currentBuild.currentResult}",
            "jenkins run shop/main/153 failed",
        ),
    ] {
        assert!(print(source).contains(command), "{source}");
        let job = Job::new(jobs()[job].1).with(&token).with(&url);
        // What Jenkins itself puts in place.
        let command = command.replace("${currentBuild.currentResult}", "FAILURE");
        let said = done(&job.bash(&command));
        assert!(said.starts_with(reported), "{said}");
    }
    assert_eq!(ci_outcomes(&server), 4);
}

#[test]
fn the_guide_names_every_word_and_every_neutral_name() {
    for table in [
        "`SUCCESS`, `FAILURE`, `UNSTABLE`, `ABORTED`, `NOT_BUILT`",
        "`success`, `failed`, `canceled`, `skipped`, `manual`",
        "`success`, `failed`, `error`, `canceled`, `unauthorized`",
        "`passed`, `failed`, `canceled`, `skipped`, `not_run`",
        "| `gateway_a` | LiteLLM",
        "| `ci_a` | Jenkins |",
        "| `ci_b` | GitLab CI |",
        "| `ci_c` | CircleCI |",
        "| `ci_d` | Buildkite |",
    ] {
        assert!(GUIDE.contains(table), "{table}");
    }
    // The page of the SDK shows a program that is compiled and run.
    let example = include_str!("../../svc-client/examples/call.rs");
    let block = format!("```rust\n{example}```\n");
    assert!(GUIDE.contains(&block), "put this into sdk.md:\n{block}");
    assert!(!GUIDE.contains(OPERATOR_TOKEN));
}
