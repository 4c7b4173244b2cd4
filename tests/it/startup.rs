//! A server with a wrong configuration does not start, and reports everything that is wrong at
//! once, by the names of the settings and never by their values.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::programs;
use harness::server::{
    Backend, Configuration, FORGE_SECRET, Grant, INGEST_TOKEN, OPERATOR_TOKEN, Server, Store,
};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a server that must refuse to start, and returns what it printed.
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
        Err(message) => {
            assert!(message.starts_with("exit status: 1\n"), "{message}");
            message
        }
    }
}

fn names(message: &str, settings: &[&str]) {
    for setting in settings {
        assert!(
            message.contains(setting),
            "{setting} is not named in:\n{message}"
        );
    }
}

#[test]
fn a_hangup_does_not_end_the_server() {
    let mut server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    let process = i32::try_from(server.process_id()).expect("a process id");
    let process = Pid::from_raw(process).expect("a process");
    kill_process(process, Signal::HUP).expect("it runs");
    let start = Instant::now();
    while !server.log().contains("server.hangup_ignored") {
        assert!(start.elapsed() < Duration::from_mins(1), "{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(server.log().contains("restart the server to change them"));
    assert_eq!(server.read("/v1/facts").status, 200);
    assert!(server.is_running() && server.stop().success());
}

#[test]
fn every_mistake_is_named_at_once_and_no_value_is_shown() {
    let short = "short-and-secret";
    let message = refusal(
        Grant::None,
        &[
            ("SVC_OPERATOR_TOKEN", short),
            ("SVC_INGEST_TOKENS", r#"{"alice":"change-me"}"#),
            ("SVC_FORGE_WEBHOOK_SECRET", "hush"),
        ],
    );
    names(
        &message,
        &[
            "SVC_OPERATOR_TOKEN",
            "SVC_INGEST_TOKENS",
            "SVC_FORGE_WEBHOOK_SECRET",
        ],
    );
    for value in [short, "change-me", "hush"] {
        assert!(!message.contains(value), "{value} is shown in:\n{message}");
    }
}

#[test]
fn equal_secrets_are_refused_including_the_webhook_secret() {
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
    let message = refusal(Grant::None, &[("SVC_OPERATOR_TOKEN", FORGE_SECRET)]);
    names(&message, &["SVC_OPERATOR_TOKEN"]);
    let granted = Grant::Single("s".into());
    let message = refusal(granted, &[("SVC_RETRIEVAL_TOKEN", OPERATOR_TOKEN)]);
    names(&message, &["SVC_RETRIEVAL_TOKEN"]);
    assert!(
        !message.contains(OPERATOR_TOKEN),
        "a secret is shown in:\n{message}"
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
        let message = refusal(grant, variables);
        assert!(message.contains("SVC_RETRIEVAL"), "{what}: {message}");
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
fn an_invalid_setting_is_refused_by_name() {
    for (name, value) in [
        ("SVC_ORG_ID", "No Spaces"),
        ("SVC_ENABLE_DOCS", "perhaps"),
        ("SVC_READ_SLOTS", "many"),
    ] {
        names(&refusal(Grant::None, &[(name, value)]), &[name]);
    }
}

#[test]
fn each_unknown_setting_is_refused_on_its_own_line() {
    let message = refusal(
        Grant::None,
        &[
            ("SVC_LISTN", "127.0.0.1:1"),
            ("SVC_COLOUR", "red"),
            ("SVC_REDACTION", "maybe"),
        ],
    );
    for line in [
        "  SVC_COLOUR is unknown",
        "  SVC_LISTN is unknown; did you mean SVC_LISTEN?",
        "  SVC_REDACTION must be on or off",
    ] {
        assert!(
            message.lines().any(|shown| shown == line),
            "{line}:\n{message}"
        );
    }
    assert!(!message.contains("maybe"), "{message}");
}

#[test]
fn variables_of_the_shell_and_kubernetes_are_accepted() {
    let store = Store::create(Backend::Sqlite).expect("SQLite is never skipped");
    let variables = [
        ("SVC_URL", "http://localhost:1"),
        ("SVC_TOKEN", "x"),
        ("SVC_TEST_POSTGRES", "auto"),
        ("SVC_SERVICE_HOST", "10.0.0.1"),
        ("SVC_PORT_8000_TCP", "tcp://10.0.0.1:8000"),
    ];
    let variables = variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let configuration = Configuration {
        variables,
        ..Configuration::default()
    };
    drop(Server::start_on(&store, &configuration));
}

/// Runs the server in a home of its own, with only these variables set. It must end by itself.
fn run(
    home: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Option<i32>, String, String) {
    let output = Command::new(programs::path(programs::SERVER))
        .env_clear()
        .env("HOME", home)
        .envs(variables.iter().copied())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the server runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_server_refuses_all_arguments_except_help_and_version() {
    let home = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["--listen=127.0.0.1:1"][..],
        &["serve"],
        &["--help", "--version"],
        &["--token=s3cr3t"],
        &[""],
    ] {
        let (code, answer, stderr) = run(home.path(), arguments, &[]);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert_eq!(answer, "");
        assert!(stderr.contains("takes no argument"), "{stderr}");
        assert!(!stderr.contains("s3cr3t"), "{stderr}");
    }
    let (code, help, stderr) = run(home.path(), &["--help"], &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(help.contains("SVC_LISTEN\n"), "{help}");
    let (code, version, stderr) = run(home.path(), &["--version"], &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(version.starts_with("svc-server "), "{version}");
    let left = std::fs::read_dir(home.path()).expect("the home").count();
    assert_eq!(left, 0, "no server was started");
}

#[test]
fn mistakes_in_the_file_and_the_environment_are_reported_together() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/svc");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("config.toml");
    std::fs::write(&file, "read_slots = 3\nlistn = \"a:1\"\n[log]\nlevel = 1\n").expect("a file");
    let (code, _, stderr) = run(home.path(), &[], &[("SVC_LOG_FORMAT", "xml")]);
    assert_eq!(code, Some(1));
    for line in [
        "config.toml, line 2: listn is unknown; did you mean listen?",
        "config.toml, line 3: log must be a text, a number, true or false",
        "  SVC_LOG_FORMAT must be text or json",
    ] {
        assert!(
            stderr.lines().any(|shown| shown.ends_with(line)),
            "{line}:\n{stderr}"
        );
    }
    std::fs::write(&file, "read_slots = 3\nlisten = \n").expect("a file");
    let (code, _, stderr) = run(home.path(), &[], &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("config.toml, line 2: "), "{stderr}");
}
