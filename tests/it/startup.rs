//! A server that is configured wrongly does not start, and says everything that is wrong at once,
//! by the names of the settings and never by their values.

use harness::server::{
    Backend, Configuration, FORGE_SECRET, Grant, INGEST_TOKEN, OPERATOR_TOKEN, Server, Store,
};

/// Starts a server that must refuse, and returns what it said.
fn refusal(grant: Grant, variables: &[(&str, &str)]) -> String {
    let store = Store::create(Backend::Sqlite).expect("SQLite is never skipped");
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let configuration = Configuration {
        grant,
        variables,
        ..Configuration::default()
    };
    match Server::try_start_on(&store, &configuration) {
        Ok(server) => panic!("it started:\n{}", server.log()),
        Err(said) => {
            assert!(said.starts_with("exit status: 1\n"), "{said}");
            said
        }
    }
}

fn names(said: &str, settings: &[&str]) {
    for setting in settings {
        assert!(said.contains(setting), "{setting} is not named in:\n{said}");
    }
}

#[test]
fn every_mistake_is_named_at_once_and_no_value_is_shown() {
    let short = "short-and-secret";
    let said = refusal(
        Grant::None,
        &[
            ("SVC_OPERATOR_TOKEN", short),
            ("SVC_INGEST_TOKENS", r#"{"alice":"change-me"}"#),
            ("SVC_FORGE_WEBHOOK_SECRET", "hush"),
        ],
    );
    names(
        &said,
        &[
            "SVC_OPERATOR_TOKEN",
            "SVC_INGEST_TOKENS",
            "SVC_FORGE_WEBHOOK_SECRET",
        ],
    );
    for value in [short, "change-me", "hush"] {
        assert!(!said.contains(value), "{value} is shown in:\n{said}");
    }
}

#[test]
fn equal_secrets_are_refused_the_webhook_secret_included() {
    let ingest = format!(r#"{{"alice":"{OPERATOR_TOKEN}"}}"#);
    names(
        &refusal(Grant::None, &[("SVC_INGEST_TOKENS", &ingest)]),
        &["SVC_INGEST_TOKENS"],
    );
    let twice = format!(r#"{{"alice":"{INGEST_TOKEN}","bob":"{INGEST_TOKEN}"}}"#);
    names(
        &refusal(Grant::None, &[("SVC_INGEST_TOKENS", &twice)]),
        &["SVC_INGEST_TOKENS"],
    );
    let said = refusal(Grant::None, &[("SVC_OPERATOR_TOKEN", FORGE_SECRET)]);
    names(&said, &["SVC_OPERATOR_TOKEN"]);
    let granted = Grant::Single("s".into());
    let said = refusal(granted, &[("SVC_RETRIEVAL_TOKEN", OPERATOR_TOKEN)]);
    names(&said, &["SVC_RETRIEVAL_TOKEN"]);
    assert!(
        !said.contains(OPERATOR_TOKEN),
        "a secret is shown in:\n{said}"
    );
}

#[test]
fn a_grant_is_a_token_and_exactly_one_set_of_sessions() {
    let token = "9".repeat(32);
    let sessions: [(Grant, &[(&str, &str)]); 8] = [
        (Grant::None, &[("SVC_RETRIEVAL_TOKEN", &token)]),
        (Grant::None, &[("SVC_RETRIEVAL_SESSION_ID", "s")]),
        (Grant::None, &[("SVC_RETRIEVAL_SESSION_IDS", r#"["s"]"#)]),
        (Grant::Both("s".into(), vec!["t".into()]), &[]),
        (Grant::Plural(Vec::new()), &[]),
        (Grant::Plural(vec!["s".into(), " s ".into()]), &[]),
        (
            Grant::Plural((0..33).map(|number| number.to_string()).collect()),
            &[],
        ),
        (Grant::Single(" ".into()), &[]),
    ];
    for (grant, variables) in sessions {
        let what = format!("{grant:?}");
        let said = refusal(grant, variables);
        assert!(said.contains("SVC_RETRIEVAL"), "{what}: {said}");
    }
}

#[test]
fn reserved_and_repeated_client_names_are_refused() {
    let token = "9".repeat(32);
    for name in ["operator", "legacy", "retrieval", "-x", ""] {
        let tokens = format!(r#"{{"{name}":"{token}"}}"#);
        names(
            &refusal(Grant::None, &[("SVC_INGEST_TOKENS", &tokens)]),
            &["SVC_INGEST_TOKENS"],
        );
    }
    let twice = format!(r#"{{"a":"{token}","a":"{INGEST_TOKEN}"}}"#);
    names(
        &refusal(Grant::None, &[("SVC_INGEST_TOKENS", &twice)]),
        &["SVC_INGEST_TOKENS"],
    );
}

#[test]
fn a_setting_that_is_none_of_its_kind_is_refused_by_name() {
    for (name, value) in [
        ("SVC_ORG_ID", "No Spaces"),
        ("SVC_ENABLE_DOCS", "perhaps"),
        ("SVC_READ_SLOTS", "many"),
    ] {
        names(&refusal(Grant::None, &[(name, value)]), &[name]);
    }
}
