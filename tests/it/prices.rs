//! Price tables: loading, listing and looking at them, over HTTP and from the shell.

use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

use crate::cli::{done, refused, svc};

on_both_backends!(
    a_loaded_table_is_in_force_until_another_is_loaded,
    other_files_are_refused_and_change_nothing,
    the_shell_loads_lists_and_shows_prices,
);

/// Returns a file in which a model has this rate of input, as it is spelled.
fn prices(input: &str) -> String {
    json!({
        "claude-sonnet-4-5": {
            "litellm_provider": "anthropic", "mode": "chat",
            "input_cost_per_token": "RATE", "output_cost_per_token": 1.5e-5,
            "input_cost_per_token_above_200k_tokens": 6e-6,
        },
        "qwen-flash": {"litellm_provider": "dashscope", "tiered_pricing": []},
        "whisper-1": {"mode": "audio_transcription", "input_cost_per_second": 1e-4},
    })
    .to_string()
    .replace(r#""RATE""#, input)
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn load(server: &Server, name: &str, file: impl Into<Vec<u8>>) -> Reply {
    server.ask(&format!("/v1/prices?name={name}"), file)
}

fn value(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn read(server: &Server, path: &str) -> Value {
    value(&server.send(&Request::get(path).bearer(OPERATOR_TOKEN)))
}

fn names(server: &Server) -> Vec<String> {
    let list = read(server, "/v1/prices");
    let tables = list["tables"].as_array().expect("tables").iter();
    let name = |table: &Value| table["name"].as_str().expect("a name").to_owned();
    tables.map(name).collect()
}

fn rate(server: &Server, query: &str) -> Value {
    read(server, &format!("/v1/prices/rates?{query}"))
}

fn a_loaded_table_is_in_force_until_another_is_loaded(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    assert_eq!(read(&server, "/v1/prices"), json!({"tables": []}));
    let none = rate(&server, "model=claude-sonnet-4-5");
    assert_eq!(
        (&none["unpriced"], &none["price_table"]),
        (&json!("no_price_table"), &Value::Null)
    );

    let facts = server.read("/v1/facts").body;
    let first = value(&load(&server, "one.json", prices("3e-6")));
    assert_eq!(first["new"], true);
    let counts = (&first["format"], &first["models"], &first["ignored"]);
    assert_eq!(counts, (&json!("litellm"), &json!(2), &json!(1)));
    let again = value(&load(&server, "other-name.json", prices("3e-6")));
    let mut expected = first.clone();
    expected["new"] = json!(false);
    assert_eq!(again, expected);
    let second = value(&load(&server, "two.json", prices("4.0000000000000003e-06")));
    assert_ne!(second["digest"], first["digest"]);
    assert_eq!(names(&server), ["two.json", "one.json"]);
    assert_eq!(server.read("/v1/facts").body, facts, "they are no facts");

    let found = rate(
        &server,
        "model=claude-sonnet-4-5%5B1m%5D&provider=anthropic",
    );
    assert_eq!(found["price_table"]["name"], "two.json");
    let input = json!({
        "usd_per_million": "4",
        "above": [{"input_tokens": 200_000, "usd_per_million": "6"}],
    });
    assert_eq!(found["rates"]["input"], input);
    assert_eq!(found["rates"]["cache_write_1h"], Value::Null);
    assert_eq!(found["rates"]["reasoning"]["usd_per_million"], "15");
    for (query, reason) in [
        (
            "model=claude-sonnet-4-5&provider=openai",
            "model_not_in_table",
        ),
        ("model=Claude-Sonnet-4-5", "model_not_in_table"),
        ("model=qwen-flash", "price_form_unknown"),
    ] {
        let found = rate(&server, query);
        assert_eq!(
            (&found["unpriced"], &found["rates"]),
            (&json!(reason), &Value::Null)
        );
    }
}

fn other_files_are_refused_and_change_nothing(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    value(&load(&server, "one.json", prices("3e-6")));
    for (file, status, code) in [
        ("{", 400, None),
        ("{}", 422, Some("unknown_price_format")),
        ("[]", 422, Some("unknown_price_format")),
        (
            r#"{"anthropic":{"models":{"m":{}}}}"#,
            422,
            Some("no_models"),
        ),
        (
            r#"{"m":{"input_cost_per_token":2,"output_cost_per_token":0}}"#,
            422,
            Some("no_models"),
        ),
    ] {
        let reply = load(&server, "x", file);
        assert_eq!(reply.status, status, "{file}: {}", reply.text());
        let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(body["detail"]["code"].as_str(), code, "{file}");
    }
    let too_many: Vec<String> = (0..=50_000)
        .map(|n| format!(r#""{n}":{{"input_cost_per_token":0,"output_cost_per_token":0}}"#))
        .collect();
    let reply = load(&server, "x", format!("{{{}}}", too_many.join(",")));
    assert_eq!(reply.status, 413, "{}", reply.text());
    for name in ["", "%20", &"x".repeat(257)] {
        let reply = load(&server, name, prices("3e-6"));
        assert_eq!(reply.status, 422, "{name}: {}", reply.text());
    }
    for query in ["", "model=", "model=m&provider=", "model=m&providre=x"] {
        let path = format!("/v1/prices/rates?{query}");
        let reply = server.send(&Request::get(path).bearer(OPERATOR_TOKEN));
        assert_eq!(reply.status, 422, "{query}: {}", reply.text());
    }
    let ingest = Request::post("/v1/prices", prices("1e-6")).bearer(INGEST_TOKEN);
    assert_eq!(server.send(&ingest).status, 403);
    assert_eq!(names(&server), ["one.json"]);
}

fn the_shell_loads_lists_and_shows_prices(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("list.json");
    std::fs::write(&file, prices("3e-6")).expect("a file");
    let path = file.to_str().expect("a path");
    let empty = done(&svc(&server, &["prices", "list"]));
    assert!(empty.contains("no price table was loaded"), "{empty}");
    let loaded = done(&svc(&server, &["prices", "load", path]));
    assert!(
        loaded.contains("loaded: 2 models, 1 other entries, litellm table "),
        "{loaded}"
    );
    let again = done(&svc(&server, &["prices", "load", path, "--name", "other"]));
    assert!(again.contains("nothing was loaded"), "{again}");
    let list = done(&svc(&server, &["prices", "list"]));
    assert!(
        list.contains("list.json") && !list.contains("other.json"),
        "{list}"
    );
    let shown = done(&svc(&server, &["prices", "show", "claude-sonnet-4-5"]));
    assert!(
        shown.contains("at list price") && shown.contains("200000 tokens"),
        "{shown}"
    );
    let json = done(&svc(&server, &["prices", "show", "gpt-5", "--json"]));
    assert!(
        json.contains(r#""unpriced":"model_not_in_table""#),
        "{json}"
    );
    let doctor = svc(&server, &["doctor"]);
    let doctor = doctor.stdout_text();
    assert!(
        doctor.contains("litellm table list.json, loaded "),
        "{doctor}"
    );

    std::fs::write(&file, "{}").expect("a file");
    let error = refused(&svc(&server, &["prices", "load", path]), 1);
    assert!(
        error.contains("neither LiteLLM's list of models nor"),
        "{error}"
    );
    let error = refused(&svc(&server, &["prices", "load", "absent.json"]), 1);
    assert!(error.contains("absent.json cannot be read"), "{error}");
}
