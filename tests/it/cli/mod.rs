//! The operator's shell, run as an operator would run it.

mod configuration;
mod demo;
mod doctor;
mod evidence;
pub(crate) mod next;
mod refusals;

use std::time::Duration;

use harness::process::{self, Output};
use harness::server::{
    Backend, Configuration, FORGE_SECRET, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server,
    UNKNOWN_TOKEN,
};
use svc_model::json::Json;

/// How long a command may take.
pub(crate) const COMMAND_MAX: Duration = Duration::from_mins(1);

/// The Session that `svc demo` stores.
pub(crate) const DEMO: &str = "svc-demo";

/// Its last call. Its id is derived from the capture id, so it is the same everywhere.
pub(crate) const LAST_CALL: &str = "832e92a2-a783-5abf-a95a-5db0176c0a02";

/// Runs `svc` with these arguments, set up for a server.
pub(crate) fn svc(server: &Server, arguments: &[&str]) -> Output {
    svc_with(server, &[], arguments)
}

/// Returns the name of the account that runs the tests, as the system knows it.
pub(crate) fn account() -> String {
    let output = std::process::Command::new("id")
        .arg("-un")
        .output()
        .expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `svc` with these arguments, set up for a server, with more variables.
pub(crate) fn svc_with(server: &Server, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = server.shell();
    command.envs(variables.iter().copied()).args(arguments);
    process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
}

pub(crate) fn start(configuration: &Configuration) -> Server {
    Server::start(Backend::Sqlite, configuration).expect("SQLite is never skipped")
}

/// Starts a server whose agents may read the demo Session, and stores that Session.
fn planted() -> Server {
    let server = start(&Configuration::granting(&[DEMO, "other"]));
    done(&svc(&server, &["demo", "--small"]));
    server
}

/// Checks that a command succeeds without a warning. Returns its output, followed by the commands
/// that it suggests on standard error.
pub(crate) fn done(output: &Output) -> String {
    let next = output.stderr_text();
    assert_eq!(output.status.code(), Some(0), "{next}");
    assert!(next.is_empty() || next.starts_with("\nnext:\n"), "{next}");
    output.stdout_text() + &next
}

/// Checks that a command succeeds, and returns the JSON that it printed.
pub(crate) fn json(output: &Output) -> Json {
    let text = done(output);
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    Json::parse(text.as_bytes()).expect("JSON")
}

/// Returns the member at a path.
pub(crate) fn at<'a>(value: &'a Json, path: &[&str]) -> &'a Json {
    path.iter().fold(value, |value, name| {
        let member = value.as_object().and_then(|object| object.get(name));
        member.unwrap_or_else(|| panic!("no {name} in {value:?}"))
    })
}

/// Checks that a command is refused, and returns its error.
pub(crate) fn refused(output: &Output, status: i32) -> String {
    let error = output.stderr_text();
    assert_eq!(
        (output.status.code(), output.stdout_text().as_str()),
        (Some(status), ""),
        "{error}"
    );
    shows_no_secret(&error);
    error
}

/// Checks that a text contains none of the tests' secrets.
pub(crate) fn shows_no_secret(text: &str) {
    for secret in [
        OPERATOR_TOKEN,
        INGEST_TOKEN,
        RETRIEVAL_TOKEN,
        UNKNOWN_TOKEN,
        FORGE_SECRET,
    ] {
        assert!(!text.contains(secret), "a secret is shown in:\n{text}");
    }
}
