//! The pages show what the routes answer.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use harness::delivery::Webhook;
use harness::delivery::{Call, Receipt, allowed_edit, ci_outcome, logs, push};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, OPERATOR_TOKEN, Server};
use svc_model::json::Json;

use super::{SESSION, configured, links, open, signed_in, start, words};

on_both_backends! {
    health_shows_what_is_stored_what_arrives_and_what_is_missing,
    the_overview_says_what_became_of_it_and_each_number_leads_to_a_list,
    pages_of_sessions_are_linked_and_keep_the_filter,
    a_failure_leads_to_its_commit_its_session_and_what_was_said,
    reports_print_their_denominators_intervals_and_caveats,
    a_comparison_of_models_shows_its_cases_and_caveats,
    sessions_with_accepted_work_are_counted_by_status_and_listed_in_pages,
    hidden_facts_are_listed_with_who_when_and_why,
    without_mirrors_a_report_page_says_that_it_cannot_attribute,
    a_refusal_page_shows_its_reason_and_what_to_do,
}

/// How long counts may take to be written.
const SOON: Duration = Duration::from_secs(10);

pub(super) fn deliver(server: &Server) -> String {
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

pub(super) fn page(server: &Server, cookies: &str, path: &str) -> String {
    let reply = open(server, cookies, path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

fn health_shows_what_is_stored_what_arrives_and_what_is_missing(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let empty = words(&page(&server, &cookies, "/console/health"));
    assert!(empty.contains("Nothing has been delivered yet."), "{empty}");
    assert!(empty.contains("No mirrors yet: no push has arrived."));
    deliver(&server);
    server.deliver("/ingest/gateway", Call::new(SESSION, "one").body());
    server.deliver(
        "/ingest/gateway",
        "{\"provider\":\"gateway_a\",\"payload\":{}}",
    );
    // A mirror that writes at the same time may delay the last counts a little.
    let begun = Instant::now();
    let mut shown = words(&page(&server, &cookies, "/console/health"));
    while !shown.contains("gateway skipped no_session 1") && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(50));
        shown = words(&page(&server, &cookies, "/console/health"));
    }
    for expected in [
        "Organization acme",
        "inference calls 1 0 1",
        "ci outcomes 1 0 1",
        "pushes 1 0 1",
        // One stored, at least one a day, of three deliveries, one of which is a duplicate.
        "gateway just now just now 1.0 3 1 1 1 0 0",
        "Never delivered: forge pull request, forge ci, forge repository, forge other.",
        "gateway skipped no_session 1",
        "acme/pager github/github.com/77",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
}

fn the_overview_says_what_became_of_it_and_each_number_leads_to_a_list(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let empty = page(&server, &cookies, "/console");
    let text = words(&empty);
    assert!(
        text.contains("No call was captured in the last 7 days."),
        "{text}"
    );
    assert!(text.contains("svc install claude-code"), "{text}");
    assert!(!text.contains("Spend of"), "{text}");
    assert!(links(&empty).contains(&"/console/health".to_owned()));
    // An edit that a person accepted, of which no push was received.
    let arguments = serde_json::json!({"file_path": "a.py", "content": "a = 1"}).to_string();
    let edit = serde_json::json!({
        "id": "edit-1", "type": "function",
        "function": {"name": "Write", "arguments": arguments},
    });
    let answer = serde_json::json!({"role": "assistant", "content": "", "tool_calls": [edit]});
    let call = Call::new(SESSION, "one").answer(answer);
    server.deliver("/ingest/gateway", call.body());
    server.deliver(
        "/v1/logs",
        logs(&allowed_edit(SESSION, "edit-1")).to_string(),
    );
    let shown = page(&server, &cookies, "/console?model=gpt-4o");
    let text = words(&shown);
    for expected in [
        "Last 7 days: 1 call in 1 Session by 1 person , 1 change accepted , 1 not observable",
        "(no push was received near the calls)",
        "What became of 1 change",
        "Changes by day",
        "By repository",
        "By model",
        "Needs a look",
        "1 Session, latest first.",
        "What nobody could see is unknown, and is no failure.",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // What is unknown is hatched, and each picture says in words what it shows.
    assert!(
        shown.contains(r#"<rect class="unknown" fill="url(#hatched)""#),
        "{shown}"
    );
    for svg in shown.split("<svg").skip(1) {
        let svg = svg.split('>').next().expect("an element");
        let is_said = svg.contains("role=\"img\" aria-label=");
        assert!(is_said || svg.contains("aria-hidden=\"true\""), "{svg}");
    }
    for never in ["<script", "style="] {
        assert!(!shown.contains(never), "{never}");
    }
    // Numbers keep the filter, and what they lead to is on the same page.
    let lists: Vec<String> = links(&shown)
        .into_iter()
        .filter(|link| link.ends_with("#sessions"))
        .collect();
    assert!(
        lists.iter().any(|link| link.contains("outcome=")),
        "{lists:?}"
    );
    assert!(shown.contains("id=\"sessions\""), "{shown}");
    for list in &lists {
        assert!(list.contains("model=gpt-4o"), "{list}");
        let list = list.trim_end_matches("#sessions");
        let text = words(&page(&server, &cookies, list));
        assert!(text.contains("1 Session, latest first."), "{list}: {text}");
    }
    let none = words(&page(&server, &cookies, "/console?model=other"));
    let nothing = "No call of this selection was captured in the last 7 days.";
    assert!(none.contains(nothing), "{none}");
    let wrong = open(&server, &cookies, "/console?days=2");
    assert_eq!(wrong.status, 422);
    assert!(wrong.text().contains("Filter the overview"));
}

fn pages_of_sessions_are_linked_and_keep_the_filter(backend: Backend) {
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
    // A cursor is valid only for the question that it came from.
    let cursor = address.split("cursor=").nth(1).expect("a cursor");
    let other = format!("/console/sessions?model=b&limit=2&cursor={cursor}");
    let reply = open(&server, &cookies, &other);
    assert_eq!(reply.status, 422);
    let text = words(&reply.text());
    assert!(text.contains("Reason: session_cursor_mismatch"), "{text}");
    assert!(text.contains("Start again from the first page."), "{text}");
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
    let text = words(&failures);
    for expected in [
        "run-1/1",
        "jenkins build main aaaaaaaaaa all 12 jobs passed",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
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
    let text = words(&session);
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
        assert!(text.contains(expected), "{expected}\n{text}");
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
                "gpt-4o not observable: no mirror of what was pushed near the calls was readable; cases: 1",
                "attribution_rate of gpt-4o: of 1 calls, 1 not observable: no mirror of what was pushed near the calls was readable (1).",
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
            "/console/retention?days=all",
            &["Calls of all history up to"],
        ),
        (
            "/console/retention",
            &[
                "with everything known about them since.",
                "a lower bound on retention, because moved and reworded lines do not count.",
                "for investigation only, not ranking.",
                "No file is scored.",
            ],
        ),
        (
            "/console/share",
            &[
                "The share says whether notes are written, not how much agents write.",
                "A decline is reported only if both windows have at least 97 commits.",
                "Alerts",
            ],
        ),
    ] {
        let shown = words(&page(&server, &cookies, path));
        for sentence in expected {
            assert!(shown.contains(sentence), "{path}: {sentence}\n{shown}");
        }
    }
    // The same numbers as the route's.
    let now = svc_engine::clock::Clock::system().now();
    let before = svc_model::time::Instant::from_microseconds(now.microseconds() - 86_400_000_000);
    let before = before.expect("a moment");
    let report = server.read_json(&format!(
        "/v1/reports/model-outcomes?cohort_start={before}&cohort_end={now}&as_of={now}"
    ));
    let rows = dig(&report, "report.rows").and_then(Json::as_array);
    assert_eq!(rows.map(<[Json]>::len), Some(1));
}

fn a_comparison_of_models_shows_its_cases_and_caveats(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let address = "/console/comparison";
    let nothing = words(&page(&server, &cookies, address));
    assert!(nothing.contains("fewer than two models"), "{nothing}");
    for (name, model) in [("one", "a <model>"), ("two", "b"), ("three", "b")] {
        let call = Call::new(SESSION, name).model(model);
        server.deliver("/ingest/gateway", call.body());
    }
    let choose = page(&server, &cookies, address);
    assert!(words(&choose).contains("Choose two models."), "{choose}");
    assert!(links(&choose).contains(&format!("{address}?model_a=a+%3Cmodel%3E")));
    // The report of models links to the comparison of the two models with the most calls.
    let models = page(&server, &cookies, "/console/models?days=7");
    let link = links(&models);
    let link = link
        .iter()
        .find(|link| link.starts_with(&format!("{address}?")));
    let link = link.expect("a link").clone();
    assert_eq!(
        link,
        format!("{address}?model_a=b&model_b=a+%3Cmodel%3E&days=7")
    );
    let compared = page(&server, &cookies, &format!("{link}&margin=0.1"));
    assert!(
        compared.contains(r#"<option value="b" selected>"#),
        "{compared}"
    );
    assert!(
        compared.contains(r#"name="margin" value="0.1""#),
        "{compared}"
    );
    let text = words(&compared);
    for expected in [
        "(7 days)",
        "A: b not observable: no push was received near the calls; cases: 2",
        "attribution_rate of b is not observable: no push was received near the calls. It is unknown, not 0.",
        "B: a &lt;model&gt; not observable: no push was received near the calls",
        "no rate (0 of 0)",
        "ci_pass_rate no difference without cases of both",
        "insufficient data: one has no case",
        "Look once",
        "Is B at most 0.1 worse than A?",
        "Not shown is not the same as worse",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let without = words(&page(&server, &cookies, &link));
    assert!(!without.contains("worse than A?"), "{without}");
    let unknown = format!("{address}?model_a=b&model_b=nobody%27s");
    let unknown = words(&page(&server, &cookies, &unknown));
    assert!(
        unknown.contains("No call of nobody's was observed"),
        "{unknown}"
    );
}

fn sessions_with_accepted_work_are_counted_by_status_and_listed_in_pages(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let address = "/console/abandonment?days=all";
    let empty = words(&page(&server, &cookies, address));
    assert!(
        empty.contains("No Session with accepted work is like that."),
        "{empty}"
    );
    let records: Vec<_> = (0..103)
        .flat_map(|number| allowed_edit(&format!("s/{number:03}"), &format!("edit-{number}")))
        .collect();
    server.deliver("/v1/logs", logs(&records).to_string());
    let first = page(&server, &cookies, address);
    let text = words(&first);
    for expected in [
        "committed not observable: no Session was observed at a commit",
        "; cases: 103",
        "Every Session up to",
        "Abandoned: 0.",
        "no Session is called abandoned.",
        "Sessions 1 to 100 of 103",
        "s/000 attribution unavailable 1 1",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let next = links(&first);
    let next = next.iter().find(|link| link.contains("from=100"));
    let last = words(&page(&server, &cookies, next.expect("a next page")));
    assert!(last.contains("Sessions 101 to 103 of 103"), "{last}");
    assert!(
        last.contains("s/102") && !last.contains("Next page"),
        "{last}"
    );
    let none = words(&page(
        &server,
        &cookies,
        &format!("{address}&status=committed"),
    ));
    assert!(
        none.contains("No Session with accepted work is like that."),
        "{none}"
    );
    let beyond = format!("{address}&from=18446744073709551615");
    let beyond = words(&page(&server, &cookies, &beyond));
    // The report of some days covers the Sessions of those days' calls, and there are none yet.
    let recent = words(&page(&server, &cookies, "/console/abandonment"));
    assert!(recent.contains("committed no rate (0 of 0)"), "{recent}");
    server.deliver("/ingest/gateway", Call::new("s/007", "one").body());
    let recent = words(&page(&server, &cookies, "/console/abandonment"));
    assert!(recent.contains("Sessions 1 to 1 of 1"), "{recent}");
    assert!(beyond.contains("There are no more"), "{beyond}");
}

fn hidden_facts_are_listed_with_who_when_and_why(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let address = "/console/quarantine";
    let empty = words(&page(&server, &cookies, address));
    assert!(
        empty.contains("Nothing was ever taken out of view."),
        "{empty}"
    );
    let call = deliver(&server);
    for (path, reason) in [
        ("/v1/quarantine", "<b>customer\u{202e} data"),
        ("/v1/release", "cleared"),
    ] {
        let body =
            serde_json::json!({"table": "inference_calls", "fact_id": call, "reason": reason});
        let change = Request::post(path, body.to_string()).bearer(OPERATOR_TOKEN);
        assert_eq!(server.send(&change).status, 200, "{path}");
    }
    let log = page(&server, &cookies, address);
    assert!(log.contains("&lt;b&gt;customer\\u{202e} data"), "{log}");
    let text = words(&log);
    let released = text
        .find("operator release inference calls")
        .expect("a row");
    let hidden = text
        .find("operator quarantine inference calls")
        .expect("a row");
    assert!(released < hidden, "the latest first\n{text}");
    assert!(text.contains(&call) && text.contains("cleared"), "{text}");
    let first = page(&server, &cookies, &format!("{address}?limit=1"));
    let earlier = links(&first);
    let earlier = earlier.iter().find(|link| link.contains("before="));
    let earlier = words(&page(&server, &cookies, earlier.expect("earlier rows")));
    assert!(
        earlier.contains("customer") && !earlier.contains("cleared"),
        "{earlier}"
    );
    assert!(earlier.contains("Latest rows") && !earlier.contains("Earlier rows"));
}

fn without_mirrors_a_report_page_says_that_it_cannot_attribute(backend: Backend) {
    let notice = "This server keeps no mirrors, so no call can be tied to a commit";
    for is_without in [true, false] {
        let mut configuration = configured();
        if is_without {
            let variables = &mut configuration.variables;
            variables.insert("SVC_MIRROR_PATH".into(), String::new());
        }
        let Some(server) = Server::start(backend, &configuration) else {
            return;
        };
        deliver(&server);
        let cookies = signed_in(&server);
        for page_of in ["models", "comparison", "lifecycle", "retention", "share"] {
            let shown = words(&page(&server, &cookies, &format!("/console/{page_of}")));
            assert_eq!(shown.contains(notice), is_without, "{page_of}\n{shown}");
        }
    }
}

fn a_refusal_page_shows_its_reason_and_what_to_do(backend: Backend) {
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
            "at most 31 days",
        ),
        ("/console/models?days=0", 422, "invalid", "days: must be"),
        ("/console/models?days=many", 422, "invalid", "days: must be"),
        (
            "/console/models?until=yesterday",
            422,
            "invalid",
            "until: must be a date",
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
            "a start before the end",
        ),
        (
            "/console/failures?repo=nothing",
            422,
            "invalid",
            "Correct the input",
        ),
        ("/console/session", 422, "invalid", "Correct"),
        (
            "/console/comparison?model_a=a&model_b=a",
            422,
            "invalid",
            "model_b: must be another model",
        ),
        (
            "/console/comparison?margin=1.5",
            422,
            "invalid",
            "margin: must be greater than 0, and at most 1",
        ),
        (
            "/console/retention?days=366",
            422,
            "invalid",
            "days: must be 1 to 365, or all",
        ),
        (
            "/console/quarantine?before=x",
            422,
            "invalid",
            "Correct the input",
        ),
        (
            "/console/call?session_id=a&inference_call_id=f8d5f475-40a1-5ebb-9796-b05b24001822",
            409,
            "evidence_unavailable",
            "which one is not disclosed",
        ),
        (
            "/console/part?session_id=a",
            422,
            "invalid",
            "inference_call_id: must be the id of a call",
        ),
        ("/console/assets/x", 404, "not_found", "overview"),
    ] {
        let reply = open(&server, &cookies, path);
        let text = words(&reply.text());
        assert_eq!(reply.status, status, "{path}: {text}");
        assert!(text.contains("Nothing is shown:"), "{text}");
        assert!(
            text.contains(&format!("Reason: {reason}")),
            "{path}: {text}"
        );
        assert!(text.contains(next), "{path}: {text}");
    }
    // The request id is returned as everywhere, and the path is counted without its parameters.
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
