//! Erasing captured content: answers say so, facts stay, and so does what others need.

use harness::delivery::{Call, Receipt, allowed_edit, logs};
use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, Store};
use serde_json::{Value, json};

use crate::cli::{done, refused, svc, svc_with};

on_both_backends!(
    every_answer_says_that_content_was_erased,
    an_erasure_needs_a_reason_and_a_dry_run_changes_nothing,
    an_erasure_by_age_keeps_newer_content,
    a_backup_from_before_an_erasure_does_not_bring_content_back,
);

const SECRET: &str = "the customer is called Vandelay";

fn body(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn ask(server: &Server, token: &str, path: &str) -> Reply {
    server.send(&Request::get(path).bearer(token))
}

fn deliver(server: &Server, session: &str, name: &str, content: &str) -> String {
    let message = json!({"role": "user", "content": content});
    let call = Call::new(session, name).messages(vec![message]);
    let mut reply = server.deliver("/ingest/gateway", call.body());
    if reply.status == 503 {
        // It relied on content that was erased a moment before. A sender sends it again.
        reply = server.deliver("/ingest/gateway", call.body());
    }
    Receipt::of(&reply).fact
}

fn first_part(call: &str) -> Value {
    json!({"inference_call_id": call, "side": "input", "message_index": 0, "part_index": 0})
}

fn read(server: &Server, token: &str, session: &str, call: &str) -> Reply {
    let path = if token == OPERATOR_TOKEN {
        "/query/evidence/read"
    } else {
        "/query/context/evidence/read"
    };
    let references = [first_part(call)];
    let request = json!({"schema_version": 1, "session_id": session, "references": references});
    server.send(&Request::post(path, request.to_string()).bearer(token))
}

fn discover(server: &Server) -> Value {
    let question = json!({"schema_version": 1, "query": "vandelay"});
    let request = Request::post("/query/context/discover", question.to_string());
    body(&server.send(&request.bearer(RETRIEVAL_TOKEN)))
}

fn erase(server: &Server, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&done(&svc(server, &arguments))).expect("JSON")
}

