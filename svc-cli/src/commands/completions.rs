use clap::{Args, Command};
use clap_complete::Shell;

use crate::commands::one_of::one_of;
use crate::error::CommandError;
use crate::output::Output;

/// The shells that completions exist for.
const SHELLS: &[Shell] = &[Shell::Bash, Shell::Zsh, Shell::Fish];

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL", value_parser = one_of(SHELLS, name))]
    shell: Shell,
}

fn name(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        _ => "another",
    }
}

impl Completions {
    /// Prints the completions of a command line.
    pub(crate) fn run(
        &self,
        mut command_line: Command,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command_line, "svc", &mut script);
        output.text(&String::from_utf8_lossy(&script))
    }
}
