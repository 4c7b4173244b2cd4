use clap::Args;
use clap_complete::Shell;

use crate::commands::one_of::one_of;
use crate::error::CommandError;
use crate::help;
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
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut help::command(), "svc", &mut script);
        output.text(&String::from_utf8_lossy(&script))
    }
}
