//! Grants that change while servers run, for named retrieval tokens, by Session and by rule.

use harness::delivery::Call;
use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};

use crate::cli::{account, done, refused, svc, svc_with};

on_both_backends!(
    a_grant_takes_effect_at_once_and_until_it_ends,
    a_rule_grants_only_matching_sessions,
    a_revoked_token_is_unknown_everywhere,
    checks_run_in_the_same_order_as_for_configured_grants,
    a_rule_may_reach_more_sessions_than_the_settings_may_list,
    the_shell_grants_explains_a_grant_and_shows_who_made_it,
    an_invalid_change_of_grants_is_explained,
    another_server_of_the_store_follows_at_once,
);

const REVIEW: &str = "4444444444444444444444444444444eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
const TRIAGE: &str = "5555555555555555555555555555555fffffffffffffffffffffffffffffffff";

fn configuration() -> Configuration {
    let mut configuration = Configuration::default();
    let tokens = json!({"review": REVIEW, "triage": TRIAGE});
    let variables = &mut configuration.variables;
    variables.insert("SVC_RETRIEVAL_TOKENS".into(), tokens.to_string());
    configuration
}

fn body(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

/// Changes grants as the operator.
fn change(server: &Server, path: &str, request: &Value) -> Value {
    body(&server.ask(path, request.to_string()))
}

/// Grants this to the token `review`, and returns the id of the grant.
fn grant(server: &Server, what: &Value) -> String {
    let mut request = json!({"token": "review", "reason": "a review"});
    for (name, value) in what.as_object().expect("members") {
        request[name] = value.clone();
    }
    let receipt = change(server, "/v1/grants/add", &request);
    assert_eq!(receipt["configured"], true);
    let id = receipt["entry"]["grant_id"].as_str().expect("an id");
    id.to_owned()
}

fn remove(server: &Server, grant_id: &str) -> Value {
    let request = json!({"grant_id": grant_id, "reason": "the review is done"});
    change(server, "/v1/grants/remove", &request)
}

/// Asks for the calls of a Session.
fn inventory(server: &Server, token: &str, session: &str) -> Reply {
    let path = format!("/query/context/evidence?session_id={session}");
    server.send(&Request::get(path).bearer(token))
}

fn discover(server: &Server, token: &str) -> Reply {
    let question = json!({"schema_version": 1, "query": "pager"});
    server.send(&Request::post("/query/context/discover", question.to_string()).bearer(token))
}

/// Returns the Sessions that a discovery finds, and how many it was authorized for.
fn found(server: &Server, token: &str) -> (Vec<String>, u64) {
    let answer = body(&discover(server, token));
    let items = answer["items"].as_array().expect("items");
    let sessions = items.iter().filter_map(|item| item["session_id"].as_str());
    let mut sessions: Vec<String> = sessions.map(str::to_owned).collect();
    sessions.sort();
    let authorized = answer["coverage"]["authorized_sessions"].as_u64();
    (sessions, authorized.expect("a count"))
}

fn me(server: &Server, token: &str) -> Reply {
    server.send(&Request::get("/v1/me").bearer(token))
}

fn deliver(server: &Server, session: &str, user: &str) {
    let mut call = Call::new(session, &format!("{session}-{user}")).envelope();
    call["user_id"] = user.into();
    let stored = server.deliver("/ingest/gateway", call.to_string());
    assert_eq!(stored.status, 200, "{}", stored.text());
}

const OUTSIDE: &str = r#"{"detail":"Session is outside the context grant"}"#;

fn a_grant_takes_effect_at_once_and_until_it_ends(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    deliver(&server, "one", "ann");
    let outside = |token, session| {
        let reply = inventory(&server, token, session);
        assert_eq!((reply.status, &*reply.text()), (403, OUTSIDE), "{session}");
    };
    outside(REVIEW, "one");
    outside(REVIEW, "nobody's");
    assert_eq!(found(&server, REVIEW), (vec![], 0));
    let empty = body(&me(&server, REVIEW));
    assert_eq!(
        (&empty["client_id"], &empty["authority"]),
        (&json!("review"), &json!("retrieval"))
    );
    assert_eq!(
        (&empty["source_session_ids"], &empty["grants"]),
        (&json!([]), &json!([]))
    );

    let one = grant(&server, &json!({"session_id": "one"}));
    let later = grant(&server, &json!({"session_id": "later"}));
    assert_eq!(body(&inventory(&server, REVIEW, "one"))["found"], true);
    assert_eq!(body(&inventory(&server, REVIEW, "later"))["found"], false);
    assert_eq!(found(&server, REVIEW), (vec!["one".to_owned()], 2));
    outside(TRIAGE, "one");
    let mine = body(&me(&server, REVIEW));
    assert_eq!(mine["source_session_ids"], json!(["later", "one"]));
    assert_eq!(
        mine["grants"],
        json!([{"session_id": "one"}, {"session_id": "later"}])
    );
    let selected = json!({"schema_version": 1, "query": "pager", "session_id": "one"});
    let selected = Request::post("/query/context/selected", selected.to_string());
    assert_eq!(
        body(&server.send(&selected.bearer(REVIEW)))["status"],
        "matched"
    );

    // An existing grant is not added twice, and an ended one does not end twice.
    assert_eq!(grant(&server, &json!({"session_id": "one"})), one);
    assert_eq!(remove(&server, &one)["unchanged"], false);
    assert_eq!(remove(&server, &one)["unchanged"], true);
    outside(REVIEW, "one");
    assert_eq!(found(&server, REVIEW), (vec![], 1));
    remove(&server, &later);

    let history = server.read_json("/v1/grants?history=true&token=review");
    let history: Value = serde_json::from_slice(&history.to_canonical()).expect("JSON");
    let rows = history["entries"].as_array().expect("rows");
    let did: Vec<_> = rows
        .iter()
        .map(|row| row["action"].as_str().expect("a word"))
        .collect();
    assert_eq!(did, ["add", "add", "remove", "remove"]);
    for row in rows {
        assert_eq!(row["client_id"], "operator");
        assert_eq!(row["in_force"], false);
        assert!(row["recorded_at"].is_string());
    }
    assert_eq!(rows[2]["removed_grant_id"], *one);
    assert_eq!(rows[2]["reason"], "the review is done");
    assert_eq!(rows[2]["scope"], json!({"session_id": "one"}));
    assert!(server.log().contains("grant.changed"));
    assert!(!server.log().contains(REVIEW), "no token is logged");
}

fn a_rule_grants_only_matching_sessions(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    deliver(&server, "early", "ann");
    let now = server.read_json("/v1/sessions");
    let now: Value = serde_json::from_slice(&now.to_canonical()).expect("JSON");
    let began = now["sessions"][0]["captured_at"]
        .as_str()
        .expect("a moment");
    deliver(&server, "hers", "ann");
    deliver(&server, "his", "bob");

    let reads = |session| inventory(&server, REVIEW, session).status;
    let rule = grant(&server, &json!({"user_id": "ann"}));
    assert_eq!(
        [reads("early"), reads("hers"), reads("his"), reads("none")],
        [200, 200, 403, 403]
    );
    assert_eq!(
        found(&server, REVIEW),
        (vec!["early".to_owned(), "hers".to_owned()], 2)
    );
    // A later Session is granted when it arrives.
    deliver(&server, "new", "ann");
    assert_eq!(reads("new"), 200);
    // Somebody claims that Bob's Session is Ann's, which does not make it hers.
    deliver(&server, "his", "ann");
    assert_eq!(reads("his"), 403);
    // The same for hers, claimed to be Bob's: it is no longer hers alone.
    deliver(&server, "new", "bob");
    assert_eq!(reads("new"), 403);
    remove(&server, &rule);
    assert_eq!(reads("early"), 403);

    // Every member counts, and `since` includes its own moment.
    grant(&server, &json!({"user_id": "ann", "since": began}));
    assert_eq!(
        [reads("early"), reads("hers"), reads("his")],
        [200, 200, 403]
    );
    let explained = server.read_json("/v1/grants/explain?token=review&session_id=his");
    let explained: Value = serde_json::from_slice(&explained.to_canonical()).expect("JSON");
    assert_eq!(explained["granted"], false);
    assert_eq!(explained["entries"][0]["obstacles"], json!(["other_user"]));

    // Quarantined facts are absent, as everywhere.
    let calls = body(&inventory(&server, REVIEW, "hers"));
    let call = calls["calls"][0]["inference_call_id"]
        .as_str()
        .expect("an id");
    let hide = json!({"table": "inference_calls", "fact_id": call, "reason": "a leak"});
    change(&server, "/v1/quarantine", &hide);
    assert_eq!(reads("hers"), 403, "no visible fact says that it is Ann's");
    change(&server, "/v1/release", &hide);
    assert_eq!(reads("hers"), 200);
}

fn a_revoked_token_is_unknown_everywhere(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    deliver(&server, "one", "ann");
    grant(&server, &json!({"session_id": "one"}));
    let request = json!({"token": "review", "reason": "it was in a log"});
    let revoked = change(&server, "/v1/grants/revoke", &request);
    assert_eq!(revoked["unchanged"], false);
    for path in [
        "/v1/me",
        "/v1/facts",
        "/query/context/evidence?session_id=one",
        // The request is not checked.
        "/query/context/evidence",
    ] {
        let reply = server.send(&Request::get(path).bearer(REVIEW));
        assert_eq!(reply.status, 401, "{path}");
        assert_eq!(reply.text(), r#"{"detail":"Invalid token"}"#);
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(
        server
            .send(&Request::post("/ingest/ci", "{").bearer(REVIEW))
            .status,
        401
    );
    let large = Request::post("/query/context/discover", "x".repeat(16 * 1024 + 1));
    assert_eq!(server.send(&large.bearer(REVIEW)).status, 413);
    assert_eq!(
        me(&server, TRIAGE).status,
        200,
        "the other token is unchanged"
    );

    // Grants can still be added to it, and it is accepted again with its grants.
    grant(&server, &json!({"session_id": "two"}));
    let restored = change(&server, "/v1/grants/restore", &request);
    assert_eq!(restored["entry"]["in_force"], false);
    assert_eq!(
        body(&me(&server, REVIEW))["source_session_ids"],
        json!(["one", "two"])
    );
}

fn checks_run_in_the_same_order_as_for_configured_grants(backend: Backend) {
    let mut configuration = Configuration::granting(&["configured"]);
    configuration.variables = self::configuration().variables;
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    deliver(&server, "configured", "ann");
    deliver(&server, "stored", "ann");
    grant(&server, &json!({"session_id": "stored"}));
    // The configured set stays the same for its own token and for the operator.
    for token in [RETRIEVAL_TOKEN, harness::server::OPERATOR_TOKEN] {
        assert_eq!(inventory(&server, token, "configured").status, 200);
        assert_eq!(inventory(&server, token, "stored").status, 403);
    }
    assert_eq!(inventory(&server, REVIEW, "configured").status, 403);
    assert_eq!(inventory(&server, REVIEW, "stored").status, 200);
    let configured = body(&me(&server, RETRIEVAL_TOKEN));
    assert_eq!(configured["source_session_ids"], json!(["configured"]));
    assert_eq!(configured.get("grants"), None);

    let ask = |path: &str, body: &str| {
        let request = Request::post(path, body.to_owned()).bearer(REVIEW);
        server.send(&request)
    };
    // A named token has no default Session, so each request must name one.
    let reply = ask("/query/context", "{");
    assert_eq!(
        reply.text(),
        r#"{"detail":"Context retrieval is disabled"}"#
    );
    assert_eq!(reply.status, 404);
    // The form of a request is checked before what it asks for.
    assert_eq!(ask("/query/context/selected", "{").status, 400);
    let wrong = r#"{"schema_version":1,"query":"pager","session_id":"configured","other":1}"#;
    assert_eq!(ask("/query/context/selected", wrong).status, 422);
    let outside = r#"{"schema_version":1,"query":"pager","session_id":"configured"}"#;
    let reply = ask("/query/context/selected", outside);
    assert_eq!((reply.status, &*reply.text()), (403, OUTSIDE));
    let sent = server.send(&Request::post("/ingest/ci", "{}").bearer(REVIEW));
    assert_eq!(sent.text(), r#"{"detail":"Ingest authority required"}"#);
    let asked = server.send(&Request::get("/v1/grants").bearer(REVIEW));
    assert_eq!(asked.text(), r#"{"detail":"Operator authority required"}"#);
}

fn a_rule_may_reach_more_sessions_than_the_settings_may_list(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    for number in 0..33 {
        deliver(&server, &format!("s{number:02}"), "ann");
    }
    let rule = json!({"token": "review", "reason": "all of hers", "user_id": "ann"});
    let receipt = change(&server, "/v1/grants/add", &rule);
    assert_eq!(
        receipt["reach"],
        json!({"sessions": 33, "over_limit": false})
    );
    let found = body(&discover(&server, REVIEW));
    assert_eq!(found["coverage"]["authorized_sessions"], 33);
    assert_eq!(found["coverage"]["found_sessions"], 33);
    assert_eq!(found["coverage"].get("searched_sessions"), None);
    assert_eq!(
        inventory(&server, REVIEW, "s32").status,
        200,
        "each can be opened"
    );
    let mine = body(&me(&server, REVIEW));
    assert_eq!(mine.get("source_session_ids"), None, "too many to list");
    assert_eq!(mine["grants"], json!([{"user_id": "ann"}]));
}

fn another_server_of_the_store_follows_at_once(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    let other = Server::start_on(server.store(), &configuration());
    deliver(&server, "one", "ann");
    let both = |expected: u16| {
        for each in [&server, &other] {
            assert_eq!(inventory(each, REVIEW, "one").status, expected);
        }
    };
    both(403);
    let id = grant(&other, &json!({"user_id": "ann"}));
    both(200);
    let request = json!({"token": "review", "reason": "lost"});
    change(&server, "/v1/grants/revoke", &request);
    // The other server has checked the token before, but still reveals nothing about what is wrong
    // with a request.
    for (path, body, status) in [
        ("/query/context/selected", "{", 401),
        ("/query/context/selected", r#"{"schema_version":1}"#, 401),
        ("/query/context", "{}", 401),
    ] {
        let sent = other.send(&Request::post(path, body).bearer(REVIEW));
        assert_eq!(sent.status, status, "{path} {body} {}", sent.text());
        // Each is the first request to the other server after it checked the token.
        change(&server, "/v1/grants/restore", &request);
        assert_eq!(inventory(&other, REVIEW, "one").status, 200);
        change(&server, "/v1/grants/revoke", &request);
    }
    both(401);
    change(&other, "/v1/grants/restore", &request);
    both(200);
    remove(&server, &id);
    both(403);
    // A Session that is granted at one server can be read at the other with the next request.
    grant(&server, &json!({"session_id": "one"}));
    both(200);
    let mine = body(&me(&other, REVIEW));
    assert_eq!(mine["source_session_ids"], json!(["one"]));
}

fn the_shell_grants_explains_a_grant_and_shows_who_made_it(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    deliver(&server, "one", "ann");
    let url = server.base_url();
    let remote = |arguments: &[&str]| svc(&server, &[arguments, &["--url", &url]].concat());
    // Directly at the store.
    let local = |arguments: &[&str]| svc_with(&server, &[("USER", "somebody-else")], arguments);
    assert!(done(&local(&["grant", "list"])).starts_with("no grants\n"));
    let nothing = done(&local(&["grant", "explain", "review", "one"]));
    assert!(nothing.contains("nothing is granted to it"), "{nothing}");
    let added = local(&[
        "grant", "add", "review", "--user", "ann", "--reason", "a\u{1b}b",
    ]);
    let text = done(&added);
    assert!(
        text.starts_with("granted to review: user ann (grant "),
        "{text}"
    );
    assert!(text.contains(", organization acme"), "{text}");
    assert_eq!(inventory(&server, REVIEW, "one").status, 200);
    let explained = done(&remote(&["grant", "explain", "review", "one"]));
    assert!(
        explained.starts_with("review may read one\n"),
        "{explained}"
    );
    let explained = done(&remote(&["grant", "explain", "review", "two"]));
    assert!(
        explained.contains("no: no visible fact belongs to the Session"),
        "{explained}"
    );
    assert!(
        explained.contains("no fact names the Session\n"),
        "{explained}"
    );
    let listed = done(&remote(&["grant", "list"]));
    assert!(
        listed.contains(&format!("shell ({})", account())),
        "{listed}"
    );
    assert!(
        listed.contains("\ntokens of the server: review, triage\n"),
        "{listed}"
    );
    let mine = svc_with(&server, &[("SVC_TOKEN", REVIEW)], &["me"]);
    let mine = done(&mine);
    assert!(mine.contains("client        review\n"), "{mine}");
    assert!(
        mine.contains("session       one\ngranted       user ann\n"),
        "{mine}"
    );

    // The suggested command works as printed.
    let next = added.stderr_text();
    let back = next.lines().find(|line| line.contains("svc grant remove"));
    let words: Vec<&str> = back
        .expect("a way back")
        .split_whitespace()
        .skip(1)
        .collect();
    let removed = done(&local(&words));
    assert!(
        removed.starts_with("no longer granted to review: user ann"),
        "{removed}"
    );
    assert_eq!(inventory(&server, REVIEW, "one").status, 403);
    let unknown = remote(&["grant", "add", "nobody", "later", "--reason", "x"]);
    assert_eq!(unknown.status.code(), Some(0));
    let warned = unknown.stderr_text();
    assert!(warned.contains("token_not_configured"), "{warned}");
    assert!(
        warned.contains("tokens of the server: review, triage"),
        "{warned}"
    );
    let listed = done(&remote(&["grant", "list"]));
    assert!(
        listed.contains("\nnot tokens of the server: nobody\n"),
        "{listed}"
    );
    let unknown = remote(&["grant", "revoke", "nobody", "--reason", "x"]);
    assert!(
        unknown.stderr_text().contains("token_not_configured"),
        "{}",
        unknown.stderr_text()
    );
    assert!(warned.contains("session_unknown"), "{warned}");
    let none = remote(&["grant", "add", "review", "--user", "eve", "--reason", "x"]);
    assert!(
        none.stderr_text().contains("nothing_reached"),
        "{}",
        none.stderr_text()
    );

    done(&remote(&["grant", "revoke", "review", "--reason", "lost"]));
    let explained = remote(&["grant", "explain", "review", "one"]);
    let text = done(&explained);
    assert!(
        text.starts_with("review may not read one: operator revoked the token at "),
        "{text}"
    );
    let next = explained.stderr_text();
    let restore = next.lines().find(|line| line.contains("svc grant restore"));
    let words: Vec<&str> = restore
        .expect("a way back")
        .split_whitespace()
        .skip(1)
        .collect();
    done(&svc(&server, &words));
    assert_eq!(me(&server, REVIEW).status, 200);
    // A server may still refuse it. Nothing was changed, and nothing else is promised.
    let again = done(&svc(&server, &words));
    assert!(
        again.starts_with("review is not revoked; if a server refuses it"),
        "{again}"
    );

    let history = done(&remote(&[
        "grant",
        "list",
        "--history",
        "--token",
        "review",
    ]));
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[0].contains("grant"), "{history}");
    let id = lines[1].split_whitespace().find(|word| word.len() == 36);
    assert!(id.is_some(), "the hint promises ids: {history}");
    assert!(
        lines[1].contains(&format!("shell ({})", account())) && lines[1].contains("a\\u{1b}b"),
        "{history}"
    );
    assert!(
        lines[2].contains("remove") && lines[2].contains("REASON"),
        "{history}"
    );
    assert!(
        lines[4].contains("operator") && lines[4].contains("lost"),
        "{history}"
    );
}

fn an_invalid_change_of_grants_is_explained(backend: Backend) {
    let Some(server) = Server::start(backend, &configuration()) else {
        return;
    };
    let url = server.base_url();
    for place in [&[][..], &["--url", &url]] {
        let fails = |arguments: &[&str], status, word: &str| {
            let error = refused(&svc(&server, &[arguments, place].concat()), status);
            assert!(error.contains(word), "{arguments:?} {error}");
        };
        let add = ["grant", "add", "review"];
        let because = ["--reason", "x"];
        fails(&[&add[..], &because].concat(), 1, "--user");
        fails(
            &[&add[..], &["s", "--user", "ann"], &because].concat(),
            2,
            "--user",
        );
        fails(&[&add[..], &["s", "--reason", " "]].concat(), 1, "blank");
        fails(
            &[&add[..], &["--repo", "own/nothing"], &because].concat(),
            1,
            "repository",
        );
        fails(
            &["grant", "add", "retrieval", "s", "--reason", "x"],
            1,
            "retrieval",
        );
        fails(
            &["grant", "remove", "0123456789", "--reason", "x"],
            1,
            "no grant",
        );
        fails(
            &["grant", "restore", "review", "--reason", "x"],
            1,
            "not revoked",
        );
        fails(&["grant", "explain", "a b", "s"], 1, "letters");
    }
    // The names that exist, at the server and in the store.
    let mistyped = ["grant", "revoke", "review agent", "--reason", "x"];
    let error = refused(
        &svc(&server, &[&mistyped[..], &["--url", &url]].concat()),
        1,
    );
    assert!(
        error.contains("tokens of the server: review, triage"),
        "{error}"
    );
    let error = refused(&svc(&server, &mistyped), 1);
    assert!(
        error.contains("tokens with grants in this store: none"),
        "{error}"
    );
    grant(&server, &json!({"session_id": "s"}));
    let error = refused(&svc(&server, &mistyped), 1);
    assert!(
        error.contains("tokens with grants in this store: review"),
        "{error}"
    );
    let reply = server.ask(
        "/v1/grants/add",
        r#"{"token":"review","repo":"own/nothing","reason":"x"}"#,
    );
    assert_eq!(
        (reply.status, &*reply.text()),
        (422, r#"{"detail":"no fact names this repository"}"#)
    );
}
