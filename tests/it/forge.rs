//! Deliveries of a forge's webhooks, beyond the black-box cases.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{
    Receipt, Webhook, ci_outcome, commit, pull_request, push, renaming, workflow_run,
};
use harness::http::{Framing, Reply, Request};
use harness::pattern::dig;
use harness::player::{SIGNATURE_HEADER, signature};
use harness::random::Random;
use harness::server::{Backend, Configuration, FORGE_SECRET, OPERATOR_TOKEN, Server, Store};
use serde_json::{Value, json};
use svc_model::json::Json;

/// The route that accepts every event.
const ANY: &str = "/ingest/forge";
/// Each other route, and the event that it accepts.
const ROUTES: [(&str, &str); 4] = [
    ("/ingest/forge/push", "push"),
    ("/ingest/forge/repository", "repository"),
    ("/ingest/forge/ci", "workflow_run"),
    ("/ingest/forge/pull-request", "pull_request"),
];

on_both_backends! {
    one_webhook_serves_every_event,
    concurrent_repetitions_of_a_delivery_are_stored_once,
    an_odd_delivery_id_affects_at_most_its_delivery,
    every_fact_has_the_configured_host,
    any_payload_is_answered_and_repeating_it_is_idempotent,
    what_the_forge_signs_answers_in_place_of_what_a_token_reported,
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn skipped(reply: &Reply, reason: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let wanted = format!(r#"{{"skipped":true,"reason":"{reason}"}}"#);
    assert_eq!(reply.text(), wanted);
}

/// Returns an event of each kind that is stored.
fn storable() -> Vec<(&'static str, Value)> {
    vec![
        ("push", push('a', 'b')),
        ("repository", renaming("Old", "Pager")),
        ("workflow_run", workflow_run(5_001, "success")),
        ("pull_request", pull_request("opened", 14)),
        ("pull_request", pull_request("closed", 14)),
    ]
}

fn one_webhook_serves_every_event(backend: Backend) {
    let Some(server) = start(backend) else { return };
    for (event, payload) in storable() {
        let delivery = Webhook::new(event, &payload).named("d");
        let stored = Receipt::of(&server.send(&delivery.to(ANY)));
        assert!(stored.stored, "{event}");
        let (path, _) = ROUTES
            .iter()
            .find(|(_, taken)| *taken == event)
            .expect("a route of its own");
        let again = Receipt::of(&server.send(&delivery.to(path)));
        assert_eq!((again.fact, again.stored), (stored.fact, false), "{event}");
    }
    let facts = server.read_json("/v1/facts");
    for table in [
        "pushes",
        "repository_renames",
        "ci_outcomes",
        "pull_request_revisions",
        "pull_request_merges",
    ] {
        let total = dig(&facts, &format!("tables.{table}.total"));
        assert_eq!(total, Some(&Json::from(1_i64)), "{table}");
    }
    let ping = Webhook::new("ping", &json!({"zen": "calm", "hook_id": 1}));
    skipped(&server.send(&ping.to(ANY)), "ping");
    for other in ["issues", "Push", "", "workflow_job", "action_run_success"] {
        let delivery = Webhook::new(other, &push('a', 'b'));
        skipped(&server.send(&delivery.to(ANY)), "unsupported_event");
    }
    for (path, event) in ROUTES {
        skipped(
            &server.send(&ping.to(path)),
            &format!("not a {event} event"),
        );
    }
    let capture = server.read_json("/v1/capture");
    let of = |path: &str| dig(&capture, path).cloned();
    assert_eq!(
        of("sources.forge_pull_request.facts.pull_request_merges.duplicates"),
        Some(Json::from(1_i64))
    );
    assert_eq!(
        of("sources.forge_other.skipped.unsupported_event"),
        Some(Json::from(5_i64))
    );
    assert_eq!(
        of("sources.forge_other.deliveries"),
        Some(Json::from(10_i64))
    );
}

fn concurrent_repetitions_of_a_delivery_are_stored_once(backend: Backend) {
    let Some(server) = start(backend) else { return };
    for (event, payload) in storable() {
        let request = Webhook::new(event, &payload).named("d").to(ANY);
        let receipts: Vec<Receipt> = thread::scope(|scope| {
            let senders: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Receipt::of(&server.send(&request))))
                .collect();
            senders
                .into_iter()
                .map(|sender| sender.join().expect("a sender"))
                .collect()
        });
        let ids: BTreeSet<&str> = receipts
            .iter()
            .map(|receipt| receipt.fact.as_str())
            .collect();
        let stored = receipts.iter().filter(|receipt| receipt.stored).count();
        assert_eq!((ids.len(), stored), (1, 1), "{event}: {receipts:?}");
    }
}

