//! `svc-server`: starts `svc`, which stands beside it, under this name. It becomes that process, so
//! signals and the exit code are those of the server.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

#[expect(
    clippy::print_stderr,
    reason = "there is no server yet whose log could say it"
)]
fn main() -> ExitCode {
    let program = std::env::current_exe().map(|path| path.with_file_name("svc"));
    let error = match &program {
        Ok(program) => {
            let arguments = std::env::args_os().skip(1);
            Command::new(program)
                .arg0("svc-server")
                .args(arguments)
                .exec()
        }
        Err(error) => std::io::Error::from(error.kind()),
    };
    let program = program.unwrap_or_default();
    eprintln!(
        "error: cannot start {}: {error}; install svc beside svc-server, or run svc serve",
        program.display()
    );
    ExitCode::FAILURE
}
