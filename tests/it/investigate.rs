//! An operator's path from a failed run to the Sessions behind it, on one machine: a real push of a
//! real repository, a note on the commit, a run that a pipeline reported, and the shell.

use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Receipt, Webhook};
use harness::git::Repository;
use harness::git_server::Daemon;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server};
use serde_json::json;
use svc_engine::clock::Clock;
use svc_engine::fact::{
    CiOutcome, DeveloperDecision, InferenceCall, Push, SessionCommitObservation,
};
use svc_engine::store::Append;
use svc_engine::testing::builders::{
    call, commit, decision, id, observation, outcome, push, repository, revision,
};
use svc_model::id::SessionId;
use svc_model::json::Json;
use svc_model::repository::CommitSha;

use crate::cli::{at, done, json, refused, svc, svc_with};
use crate::query::Facts;

on_both_backends! {
    a_failed_run_leads_to_the_session_behind_it,
    failures_are_listed_page_by_page,
    failures_of_ambiguous_repositories_are_shown,
    missing_evidence_is_reported_and_ambiguous_questions_are_refused,
    every_run_reported_by_our_snippets_is_found_by_a_pasted_url_or_id,
    a_run_shows_the_sessions_of_its_whole_push_and_pull_request,
}

/// How long the service may take to read the notes.
const PATIENCE: Duration = Duration::from_mins(1);
/// The identity of the repository, as options.
const IDENTITY: &str = "--repo github/github.com/7";

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

/// Reports a run as a pipeline would.
fn report(server: &Server, system: &str, run: &str, commit: &str, more: &[&str]) {
    let arguments = [
        "ci",
        "report",
        "--repo",
        "own/repo",
        "--run-id",
        run,
        "--commit",
        commit,
        "--branch",
        "main",
        "--system",
        system,
        "--repository-id",
        "7",
        "--repository-host",
        "github.com",
    ];
    let token = [("SVC_TOKEN", INGEST_TOKEN)];
    done(&svc_with(server, &token, &[&arguments, more].concat()));
}

/// Stores what Session `s` did just now, and returns the id of its call.
fn work(server: &Server) {
    let now = Clock::system().now();
    let facts = Facts::of(server);
    let call = InferenceCall {
        input_tokens: Some(1_200),
        output_tokens: Some(340),
        observed_at: now,
        ..call(1).build()
    };
    let decision = DeveloperDecision {
        occurred_at: now,
        captured_at: now,
        ..decision(2)
    };
    facts.add(vec![
        facts.encoded(call),
        Append::DeveloperDecision(Box::new(decision)),
    ]);
}

