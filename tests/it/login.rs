//! Tokens that the shell keeps, and when they are used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use harness::process::{self, Output};
use harness::server::{
    Configuration, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};
use svc_model::json::Json;

use crate::cli::{COMMAND_MAX, at, done, json, refused, start};

/// Runs `svc` as a user whose configuration is in this folder, and whose environment has no token.
fn svc(server: &Server, config: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = server.shell();
    command
        .env("XDG_CONFIG_HOME", config)
        .env_remove("SVC_TOKEN")
        .env_remove("SVC_URL")
        .env_remove("SVC_DATABASE_URL")
        .args(arguments);
    process::run(&mut command, input.as_bytes(), COMMAND_MAX).expect("the command ends")
}

#[test]
fn every_command_uses_a_login_unless_a_setting_overrides_it() {
    let server = start(&Configuration::granting(&["s"]));
    let url = server.base_url();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let run = |arguments: &[&str], input: &str| svc(&server, &config, arguments, input);

    let operator = run(&["login", &url, "--with-token"], OPERATOR_TOKEN);
    assert_eq!(
        done(&operator),
        format!("logged in to {url}: operator authority, client operator, organization acme\n")
    );
    let capture = ["login", &url, "--capture", "--with-token", "--json"];
    let capture = json(&run(&capture, &format!("{INGEST_TOKEN}\r\nmore\n")));
    assert_eq!(
        capture,
        Json::parse(
            format!(r#"{{"server":"{url}","tokens":[{{"authority":"ingest","client_id":"alice","org_id":"acme"}}]}}"#)
                .as_bytes()
        )
        .unwrap()
    );

    // Commands ask the service of the login, with the operator's token.
    assert!(done(&run(&["me"], "")).starts_with(&format!("service       {url}\n")));
    assert!(done(&run(&["me"], "")).contains("authority     operator\n"));
    assert!(done(&run(&["evidence", "inventory", "s"], "")).contains("is not known"));

    // It is a private file, with what the service said about the tokens.
    let file = config.join("svc/credentials.json");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let stored = Json::parse(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(at(&stored, &["current"]), &Json::from(&*url));
    for (member, value) in [
        ("token", OPERATOR_TOKEN),
        ("authority", "operator"),
        ("client_id", "operator"),
        ("org_id", "acme"),
        ("capture_token", INGEST_TOKEN),
        ("capture_authority", "ingest"),
        ("capture_client_id", "alice"),
    ] {
        assert_eq!(at(&stored, &["servers", &url, member]), &Json::from(value));
    }

    // A token in the environment takes precedence, and a login that would have no effect is
    // refused.
    let mut command = server.shell();
    command
        .env("XDG_CONFIG_HOME", &config)
        .env("SVC_TOKEN", RETRIEVAL_TOKEN)
        .arg("me");
    let me = process::run(&mut command, b"", COMMAND_MAX).unwrap();
    assert!(done(&me).contains("authority     retrieval\n"));
    let mut command = server.shell();
    command.args(["login", &url, "--with-token"]);
    let login = process::run(&mut command, OPERATOR_TOKEN.as_bytes(), COMMAND_MAX).unwrap();
    assert!(refused(&login, 1).contains("SVC_TOKEN"));

    // A token is sent only to its own service.
    let elsewhere = run(&["me", "--url", "http://127.0.0.1:1"], "");
    assert!(refused(&elsewhere, 1).contains("svc login http://127.0.0.1:1\n"));

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&run(&["me"], ""), 1).contains("chmod 600"));
    let doctor = run(&["doctor"], "").stdout_text();
    assert!(doctor.contains("fix: chmod 600 "), "{doctor}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        done(&run(&["logout"], "")),
        format!("logged out of {url}\n")
    );
    assert!(!fs::read_to_string(&file).unwrap().contains(OPERATOR_TOKEN));
    refused(&run(&["logout"], ""), 1);
}

#[test]
fn a_failed_login_stores_nothing() {
    let server = start(&Configuration::granting(&["s"]));
    let url = server.base_url();
    let folder = tempfile::tempdir().unwrap();
    let login = |url: &str, capture: bool, token: &str| {
        let mut arguments = vec!["login", url, "--with-token", "--json"];
        arguments.extend(capture.then_some("--capture"));
        let output = svc(&server, folder.path(), &arguments, token);
        let error = refused(&output, 1);
        let error = Json::parse(error.as_bytes()).expect("JSON");
        at(&error, &["error", "code"]).as_str().unwrap().to_owned()
    };
    for (url, capture, token, code) in [
        (&*url, false, UNKNOWN_TOKEN, "unauthorized"),
        (&*url, false, INGEST_TOKEN, "wrong_authority"),
        (&*url, false, RETRIEVAL_TOKEN, "wrong_authority"),
        (&*url, true, OPERATOR_TOKEN, "wrong_authority"),
        (&*url, false, "", "no_token"),
        (&*url, false, "two words", "configuration"),
        ("http://svc.example", false, OPERATOR_TOKEN, "configuration"),
        (
            "https://u:p@svc.example",
            false,
            OPERATOR_TOKEN,
            "configuration",
        ),
        ("http://127.0.0.1:1", false, OPERATOR_TOKEN, "unreachable"),
    ] {
        assert_eq!(login(url, capture, token), code, "{url} {capture}");
    }
    // Without a terminal, nobody can be asked.
    let output = svc(&server, folder.path(), &["login", &url], OPERATOR_TOKEN);
    assert!(refused(&output, 1).contains("--with-token"));
    assert!(!folder.path().join("svc").exists());
}
