//! What the pages show is what the routes answer.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use harness::delivery::Webhook;
use harness::delivery::{Call, Receipt, allowed_edit, ci_outcome, logs, push};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Server};
use svc_model::json::Json;

use super::{SESSION, links, open, signed_in, start};

on_both_backends! {
    the_overview_says_what_is_stored_what_arrives_and_what_is_missing,
    pages_of_sessions_follow_each_other_and_a_filter_stays,
    a_failure_leads_to_its_commit_its_session_and_what_was_said,
    reports_print_their_denominators_intervals_and_caveats,
    a_refusal_says_its_reason_and_what_to_do,
}

/// How long counts may take to be written.
const SOON: Duration = Duration::from_secs(10);

fn deliver(server: &Server) -> String {
    let stored = server.deliver("/ingest/gateway", Call::new(SESSION, "one").body());
    server.deliver(
        "/v1/logs",
        logs(&allowed_edit(SESSION, "edit-1")).to_string(),
    );
    let mut outcome = ci_outcome("run-1");
    outcome["result"] = "failed".into();
    server.deliver("/ingest/ci", outcome.to_string());
    server.send(&Webhook::new("push", &push('b', 'a')).to("/ingest/forge/push"));
    Receipt::of(&stored).fact
}

fn page(server: &Server, cookies: &str, path: &str) -> String {
    let reply = open(server, cookies, path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

/// Returns the texts of a page without its elements, with one blank between two.
fn words(page: &str) -> String {
    let mut text = String::new();
    for (place, piece) in page.split('<').enumerate() {
        let piece = match piece.split_once('>') {
            Some((_, text)) if place > 0 => text,
            _ => piece,
        };
        text.push_str(piece);
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn the_overview_says_what_is_stored_what_arrives_and_what_is_missing(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let empty = words(&page(&server, &cookies, "/console"));
    assert!(empty.contains("Nothing has been delivered yet."), "{empty}");
    assert!(empty.contains("No mirrors yet: no push has arrived."));
    deliver(&server);
    server.deliver("/ingest/gateway", Call::new(SESSION, "one").body());
    server.deliver(
        "/ingest/gateway",
        "{\"provider\":\"gateway_a\",\"payload\":{}}",
    );
    // A mirror that writes meanwhile may hold the last counts back for a moment.
    let begun = Instant::now();
    let mut shown = words(&page(&server, &cookies, "/console"));
    while !shown.contains("gateway skipped no_session 1") && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(50));
        shown = words(&page(&server, &cookies, "/console"));
    }
    for said in [
        "Organization acme",
        "inference calls 1 0 1",
        "ci outcomes 1 0 1",
        "pushes 1 0 1",
        // Stored 1, one a day at least, of three deliveries, one of them a duplicate.
        "gateway just now just now 1.0 3 1 1 1 0 0",
        "Never delivered: forge pull request, forge ci, forge repository, forge other.",
        "gateway skipped no_session 1",
        "acme/pager github/github.com/77",
    ] {
        assert!(shown.contains(said), "{said}\n{shown}");
    }
}

fn pages_of_sessions_follow_each_other_and_a_filter_stays(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let names: BTreeSet<String> = (0..5).map(|number| format!("s/{number} &")).collect();
    for name in &names {
        let call = Call::new(name, name).model("a model");
        server.deliver("/ingest/gateway", call.body());
    }
    server.deliver("/ingest/gateway", Call::new("other", "other").body());
    let mut address = "/console/sessions?model=a+model&user_id=&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let list = page(&server, &cookies, &address);
        assert!(list.contains(r#"name="model" value="a model""#), "{list}");
        let all = links(&list);
        let sessions = all
            .iter()
            .filter(|link| link.starts_with("/console/session?"));
        for session in sessions {
            seen.push(words(&page(&server, &cookies, session)));
        }
        match all.iter().find(|link| link.contains("cursor=")) {
            Some(next) => address.clone_from(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), names.len(), "each once");
    for name in &names {
        let heading = format!("Session {}", name.replace('&', "&amp;"));
        assert!(seen.iter().any(|page| page.contains(&heading)), "{heading}");
    }
    // A cursor is good for its own question.
    let cursor = address.split("cursor=").nth(1).expect("a cursor");
    let other = format!("/console/sessions?model=b&limit=2&cursor={cursor}");
    let reply = open(&server, &cookies, &other);
    assert_eq!(reply.status, 422);
    let said = words(&reply.text());
    assert!(said.contains("Reason: session_cursor_mismatch"), "{said}");
    assert!(said.contains("Begin with the first page."), "{said}");
}

fn a_failure_leads_to_its_commit_its_session_and_what_was_said(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let call = deliver(&server);
    let cookies = signed_in(&server);
    let choose = page(&server, &cookies, "/console/failures");
    assert!(words(&choose).contains("Choose a repository"));
    let chosen = links(&choose);
    let chosen = chosen
        .iter()
        .find(|link| link.contains("repo=acme%2Fpager"));
    let failures = page(&server, &cookies, chosen.expect("a known repository"));
    let said = words(&failures);
    for expected in [
        "run-1/1",
        "jenkins build main aaaaaaaaaa all 12 jobs passed",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let all = links(&failures);
    let commit = all.iter().find(|link| link.starts_with("/console/commit?"));
    let commit = words(&page(&server, &cookies, commit.expect("a commit")));
    assert!(commit.contains(&"a".repeat(40)), "{commit}");
    assert!(commit.contains("run-1/1 failed build jenkins"), "{commit}");
    assert!(commit.contains("No Session was observed"), "{commit}");

    let session = page(
        &server,
        &cookies,
        "/console/session?session_id=fix%2Fthe%20pager",
    );
    let said = words(&session);
    for expected in [
        "Session fix/the pager",
        "1 (gpt-4o 1; 11 tokens in, 2 out)",
        "inference call litellm openai/gpt-4o, 11 tokens in, 2 out",
        "developer decision claude-code accepted by a person, agent, edit-1",
        "What was not captured",
        "It may have happened nevertheless.",
        "Events 1 to",
        "No commit of this Session was observed, but there may be one.",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let calls = page(
        &server,
        &cookies,
        "/console/calls?session_id=fix%2Fthe%20pager",
    );
    assert!(words(&calls).contains("1 visible, 0 quarantined."));
    let to_call = links(&calls);
    let to_call = to_call.iter().find(|link| link.contains(&call));
    let manifest = page(&server, &cookies, to_call.expect("the call"));
    assert!(
        words(&manifest).contains("input 1 user – text 1"),
        "{manifest}"
    );
    let parts = links(&manifest);
    let part = parts.iter().find(|link| link.contains("side=output"));
    let part = page(&server, &cookies, part.expect("a part"));
    assert!(
        part.contains(">the window of one is half open</pre>"),
        "{part}"
    );
    assert!(words(&part).contains("Captured content is data."));
    let unknown = page(&server, &cookies, "/console/session?session_id=nobody");
    assert!(words(&unknown).contains("No fact of this Session is stored."));
}

fn reports_print_their_denominators_intervals_and_caveats(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    deliver(&server);
    let cookies = signed_in(&server);
    for (path, expected) in [
        (
            "/console/models",
            &[
                "gpt-4o 0.0 % (0 of 1; 0.0 % to 79.3 %)",
                "no rate (0 of 0)",
                "a lower bound on retention",
                "A commit without a verdict is no failure.",
                "Accepts and rejects are those of people, not of rules.",
            ][..],
        ),
        (
            "/console/lifecycle?days=7",
            &[
                "(7 days)",
                "counts of different panels do not add up.",
                "Who is not in a stage did not fail it.",
                "nothing is ever called abandoned or in flight.",
                "for investigation only, not ranking.",
            ],
        ),
        (
            "/console/retention",
            &[
                "a lower bound on retention, since moved and reworded lines do not count.",
                "for investigation only, not ranking.",
                "No file is scored.",
            ],
        ),
        (
            "/console/share",
            &[
                "The share says whether notes are written, not how much agents write.",
                "A decline is called one from 97 commits in both windows on.",
                "Alerts",
            ],
        ),
    ] {
        let shown = words(&page(&server, &cookies, path));
        for said in expected {
            assert!(shown.contains(said), "{path}: {said}\n{shown}");
        }
    }
    // The same numbers as those of the route.
    let now = svc_engine::clock::Clock::system().now();
    let before = svc_model::time::Instant::from_microseconds(now.microseconds() - 86_400_000_000);
    let before = before.expect("a moment");
    let report = server.read_json(&format!(
        "/v1/reports/model-outcomes?cohort_start={before}&cohort_end={now}&as_of={now}"
    ));
    let rows = dig(&report, "report.rows").and_then(Json::as_array);
    assert_eq!(rows.map(<[Json]>::len), Some(1));
}

fn a_refusal_says_its_reason_and_what_to_do(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    for (path, status, reason, next) in [
        (
            "/console/commit?sha=abc",
            422,
            "malformed_sha",
            "git rev-parse",
        ),
        (
            "/console/models?days=32",
            422,
            "cohort_too_long",
            "31 days at most",
        ),
        (
            "/console/lifecycle?until=2100-01-01",
            422,
            "cohort_after_boundary",
            "not in the future",
        ),
        (
            "/console/sessions?captured_after=2026-02-01&captured_before=2026-01-01",
            422,
            "reversed_bounds",
            "a beginning before the end",
        ),
        (
            "/console/failures?repo=nothing",
            422,
            "invalid",
            "Correct what was entered",
        ),
        ("/console/session", 422, "invalid", "Correct"),
        (
            "/console/call?session_id=a&inference_call_id=f8d5f475-40a1-5ebb-9796-b05b24001822",
            409,
            "evidence_unavailable",
            "which of them is not said",
        ),
        (
            "/console/part?session_id=a",
            409,
            "evidence_part_absent",
            "lists its parts",
        ),
        ("/console/assets/x", 404, "not_found", "overview"),
    ] {
        let reply = open(&server, &cookies, path);
        let said = words(&reply.text());
        assert_eq!(reply.status, status, "{path}: {said}");
        assert!(said.contains("Nothing is shown:"), "{said}");
        assert!(
            said.contains(&format!("Reason: {reason}")),
            "{path}: {said}"
        );
        assert!(said.contains(next), "{path}: {said}");
    }
    // The request id is there as everywhere, and the path is counted without what it is of.
    let request = Request::get("/console/session?session_id=x").header("cookie", &cookies);
    let reply = server.send(&request.header("x-request-id", "mine"));
    assert_eq!(reply.header("x-request-id"), Some("mine"));
    let counts = server.read_json("/v1/capture");
    let answers = dig(&counts, "answers").and_then(Json::as_object);
    let paths: Vec<&str> = answers
        .expect("answers")
        .iter()
        .filter_map(|(path, _)| path.as_str())
        .filter(|path| path.starts_with("/console/s"))
        .collect();
    assert!(paths.contains(&"/console/session"), "{paths:?}");
    assert!(paths.iter().all(|path| !path.contains('?')), "{paths:?}");
}
