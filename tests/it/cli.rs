//! The operator's shell, run as an operator would run it.

use std::time::Duration;

use harness::process::{self, Output};
use harness::server::{Backend, Configuration, Server};

/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_mins(1);

/// Runs `svc` with these arguments, set up for a server.
pub(crate) fn svc(server: &Server, arguments: &[&str]) -> Output {
    let mut command = server.shell();
    process::run(command.args(arguments), b"", COMMAND_MAX).expect("the command ends")
}

#[test]
fn an_unknown_command_is_a_usage_error_on_stderr() {
    let server = Server::start(Backend::Sqlite, &Configuration::default());
    let server = server.expect("SQLite is never skipped");
    let output = svc(&server, &["no-such-command"]);
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr_text());
    assert_eq!(output.stdout_text(), "");
    assert!(
        output.stderr_text().contains("no-such-command"),
        "{}",
        output.stderr_text()
    );
}