fn every_answer_says_that_content_was_erased(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::granting(&["s", "t"])) else {
        return;
    };
    let (call, other) = (
        deliver(&server, "s", "one", SECRET),
        deliver(&server, "t", "two", SECRET),
    );
    let edits = logs(&allowed_edit("s", "toolu_1")).to_string();
    assert_eq!(server.deliver("/v1/logs", edits).status, 200);
    let inventory = "/query/evidence?session_id=s";
    let manifest = format!("/query/evidence/manifest?session_id=s&inference_call_id={call}");
    let dossier = "/query/session/s";
    let listed = ask(&server, OPERATOR_TOKEN, inventory).text();
    let known = ask(&server, OPERATOR_TOKEN, dossier).text();
    let compatible = "/v1/facts/session/s/compatibility-evidence";
    for text in [&listed, &known] {
        assert!(!text.contains("erased"), "{text}");
    }
    for token in [OPERATOR_TOKEN, RETRIEVAL_TOKEN] {
        let part = read(&server, token, "s", &call);
        assert!(part.text().contains(SECRET), "{}", part.text());
    }
    assert_eq!(
        discover(&server)["items"].as_array().expect("items").len(),
        2
    );

    let done_with = erase(
        &server,
        &["erase", "--session", "s", "--reason", "asked", "--apply"],
    );
    assert_eq!(done_with["facts"]["inference_calls"], 1);
    assert_eq!(done_with["facts"]["developer_decisions"], 1);
    assert_eq!(done_with["space"], "returned");

    let reply = body(&ask(&server, OPERATOR_TOKEN, inventory));
    let erased_at = reply["calls"][0]["content_erased_at"].clone();
    assert!(erased_at.is_string(), "{reply}");
    assert_eq!(reply["calls"][0]["model"], "gpt-4o", "the fact is there");
    let reply = body(&ask(&server, OPERATOR_TOKEN, &manifest));
    assert_eq!(reply["messages"], json!([]));
    assert_eq!(reply["call"]["content_erased_at"], erased_at);
    for token in [OPERATOR_TOKEN, RETRIEVAL_TOKEN] {
        let part = read(&server, token, "s", &call);
        assert_eq!(part.status, 409);
        assert_eq!(
            part.text(),
            r#"{"detail":{"reason":"content_erased","reference_index":0}}"#
        );
    }
    assert!(
        read(&server, OPERATOR_TOKEN, "t", &other)
            .text()
            .contains(SECRET)
    );
    let found = discover(&server);
    assert_eq!(found["skipped"]["content_erased"], 1, "{found}");
    assert_eq!(found["items"].as_array().expect("items").len(), 1);
    assert_eq!(found["items"][0]["session_id"], "t");
    let selected = json!({"schema_version": 1, "query": "vandelay", "session_id": "s"});
    let selected = Request::post("/query/context/selected", selected.to_string());
    let selected = body(&server.send(&selected.bearer(RETRIEVAL_TOKEN)));
    assert_eq!(selected["status"], "no_match");
    assert_eq!(selected["skipped"]["content_erased"], 1);
    let reply = body(&ask(&server, OPERATOR_TOKEN, dossier));
    assert_eq!(reply["content_erased"], 2);
    assert_eq!(reply["coverage"]["inference_calls"]["visible"], 1);
    let reply = body(&ask(&server, OPERATOR_TOKEN, compatible));
    assert_eq!(reply["inference_calls"][0]["content_erased_at"], erased_at);

    // In the shell.
    let printed = done(&svc(&server, &["transcript", "s"]));
    assert!(
        printed.contains("what was said was erased at "),
        "{printed}"
    );
    assert!(!printed.contains("Vandelay"), "{printed}");
    let printed = done(&svc(&server, &["session", "s"]));
    assert!(printed.contains("content erased  of 2 facts"), "{printed}");
    let printed = done(&svc(&server, &["evidence", "inventory", "s"]));
    assert!(printed.contains("(content erased)"), "{printed}");
    let exported = done(&svc(&server, &["export", "--content"]));
    assert!(exported.contains("content_erased_at"), "{exported}");
    let of_s = exported.lines().filter(|line| line.contains(&call));
    assert!(of_s.into_iter().all(|line| !line.contains("Vandelay")));
    let model = ["report", "model"];
    let report = done(&svc(&server, &[&model[..], &["--json"]].concat()));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let row = &report["rows"][0];
    assert_eq!(
        (&row["model"], &row["completions"]),
        (&json!("gpt-4o"), &json!(2))
    );
    for of in [row, &report["signal_funnel"][0]] {
        assert_eq!(
            of["completions_skipped"],
            json!({"content_erased": 1}),
            "{of}"
        );
    }
    let printed = done(&svc(&server, &model));
    assert!(printed.contains("(not observable)"), "{printed}");
    let left_out = "gpt-4o: calls left out of attribution_rate: content_erased 1";
    assert!(printed.contains(left_out), "{printed}");
    let log = done(&svc(&server, &["erase", "log"]));
    assert!(log.contains("Session s") && log.contains("asked"), "{log}");
    let verified = done(&svc(&server, &["verify"]));
    assert!(verified.starts_with("no damage found in "), "{verified}");

    // Delivering the same again restores nothing, and new text is new evidence.
    assert_eq!(deliver(&server, "s", "one", SECRET), call);
    assert_eq!(read(&server, OPERATOR_TOKEN, "s", &call).status, 409);
    let new = deliver(&server, "s", "three", SECRET);
    assert!(
        read(&server, OPERATOR_TOKEN, "s", &new)
            .text()
            .contains(SECRET)
    );
    let verified = done(&svc(&server, &["verify"]));
    assert!(verified.starts_with("no damage found in "), "{verified}");
}

fn an_erasure_needs_a_reason_and_a_dry_run_changes_nothing(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let call = deliver(&server, "s", "one", SECRET);
    let seen = svc(&server, &["erase", "--user", "dev-1"]);
    let printed = done(&seen);
    assert!(
        printed.starts_with("would be erased (dry run; add --apply and --reason)"),
        "{printed}"
    );
    assert!(printed.contains("model calls         1\n"), "{printed}");
    let next = seen.stderr_text();
    assert!(
        printed.contains("svc erase --user dev-1 --apply --reason WHY")
            || next.contains("svc erase --user dev-1 --apply --reason WHY"),
        "{printed}{next}"
    );
    let reason = "Ann's wish";
    let seen = svc(&server, &["erase", "--user", "dev-1", "--reason", reason]);
    let next = seen.stderr_text();
    assert!(
        next.contains(r"svc erase --user dev-1 --apply --reason 'Ann'\''s wish'"),
        "{next}"
    );
    assert!(
        read(&server, OPERATOR_TOKEN, "s", &call)
            .text()
            .contains(SECRET)
    );
    assert_eq!(
        done(&svc(&server, &["erase", "log"])),
        "nothing was erased\n"
    );
    refused(&svc(&server, &["erase", "--user", "dev-1", "--apply"]), 2);
    let blank = ["erase", "--user", "dev-1", "--apply", "--reason", " "];
    refused(&svc(&server, &blank), 1);
    let nobody = refused(&svc(&server, &["erase"]), 1);
    assert!(
        nobody.contains("--session SESSION, --user NAME"),
        "{nobody}"
    );
    let url = server.base_url();
    let error = refused(
        &svc(&server, &["erase", "--session", "s", "--url", &url]),
        2,
    );
    assert!(error.contains("--url"), "{error}");
    refused(&svc(&server, &["gc", "--older-than", "2261-01-01"]), 1);
    assert!(
        read(&server, OPERATOR_TOKEN, "s", &call)
            .text()
            .contains(SECRET)
    );
}

