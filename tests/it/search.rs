//! `POST /query/search` against servers whose index is deleted, damaged, taken, read-only or behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{Call, Receipt};
use harness::http::{Reply, Request};
use harness::server::{
    Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, Store,
};
use serde_json::{Value, json};

on_both_backends!(
    what_is_sent_is_found_within_the_callers_grant,
    quarantine_and_release_hold_at_once,
    an_erasure_waits_until_the_words_have_left_the_index,
    an_index_that_is_deleted_or_damaged_is_built_anew,
    a_server_that_was_killed_goes_on_where_it_was,
    without_an_index_search_is_refused_and_capture_goes_on,
    a_second_server_does_not_share_an_index,
);

/// What is done to the file of an index.
type Damage = fn(&Path);

/// How long an index may need to follow.
const WAIT: Duration = Duration::from_secs(20);

/// A folder for the index of a server, and the configuration of that server.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("words.db")
    }

    fn configuration(&self) -> Configuration {
        with_index(&self.index().display().to_string())
    }

    /// Returns whether a file of the index contains some bytes.
    fn contains(&self, word: &str) -> bool {
        let files =
            ["", "-wal"].map(|end| PathBuf::from(format!("{}{end}", self.index().display())));
        let word = word.as_bytes();
        files.iter().any(|file| {
            let bytes = fs::read(file).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word)
        })
    }
}

fn with_index(path: &str) -> Configuration {
    Configuration {
        variables: BTreeMap::from([("SVC_SEARCH_PATH".to_owned(), path.to_owned())]),
        ..Configuration::granting(&["granted"])
    }
}

fn say(server: &Server, session: &str, name: &str, content: &str) -> String {
    let message = json!({"role": "user", "content": content});
    let call = Call::new(session, name).messages(vec![message]);
    Receipt::of(&server.deliver("/ingest/gateway", call.body())).fact
}

fn ask(server: &Server, token: &str, request: &Value) -> Reply {
    server.send(&Request::post("/query/search", request.to_string()).bearer(token))
}