fn an_odd_delivery_id_affects_at_most_its_delivery(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let long = "x".repeat(1_025);
    for (event, payload) in storable() {
        let reply = server.send(&Webhook::new(event, &payload).named(&long).to(ANY));
        if event == "push" {
            assert!(Receipt::of(&reply).stored, "a push needs no id");
        } else {
            skipped(&reply, "invalid_delivery_id");
        }
    }
    // A blank id counts as none, and without one every renaming is a new one.
    let payload = renaming("Old", "Pager");
    for id in ["", "\u{3000}", "\u{a0}"] {
        let request = Webhook::new("repository", &payload).named(id).to(ANY);
        for _ in 0..2 {
            assert!(Receipt::of(&server.send(&request)).stored, "{id:?}");
        }
    }
    let longest = "\u{e9}".repeat(512);
    let request = Webhook::new("repository", &payload).named(&longest).to(ANY);
    assert!(Receipt::of(&server.send(&request)).stored);
    assert!(!Receipt::of(&server.send(&request)).stored);
}

fn every_fact_has_the_configured_host(backend: Backend) {
    let mut configuration = Configuration::default();
    let host = ("SVC_FORGE_HOST".to_owned(), "Git.Example".to_owned());
    configuration.variables.extend([host]);
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let run = Webhook::new("workflow_run", &workflow_run(5_001, "success"));
    let stored = Receipt::of(&server.send(&run.to(ANY)));
    // The same run as a vendor would report it, once from this host and once from another.
    let mut report = ci_outcome("5001");
    for (member, value) in [
        ("provider", "forge_actions"),
        ("commit_sha", &commit('c')),
        ("workflow_id", "7"),
        ("workflow_path", ".github/workflows/ci.yml"),
        ("repository_host", "git.example"),
    ] {
        report[member] = json!(value);
    }
    let same = Receipt::of(&server.deliver("/ingest/ci", report.to_string()));
    assert_eq!((same.fact, same.stored), (stored.fact, false));
    report["repository_host"] = json!("github.com");
    let other = Receipt::of(&server.deliver("/ingest/ci", report.to_string()));
    assert!(other.stored);
}

/// Returns the places of all values inside a value, as JSON pointers.
fn places(value: &Value, place: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, inner)| (format!("{place}/{name}"), inner))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, inner)| (format!("{place}/{index}"), inner))
            .collect(),
        _ => Vec::new(),
    };
    let deeper = |(place, inner): (String, &Value)| [places(inner, &place), vec![place]].concat();
    inside.into_iter().flat_map(deeper).collect()
}

