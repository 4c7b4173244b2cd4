//! Sessions as people find them: listed by their facts.

use harness::delivery::Call;
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server};
use svc_engine::fact::{DeveloperDecision, InferenceCall};
use svc_engine::store::Append;
use svc_engine::testing::builders::{call, decision};
use svc_model::json::Json;
use svc_model::time::Instant;

use crate::cli::{done, json, refused, svc};
use crate::query::Facts;

on_both_backends! {
    sessions_are_found_by_their_facts,
    pages_of_sessions_follow_each_other,
    a_new_session_is_logged_once,
    titles_are_read_only_by_operators_who_ask_for_them,
}

/// Returns the moment this many minutes ago.
fn minutes_ago(minutes: i64) -> Instant {
    let now = svc_engine::clock::Clock::system().now().microseconds();
    Instant::from_microseconds(now - minutes * 60_000_000).expect("in range")
}

/// A call of a Session, observed this many minutes ago.
fn observed(facts: &Facts, number: u128, session: &str, minutes: i64) -> Append {
    facts.encoded(InferenceCall {
        observed_at: minutes_ago(minutes),
        ..call(number).session(session).user("ann").build()
    })
}

fn sessions_are_found_by_their_facts(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    assert_eq!(done(&svc(&server, &["sessions"])), "no sessions\n");
    let facts = Facts::of(&server);
    let first = vec![observed(&facts, 1, "s", 180), observed(&facts, 2, "s", 150)];
    facts.add(first);
    facts.add(vec![Append::DeveloperDecision(Box::new(
        DeveloperDecision {
            session_id: svc_model::id::SessionId::new("t/2").expect("an id"),
            occurred_at: minutes_ago(60),
            captured_at: minutes_ago(60),
            ..decision(3)
        },
    ))]);
    assert_eq!(
        done(&svc(&server, &["sessions"])),
        "session  began   last seen  calls  models  agent        user  repository  title\n\
         t/2      1h ago  1h ago         0  -       claude-code  -     -           -\n\
         s        3h ago  2h ago         2  m       -            ann   -           ask\n\
         \nnext:\n  svc session t/2\n"
    );
    for (flag, value) in [("--user", "ann"), ("--model", "m")] {
        let found = done(&svc(&server, &["sessions", flag, value]));
        assert!(found.contains("\ns  "), "{found}");
        assert!(!found.contains("t/2"), "{found}");
    }
    let found = json(&svc(
        &server,
        &["sessions", "--harness", "claude-code", "--json"],
    ));
    assert_eq!(
        dig(&found, "sessions.0.session_id").and_then(Json::as_str),
        Some("t/2")
    );
    let none = svc(&server, &["sessions", "--repo", "own/app"]);
    assert_eq!(done(&none), "no sessions\n\nnext:\n  svc sessions\n");
    refused(&svc(&server, &["sessions", "--repo", "own"]), 1);
}

fn a_new_session_is_logged_once(backend: Backend) {
    let mut configuration = Configuration::default();
    let level = ("SVC_LOG".to_owned(), "debug".to_owned());
    configuration.variables.extend([level]);
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    for id in ["one", "two", "two"] {
        server.deliver("/ingest/gateway", Call::new("begun", id).body());
    }
    let log = server.log();
    let named = log.lines().filter(|line| line.contains("session.stored"));
    let named: Vec<&str> = named.collect();
    assert_eq!(named.len(), 1, "{log}");
    assert!(named[0].contains("begun"), "{}", named[0]);
}

fn pages_of_sessions_follow_each_other(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let facts = Facts::of(&server);
    for number in 1..=3 {
        facts.add(vec![observed(&facts, number, &format!("s{number}"), 60)]);
    }
    let page = done(&svc(&server, &["sessions", "--limit", "2"]));
    let (shown, next) = page.split_once("\nnext:\n").expect("a next page");
    assert!(shown.contains("s3") && shown.contains("s2"), "{page}");
    // The printed commands work when pasted.
    let command = next.lines().last().expect("a command").trim();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let last = done(&svc(&server, &words));
    assert!(last.contains("\ns1 "), "{last}");
    assert!(!last.contains("--cursor"), "{last}");
    let all = json(&svc(&server, &["sessions", "--all", "--json"]));
    let Some(Json::Array(sessions)) = dig(&all, "sessions") else {
        panic!("{all:?}");
    };
    assert_eq!(sessions.len(), 3);
    let cursor = words.last().expect("the cursor");
    let get = |query: &str| {
        server.send(&Request::get(format!("/v1/sessions?{query}")).bearer(OPERATOR_TOKEN))
    };
    assert_eq!(get(&format!("limit=1&cursor={cursor}")).status, 200);
    for wrong in [
        format!("model=m&cursor={cursor}"),
        "cursor=x".to_owned(),
        "limit=0".to_owned(),
        "agent_harness=vi".to_owned(),
        "repository_id=1".to_owned(),
        "captured_after=2026-02-01T00:00:00Z&captured_before=2026-01-01T00:00:00Z".to_owned(),
    ] {
        assert_eq!(get(&wrong).status, 422, "{wrong}");
    }
}

fn titles_are_read_only_by_operators_who_ask_for_them(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::granting_one("s")) else {
        return;
    };
    let facts = Facts::of(&server);
    facts.add(vec![observed(&facts, 1, "s", 60)]);
    let get = |path: &str, token: &str| server.send(&Request::get(path).bearer(token));
    let title = |path: &str| {
        let list = server.read_json(path);
        let title = dig(&list, "sessions.0.title");
        title.and_then(Json::as_str).map(str::to_owned)
    };
    assert_eq!(title("/v1/sessions"), None);
    assert_eq!(title("/v1/sessions?titles=false"), None);
    assert_eq!(title("/v1/sessions?titles=true").as_deref(), Some("ask"));
    let asked = "/v1/sessions?titles=true";
    assert_eq!(get(asked, RETRIEVAL_TOKEN).status, 403);
    assert_eq!(get("/v1/sessions?titles=x", OPERATOR_TOKEN).status, 422);
    let dossier = get("/query/session/s", OPERATOR_TOKEN).text();
    assert!(!dossier.contains("title"), "{dossier}");
    let found = json(&svc(&server, &["sessions", "--json"]));
    let title = dig(&found, "sessions.0.title").and_then(Json::as_str);
    assert_eq!(title, Some("ask"));
}
