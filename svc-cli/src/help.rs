//! The help of the shell: commands in groups, each with examples.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::cli::Cli;

/// The commands, grouped by purpose.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Run the service",
        &["serve", "demo", "doctor", "db", "mirror", "config"],
    ),
    (
        "Back up, verify and export",
        &["backup", "restore", "verify", "export"],
    ),
    (
        "Send evidence",
        &[
            "install", "import", "ci", "hook", "note", "outbox", "schema",
        ],
    ),
    (
        "Ask",
        &[
            "overview",
            "search",
            "investigate",
            "sessions",
            "session",
            "transcript",
            "commit",
            "report",
            "prices",
            "facts",
            "capture",
        ],
    ),
    (
        "Give agents their context",
        &["context", "evidence", "mcp", "grant"],
    ),
    (
        "Hide evidence from answers",
        &[
            "quarantine",
            "release",
            "quarantine-inference-calls",
            "release-inference-calls",
            "quarantine-log",
        ],
    ),
    ("Remove what was captured, for good", &["erase", "gc"]),
    (
        "Set up this shell",
        &["login", "logout", "me", "completions", "man", "help"],
    ),
];

/// The heading for commands without a group.
const OTHERS: &str = "Others";

/// Examples for commands, by the command's path.
const EXAMPLES: &[(&[&str], &[&str])] = &[
    (
        &[],
        &[
            "svc serve",
            "svc demo",
            "svc overview --days 7",
            "svc sessions --since 7d",
            "svc search why does the pager test fail",
            "svc investigate https://github.com/acme/shop/actions/runs/99",
            "svc commit HEAD",
        ],
    ),
    (
        &["serve"],
        &["svc serve", "svc serve --listen localhost:8301"],
    ),
    (&["facts"], &["svc facts", "svc facts --url localhost:8301"]),
    (&["capture"], &["svc capture", "svc capture --json"]),
    (&["me"], &["svc me"]),
    (&["doctor"], &["svc doctor", "svc doctor --json"]),
    (
        &["overview"],
        &[
            "svc overview",
            "svc overview --days 31 --repo acme/shop --outcome failed",
        ],
    ),
    (
        &["investigate"],
        &[
            "svc investigate 41 --system jenkins",
            "svc investigate https://gitlab.com/acme/shop/-/pipelines/500",
        ],
    ),
    (
        &["sessions"],
        &[
            "svc sessions --since 7d --user ann",
            "svc sessions --repo acme/shop --all",
            "svc sessions --commit HEAD --file src/pager.rs",
        ],
    ),
    (
        &["search"],
        &[
            "svc search why does the pager test fail",
            "svc search retry backoff --repo acme/shop --file src/pager.rs --since 30d",
        ],
    ),
    (
        &["session"],
        &["svc session SESSION", "svc session SESSION --all"],
    ),
    (&["transcript"], &["svc transcript SESSION"]),
    (
        &["commit"],
        &[
            "svc commit HEAD",
            "svc commit HEAD~2 --repo acme/shop --as-of 7d",
        ],
    ),
    (
        &["ci", "report"],
        &[
            "svc ci report --result passed",
            "svc ci report --status failure --soft-fail",
        ],
    ),
    (
        &["ci", "outcome"],
        &["svc ci outcome 500 --system gitlab-ci"],
    ),
    (
        &["ci", "failures"],
        &[
            "svc ci failures --repo acme/shop",
            "svc ci failures --repo github/github.com/42 --since 30d --all",
        ],
    ),
    (
        &["install"],
        &[
            "svc install claude-code",
            "svc install jenkins --url https://svc.example.com",
        ],
    ),
    (
        &["import"],
        &[
            "svc import claude-code",
            "svc import codex --cwd /work/app --since 30d",
        ],
    ),
    (&["outbox", "status"], &["svc outbox status"]),
    (&["outbox", "drain"], &["svc outbox drain"]),
    (
        &["context", "discover"],
        &[
            "svc context discover half-open window",
            "svc context discover pager --commit HEAD --repo github/github.com/42",
        ],
    ),
    (
        &["context", "retrieve"],
        &["svc context retrieve half-open window --session SESSION"],
    ),
    (
        &["evidence", "inventory"],
        &["svc evidence inventory SESSION"],
    ),
    (&["demo"], &["svc demo", "svc demo --folder ./svc-demo"]),
    (
        &["schema", "list"],
        &["svc schema list", "svc schema list --json"],
    ),
    (
        &["schema", "show"],
        &["svc schema show GatewayPayload", "svc schema show openapi"],
    ),
    (
        &["schema", "validate"],
        &[
            "svc schema validate GatewayPayload call.json",
            "svc schema validate CommitNote -",
        ],
    ),
    (&["db", "status"], &["svc db status"]),
    (&["db", "upgrade"], &["svc db upgrade"]),
    (
        &["backup"],
        &[
            "svc backup /var/backups/svc/monday",
            "svc backup /mnt/svc --database-url postgres://svc@db.internal/svc",
        ],
    ),
    (
        &["restore"],
        &[
            "svc restore /var/backups/svc/monday",
            "svc restore /mnt/svc --database-url sqlite://svc.db --replace",
        ],
    ),
    (
        &["verify"],
        &["svc verify", "svc verify /var/backups/svc/monday --json"],
    ),
    (
        &["export"],
        &[
            "svc export --since 7d",
            "svc export --kind inference_calls --content",
        ],
    ),
    (&["mirror", "status"], &["svc mirror status"]),
    (&["mirror", "refresh"], &["svc mirror refresh acme/shop"]),
    (&["mirror", "gc"], &["svc mirror gc --retention-days 90"]),
    (
        &["note", "stamp"],
        &["svc note stamp SESSION --tool claude-code --commit HEAD"],
    ),
    (
        &["note", "session"],
        &["svc note session SESSION --tool claude-code --file src/main.rs"],
    ),
    (&["note", "show"], &["svc note show HEAD"]),
    (
        &["quarantine"],
        &["svc quarantine inference_calls FACT --reason x"],
    ),
    (
        &["release"],
        &["svc release inference_calls FACT --reason x"],
    ),
    (
        &["quarantine-inference-calls"],
        &[
            "svc quarantine-inference-calls SESSION --reason x",
            "svc quarantine-inference-calls --provider litellm --between 7d 2h --reason x --apply",
        ],
    ),
    (
        &["release-inference-calls"],
        &["svc release-inference-calls SESSION --reason x --apply"],
    ),
    (&["quarantine-log"], &["svc quarantine-log --all"]),
    (
        &["erase"],
        &[
            "svc erase --session SESSION",
            "svc erase --user ann --reason x --apply",
            "svc erase log",
        ],
    ),
    (
        &["erase", "log"],
        &["svc erase log", "svc erase log --json"],
    ),
    (
        &["gc"],
        &[
            "svc gc --older-than 90d",
            "svc gc --older-than 2026-01-31 --reason x --apply",
        ],
    ),
    (
        &["grant", "list"],
        &["svc grant list --token review-agent --history"],
    ),
    (
        &["grant", "add"],
        &[
            "svc grant add review-agent SESSION --reason x",
            "svc grant add review-agent --repo acme/shop --since 7d --reason x",
        ],
    ),
    (&["grant", "remove"], &["svc grant remove GRANT --reason x"]),
    (
        &["grant", "revoke"],
        &["svc grant revoke review-agent --reason x"],
    ),
    (
        &["grant", "restore"],
        &["svc grant restore review-agent --reason x"],
    ),
    (
        &["grant", "explain"],
        &["svc grant explain review-agent SESSION"],
    ),
    (
        &["prices", "load"],
        &["svc prices load model_prices_and_context_window.json"],
    ),
    (&["prices", "list"], &["svc prices list"]),
    (&["prices", "check"], &["svc prices check"]),
    (
        &["prices", "show"],
        &["svc prices show claude-sonnet-4-5 --provider anthropic"],
    ),
    (
        &["login"],
        &[
            "svc login https://svc.example.com",
            "svc login localhost:8301",
        ],
    ),
    (&["logout"], &["svc logout"]),
    (
        &["config", "show"],
        &["svc config show", "svc config show --origin"],
    ),
    (
        &["completions"],
        &["svc completions bash", "svc completions zsh"],
    ),
    (&["man"], &["svc man man1"]),
];