fn search(server: &Server, token: &str, query: &str) -> Value {
    let reply = ask(server, token, &json!({"schema_version": 1, "query": query}));
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn sessions(found: &Value) -> Vec<&str> {
    let items = found["items"].as_array().expect("a list").iter();
    items
        .map(|item| item["session_id"].as_str().expect("an id"))
        .collect()
}

/// Asks until the answer is as it should be.
#[track_caller]
fn until(server: &Server, query: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + WAIT;
    loop {
        let found = search(server, OPERATOR_TOKEN, query);
        if is_right(&found) {
            return found;
        }
        assert!(Instant::now() < end, "{found:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn until_found(server: &Server, query: &str, session: &str) -> Value {
    until(server, query, |found| sessions(found).contains(&session))
}

fn index_state(server: &Server) -> Value {
    let reply = server.read("/v1/capture");
    let counts: Value = serde_json::from_slice(&reply.body).expect("JSON");
    counts["search"].clone()
}

fn what_is_sent_is_found_within_the_callers_grant(backend: Backend) {
    let place = Place::new();
    let Some(server) = Server::start(backend, &place.configuration()) else {
        return;
    };
    say(&server, "granted", "one", "the backoff table has no jitter");
    say(
        &server,
        "secret",
        "two",
        "backoff backoff: the board decides",
    );
    let found = until(&server, "backoff", |found| sessions(found).len() == 2);
    assert_eq!(found["policy_version"], 2);
    assert_eq!(found["index_complete"], true);
    assert_eq!(found["items"][0]["user_ids"], json!(["dev-1"]));
    assert_eq!(found["coverage"]["sessions"], 2);
    let granted = search(&server, RETRIEVAL_TOKEN, "backoff board");
    assert_eq!(sessions(&granted), ["granted"]);
    assert_eq!(granted["coverage"]["sessions"], 1);
    assert!(granted["items"][0].get("user_ids").is_none());
    let part = &granted["items"][0]["parts"][0];
    let read =
        json!({"schema_version": 1, "session_id": "granted", "references": [part["reference"]]});
    let read = Request::post("/query/context/evidence/read", read.to_string());
    let read = server.send(&read.bearer(RETRIEVAL_TOKEN));
    let read: Value = serde_json::from_slice(&read.body).expect("JSON");
    assert_eq!(read["items"][0]["part"], part["part"]);
    let filtered = |token, filters: Value| {
        ask(
            &server,
            token,
            &json!({"schema_version": 1, "query": "backoff", "filters": filters}),
        )
    };
    let outside = filtered(RETRIEVAL_TOKEN, json!({"session_id": "secret"}));
    assert_eq!(outside.status, 403, "{}", outside.text());
    let user = filtered(RETRIEVAL_TOKEN, json!({"user": "dev-1"}));
    assert_eq!(user.status, 422, "{}", user.text());
    assert_eq!(
        filtered(OPERATOR_TOKEN, json!({"user": "dev-1"})).status,
        200
    );
    assert_eq!(filtered(INGEST_TOKEN, json!({})).status, 403);
    // The list of Sessions follows the same grant.
    let list = |token| {
        let request = Request::get("/query/context/sessions?titles=true").bearer(token);
        let list: Value = serde_json::from_slice(&server.send(&request).body).expect("JSON");
        let sessions = list["sessions"].as_array().expect("a list").iter();
        let ids = sessions.map(|session| session["session_id"].as_str().expect("an id").to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(list(RETRIEVAL_TOKEN), ["granted"]);
    assert_eq!(list(OPERATOR_TOKEN), ["secret", "granted"]);
    let mode = fs::metadata(place.index())
        .expect("the index")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn quarantine_and_release_hold_at_once(backend: Backend) {
    let place = Place::new();
    let Some(server) = Server::start(backend, &place.configuration()) else {
        return;
    };
    let fact = say(&server, "s", "one", "the backoff table");
    until_found(&server, "backoff", "s");
    let mark = |action: &str| {
        let body = json!({"table": "inference_calls", "fact_id": fact, "reason": "because"});
        let reply = server.ask(action, body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    mark("/v1/quarantine");
    let found = search(&server, OPERATOR_TOKEN, "backoff");
    assert!(sessions(&found).is_empty(), "{found:#}");
    until(&server, "backoff", |found| {
        found["coverage"]["indexed_parts"] == 0
    });
    mark("/v1/release");
    until_found(&server, "backoff", "s");
}

fn an_erasure_waits_until_the_words_have_left_the_index(backend: Backend) {
    let place = Place::new();
    let Some(server) = Server::start(backend, &place.configuration()) else {
        return;
    };
    say(&server, "s", "one", "the customer is called xvandelay");
    say(&server, "t", "two", "another customer is called qkramer");
    until_found(&server, "qkramer", "t");
    assert!(place.contains("vandelay"));
    let erase = |session: &str| {
        let arguments = [
            "--json",
            "erase",
            "--session",
            session,
            "--apply",
            "--reason",
            "asked",
        ];
        let output = server.shell().args(arguments).output().expect("svc runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{output:?}"))
    };
    assert_eq!(erase("s")["search"], "erased");
    assert!(!place.contains("vandelay"));
    assert!(place.contains("kramer"));
    assert!(sessions(&search(&server, OPERATOR_TOKEN, "xvandelay")).is_empty());
    until_found(&server, "qkramer", "t");
}

fn an_index_that_is_deleted_or_damaged_is_built_anew(backend: Backend) {
    let place = Place::new();
    let Some(store) = Store::create(backend) else {
        return;
    };
    let server = Server::start_on(&store, &place.configuration());
    say(&server, "s", "one", "the backoff table");
    until_found(&server, "backoff", "s");
    // While the server runs, on request.
    let output = server.shell().args(["search", "--rebuild"]).output();
    assert!(output.expect("svc runs").status.success());
    until(&server, "backoff", |found| {
        found["index_complete"] == true && sessions(found) == ["s"]
    });
    drop(server);
    let damage: [(&str, Damage); 4] = [
        ("deleted", |path| {
            fs::remove_file(path).expect("it is there");
        }),
        ("of another kind", |path| {
            fs::write(path, "no database").expect("it is written");
        }),
        ("cut", |path| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(path)
                .expect("it is there");
            file.set_len(5_000).expect("it is cut");
        }),
        ("overwritten", |path| {
            let mut bytes = fs::read(path).expect("it is there");
            let middle = bytes.len() / 3..bytes.len();
            bytes[middle].fill(0x5a);
            fs::write(path, bytes).expect("it is written");
        }),
    ];
    for (what, damage) in damage {
        for end in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{end}", place.index().display())));
        }
        damage(&place.index());
        let mut server = Server::start_on(&store, &place.configuration());
        let end = Instant::now() + WAIT;
        // A damaged page may be met by the first query only.
        let is_found = || {
            let request = json!({"schema_version": 1, "query": "backoff"});
            let reply = ask(&server, OPERATOR_TOKEN, &request);
            let found: Value = serde_json::from_slice(&reply.body).expect("JSON");
            reply.status == 200 && sessions(&found) == ["s"]
        };
        while !is_found() {
            assert!(Instant::now() < end, "{what}");
            thread::sleep(Duration::from_millis(50));
        }
        server.stop();
    }
}

fn a_server_that_was_killed_goes_on_where_it_was(backend: Backend) {
    let place = Place::new();
    let Some(store) = Store::create(backend) else {
        return;
    };
    for round in 0..4 {
        let mut server = Server::start_on(&store, &place.configuration());
        for call in 0..20 {
            let name = format!("{round}-{call}");
            say(
                &server,
                "s",
                &name,
                &format!("word{round}x{call} and the rest"),
            );
        }
        thread::sleep(Duration::from_millis(40 * round));
        server.kill();
    }
    let server = Server::start_on(&store, &place.configuration());
    say(&server, "last", "last", "the last thing");
    let found = until_found(&server, "last", "last");
    // Each question and each answer, and none of them twice.
    assert_eq!(found["coverage"]["indexed_parts"], 2 * 81);
    for (round, call) in [(0, 0), (1, 7), (3, 19)] {
        let found = search(&server, OPERATOR_TOKEN, &format!("word{round}x{call}"));
        assert_eq!(sessions(&found), ["s"], "{round} {call}");
    }
}

fn without_an_index_search_is_refused_and_capture_goes_on(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let server = Server::start_on(&store, &with_index("off"));
    say(&server, "s", "one", "the backoff table");
    let reply = ask(
        &server,
        OPERATOR_TOKEN,
        &json!({"schema_version": 1, "query": "backoff"}),
    );
    assert_eq!(reply.status, 404, "{}", reply.text());
    assert!(reply.text().contains("search_disabled"), "{}", reply.text());
    assert_eq!(index_state(&server), Value::Null);
    drop(server);
    // A folder where the file should be cannot be an index.
    let place = Place::new();
    let server = Server::start_on(&store, &place.configuration());
    until_found(&server, "backoff", "s");
    let output = server.shell().args(["search", "--rebuild"]).output();
    assert!(output.expect("svc runs").status.success());
    drop(server);
    let place = Place::new();
    fs::create_dir(place.index()).expect("a folder");
    let refused = Server::try_start_on(&store, &place.configuration());
    let log = refused.expect_err("it does not start");
    assert!(log.contains("SVC_SEARCH_PATH"), "{log}");
}

fn a_second_server_does_not_share_an_index(backend: Backend) {
    let place = Place::new();
    let Some(store) = Store::create(backend) else {
        return;
    };
    let first = Server::start_on(&store, &place.configuration());
    let second = Server::try_start_on(&store, &place.configuration());
    let log = second.expect_err("it does not start");
    assert!(
        log.contains("another server uses the search index"),
        "{log}"
    );
    let other = Place::new();
    let second = Server::start_on(&store, &other.configuration());
    say(&first, "s", "one", "the backoff table");
    until_found(&second, "backoff", "s");
    until_found(&first, "backoff", "s");
}