#[test]
fn a_role_that_may_not_rewrite_the_files_erases_nothing() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let call = deliver(&server, "s", "one", SECRET);
    let database = store.database().expect("PostgreSQL");
    let role = database.url_of_role_that_owns_nothing();
    let as_role = [("SVC_DATABASE_URL", &*role)];
    let dry = ["erase", "--session", "s"];
    let shown = svc_with(&server, &as_role, &dry);
    assert_eq!(shown.status.code(), Some(0));
    let warning = shown.stderr_text();
    assert!(
        warning.contains("with --apply this is refused"),
        "{warning}"
    );
    let apply = ["erase", "--session", "s", "--reason", "why", "--apply"];
    let by_age = ["gc", "--older-than", "0s", "--reason", "why", "--apply"];
    for command in [&apply, &by_age] {
        let error = refused(&svc_with(&server, &as_role, command), 1);
        assert!(error.contains("nothing was erased"), "{error}");
        assert!(
            error.contains("name that role in SVC_DATABASE_URL"),
            "{error}"
        );
    }
    let part = read(&server, OPERATOR_TOKEN, "s", &call);
    assert!(part.text().contains(SECRET), "{}", part.text());
    let erased = done(&svc(&server, &apply));
    assert!(
        erased.contains("hold nothing more of what was erased"),
        "{erased}"
    );
}

fn an_erasure_by_age_keeps_newer_content(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let old = deliver(&server, "s", "one", SECRET);
    let nothing = erase(
        &server,
        &["gc", "--older-than", "90d", "--reason", "x", "--apply"],
    );
    assert_eq!(nothing["facts"]["inference_calls"], 0);
    assert_eq!(nothing.get("erasure_id"), None);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let gone = erase(
        &server,
        &["gc", "--older-than", "1s", "--reason", "x", "--apply"],
    );
    assert_eq!(gone["facts"]["inference_calls"], 1);
    let new = deliver(&server, "s", "two", SECRET);
    assert_eq!(read(&server, OPERATOR_TOKEN, "s", &old).status, 409);
    assert!(
        read(&server, OPERATOR_TOKEN, "s", &new)
            .text()
            .contains(SECRET)
    );
}

fn a_backup_from_before_an_erasure_does_not_bring_content_back(backend: Backend) {
    let Some(mut server) = Server::start(backend, &Configuration::default()) else {
        return;
    };
    let (call, other) = (
        deliver(&server, "s", "one", SECRET),
        deliver(&server, "t", "two", "nothing of the kind"),
    );
    let mirrors = server.variable("SVC_MIRROR_PATH").expect("a folder");
    let folder = std::path::Path::new(mirrors).with_file_name("before");
    let folder = folder.display().to_string();
    done(&svc(&server, &["backup", &folder]));
    erase(
        &server,
        &["erase", "--session", "s", "--reason", "asked", "--apply"],
    );
    server.stop();
    let restored = svc(&server, &["restore", &folder, "--replace"]);
    assert!(restored.status.success(), "{}", restored.stderr_text());
    let noted = restored.stderr_text();
    assert!(noted.contains("is erased again, of 1 facts"), "{noted}");
    let log: Value = erase(&server, &["erase", "log"]);
    assert_eq!(log["erasures"][0]["reason"], "asked", "{log}");
    let verified = done(&svc(&server, &["verify"]));
    assert!(verified.starts_with("no damage found in "), "{verified}");
    let server = Server::start_on(server.store(), &Configuration::default());
    assert_eq!(read(&server, OPERATOR_TOKEN, "s", &call).status, 409);
    assert_eq!(read(&server, OPERATOR_TOKEN, "t", &other).status, 200);
}