/// Returns the command line with its help: commands in groups, and examples.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    for (path, examples) in EXAMPLES {
        command = with_examples(command, path, examples);
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn with_examples(command: Command, path: &[&str], examples: &[&str]) -> Command {
    let Some((name, beneath)) = path.split_first() else {
        let mut text = String::from(if examples.len() == 1 {
            "Example:\n"
        } else {
            "Examples:\n"
        });
        for example in examples {
            text.extend(["  ", example, "\n"]);
        }
        let more = command.get_after_help().map(ToString::to_string);
        text.extend(more.into_iter().flat_map(|more| ["\n".to_owned(), more]));
        return command.after_help(text.trim_end().to_owned());
    };
    if command.find_subcommand(name).is_none() {
        return command;
    }
    command.mut_subcommand(name, |below| with_examples(below, beneath, examples))
}

/// Lists the commands in their groups, each with what it does.
fn groups(command: &Command) -> String {
    let shown: Vec<&Command> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .collect();
    let width = shown.iter().map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default() + 2;
    let mut text = String::new();
    let mut add = |heading: &str, commands: &[&Command]| {
        if commands.is_empty() {
            return;
        }
        text.extend([heading, ":\n"]);
        for command in commands {
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            // Writing to a string never fails.
            let _ = writeln!(text, "  {:<width$}{about}", command.get_name());
        }
        text.push('\n');
    };
    for (heading, names) in GROUPS {
        let named = names.iter();
        let commands: Vec<&Command> = named
            .filter_map(|name| {
                shown
                    .iter()
                    .find(|command| command.get_name() == *name)
                    .copied()
            })
            .collect();
        add(heading, &commands);
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&Command> = shown
        .iter()
        .filter(|command| !is_grouped(command.get_name()))
        .copied()
        .collect();
    add(OTHERS, &others);
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn every_example_is_a_command_of_the_shell() {
        for (path, examples) in EXAMPLES {
            for example in *examples {
                let mut words = example.split(' ');
                let begin: Vec<&str> = words.by_ref().skip(1).take(path.len()).collect();
                assert_eq!(begin, *path, "{example}");
                let matches = command().try_get_matches_from(example.split(' '));
                let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
                assert!(cli.is_ok(), "{example}: {:?}", cli.err());
            }
        }
    }

    #[test]
    fn every_command_is_listed_once_with_what_it_does() {
        let help = command().render_help().to_string();
        for below in command().get_subcommands() {
            let start = format!("\n  {} ", below.get_name());
            assert_eq!(
                help.matches(&start).count(),
                1,
                "{}: {help}",
                below.get_name()
            );
        }
        for (heading, _) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n")), "{heading}");
        }
        assert!(help.contains("\nExamples:\n  svc serve\n"), "{help}");
        assert!(help.contains("\n      --json "), "{help}");
        assert!(help.contains("Exit codes: 0 success"), "{help}");
    }

    #[test]
    fn a_command_shows_its_examples() {
        let mut command = command();
        let commit = command.find_subcommand_mut("commit").unwrap();
        let help = commit.render_help().to_string();
        assert!(help.contains("Examples:\n  svc commit HEAD\n"), "{help}");
    }
}