fn any_payload_is_answered_and_repeating_it_is_idempotent(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let mut random = Random::new(2_026);
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(7),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!(" "),
        json!("x"),
        json!("a\u{0}b"),
        json!("Other/Name"),
        json!(commit('e')),
        json!("x".repeat(1_100)),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"id": 79, "full_name": "Third/Pager"}),
    ];
    let mut kinds = BTreeSet::new();
    for number in 0..400 {
        let (event, mut payload) = random.one_of(&storable()).clone();
        for _ in 0..=random.below(3) {
            let place = random.one_of(&places(&payload, "")).clone();
            let value = payload.pointer_mut(&place).expect("a place inside");
            *value = random.one_of(&odd).clone();
        }
        let request = Webhook::new(event, &payload)
            .named(&format!("d-{number}"))
            .to(ANY);
        let first = server.send(&request);
        let second = server.send(&request);
        assert!(
            matches!(first.status, 200 | 409),
            "{payload}: {}",
            first.text()
        );
        assert_eq!(second.status, first.status, "{payload}: {}", second.text());
        let repeated = first.text().replace("\"stored\":true", "\"stored\":false");
        assert_eq!(second.text(), repeated, "{payload}");
        kinds.insert((first.status, first.text().contains("fact_id")));
    }
    let wanted = BTreeSet::from([(200, true), (200, false), (409, false)]);
    assert_eq!(kinds, wanted, "facts, skipped deliveries and conflicts");
}

/// A form is the default of GitHub's webhooks. It is answered like any malformed body, and the log
/// says what to change, but not for a stranger, who could fill the log.
#[test]
fn a_form_encoded_delivery_is_refused_and_the_log_names_the_setting() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let as_form = |mut request: Request| {
        request.headers.retain(|(name, _)| name != "content-type");
        request.header(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8",
        )
    };
    let body = "payload=%7B%22zen%22%3A%22calm%22%7D";
    let warnings = || server.log().matches("webhook.form_body").count();
    let malformed = r#"{"detail":"Malformed JSON body"}"#;
    let mut forms = 0;
    for path in ROUTES.into_iter().map(|(path, _)| path).chain([ANY]) {
        let webhook = Webhook::unnamed(body).header("x-github-event", "push");
        let reply = server.send(&as_form(webhook.to(path)));
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!(reply.text(), malformed, "{path}");
        forms += 1;
        assert_eq!(warnings(), forms, "{path}");

        let forged = Webhook::unnamed(body)
            .header("x-github-event", "push")
            .secret("another secret of some length");
        let unsigned = server.send(&as_form(forged.to(path)));
        assert_eq!(unsigned.status, 401, "{path}");
        // JSON is accepted, whatever its content type.
        let ping = as_form(Webhook::new("ping", &json!({})).to(path));
        assert_eq!(server.send(&ping).status, 200, "{path}");
        let broken = Webhook::unnamed("{").header("x-github-event", "push");
        assert_eq!(server.send(&broken.to(path)).text(), malformed, "{path}");
        assert_eq!(warnings(), forms, "{path}: only for a signed form");
    }
    assert!(server.log().contains("application/json"));
}

