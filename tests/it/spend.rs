//! What calls cost: the spend report over HTTP, in the shell, in the console and for an agent, and
//! what the shell says of models without a price.

use harness::delivery::{Call, log_record, logs, said, sent_calls};
use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

use crate::cli::{done, refused, svc, svc_with};
use crate::console::{open, signed_in};
use crate::mcp::agent::{Agent, TRANSPORTS};

on_both_backends! {
    shell_and_agents_say_what_calls_cost,
    the_console_says_what_calls_cost,
    a_report_that_cannot_be_made_is_refused_with_a_reason,
    models_without_a_price_are_listed_and_diagnosed,
    a_list_of_sessions_has_derived_costs,
}

const PRICES: &str = r#"{
    "gpt-5": {
        "litellm_provider": "openai", "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07
    }
}"#;
const DAY: &str = "cohort_start=2026-07-07T00:00:00Z&cohort_end=2026-07-08T00:00:00Z";
/// No store is named, so the service is asked.
const NO_STORE: [(&str, &str); 2] = [("SVC_DATABASE_URL", ""), ("SVC_MIRROR_PATH", "")];

fn start(backend: Backend) -> Option<Server> {
    let mut configuration = Configuration::default();
    let names = ["SVC_DEV_MODE", "SVC_ENABLE_CONSOLE", "SVC_ENABLE_MCP"];
    let switched_on = names.map(|name| (name.to_owned(), "true".to_owned()));
    configuration.variables.extend(switched_on);
    Server::start(backend, &configuration)
}

