//! Which service, which store and which token a command uses.

use std::fs;
use std::process::Command;

use harness::process::{self, Output};
use harness::programs;
use harness::server::{INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN};

use super::{COMMAND_MAX, LAST_CALL, done, json, planted, refused, svc, svc_with};

#[test]
fn facts_are_the_same_from_the_store_and_from_the_service() {
    let server = planted();
    let direct = done(&svc(&server, &["facts"]));
    let remote = done(&svc_with(&server, &[("SVC_DATABASE_URL", "")], &["facts"]));
    assert_eq!(direct, remote);
    assert_eq!(
        direct,
        "table                         total  visible
sessions                          1        -
inference_calls                   4        4
developer_decisions               1        1
ci_outcomes                       1        1
pushes                            0        0
pull_request_merges               0        0
pull_request_revisions            0        0
edit_observations                 0        0
rejected_edits                    0        0
retry_linkages                    0        0
session_commit_observations       0        0
repository_renames                0        0
quarantine_revision: 0
"
    );
    let direct = json(&svc(&server, &["facts", "--json"]));
    let remote = json(&svc_with(
        &server,
        &[("SVC_DATABASE_URL", "")],
        &["facts", "--json"],
    ));
    assert_eq!(direct, remote);
}

#[test]
fn a_token_is_identified_without_being_shown() {
    let server = planted();
    let version = env!("CARGO_PKG_VERSION");
    let url = server.base_url();
    assert_eq!(
        done(&svc(&server, &["me"])),
        format!(
            "service       {url}\nversion       {version}\norganization  acme\nauthority     operator\nclient        operator\n"
        )
    );
    let retrieval = svc_with(&server, &[("SVC_TOKEN", RETRIEVAL_TOKEN)], &["me"]);
    assert!(done(&retrieval).ends_with("session       other\nsession       svc-demo\n"));
    let file = server
        .store()
        .url()
        .trim_start_matches("sqlite://")
        .to_owned()
        + ".token";
    fs::write(&file, format!("{INGEST_TOKEN}\n")).unwrap();
    let ingest = [("SVC_TOKEN", ""), ("SVC_TOKEN_FILE", file.as_str())];
    assert!(done(&svc_with(&server, &ingest, &["me"])).contains("client        alice\n"));
}

/// Runs `svc` as somebody with this configuration file, and with these variables only.
fn configured(config: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a home");
    let folder = home.path().join(".config/svc");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), config).expect("a configuration");
    let mut command = Command::new(programs::path(programs::SHELL));
    command
        .env_clear()
        .env("HOME", home.path())
        .envs(variables.iter().copied())
        .args(arguments);
    process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
}

#[test]
fn the_configuration_means_the_same_to_every_command() {
    let server = planted();
    let (url, store) = (server.base_url(), server.store().url().to_owned());
    let address = url.trim_start_matches("http://");
    let token = [("SVC_TOKEN", OPERATOR_TOKEN)];
    // Commands look for this machine's server where it listens.
    let listens = format!("listen = \"{address}\"\n");
    let me = done(&configured(&listens, &token, &["me"]));
    assert!(me.contains("organization  acme\n"), "{me}");
    // Every command works on the store in the configuration.
    let stored = format!("database_url = \"{store}\"\norg_id = \"acme\"\n");
    let planted_calls = "inference_calls                   4        4\n";
    assert!(done(&configured(&stored, &[], &["facts"])).contains(planted_calls));
    let hide = ["quarantine", "inference_calls", LAST_CALL, "--reason", "x"];
    let hidden = done(&configured(&stored, &[], &hide));
    assert!(
        hidden.contains(&format!(" in {store}, organization acme")),
        "{hidden}"
    );
    let log = done(&configured(&stored, &[], &["quarantine-log"]));
    assert!(log.contains(LAST_CALL), "{log}");
    // The command line takes precedence over the configuration and the environment.
    let nowhere = [
        ("SVC_TOKEN", OPERATOR_TOKEN),
        ("SVC_DATABASE_URL", "sqlite:///nowhere/at.all"),
    ];
    let asked = done(&configured(&stored, &nowhere, &["facts", "--url", &url]));
    assert!(
        asked.contains("inference_calls                   4        3\n"),
        "{asked}"
    );
    let error = refused(&configured(&stored, &nowhere, &["facts"]), 1);
    assert!(
        error.contains("svc db upgrade") && error.contains("svc login URL"),
        "{error}"
    );
    let both = ["facts", "--url", &url, "--database-url", &store];
    refused(&configured("", &token, &both), 1);
}