/// A request without a valid signature always gets the same bytes, whatever else it contains.
#[test]
fn a_wrong_signature_reveals_nothing() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let mut bodies: Vec<Vec<u8>> = storable()
        .iter()
        .map(|(_, payload)| payload.to_string().into_bytes())
        .collect();
    bodies.extend([
        Vec::new(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        vec![b' '; 600 * 1024],
        vec![0xff; 3],
    ]);
    let of_another_body = signature(FORGE_SECRET, b"another body");
    let mut answers = BTreeSet::new();
    let mut asked = 0;
    for (path, _) in ROUTES.into_iter().chain([(ANY, "")]) {
        for body in &bodies {
            let right = signature(FORGE_SECRET, body);
            let digits = right.trim_start_matches("sha256=");
            for wrong in [
                None,
                Some(String::new()),
                Some(of_another_body.clone()),
                Some(signature("another secret of some length", body)),
                Some(signature("", body)),
                Some(signature(OPERATOR_TOKEN, body)),
                Some(digits.to_owned()),
                Some(format!("sha256={}", digits.to_uppercase())),
                Some(format!("SHA256={digits}")),
                Some(format!("sha1={digits}")),
                Some(format!("{right}0")),
                Some(right[..right.len() - 1].to_owned()),
                Some(format!("{right}, {right}")),
                Some("sha256=\u{e9}".to_owned()),
            ] {
                for event in [None, Some("ping"), Some("push"), Some("")] {
                    let mut request = Request::post(path, body.clone()).bearer(OPERATOR_TOKEN);
                    if let Some(wrong) = &wrong {
                        request = request.header(SIGNATURE_HEADER, wrong.as_str());
                    }
                    if let Some(event) = event {
                        request = request.header("x-github-event", event);
                    }
                    if body.is_empty() {
                        request.framing = Framing::Chunked;
                    }
                    let mut reply = server.send(&request);
                    reply
                        .headers
                        .retain(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"));
                    answers.insert((reply.status, reply.headers, reply.body));
                    asked += 1;
                }
            }
        }
    }
    assert_eq!(answers.len(), 1, "{asked} requests: {answers:#?}");
    let (status, headers, body) = answers.first().expect("one answer");
    assert_eq!(*status, 401);
    assert_eq!(body, br#"{"detail":"Invalid webhook signature"}"#);
    let has = |name: &str, value: &str| headers.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("www-authenticate", "Bearer"), "{headers:?}");
    assert!(has("cache-control", "no-store"), "{headers:?}");
    let facts = server.read_json("/v1/facts");
    assert_eq!(
        dig(&facts, "tables.pushes.total"),
        Some(&Json::from(0_i64)),
        "nothing is stored"
    );
}

#[test]
fn a_delivery_is_checked_in_one_order() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    for (path, event) in ROUTES.into_iter().chain([(ANY, "push")]) {
        let send = |webhook: &Webhook| server.send(&webhook.to(path));
        let too_large = Webhook::unnamed(vec![b'x'; 25 * 1024 * 1024 + 1]);
        for webhook in [too_large.clone(), too_large.secret("another secret")] {
            assert_eq!(send(&webhook).status, 413, "size before signature");
        }
        let malformed = Webhook::unnamed("{");
        let stranger = malformed.clone().secret("another secret");
        assert_eq!(send(&stranger).status, 401, "signature before syntax");
        let reply = send(&malformed);
        assert_eq!(reply.status, 400, "syntax before the event");
        assert_eq!(reply.text(), r#"{"detail":"Malformed JSON body"}"#);
        let reply = send(&Webhook::unnamed("[]"));
        assert_eq!(reply.status, 400, "syntax before the event");
        assert_eq!(reply.text(), r#"{"detail":"body must be a JSON object"}"#);
        let reply = send(&Webhook::unnamed("{}").named("d"));
        assert_eq!(reply.status, 422, "an event");
        let wanted = r#"[{"type":"missing","loc":["header","x-forge-event"],"msg":"a header must name the event: X-GitHub-Event, X-Gitea-Event, X-Forgejo-Event or X-Forge-Event"}]"#;
        assert_eq!(reply.text(), format!(r#"{{"detail":{wanted}}}"#));
        let reply = send(&Webhook::new("ping", &json!({})));
        assert!(reply.text().contains("skipped"), "{}", reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let reply = send(&Webhook::new(event, &json!({})));
        assert!(reply.text().contains("skipped"), "{}", reply.text());
    }
}

#[test]
fn the_headers_of_each_forge_are_read() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let payload = renaming("Old", "Pager").to_string();
    let forges = ["x-forge", "X-GitHub", "X-Forgejo", "X-Gitea"];
    let mut facts = BTreeSet::new();
    for (place, forge) in forges.iter().enumerate() {
        let mut webhook = Webhook::unnamed(payload.as_str());
        // Headers that come after it say something else and do not count.
        for (other, event) in forges[place..]
            .iter()
            .zip(["repository", "push", "ping", "x"])
        {
            webhook = webhook
                .header(&format!("{other}-Event"), event)
                .header(&format!("{other}-Delivery"), &format!("of {other}"));
        }
        let request = webhook.to("/ingest/forge/repository");
        let first = Receipt::of(&server.send(&request));
        assert!(first.stored, "{forge}");
        assert!(!Receipt::of(&server.send(&request)).stored, "{forge}");
        facts.insert(first.fact);
    }
    assert_eq!(facts.len(), forges.len(), "each delivery has its own id");
}

#[test]
fn a_delivery_may_be_signed_with_the_previous_secret_too() {
    let previous = "4444444444444444444444444444444eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_FORGE_WEBHOOK_SECRET_PREVIOUS".into(), previous.into());
    let rotating = Server::start(Backend::Sqlite, &configuration).expect("a server");
    let settled = start(Backend::Sqlite).expect("a server");
    let status = |server: &Server, secret: &str| {
        let webhook = Webhook::new("ping", &json!({})).secret(secret);
        server.send(&webhook.to(ANY)).status
    };
    assert_eq!(status(&rotating, FORGE_SECRET), 200);
    assert_eq!(status(&rotating, previous), 200);
    assert_eq!(status(&rotating, &format!("{FORGE_SECRET}{previous}")), 401);
    assert_eq!(status(&settled, FORGE_SECRET), 200);
    assert_eq!(status(&settled, previous), 401);
    for server in [&rotating, &settled] {
        let log = server.log();
        assert!(!log.contains(previous) && !log.contains(FORGE_SECRET));
    }
}

#[test]
fn skipped_events_are_answered_while_the_store_is_down() {
    let Some(store) = Store::create(Backend::Postgres) else {
        return;
    };
    let server = Server::start_on(&store, &Configuration::default());
    let database = store.database().expect("a database of the cluster");
    database.refuse_connections();
    for (path, event) in ROUTES.into_iter().chain([(ANY, "push")]) {
        for event in ["ping", "issues", event] {
            let reply = server.send(&Webhook::new(event, &json!({})).to(path));
            assert_eq!(reply.status, 200, "{path} {event}: {}", reply.text());
        }
    }
    for (event, payload) in storable() {
        let reply = server.send(&Webhook::new(event, &payload).to(ANY));
        assert_eq!(reply.status, 503, "{event}: {}", reply.text());
        let code = dig(&reply.json(), "detail.code").cloned();
        assert_eq!(code, Some(Json::from("database_unavailable")), "{event}");
    }
    database.accept_connections();
    let started = Instant::now();
    let request = Webhook::new("push", &push('a', 'b')).to(ANY);
    while server.send(&request).status != 200 {
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(30), "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_log_shows_the_result_of_a_delivery_but_none_of_its_content() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let mut wanted = Vec::new();
    for ((event, mut payload), line) in storable().into_iter().zip([
        "push_stored",
        "repository_rename_stored",
        "ci_outcome_stored",
        "pull_request_revision_stored",
        "pull_request_merge_stored",
    ]) {
        if event == "push" {
            payload["repository"]["clone_url"] = json!("https://u:hunter2@git.example/private");
        }
        let request = Webhook::new(event, &payload).named("d-private").to(ANY);
        for stored in [true, false] {
            let fact = Receipt::of(&server.send(&request)).fact;
            wanted.push(vec![line.to_owned(), fact, format!("stored={stored}")]);
        }
    }
    let odd = [
        ("push", json!({"ref": "refs/tags/private"}), "not_a_branch"),
        (
            "repository",
            json!({"action": "private"}),
            "unsupported_discriminator",
        ),
        (
            "workflow_run",
            json!({"action": "private"}),
            "workflow_run_not_completed",
        ),
        (
            "pull_request",
            json!({"action": "private"}),
            "unsupported_pull_request_action",
        ),
        ("private", json!({}), "unsupported_event"),
    ];
    for (event, payload, reason) in odd {
        skipped(&server.send(&Webhook::new(event, &payload).to(ANY)), reason);
        wanted.push(vec!["forge.delivery_skipped".to_owned(), reason.to_owned()]);
    }
    let mut unnamed = push('a', 'c');
    unnamed["repository"] = json!({"id": 0, "full_name": "private"});
    assert!(Receipt::of(&server.send(&Webhook::new("push", &unnamed).to(ANY))).stored);
    wanted.push(vec!["push_missing_repo".to_owned()]);
    wanted.push(vec![
        "repository_identity_declined".to_owned(),
        "repository_identity_invalid".to_owned(),
    ]);
    let mut conflicting = workflow_run(5_001, "success");
    conflicting["workflow_run"]["head_sha"] = json!(commit('d'));
    let request = Webhook::new("workflow_run", &conflicting).to(ANY);
    assert_eq!(server.send(&request).status, 409);
    wanted.push(vec!["repository_identity_conflict".to_owned()]);

    let log = server.log();
    for parts in wanted {
        let is_logged = log
            .lines()
            .any(|line| parts.iter().all(|part| line.contains(part.as_str())));
        assert!(is_logged, "{parts:?} is not in:\n{log}");
    }
    for content in ["hunter2", "private", "Pager", "pager", "refs/heads"] {
        assert!(!log.contains(content), "{content} is in:\n{log}");
    }
}

/// Run numbers are public and ascend, so any token can report a run before the forge does.
fn what_the_forge_signs_answers_in_place_of_what_a_token_reported(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let report = |run: u32, result: &str| {
        let report = json!({
            "provider": "forge_actions",
            "run_id": run.to_string(),
            "run_attempt": 1,
            "repo": "acme/pager",
            "repository_provider": "github",
            "repository_host": "github.com",
            "repository_id": "77",
            "commit_sha": commit('c'),
            "branch": "main",
            "workflow_id": "7",
            "workflow_path": ".github/workflows/ci.yml",
            "result": result,
        });
        let reply = server.deliver("/ingest/ci?compare=true", report.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply
    };
    let signs = |run, conclusion| {
        let run = workflow_run(run, conclusion);
        Receipt::of(&server.send(&Webhook::new("workflow_run", &run).to(ANY)))
    };
    let first = Receipt::of(&report(5_001, "passed"));
    let signed = signs(5_001, "failure");
    assert!(first.stored && signed.stored && first.fact != signed.fact);
    // The report is repeated, and then comes after the signed outcome of another run.
    let repeated = report(5_001, "passed");
    assert_eq!(Receipt::of(&repeated).fact, first.fact);
    assert_eq!(
        dig(&repeated.json(), "stored_result"),
        Some(&Json::from("failed")),
        "{}",
        repeated.text()
    );
    let late = signs(5_002, "failure");
    let overruled = Receipt::of(&report(5_002, "passed"));
    assert!(!overruled.stored && overruled.fact == late.fact);
    assert!(!Receipt::of(&report(5_002, "failed")).stored);

    let outcome = server.read_json(
        "/query/ci/outcome?provider=forge_actions&run_id=5001&run_attempt=1&repo=acme/pager",
    );
    let outcome = dig(&outcome, "outcome").expect("the outcome");
    let wanted = json!({
        "outcome_id": signed.fact,
        "result": "failed",
        "superseded": {"outcome_id": first.fact, "result": "passed"},
    });
    let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
    for member in ["outcome_id", "result", "superseded"] {
        assert_eq!(dig(outcome, member), dig(&wanted, member), "{member}");
    }
    let capture = server.read_json("/v1/capture");
    for (source, stored) in [("forge_ci", 2), ("ci", 1)] {
        let counts = dig(&capture, "sources").and_then(|sources| dig(sources, source));
        let counts = counts.unwrap_or_else(|| panic!("no {source}"));
        assert_eq!(dig(counts, "conflicts"), Some(&Json::from(1)), "{source}");
        let facts = dig(counts, "facts").and_then(|facts| dig(facts, "ci_outcomes"));
        let found = facts.and_then(|facts| dig(facts, "stored"));
        assert_eq!(found, Some(&Json::from(stored)), "{source}");
    }
    assert_eq!(server.log().matches("ci_outcome.contradicted").count(), 2);
}
