//! Commits that Claude Code's logs name: a Session is linked to one if the mirrors have exactly one
//! such commit.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Webhook, log_record, logs};
use harness::git::Repository;
use harness::git_server::Daemon;
use harness::pattern::{dig, matches};
use harness::process;
use harness::server::{Backend, Configuration, Server};
use serde_json::{Value, json};
use svc_engine::store::DatabaseUrl;
use svc_model::json::Json;

/// How long anything in the background may take.
const PATIENCE: Duration = Duration::from_mins(1);

on_both_backends! {
    a_reported_commit_is_linked_when_its_push_arrives,
    a_commit_that_is_mirrored_already_is_linked_at_once,
    a_commit_in_two_repositories_is_ambiguous_unless_one_is_named,
    two_commits_with_the_same_digits_are_ambiguous,
    a_commit_that_nothing_reaches_is_not_linked,
    a_note_and_a_report_are_one_observation,
    an_erased_or_expired_report_is_never_linked,
}

/// A forge with one repository, which has a base and a head.
struct Forge {
    repository: Repository,
    daemon: Daemon,
    base: String,
    head: String,
}

impl Forge {
    fn new() -> Self {
        let repository = Repository::create();
        let base = repository.commit("base");
        let head = repository.commit("head");
        Self::of(repository, base, head)
    }

    fn of(repository: Repository, base: String, head: String) -> Self {
        repository.push();
        let daemon = Daemon::start(repository.folder());
        Self {
            repository,
            daemon,
            base,
            head,
        }
    }