/// Pushes a commit whose note names Session `s`. Waits until the note has been read, and returns
/// the commit.
fn delivered(server: &Server) -> String {
    let repository = Repository::create();
    let base = repository.commit("base");
    let head = repository.commit("head");
    repository.stamp(&head, &["s"]);
    repository.push();
    let daemon = Daemon::start(repository.folder());
    let push = json!({
        "ref": "refs/heads/main", "before": base, "after": head, "deleted": false, "forced": false,
        "repository": {"id": 7, "full_name": "own/repo", "clone_url": daemon.url("forge.git")},
    });
    let reply = server.send(&Webhook::new("push", &push).to("/ingest/forge/push"));
    assert!(Receipt::of(&reply).stored);
    let begin = Instant::now();
    loop {
        let facts = server.read_json("/v1/facts");
        let read = dig(&facts, "tables.session_commit_observations.visible");
        if read == Some(&Json::from(1_i64)) {
            return head;
        }
        assert!(begin.elapsed() < PATIENCE, "{facts:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn a_failed_run_leads_to_the_session_behind_it(backend: Backend) {
    let Some(server) = start(backend) else { return };
    work(&server);
    let head = delivered(&server);
    let reason = [
        "--result",
        "failed",
        "--workflow-name",
        "Build",
        "--reason",
        "3 tests failed",
    ];
    report(&server, "jenkins", "41", &head, &reason);
    report(&server, "jenkins", "42", &head, &["--result", "passed"]);
    let short = &head[..10];

    assert_eq!(
        done(&svc(&server, &["ci", "failures", "--repo", "own/repo"])),
        format!(
            "failed    system   run  workflow  branch  commit       reason\n\
             just now  jenkins  41   Build     main    {short}…  3 tests failed\n\
             \nnext:\n  svc investigate 41 --system jenkins {IDENTITY}\n"
        )
    );
    let outcome = format!(
        "result      failed, just now\n\
         run         jenkins 41\n\
         repository  own/repo (github/github.com/7)\n\
         commit      {head}\n\
         branch      main\n\
         workflow    Build\n\
         reason      3 tests failed\n"
    );
    assert_eq!(
        done(&svc(&server, &["ci", "outcome", "41"])),
        format!(
            "{outcome}\nnext:\n  svc investigate 41 --system jenkins {IDENTITY}\n  \
             svc commit {head} {IDENTITY}\n"
        )
    );
    let seen = |text: &str| {
        let is_just_now = ["(just now)\n", ", until just now)\n"]
            .iter()
            .any(|end| text.contains(end));
        text.contains("\nseen            20") && is_just_now
    };
    let summary = "calls           1 (m 1; 1200 tokens in, 340 out)\n\
         decisions       1 (1 accepted, 0 rejected)\n\
         edits observed  0\n\
         edits rejected  0\n\
         retries         0\n\
         commits         1\n\
         not captured    what became of edits, rejected edits, retries\n";
    let investigated = done(&svc(&server, &["investigate", "41"]));
    assert!(
        investigated.starts_with(&format!(
            "{outcome}\n\
             commit {head}\n\
             Sessions  1 observed\n\
             ci        1 passed, 1 failed\n\
             \nSession s\nseen "
        )) && seen(&investigated),
        "{investigated}"
    );
    assert!(
        investigated.ends_with(&format!(
            "{summary}\nnext:\n  svc session s\n  svc commit {head} {IDENTITY}\n"
        )),
        "{investigated}"
    );
    let session = done(&svc(&server, &["session", "s"]));
    assert!(
        session.starts_with("Session s\nseen ") && seen(&session),
        "{session}"
    );
    assert!(session.contains(&format!("\n{summary}\n")), "{session}");
    assert!(
        session.contains("inference call      litellm      -/m, 1200 tokens in, 340 out"),
        "{session}"
    );
    assert!(session.contains("src/a.rs"), "{session}");
    assert!(
        session.ends_with(&format!(
            "commit       repository  observed  pushed         ci\n\
             {short}…  own/repo           1  main just now  1 passed, 1 failed\n\
             \nnext:\n  svc commit {head} {IDENTITY}\n  svc evidence inventory s\n"
        )),
        "{session}"
    );
    let commit = done(&svc(&server, &["commit", &head]));
    assert!(
        commit.starts_with(&format!(
            "{head}: observed\n\nown/repo (github/github.com/7)\n  session s  (1 observed)\n"
        )),
        "{commit}"
    );
    assert!(commit.ends_with("\nnext:\n  svc session s\n"), "{commit}");

    let investigated = json(&svc(&server, &["investigate", "41", "--json"]));
    // Links end at the moment of their reply, so only the parts without such a moment are compared.
    let answer = server.read_json("/query/session/s");
    let sessions = at(&investigated, &["sessions"]);
    for part in ["timeline", "attributed_commits", "pushes", "coverage"] {
        let fragment = dig(sessions, &format!("0.dossier.{part}"));
        assert!(
            fragment.is_some() && fragment == dig(&answer, part),
            "{part}"
        );
    }
    assert_eq!(
        at(&investigated, &["commit", "attributed"]),
        &Json::from(true)
    );
    assert_eq!(at(&investigated, &["run", "found"]), &Json::from(true));
}

fn failures_are_listed_page_by_page(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let commit = "c".repeat(40);
    for run in ["1", "2", "3"] {
        report(&server, "jenkins", run, &commit, &["--result", "error"]);
    }
    let asked = ["ci", "failures", "--repo", "own/repo", "--result", "error"];
    let mut page = done(&svc(&server, &[&asked[..], &["--limit", "2"]].concat()));
    let mut runs = Vec::new();
    loop {
        let rows = page.lines().skip(1).take_while(|line| !line.is_empty());
        runs.extend(rows.map(|row| row.split_whitespace().nth(3).expect("a run").to_owned()));
        let Some(next) = page
            .lines()
            .find(|line| line.starts_with("  svc ci failures"))
        else {
            break;
        };
        let words: Vec<&str> = next.split_whitespace().skip(1).collect();
        page = done(&svc(&server, &words));
    }
    assert_eq!(runs, ["3", "2", "1"]);
    let all = json(&svc(&server, &[&asked[..], &["--all", "--json"]].concat()));
    assert_eq!(at(&all, &["outcomes"]).as_array().map(<[_]>::len), Some(3));
    assert_eq!(at(&all, &["next_cursor"]), &Json::Null);
}

fn failures_of_ambiguous_repositories_are_shown(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let commit = "c".repeat(40);
    // A pipeline whose variables do not give the repository's number.
    let numberless = |run: &str, more: &[(&str, &str)]| {
        let job = [
            ("SVC_TOKEN", INGEST_TOKEN),
            ("CIRCLECI", "true"),
            ("CIRCLE_WORKFLOW_JOB_ID", run),
            ("CIRCLE_PROJECT_USERNAME", "own"),
            ("CIRCLE_PROJECT_REPONAME", "repo"),
            ("CIRCLE_REPOSITORY_URL", "git@github.com:own/repo.git"),
            ("CIRCLE_SHA1", &commit),
            ("CIRCLE_BRANCH", "main"),
        ];
        let report = ["ci", "report", "--status", "failed"];
        done(&svc_with(&server, &[&job, more].concat(), &report));
    };
    let failures = ["ci", "failures", "--repo", "own/repo"];
    numberless("a1", &[]);
    let alone = done(&svc(&server, &failures));
    assert!(alone.contains("circleci  a1"), "{alone}");

    report(&server, "jenkins", "41", &commit, &["--result", "passed"]);
    let output = svc(&server, &failures);
    let (shown, beside) = (output.stdout_text(), output.stderr_text());
    assert!(
        shown.starts_with(
            "not listed above: 1 failed run under this name whose repository cannot be determined \
             (repository_identity_unresolved)\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("circleci  a1"), "{shown}");
    assert!(beside.contains("SVC_REPOSITORY_ID"), "{beside}");
    assert!(
        beside.contains("\n  svc investigate a1 --system circleci"),
        "{beside}"
    );
    let answer = json(&svc(
        &server,
        &[&failures[..], &["--json", "--all"]].concat(),
    ));
    assert_eq!(
        at(
            &answer,
            &["repository_skipped", "repository_identity_unresolved"]
        ),
        &Json::from(1_i64)
    );

    // The variable in the snippet identifies the repository, whatever its name.
    numberless("a2", &[("SVC_REPOSITORY_ID", "7")]);
    let output = svc(&server, &failures);
    assert!(output.stdout_text().contains("circleci  a2"), "{output:?}");
    let none = done(&svc(
        &server,
        &[
            "ci",
            "failures",
            "--repo",
            "own/repo",
            "--result",
            "timed_out",
        ],
    ));
    assert_eq!(none, "no timed-out runs in this range\n");
}

fn every_run_reported_by_our_snippets_is_found_by_a_pasted_url_or_id(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let commit = "c".repeat(40);
    let job = |variables: &[(&str, &str)], more: &[&str]| {
        let mut all = vec![
            ("SVC_TOKEN", INGEST_TOKEN),
            ("SVC_REPOSITORY_ID", "7"),
            ("SVC_REPOSITORY_HOST", "github.com"),
        ];
        all.extend(variables);
        done(&svc_with(
            &server,
            &all,
            &[&["ci", "report"][..], more].concat(),
        ));
    };
    let gitlab = |job_id: &str, name: &str, status: &str| {
        let url = format!("https://gitlab.example/own/repo/-/jobs/{job_id}");
        job(
            &[
                ("GITLAB_CI", "true"),
                ("CI_PIPELINE_ID", "500"),
                ("CI_JOB_ID", job_id),
                ("CI_JOB_NAME", name),
                ("CI_JOB_URL", &url),
                ("CI_JOB_STATUS", status),
                ("CI_PROJECT_PATH", "own/repo"),
                ("CI_COMMIT_SHA", &commit),
                ("CI_COMMIT_BRANCH", "main"),
            ],
            &[],
        );
    };
    gitlab("9001", "test", "failed");
    gitlab("9002", "lint", "success");
    gitlab("9003", "test", "failed");
    job(
        &[
            ("JENKINS_URL", "https://ci.example/"),
            ("JOB_NAME", "team/shop/PR-24"),
            ("BUILD_NUMBER", "153"),
            (
                "BUILD_URL",
                "https://ci.example/job/team/job/shop/job/PR-24/153/",
            ),
            ("GIT_URL", "https://github.com/own/repo.git"),
            ("GIT_COMMIT", &commit),
            ("BRANCH_NAME", "PR-24"),
        ],
        &["--status", "FAILURE"],
    );
    job(
        &[
            ("CIRCLECI", "true"),
            (
                "CIRCLE_WORKFLOW_JOB_ID",
                "7a1d93f0-0000-4000-8000-000000000001",
            ),
            ("CIRCLE_BUILD_URL", "https://circleci.com/gh/own/repo/33"),
            ("CIRCLE_REPOSITORY_URL", "git@github.com:own/repo.git"),
            ("CIRCLE_SHA1", &commit),
            ("CIRCLE_BRANCH", "main"),
        ],
        &["--status", "failed"],
    );
    for (id, status) in [("018f-aa", "0"), ("018f-bb", "1")] {
        job(
            &[
                ("BUILDKITE", "true"),
                ("BUILDKITE_JOB_ID", id),
                (
                    "BUILDKITE_BUILD_URL",
                    "https://buildkite.com/own/repo/builds/1514",
                ),
                ("BUILDKITE_REPO", "git@github.com:own/repo.git"),
                ("BUILDKITE_COMMIT", &commit),
                ("BUILDKITE_BRANCH", "main"),
                ("BUILDKITE_COMMAND_EXIT_STATUS", status),
            ],
            &[],
        );
    }
    for attempt in ["1", "2", "4"] {
        job(
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_RUN_ID", "7000"),
                ("GITHUB_RUN_ATTEMPT", attempt),
                ("GITHUB_JOB", "test"),
                ("GITHUB_REPOSITORY", "own/repo"),
                ("GITHUB_SERVER_URL", "https://github.com"),
                ("GITHUB_SHA", &commit),
                ("GITHUB_REF", "refs/heads/main"),
                ("GITHUB_REF_NAME", "main"),
            ],
            &["--status", "failure"],
        );
    }

    for (pasted, run) in [
        ("7000/test", "github-actions 7000/test attempt 4"),
        (
            "https://github.com/own/repo/actions/runs/7000",
            "github-actions 7000/test attempt 4",
        ),
        (
            "https://github.com/own/repo/actions/runs/7000/job/99#step:3:1",
            "github-actions 7000/test attempt 4",
        ),
        (
            "https://github.com/own/repo/actions/runs/7000/attempts/2",
            "github-actions 7000/test attempt 2",
        ),
        ("500", "gitlab-ci 500/test attempt 9003"),
        ("500/lint", "gitlab-ci 500/lint attempt 9002"),
        (
            "https://gitlab.example/own/repo/-/pipelines/500",
            "gitlab-ci 500/test attempt 9003",
        ),
        (
            "https://gitlab.example/own/repo/-/jobs/9002#L7",
            "gitlab-ci 500/lint attempt 9002",
        ),
        ("team/shop/PR-24/153", "jenkins team/shop/PR-24/153"),
        (
            "https://ci.example/job/team/job/shop/job/PR-24/153/console",
            "jenkins team/shop/PR-24/153",
        ),
        (
            "https://circleci.com/gh/own/repo/33",
            "circleci 7a1d93f0-0000-4000-8000-000000000001",
        ),
        (
            "https://app.circleci.com/pipelines/github/own/repo/12/workflows/0a1b/jobs/33",
            "circleci 7a1d93f0-0000-4000-8000-000000000001",
        ),
        (
            "https://buildkite.com/own/repo/builds/1514",
            "buildkite 018f-bb",
        ),
        (
            "https://buildkite.com/own/repo/builds/1514#018f-aa",
            "buildkite 018f-aa",
        ),
        ("018f-aa", "buildkite 018f-aa"),
    ] {
        let output = svc(&server, &["investigate", pasted]);
        let found = output.stdout_text();
        let line = found.lines().find(|line| line.starts_with("run "));
        let line = line.unwrap_or_else(|| panic!("{pasted}: {output:?}"));
        assert_eq!(line.trim_start_matches("run").trim(), run, "{pasted}");
    }
    let whole = done(&svc(&server, &["ci", "outcome", "500"]));
    assert!(whole.contains("\nattempts     9001, 9003\n"), "{whole}");
    assert!(
        whole.contains("500/lint attempt 9002"),
        "the other job: {whole}"
    );
    let answer =
        server.read_json("/query/ci/outcome?provider=forge_actions&run_id=7000/test&latest=true");
    assert_eq!(
        dig(&answer, "attempts"),
        Some(&Json::parse(b"[1,2,4]").expect("JSON"))
    );
}

fn a_run_shows_the_sessions_of_its_whole_push_and_pull_request(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let facts = Facts::of(&server);
    // A branch that was pushed twice. Session a worked on a commit of the first push, and b on one
    // that the second push brought along with its head. c worked elsewhere.
    let (first, head) = (commit('1'), commit('2'));
    let pushed = |number, after: &CommitSha| Push {
        repository: Some(repository(7)),
        after_sha: after.clone(),
        ..push(number)
    };
    let opened = |number, head: &CommitSha| {
        let mut revision = revision(number);
        revision.pull_request.repository = Some(repository(7));
        revision.pull_request.head_repository = Some(repository(7));
        revision.pull_request.head_sha = head.clone();
        Append::PullRequestRevision(Box::new(revision))
    };
    let seen = |number, push, session: &str, at: char| {
        Append::SessionCommitObservation(Box::new(SessionCommitObservation {
            repository: Some(repository(7)),
            session_id: SessionId::new(session).expect("a Session"),
            commit_sha: commit(at),
            ..observation(number, id(push))
        }))
    };
    let run = CiOutcome {
        repository: Some(repository(7)),

        commit_sha: head.clone(),
        ..outcome(9, "41")
    };
    facts.add(vec![
        Append::Push(Box::new(pushed(1, &first))),
        Append::Push(Box::new(pushed(2, &head))),
        Append::Push(Box::new(pushed(3, &commit('9')))),
        opened(4, &first),
        opened(5, &head),
        seen(6, 1, "a", '0'),
        seen(7, 2, "b", '3'),
        seen(8, 3, "c", '9'),
        Append::CiOutcome(Box::new(run)),
    ]);
    let shown = done(&svc(&server, &["investigate", "41"]));
    assert!(
        shown.contains("2 commits of the same push or pull request with observations, 2 Sessions"),
        "{shown}"
    );
    for (session, at) in [("a", '0'), ("b", '3')] {
        let commit = commit(at);
        assert!(
            shown.contains(&format!("\nSession {session}, at {commit}\n")),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("\n  svc session {session}\n")),
            "{shown}"
        );
    }
    assert!(!shown.contains("Session c"), "{shown}");
}

fn missing_evidence_is_reported_and_ambiguous_questions_are_refused(backend: Backend) {
    let Some(server) = start(backend) else { return };
    for (arguments, expected) in [
        (&["investigate", "41"][..], "no visible run 41 is stored\n"),
        (&["ci", "outcome", "41"], "no visible run 41 is stored\n"),
        (&["session", "nobody"], "Session nobody is not known\n"),
        (
            &["ci", "failures", "--repo", "own/repo"],
            "no fact mentions a repository own/repo: is the name right, and did anything from it arrive?\n",
        ),
    ] {
        assert_eq!(done(&svc(&server, arguments)), expected);
    }
    // Two systems number their runs alike.
    let commit = "c".repeat(40);
    report(
        &server,
        "jenkins",
        "41",
        &commit,
        &["--result", "failed", "--run-attempt", "1"],
    );
    report(
        &server,
        "jenkins",
        "41",
        &commit,
        &["--result", "passed", "--run-attempt", "2"],
    );
    let found = json(&svc(&server, &["ci", "outcome", "41", "--json"]));
    assert_eq!(at(&found, &["outcome", "run_attempt"]), &Json::from(2_i64));
    let first = json(&svc(
        &server,
        &["ci", "outcome", "41", "--attempt", "1", "--json"],
    ));
    assert_eq!(at(&first, &["outcome", "result"]), &Json::from("failed"));
    report(&server, "buildkite", "41", &commit, &["--result", "failed"]);
    let error = refused(&svc(&server, &["investigate", "41"]), 1);
    assert!(error.contains("--system"), "{error}");
    let none = svc(&server, &["investigate", "41", "--provider", "ci_d"]);
    let (shown, beside) = (none.stdout_text(), none.stderr_text());
    assert!(shown.contains("Sessions  none observed"), "{shown}");
    assert!(
        beside.contains("on the machine of the service: svc mirror status"),
        "{beside}"
    );
    let next = beside.split("next:\n").nth(1).expect("what to run next");
    assert!(!next.contains("mirror"), "it works elsewhere too: {next}");
    let error = refused(&svc(&server, &["ci", "failures"]), 2);
    assert!(error.contains("--repo OWNER/NAME"), "{error}");
    // No selector tells a repository that is known by name only from the one with a number.
    report(&server, "circleci", "42", &commit, &["--result", "failed"]);
    let other = "d".repeat(40);
    let by_name = json!({
        "provider": "ci_c", "run_id": "42", "repo": "own/repo", "commit_sha": other,
        "branch": "main", "result": "failed",
    });
    let reply = server.deliver("/ingest/ci", by_name.to_string().into_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let error = refused(&svc(&server, &["investigate", "42"]), 1);
    for hint in [
        "one of them: svc investigate 42 --system circleci --repo github/github.com/7".to_owned(),
        format!("known by name only: svc commit {other}"),
    ] {
        assert!(error.contains(&hint), "{hint}\n{error}");
    }
}