fn deliver(server: &Server, call: &Value) {
    let reply = server.deliver("/ingest/gateway", call.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// Returns a call of gpt-5 with 10,000 tokens of input, of which a cache held 8,192.
fn cached(call: &Call) -> Value {
    let mut call = call.clone().model("gpt-5").envelope();
    call["payload"]["response"]["usage"] = json!({
        "prompt_tokens": 10_000, "completion_tokens": 1_000,
        "prompt_tokens_details": {"cached_tokens": 8_192},
    });
    call
}

/// Loads prices, and stores three calls: one with a cost, one whose cost is derived, and one of a
/// service tier.
fn deliver_calls(server: &Server, call: impl Fn(&str, u8) -> Call) {
    let mut paid = call("s1", 1).model("claude-sonnet-4-5").envelope();
    paid["payload"]["custom_llm_provider"] = json!("anthropic");
    paid["payload"]["response_cost"] = json!(0.04);
    deliver(server, &paid);
    deliver(server, &cached(&call("s2", 2)));
    let mut of_tier = cached(&call("s3", 3));
    of_tier["payload"]["response"]["usage"]["service_tier"] = json!("priority");
    deliver(server, &of_tier);
    let loaded = server.ask("/v1/prices?name=prices.json", PRICES);
    assert_eq!(loaded.status, 200, "{}", loaded.text());
}

/// Stores these calls as of 2026-07-07, and a receipt of another call of that day.
fn deliver_a_day(server: &Server) {
    let receipt = json!({
        "session.id": "s1", "model": "claude-sonnet-4-5", "input_tokens": 12,
        "output_tokens": 780, "cost_usd_micros": 500, "request_id": "req_5",
    });
    let receipt = logs(&[log_record("claude_code.api_request", &receipt)]);
    assert_eq!(server.deliver("/v1/logs", receipt.to_string()).status, 200);
    deliver_calls(server, |session, number| {
        let id = format!("00000000-0000-4000-8000-00000000000{number}");
        Call::new(session, &id).captured(&id, &format!("2026-07-07T1{number}:00:00Z"))
    });
}

fn ask(server: &Server, query: &str) -> Reply {
    let request = Request::get(format!("/v1/reports/spend?{query}"));
    server.send(&request.bearer(OPERATOR_TOKEN))
}

fn body(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn report(server: &Server, query: &str) -> Value {
    let reply = ask(server, query);
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    body(&reply)
}

/// Returns lines with one blank between two words.
fn words(text: &str) -> String {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

fn shell_and_agents_say_what_calls_cost(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    deliver_a_day(&server);
    let now = body(&server.send(&Request::get("/v1/prices").bearer(OPERATOR_TOKEN)));
    let as_of = now["tables"][0]["loaded_at"].as_str().expect("a moment");
    let of_day = format!("{DAY}&as_of={as_of}");
    let whole = report(&server, &of_day);
    let total = &whole["report"]["total"];
    assert_eq!(
        (&total["calls"], &total["receipts_only"]),
        (&json!(3), &json!(1))
    );
    for (part, items, cost) in [("captured", 2, 40_500), ("derived", 1, 13_284)] {
        assert_eq!(
            total[part],
            json!({"items": items, "cost_usd_micros": cost})
        );
    }
    assert_eq!(total["cost_usd_micros"], 53_784);
    assert_eq!(
        whole["report"]["unpriced"],
        json!({"tier_price_unknown": 1})
    );

    let digest = whole["report"]["price_table"]["digest"].as_str();
    let basis = format!(
        "Derived with litellm table prices.json of {} (sha256 {}…). Not priced: tier_price_unknown 1.\n",
        &as_of[..10],
        &digest.expect("a digest")[..4],
    );
    let table = |unit: &str, rows: &str| {
        format!("{unit} CALLS RECEIPTS CAPTURED DERIVED TOTAL NOT PRICED\n{rows}")
    };
    let head = "Spend 2026-07-07 to 2026-07-08, at list price\n".to_owned()
        + &table(
            "MODEL",
            "anthropic claude-sonnet-4-5 1 1 $0.0405 - $0.0405 0\n\
             openai gpt-5 2 0 - $0.0133 $0.0133 1\n\
             total 3 1 $0.0405 $0.0133 $0.0538 1\n",
        )
        + &basis;
    let none = "0 0 - - - 0\n";
    let all = "3 1 $0.0405 $0.0133 $0.0538 1\n";
    let outcomes = table(
        "WHAT IT BECAME",
        &format!(
            "merged {none}committed, no merge known {none}edits kept, no commit known {none}\
             edits deleted {none}edits rejected {none}\
             other calls of Sessions with a commit {none}no evidence of a commit {all}"
        ),
    );
    let verdicts = table(
        "CI OF THE COMMITS",
        &format!("CI passed {none}CI failed {none}no CI verdict {all}"),
    );
    let in_vain = "That there is no evidence of a commit does not say that the work was in vain.\n";
    let transcript = format!("{head}\n{outcomes}\n{verdicts}{in_vain}");
    let options = [
        "report",
        "spend",
        "--since",
        "2026-07-07",
        "--until",
        "2026-07-08",
    ];
    let options = [&options[..], &["--as-of", as_of]].concat();
    for variables in [&[][..], &NO_STORE] {
        let run = |more: &[&str]| {
            done(&svc_with(
                &server,
                variables,
                &[&options[..], more].concat(),
            ))
        };
        assert_eq!(words(&run(&[])), transcript);
        assert_eq!(words(&run(&["--no-outcomes"])), head);
        let printed: Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
        assert_eq!(printed, whole["report"]);
        for by in ["session", "user", "agent", "repository", "commit"] {
            let printed = run(&["--by", by, "--json", "--limit", "1"]);
            let printed: Value = serde_json::from_str(&printed).expect("JSON");
            let asked = report(&server, &format!("{of_day}&by={by}&limit=1"));
            assert_eq!(printed, asked["report"], "{by}");
            assert_eq!(printed["total"], *total, "{by}");
        }
        let by_commit = words(&run(&["--by", "pull-request"]));
        let row = "no evidence of a commit 3 1 $0.0405 $0.0133 $0.0538 1 0\n";
        assert!(by_commit.contains(row), "{by_commit}");
    }
    let error = refused(&svc(&server, &["report", "spend", "--limit", "0"]), 2);
    assert!(error.contains("--limit must be from 1 to 1000"), "{error}");
    let error = refused(&svc(&server, &["report", "spend", "--by", "team"]), 2);
    assert!(error.contains("must be one of model, session"), "{error}");

    let arguments = json!({
        "cohort_start": "2026-07-07T00:00:00Z", "cohort_end": "2026-07-08T00:00:00Z", "as_of": as_of,
    });
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, OPERATOR_TOKEN);
        let said = agent.answer("spend_report", arguments.clone());
        let figure = "$0.0538 ($0.0405 captured, $0.0133 derived), 3 calls, 1 known by receipts \
                      only, 1 not priced";
        for line in [
            &format!("Spend 2026-07-07 to 2026-07-08, at list price: {figure}"),
            "- openai gpt-5: $0.0133 ($0.0000 captured, $0.0133 derived), 2 calls, 1 not priced",
            &format!("- no evidence of a commit: {figure}"),
            &format!("- no CI verdict: {figure}"),
            basis.trim_end(),
            in_vain.trim_end(),
        ] {
            assert!(said.lines().any(|said| said == line), "{line}: {said}");
        }
        assert!(!said.contains("wasted"), "{said}");
    }
    assert!(!transcript.contains("wasted"));
}

fn the_console_says_what_calls_cost(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let cookies = signed_in(&server);
    let page = || open(&server, &cookies, "/console/spend?days=1").text();
    assert!(page().contains("No calls were observed in these days."));
    deliver_calls(&server, |session, number| {
        Call::new(session, &format!("call-{number}"))
    });
    let page = page();
    for cell in ["$0.0400", "$0.0133", "$0.0533"] {
        assert!(page.contains(&format!(">{cell}<")), "{cell}: {page}");
    }
    for text in [
        "1 of 3 have no price",
        "at list price",
        "Derived with litellm table prices.json of ",
        "Not priced: tier_price_unknown 1.",
        "$0.0533 (3 calls, 1 not priced)",
        "other calls of Sessions with a commit",
        "no evidence of a commit",
        "does not say that the work was in vain.",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("wasted"), "{page}");
}

fn a_report_that_cannot_be_made_is_refused_with_a_reason(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let of_day = format!("{DAY}&as_of=2026-07-08T00:00:00Z");
    for (query, name, sentence) in [
        (
            "by=team",
            "by",
            "must be one of: model, session, repository, pull-request, commit, user, agent",
        ),
        ("by=Model", "by", "must be one of: model"),
        ("by=", "by", "must be one of: model"),
        ("limit=0", "limit", "must be from 1 to 1000"),
        ("limit=1001", "limit", "must be from 1 to 1000"),
        ("limit=x", "limit", "must be a whole number"),
        ("outcomes=no", "outcomes", "must be true or false"),
        ("outcomes=", "outcomes", "must be true or false"),
    ] {
        let reply = ask(&server, &format!("{of_day}&{query}"));
        assert_eq!(reply.status, 422, "{query}: {}", reply.text());
        let fault = &body(&reply)["detail"][0];
        assert_eq!(fault["loc"], json!(["query", name]), "{query}");
        assert_eq!(fault["type"] == "enum", name == "by", "{query}: {fault}");
        let said = fault["msg"].as_str().expect("a sentence");
        assert!(said.contains(sentence), "{query}: {said}");
    }
    for query in ["limit=1", "limit=1000", "outcomes=true", "outcomes=false"] {
        let whole = report(&server, &format!("{of_day}&{query}"));
        let is_null = whole["report"]["outcomes"].is_null();
        assert_eq!(is_null, query == "outcomes=false", "{query}");
    }
    for token in [INGEST_TOKEN, "0123456789abcdef0123456789abcdef"] {
        let path = format!("/v1/reports/spend?{of_day}");
        let status = server.send(&Request::get(path).bearer(token)).status;
        let expected = if token == INGEST_TOKEN { 403 } else { 401 };
        assert_eq!(status, expected);
    }

    // Each cost can be stored, but not their sum.
    let call = |number: u8| {
        json!({
            "response_id": format!("msg_{number}"), "ended_at": "2026-07-07T10:00:04Z",
            "cost_usd_micros": i64::MAX,
            "input": {"messages": [said("user", &json!({"type": "text", "content": "list"}))]},
            "output": [said("assistant", &json!({"type": "text", "content": format!("{number}")}))],
        })
    };
    let calls = sent_calls("s1", &[call(1), call(2)]).to_string();
    let sent = Request::post("/ingest/calls", calls).bearer(INGEST_TOKEN);
    assert_eq!(server.send(&sent).status, 200);
    let facts = server.read("/v1/facts").body;
    let as_of = body(&server.ask("/v1/prices?name=x", PRICES))["loaded_at"].clone();
    let of_day = format!("{DAY}&as_of={}", as_of.as_str().expect("a moment"));
    for query in ["outcomes=true", "outcomes=false", "by=session"] {
        let reply = ask(&server, &format!("{of_day}&{query}"));
        assert_eq!(reply.status, 409, "{query}: {}", reply.text());
    }
    let options = [
        "report",
        "spend",
        "--since",
        "2026-07-07",
        "--until",
        "2026-07-08",
    ];
    for variables in [&[][..], &NO_STORE] {
        let error = refused(&svc_with(&server, variables, &options), 1);
        assert!(error.contains("error: "), "{error}");
    }
    assert_eq!(server.read("/v1/facts").body, facts);
}

fn models_without_a_price_are_listed_and_diagnosed(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let run = |arguments: &[&str]| words(&done(&svc(&server, arguments)));
    let doctor = || words(&svc(&server, &["doctor"]).stdout_text());
    assert_eq!(
        run(&["prices", "check"]),
        "no price table was loaded\nno call of the last 30 days needs one\n"
    );
    assert!(doctor().contains("priced calls - no call in the last 7 days"));
    deliver(&server, &cached(&Call::new("s1", "one")));
    for name in ["two", "three"] {
        let call = Call::new("s1", name).model("model-of-ours");
        deliver(&server, &call.envelope());
    }
    let load = "next:\n svc prices load FILE\n".replace("\n svc", "\nsvc");
    assert_eq!(
        run(&["prices", "check"]),
        format!(
            "no price table was loaded\nprovider model calls without a price\n\
             openai model-of-ours 2\nopenai gpt-5 1\n\n{load}"
        )
    );
    let diagnosis = doctor();
    let expected = "priced calls warning 0 of 3 of the last 7 days (0%); not priced: no_price_table 3\n\
                    fix: load prices: svc prices load FILE\n";
    assert!(diagnosis.contains(expected), "{diagnosis}");

    assert_eq!(
        server.ask("/v1/prices?name=prices.json", PRICES).status,
        200
    );
    assert_eq!(
        run(&["prices", "check"]),
        format!("provider model calls without a price\nopenai model-of-ours 2\n\n{load}")
    );
    let diagnosis = doctor();
    let expected = "priced calls warning 1 of 3 of the last 7 days (33%); not priced: \
                    model_not_in_table 2; not in the table: model-of-ours\n\
                    fix: load a newer file: svc prices load FILE; the models: svc prices check\n";
    assert!(diagnosis.contains(expected), "{diagnosis}");
    let listed = done(&svc(&server, &["prices", "check", "--json"]));
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let expected = json!([{"model_provider": "openai", "model": "model-of-ours", "items": 2}]);
    assert_eq!(listed, expected);
}

fn a_list_of_sessions_has_derived_costs(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    deliver_a_day(&server);
    let list = server.send(&Request::get("/v1/sessions?spend=true").bearer(OPERATOR_TOKEN));
    let list = body(&list);
    let sessions = list["sessions"].as_array().expect("Sessions").iter();
    let costs: Vec<Value> = sessions
        .map(|session| {
            let spend = &session["spend"];
            json!([
                session["session_id"],
                spend["captured"]["cost_usd_micros"],
                spend["derived"],
                spend["cost_usd_micros"],
                spend["unpriced_items"],
            ])
        })
        .collect();
    let derived = |items: u8, cost: u32| json!({"items": items, "cost_usd_micros": cost});
    for expected in [
        json!(["s1", 40_500, derived(0, 0), 40_500, 0]),
        json!(["s2", 0, derived(1, 13_284), 13_284, 0]),
        json!(["s3", 0, derived(0, 0), 0, 1]),
    ] {
        assert!(costs.contains(&expected), "{expected}: {costs:?}");
    }
    let printed = done(&svc(&server, &["sessions", "--spend"]));
    let cookies = signed_in(&server);
    let page = open(&server, &cookies, "/console/sessions?spend=true").text();
    for text in [&printed, &page] {
        assert!(
            text.contains("$0.0405") && text.contains("$0.0133"),
            "{text}"
        );
        assert!(text.contains("not priced"), "{text}");
    }
    let plain = open(&server, &cookies, "/console/sessions").text();
    assert!(!plain.contains("not priced"), "{plain}");
}