    /// Delivers a push of the repository under this id and name.
    fn push(&self, server: &Server, id: u32, name: &str, before: &str, after: &str) {
        let push = json!({
            "ref": "refs/heads/main", "before": before, "after": after,
            "deleted": false, "forced": false,
            "repository": {"id": id, "full_name": name, "clone_url": self.daemon.url("forge.git")},
        });
        let reply = server.send(&Webhook::new("push", &push).to("/ingest/forge/push"));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// Delivers a push of the head, and waits until it is mirrored.
    fn mirror(&self, server: &Server, id: u32, name: &str) {
        let before = refreshes(server);
        self.push(server, id, name, &self.base, &self.head);
        eventually("the mirror is refreshed", || refreshes(server) > before);
    }
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns how many refreshes the server has logged.
fn refreshes(server: &Server) -> usize {
    let log = server.log();
    log.matches("session_commit_observations_captured").count()
}

/// Logs the result of a tool call that names a commit, with more attributes.
fn report(server: &Server, session: &str, commit: &str, more: &Value) {
    let parameters = json!({"command": "git commit -m x", "git_commit_id": commit}).to_string();
    let mut attributes = json!({
        "session.id": session, "tool_use_id": "toolu_1", "tool_name": "Bash",
        "tool_parameters": parameters,
    });
    let more = more.as_object().cloned().unwrap_or_default();
    attributes.as_object_mut().expect("an object").extend(more);
    let record = log_record("claude_code.tool_result", &attributes);
    let reply = server.deliver("/v1/logs", logs(&[record]).to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn exact(value: &Value) -> Json {
    Json::parse(value.to_string().as_bytes()).expect("JSON")
}

/// Returns how many reports are open, resolved, ambiguous and expired; `None` while there are none.
fn counts(server: &Server) -> Option<[u64; 4]> {
    let capture = server.read_json("/v1/capture");
    let claims = dig(&capture, "commit_claims")?;
    let count = |state| dig(claims, state)?.as_number()?.as_u64();
    let states = ["open", "resolved", "ambiguous", "expired"];
    Some(states.map(|state| count(state).expect("a count")))
}

fn become_settled(server: &Server, states: [u64; 4]) {
    let start = Instant::now();
    loop {
        let found = counts(server);
        if found == Some(states) {
            return;
        }
        let log = server.log();
        assert!(
            start.elapsed() < PATIENCE,
            "{found:?}, not {states:?}\n{log}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits for as long as a wrong decision would take.
fn stay(server: &Server, states: [u64; 4]) {
    thread::sleep(Duration::from_millis(700));
    assert_eq!(counts(server), Some(states));
}

/// Returns what is known of a commit: each repository's observed Sessions with their sources.
fn observed(server: &Server, commit: &str) -> Vec<(String, Option<String>)> {
    let answer = server.read_json(&format!("/query/commit/{commit}"));
    let repositories = dig(&answer, "repos").and_then(Json::as_array);
    let sessions = repositories.into_iter().flatten().flat_map(|repository| {
        let sessions = dig(repository, "observed_sessions").and_then(Json::as_array);
        sessions.unwrap_or_default().to_vec()
    });
    let text = |session: &Json, name: &str| dig(session, name)?.as_str().map(str::to_owned);
    sessions
        .map(|session| {
            let id = text(&session, "session_id").expect("an id");
            (id, text(&session, "source"))
        })
        .collect()
}

fn from_telemetry(session: &str) -> Vec<(String, Option<String>)> {
    vec![(session.to_owned(), Some("telemetry".to_owned()))]
}

/// Runs a command of the operator's shell and returns what it prints.
fn shell(server: &Server, arguments: &[&str]) -> String {
    let output = process::run(server.shell().args(arguments), b"", PATIENCE).expect("it ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a statement in the server's database.
fn change(server: &Server, sql: &str) {
    let url = server.variable("SVC_DATABASE_URL").expect("a URL");
    let url = DatabaseUrl::parse(url).expect("a URL");
    svc_engine::testing::run_sql(&url, sql).expect("the statement runs");
}

/// The identity of the repository that a commit was observed in.
fn host(server: &Server, commit: &str) -> String {
    let answer = server.read_json(&format!("/query/commit/{commit}"));
    let host = dig(&answer, "repos.0.repository_identity.host");
    host.and_then(Json::as_str).expect("a host").to_owned()
}

fn a_reported_commit_is_linked_when_its_push_arrives(backend: Backend) {
    let Some(server) = start(backend) else { return };
    assert_eq!(counts(&server), None);
    let forge = Forge::new();
    let short = forge.head[..7].to_uppercase();
    report(&server, "s-1", &short, &json!({}));
    report(&server, "s-1", &short, &json!({}));
    assert_eq!(counts(&server), Some([1, 0, 0, 0]));
    report(&server, "s-1", "abcdef", &json!({}));
    let capture = server.read_json("/v1/capture");
    let skipped = dig(&capture, "sources.logs.skipped").expect("reasons");
    assert_eq!(*skipped, exact(&json!({"invalid_git_commit_id": 1})));
    assert_eq!(observed(&server, &forge.head), []);
    let facts = server.read_json("/v1/facts");
    assert_eq!(dig(&facts, "sessions"), Some(&Json::from(1_i64)));

    forge.push(&server, 42, "own/repo", &forge.base, &forge.head);
    become_settled(&server, [0, 1, 0, 0]);
    assert_eq!(observed(&server, &forge.head), from_telemetry("s-1"));
    // The same report again, and what is mirrored later, change nothing.
    report(&server, "s-1", &short, &json!({}));
    forge.mirror(&server, 43, "other/fork");
    stay(&server, [0, 1, 0, 0]);
    assert_eq!(observed(&server, &forge.head), from_telemetry("s-1"));

    let dossier = server.read_json("/query/session/s-1");
    let source = dig(&dossier, "attributed_commits.0.source");
    assert_eq!(source.and_then(Json::as_str), Some("telemetry"));
    let shown = shell(&server, &["commit", &forge.head]);
    assert!(
        shown.contains("session s-1  (1 observed from telemetry)"),
        "{shown}"
    );
    let shown = shell(&server, &["capture"]);
    let line = "reported commits: 0 open, 1 linked to their Sessions, 0 ambiguous, 0 expired";
    assert!(shown.contains(line), "{shown}");
    let exported = shell(
        &server,
        &["export", "--kind", "session_commit_observations"],
    );
    let exported = exported
        .lines()
        .find(|line| line.contains("session_commit_observations"));
    let exported: Value = serde_json::from_str(exported.expect("a line")).expect("JSON");
    assert_eq!(
        (&exported["source"], &exported["notes_ref"]),
        (&json!("telemetry"), &Value::Null)
    );
    assert!(
        !shell(&server, &["export"]).contains("toolu_1"),
        "claims are not exported"
    );
    shell(&server, &["verify"]);
}

fn a_commit_that_is_mirrored_already_is_linked_at_once(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let forge = Forge::new();
    forge.mirror(&server, 42, "own/repo");
    report(&server, "s-1", &forge.head[..9], &json!({}));
    become_settled(&server, [0, 1, 0, 0]);
    let revision = json!({"vcs.ref.head.revision": forge.base});
    report(&server, "s-2", "printed elsewhere", &revision);
    become_settled(&server, [0, 2, 0, 0]);
    assert_eq!(observed(&server, &forge.head), from_telemetry("s-1"));
    assert_eq!(observed(&server, &forge.base), from_telemetry("s-2"));
    // A later push brings a commit that was reported before.
    let next = forge.repository.commit("next");
    report(&server, "s-3", &next, &json!({}));
    stay(&server, [1, 2, 0, 0]);
    forge.repository.push();
    forge.push(&server, 42, "own/repo", &forge.head, &next);
    become_settled(&server, [0, 3, 0, 0]);
    assert_eq!(observed(&server, &next), from_telemetry("s-3"));
}

fn a_commit_in_two_repositories_is_ambiguous_unless_one_is_named(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let forge = Forge::new();
    // Open when the first repository is mirrored, because it is no repository of this name.
    let of_fork = json!({"vcs.owner.name": "Other", "vcs.repository.name": "Fork"});
    report(&server, "of-fork", &forge.head, &of_fork);
    forge.mirror(&server, 42, "own/repo");
    stay(&server, [1, 0, 0, 0]);
    report(&server, "first", &forge.base, &json!({}));
    become_settled(&server, [1, 1, 0, 0]);
    let host = host(&server, &forge.base);
    forge.mirror(&server, 43, "other/fork");
    become_settled(&server, [0, 2, 0, 0]);
    report(&server, "anywhere", &forge.head, &json!({}));
    become_settled(&server, [0, 2, 1, 0]);
    let named =
        |host: &str| json!({"vcs.repository.url.full": format!("https://{host}/own/repo.git")});
    report(&server, "named", &forge.head, &named(&host));
    become_settled(&server, [0, 3, 1, 0]);
    report(
        &server,
        "elsewhere",
        &forge.head,
        &named("git.example.test"),
    );
    stay(&server, [1, 3, 1, 0]);
    let mut sessions = observed(&server, &forge.head);
    sessions.sort();
    assert_eq!(
        sessions,
        [from_telemetry("named"), from_telemetry("of-fork")].concat()
    );
    // What is ambiguous stays so.
    forge.mirror(&server, 42, "own/repo");
    stay(&server, [1, 3, 1, 0]);
}

/// Adds many commits to `main` and returns their ids, oldest first.
fn add_commits(repository: &Repository, name: &str) -> Vec<String> {
    let commits = (0..30_000).map(|number| {
        let text = format!("{name} {number}");
        let time = 1_700_000_000 + number;
        format!(
            "commit refs/heads/main\ncommitter A <a@example.test> {time} +0000\ndata {}\n{text}\n",
            text.len()
        )
    });
    let stream: String = commits.collect();
    repository.run_with(&["fast-import", "--quiet", "--force"], &stream);
    let commits = repository.run(&["rev-list", "--reverse", "refs/heads/main"]);
    commits.lines().map(str::to_owned).collect()
}

fn two_commits_with_the_same_digits_are_ambiguous(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let (first, second) = (Repository::create(), Repository::create());
    let known: HashMap<String, String> = add_commits(&first, "first")
        .into_iter()
        .map(|commit| (commit[..7].to_owned(), commit))
        .collect();
    let others = add_commits(&second, "second");
    let pair = others
        .iter()
        .find_map(|other| Some((known.get(&other[..7])?, other)));
    let (one, other) = pair.expect("two commits with the same digits");
    let forge = |repository: Repository, head: &str| {
        repository.run(&["update-ref", "refs/heads/main", head]);
        let base = repository.run(&["rev-parse", &format!("{head}^")]);
        Forge::of(repository, base, head.to_owned())
    };
    let (first, second) = (forge(first, one), forge(second, other));
    first.mirror(&server, 42, "own/repo");
    second.mirror(&server, 43, "own/other");
    report(&server, "short", &one[..7], &json!({}));
    become_settled(&server, [0, 0, 1, 0]);
    report(&server, "whole", one, &json!({}));
    become_settled(&server, [0, 1, 1, 0]);
    assert_eq!(observed(&server, one), from_telemetry("whole"));
    assert_eq!(observed(&server, other), []);
}

fn a_commit_that_nothing_reaches_is_not_linked(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let mut forge = Forge::new();
    forge.mirror(&server, 42, "own/repo");
    let gone = forge.head.clone();
    forge
        .repository
        .run(&["reset", "-q", "--hard", &forge.base]);
    forge.head = forge.repository.commit("instead");
    forge.repository.push();
    forge.mirror(&server, 42, "own/repo");
    report(&server, "s", &gone, &json!({}));
    let tree = forge.repository.run(&["rev-parse", "HEAD^{tree}"]);
    report(&server, "s", &tree, &json!({}));
    stay(&server, [2, 0, 0, 0]);
    // A proposal brings it back.
    forge
        .repository
        .run(&["update-ref", "refs/pull/7/head", &gone]);
    forge.repository.push();
    forge.mirror(&server, 42, "own/repo");
    become_settled(&server, [1, 1, 0, 0]);
    assert_eq!(observed(&server, &gone), from_telemetry("s"));
}

fn a_note_and_a_report_are_one_observation(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let forge = Forge::new();
    forge.repository.stamp(&forge.head, &["s"]);
    forge.repository.push();
    report(&server, "s", &forge.base, &json!({}));
    forge.mirror(&server, 42, "own/repo");
    report(&server, "s", &forge.head, &json!({}));
    become_settled(&server, [0, 2, 0, 0]);
    assert_eq!(observed(&server, &forge.head), [("s".to_owned(), None)]);
    let answer = server.read_json(&format!("/query/commit/{}", forge.head));
    let session = dig(&answer, "repos.0.observed_sessions.0").expect("a Session");
    let pattern = json!({"session_id": "s", "session_commit_observation_ids": ["$uuid"]});
    matches(&exact(&pattern), session, "$").unwrap_or_else(|reason| panic!("{reason}"));
    // The note comes after the link from telemetry.
    forge.repository.stamp(&forge.base, &["s"]);
    forge.repository.push();
    forge.mirror(&server, 42, "own/repo");
    assert_eq!(observed(&server, &forge.base), from_telemetry("s"));
}

fn an_erased_or_expired_report_is_never_linked(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let forge = Forge::new();
    report(&server, "old", &forge.head, &json!({}));
    change(
        &server,
        "UPDATE session_commit_claims SET captured_at_us = captured_at_us - 2592000000000",
    );
    assert_eq!(counts(&server), Some([0, 0, 0, 1]));
    report(&server, "gone", &forge.head, &json!({}));
    assert_eq!(counts(&server), Some([1, 0, 0, 1]));
    let erase = ["erase", "--session", "gone", "--reason", "why", "--apply"];
    shell(&server, &erase);
    assert_eq!(counts(&server), Some([0, 0, 0, 1]));
    forge.mirror(&server, 42, "own/repo");
    stay(&server, [0, 0, 0, 1]);
    assert_eq!(observed(&server, &forge.head), []);
    let facts = server.read_json("/v1/facts");
    let observations = dig(&facts, "tables.session_commit_observations.total");
    assert_eq!(observations, Some(&Json::from(0_i64)));
}
