//! Mirrors: a push leads to observations, whatever the forge does, and nobody waits for them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Receipt, Webhook};
use harness::git::Repository;
use harness::git_server::{Answer, Daemon, Http};
use harness::http::Reply;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, Server, Store};
use harness::{process, processes};
use serde_json::{Value, json};
use svc_model::json::{Json, Number};

const ZEROS: &str = "0000000000000000000000000000000000000000";
const ROUTE: &str = "/ingest/forge/push";
/// How long anything in the background may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long answering a push may take, on a machine that is busy with other tests.
const ANSWER_MAX: Duration = Duration::from_secs(10);

on_both_backends! {
    a_push_is_answered_at_once_and_leads_to_observations,
    notes_that_follow_their_branch_need_no_further_push,
    a_hanging_forge_blocks_no_push_and_no_other_repository,
    a_failed_refresh_is_repeated_after_a_restart,
    servers_share_the_mirrors,
    a_reused_repository_name_is_not_followed,
    an_operator_refreshes_without_a_server,
    mirrors_without_pushes_are_removed,
}

fn configuration(more: &[(&str, &str)]) -> Configuration {
    let variables = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Configuration {
        variables: variables.collect::<BTreeMap<_, _>>(),
        ..Configuration::default()
    }
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

/// A push of a repository.
fn push(id: u32, name: &str, url: &str, before: &str, after: &str) -> Value {
    json!({
        "ref": "refs/heads/main", "before": before, "after": after,
        "deleted": false, "forced": false,
        "repository": {"id": id, "full_name": name, "clone_url": url},
    })
}

fn deliver(server: &Server, push: &Value) -> Reply {
    let start = Instant::now();
    let reply = server.send(&Webhook::new("push", push).to(ROUTE));
    assert!(start.elapsed() < ANSWER_MAX, "{:?}", start.elapsed());
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

fn observations(server: &Server) -> i64 {
    let facts = server.read_json("/v1/facts");
    let total = dig(&facts, "tables.session_commit_observations.total").expect("a count");
    total
        .as_number()
        .and_then(Number::as_i64)
        .expect("a number")
}

/// Returns how many refreshes of `own/repo` the server has logged.
fn refreshes(server: &Server) -> usize {
    let log = server.log();
    let refreshes = log
        .lines()
        .filter(|line| line.contains("session_commit_observations_captured"));
    refreshes.filter(|line| line.contains("own/repo")).count()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Runs a command of the operator's shell and returns its exit code and what it prints.
fn shell(server: &Server, arguments: &[&str]) -> (Option<i32>, Json) {
    let mut command = server.shell();
    command.args(arguments).arg("--json");
    let output = process::run(&mut command, b"", PATIENCE).expect("it ends");
    let printed = Json::parse(&output.stdout).unwrap_or_default();
    (output.status.code(), printed)
}

fn text(value: &Json, path: &str) -> String {
    let found = dig(value, path).unwrap_or_else(|| panic!("{path} in {value:?}"));
    found
        .as_str()
        .unwrap_or_else(|| panic!("{path} in {value:?}"))
        .to_owned()
}

/// Returns a repository with one stamped commit, the commit before it, and the stamped one.
fn stamped(session_id: &str) -> (Repository, String, String) {
    let repository = Repository::create();
    let base = repository.commit("base");
    let head = repository.commit("head");
    repository.stamp(&head, &[session_id]);
    repository.push();
    (repository, base, head)
}

fn mirrors_of(server: &Server) -> &Path {
    Path::new(server.variable("SVC_MIRROR_PATH").expect("a folder"))
}

fn a_push_is_answered_at_once_and_leads_to_observations(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let (repository, base, head) = stamped("s");
    let daemon = Daemon::start(repository.folder());
    let http = Http::start(Answer::Git(repository.folder().to_owned()));
    let first = push(7, "Own/Repo", &daemon.url("forge.git"), &base, &head);
    assert!(Receipt::of(&deliver(&server, &first)).stored);
    eventually("the note is seen", || observations(&server) == 1);
    assert!(!Receipt::of(&deliver(&server, &first)).stored);
    // A push that comes before the refresh of the last one begins would share that refresh.
    eventually("the delivery again is followed by a refresh", || {
        refreshes(&server) == 2
    });
    // The note comes after its push. The next push brings it, over another protocol.
    repository.stamp(&base, &["late"]);
    let next = repository.commit("next");
    repository.push();
    deliver(
        &server,
        &push(7, "Own/Repo", &http.url("forge.git"), &head, &next),
    );
    eventually("the late note is seen", || observations(&server) == 2);
    let facts = server.read_json("/v1/facts");
    assert_eq!(
        dig(&facts, "sessions"),
        Some(&Json::from(2_i64)),
        "{facts:?}"
    );
    eventually("every refresh is logged", || refreshes(&server) == 3);
    assert!(processes::folder_is_left(mirrors_of(&server)));
}

fn notes_that_follow_their_branch_need_no_further_push(backend: Backend) {
    let settled = configuration(&[("SVC_MIRROR_SETTLE_SECONDS", "5")]);
    let Some(server) = Server::start(backend, &settled) else {
        return;
    };
    let repository = Repository::create();
    let base = repository.commit("base");
    let head = repository.commit("head");
    repository.push();
    let daemon = Daemon::start(repository.folder());
    deliver(
        &server,
        &push(7, "own/repo", &daemon.url("forge.git"), &base, &head),
    );
    repository.stamp(&head, &["s"]);
    repository.push();
    eventually("the note is seen", || observations(&server) == 1);
}

fn a_hanging_forge_blocks_no_push_and_no_other_repository(backend: Backend) {
    let Some(mut server) = start(backend) else {
        return;
    };
    let (repository, base, head) = stamped("s");
    let daemon = Daemon::start(repository.folder());
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("git://{}/r.git", silent.local_addr().expect("its address"));
    for number in 1..=30 {
        let after = format!("{number:040x}");
        deliver(&server, &push(1, "own/hangs", &silent, ZEROS, &after));
    }
    for number in 2..12 {
        let name = format!("own/{number}");
        deliver(
            &server,
            &push(number, &name, &daemon.url("forge.git"), &base, &head),
        );
    }
    eventually("all others are refreshed", || observations(&server) == 10);
    deliver(&server, &push(1, "own/hangs", &silent, ZEROS, &head));
    let mut status = Json::default();
    eventually("it is tried", || {
        status = shell(&server, &["mirror", "status"]).1;
        text(&status, "mirrors.0.state") == "running"
    });
    let waiting = dig(&status, "mirrors.0.waiting_pushes");
    assert_eq!(waiting, Some(&Json::from(31_i64)));
    assert!(!processes::in_folder(mirrors_of(&server)).is_empty());
    let mirrors = mirrors_of(&server).to_owned();
    let start = Instant::now();
    assert!(server.stop().success());
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    assert!(
        processes::folder_is_left(&mirrors),
        "git ends with the server"
    );
}

fn a_failed_refresh_is_repeated_after_a_restart(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let (repository, base, head) = stamped("s");
    // The forge is down, and the server dies before it is back.
    let address = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("its address")
    };
    let url = format!("http://{address}/forge.git");
    let mut server = Server::start_on(&store, &Configuration::default());
    deliver(&server, &push(7, "own/repo", &url, &base, &head));
    eventually("it fails", || {
        let (_, status) = shell(&server, &["mirror", "status"]);
        dig(&status, "mirrors.0.last_failure") == Some(&Json::from("fetch_failed"))
    });
    server.kill();
    drop(server);
    let _forge = Http::start_at(address, Answer::Git(repository.folder().to_owned()));
    let server = Server::start_on(&store, &Configuration::default());
    eventually("it is done", || observations(&server) == 1);
    let (_, status) = shell(&server, &["mirror", "status"]);
    assert_eq!(text(&status, "mirrors.0.state"), "idle");
    assert_eq!(text(&status, "mirrors.0.last_failure"), "fetch_failed");
}

fn servers_share_the_mirrors(backend: Backend) {
    const REPOSITORIES: u32 = 16;
    let Some(store) = Store::create(backend) else {
        return;
    };
    let (repository, base, head) = stamped("s");
    let daemon = Daemon::start(repository.folder());
    let servers = [0, 1].map(|_| Server::start_on(&store, &Configuration::default()));
    for number in 1..=REPOSITORIES {
        let server = &servers[number as usize % 2];
        let name = format!("own/{number}");
        deliver(
            server,
            &push(number, &name, &daemon.url("forge.git"), &base, &head),
        );
    }
    let all = i64::from(REPOSITORIES);
    eventually("all are refreshed", || observations(&servers[0]) == all);
    eventually("each by one server", || {
        let logs: String = servers.iter().map(Server::log).collect();
        logs.matches("session_commit_observations_captured").count() == REPOSITORIES as usize
    });
}

fn a_reused_repository_name_is_not_followed(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let (repository, base, head) = stamped("s");
    let http = Http::start(Answer::Git(repository.folder().to_owned()));
    let url = http.url("forge.git");
    deliver(&server, &push(7, "own/repo", &url, &base, &head));
    eventually("the first is followed", || observations(&server) == 1);
    let asked = http.requests().len();
    deliver(&server, &push(8, "own/repo", &url, &base, &head));
    let declined = |number: usize| {
        let (_, status) = shell(&server, &["mirror", "status"]);
        let path = format!("mirrors.{number}.last_failure");
        dig(&status, &path) == Some(&Json::from("name_ambiguous"))
    };
    eventually("the second is not", || declined(1));
    deliver(&server, &push(7, "own/repo", &url, ZEROS, &head));
    eventually("the first is not any more", || declined(0));
    assert_eq!(http.requests().len(), asked, "nobody was asked");
    let log = server.log();
    assert!(
        log.contains("repository_mirror_identity_unresolved"),
        "{log}"
    );
    let failed = |line: &str| line.contains("mirror.refresh_failed");
    let mut failures = log.lines().filter(|line| failed(line));
    assert!(
        failures.any(|line| line.contains("name_ambiguous") && line.contains("/8")),
        "{log}"
    );
    // A renamed repository is followed under its new name.
    deliver(&server, &push(8, "own/other", &url, ZEROS, &head));
    eventually("the second is", || observations(&server) == 2);
    let refused = push(9, "own/refused", "http://127.0.0.2/r.git", &base, &head);
    deliver(&server, &refused);
    eventually("another host is refused", || {
        let (_, status) = shell(&server, &["mirror", "status"]);
        let refused = dig(&status, "mirrors.2.last_failure");
        refused == Some(&Json::from("clone_url_refused"))
    });
    // The refused ones are not shown as up to date.
    let (_, status) = shell(&server, &["mirror", "status"]);
    let states = [0, 1, 2].map(|mirror| text(&status, &format!("mirrors.{mirror}.state")));
    assert_eq!(states, ["refused", "idle", "refused"]);
    let (_, diagnosis) = shell(&server, &["doctor"]);
    let checks = dig(&diagnosis, "checks").and_then(Json::as_array);
    let mut checks = checks.expect("checks").iter();
    let check = checks.find(|check| dig(check, "name") == Some(&Json::from("mirrors")));
    let check = check.expect("a check of the mirrors");
    let found = "not fetched: own/repo (name_ambiguous), own/refused (clone_url_refused)";
    assert_eq!(text(check, "found"), found);
    let printed = process::run(server.shell().args(["mirror", "status"]), b"", PATIENCE);
    let notes = printed.expect("it ends").stderr_text();
    assert!(
        notes.contains("when it is: svc mirror refresh own/refused; a folder on this machine"),
        "{notes}"
    );
    assert!(
        !mirrors_of(&server)
            .join("repositories-v1/acme/github/github.com/9")
            .exists()
    );
}

fn an_operator_refreshes_without_a_server(backend: Backend) {
    // The server keeps no mirrors, so the push requests none.
    let configuration = configuration(&[("SVC_MIRROR_PATH", "")]);
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let (repository, base, head) = stamped("s");
    let daemon = Daemon::start(repository.folder());
    deliver(
        &server,
        &push(7, "own/repo", &daemon.url("forge.git"), &base, &head),
    );
    let (_, status) = shell(&server, &["mirror", "status"]);
    assert_eq!(dig(&status, "mirrors"), Some(&Json::Array(Vec::new())));
    assert_eq!(
        shell(&server, &["mirror", "refresh", "own/repo"]).0,
        Some(1)
    );
    let folder = repository.folder().join("mirrors");
    let folder = folder.to_str().expect("a path");
    let refresh = |repository: &str| {
        shell(
            &server,
            &["mirror", "refresh", repository, "--mirror-path", folder],
        )
    };
    let (code, shown) = refresh("own/repo");
    assert_eq!(code, Some(0), "{shown:?}");
    assert_eq!(text(&shown, "mirrors.0.repository"), "github/github.com/7");
    assert_eq!(dig(&shown, "mirrors.0.stored"), Some(&Json::from(1_i64)));
    assert_eq!(observations(&server), 1);
    let (code, shown) = refresh("github/github.com/7");
    assert_eq!(
        (code, text(&shown, "mirrors.0.outcome")),
        (Some(0), "refreshed".to_owned())
    );
    let (code, shown) = refresh("own/unknown");
    assert_eq!(code, Some(1));
    assert_eq!(text(&shown, "mirrors.0.outcome"), "unknown");
    assert_eq!(
        text(&shown, "mirrors.0.detail"),
        "no such repository is known: no visible push names it"
    );
    drop(daemon);
    let (code, shown) = refresh("own/repo");
    assert_eq!(
        (code, text(&shown, "mirrors.0.reason")),
        (Some(1), "fetch_failed".to_owned())
    );
    assert_eq!(refresh("no name").0, Some(1));
}

fn mirrors_without_pushes_are_removed(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let (repository, base, head) = stamped("s");
    let daemon = Daemon::start(repository.folder());
    deliver(
        &server,
        &push(7, "own/repo", &daemon.url("forge.git"), &base, &head),
    );
    eventually("it is there", || observations(&server) == 1);
    let (code, kept) = shell(&server, &["mirror", "gc"]);
    assert_eq!(code, Some(0));
    let row = |kept: &Json| kept.as_array().expect("rows")[0].clone();
    let shown = row(&kept);
    assert_eq!(text(&shown, "action"), "kept");
    assert_eq!(text(&shown, "skip_reason"), "within_retention");
    assert_eq!(text(&shown, "repo"), "own/repo");
    assert_eq!(text(&shown, "repository_identity.repository_id"), "7");
    assert_eq!(dig(&shown, "dry_run"), Some(&Json::Bool(true)));
    assert_eq!(
        shell(&server, &["mirror", "gc", "--retention-days", "0"]).0,
        Some(2)
    );
    let pushes = server.read_json("/v1/facts");
    assert_eq!(
        dig(&pushes, "tables.pushes.total"),
        Some(&Json::from(1_i64))
    );
}
