//! The command line.

use std::ffi::OsString;

use clap::{ColorChoice, Parser, Subcommand, ValueEnum as _};

use crate::commands::{
    backup, capture, ci, commit, completions, config, context, db, demo, doctor, erase, evidence,
    export, facts, grant, hook, import, install, investigate, login, man, mcp, me, mirror, note,
    outbox, overview, prices, quarantine, report, schema, search, serve, session, sessions,
    transcript,
};
use crate::output::Format;

/// Evidence of AI coding-agent work: captured as immutable facts, read back exactly.
#[derive(Debug, Parser)]
#[command(
    name = "svc",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Commands that ask a service read SVC_URL and SVC_TOKEN (or SVC_TOKEN_FILE); without \
                  them they ask the service of the last login, else the one on this machine: the \
                  address where the last svc serve listens, or http://127.0.0.1:8000. Commands on \
                  the store read SVC_DATABASE_URL and SVC_ORG_ID. An empty variable counts as \
                  unset.\n\nExit codes: 0 success, even if nothing was found; 1 refused or \
                  failed; 2 wrong usage."
)]
pub(crate) struct Cli {
    /// Print JSON, errors included.
    #[arg(long, global = true)]
    json: bool,

    /// When to colour the output; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: ColorChoice,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    pub(crate) fn color(&self) -> ColorChoice {
        self.color
    }

    pub(crate) fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else {
            Format::Text
        }
    }
}

/// Returns the choice of `--color` before the arguments are parsed, because parse errors are
/// coloured too. An invalid choice is refused later, by the parser.
pub(crate) fn color_of(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let apart = arguments.windows(2).filter(|pair| pair[0] == "--color");
    let apart = apart.map(|pair| &*pair[1]);
    let joined = arguments.iter();
    let joined = joined.filter_map(|argument| argument.strip_prefix("--color="));
    let given = apart.chain(joined).last();
    let choice = given.and_then(|text| ColorChoice::from_str(text, false).ok());
    choice.unwrap_or_default()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service.
    ///
    /// Without any settings it creates what it needs: a SQLite file, and secrets in a private file
    /// whose path it logs. SIGTERM and Ctrl-C stop it once everything it accepted is stored.
    Serve(serve::Serve),
    /// Count stored and visible facts.
    ///
    /// Facts are visible unless they are quarantined. With a database URL, this reads the store
    /// itself; otherwise it asks the service.
    Facts(facts::Facts),
    /// Show what arrived, what was skipped and what was refused, by source and reason.
    ///
    /// The counts by source cover the whole organization: all its servers, from its start. A source
    /// that never delivered is listed too, so that you can spot a misconfigured client.
    Capture(capture::Capture),
    /// Show the client and authority of the current token.
    Me(me::Me),
    /// Show what became of the work of the last days.
    ///
    /// It says how much was accepted, committed, merged, green and red, what it cost, and what
    /// nobody could see; and it lists what needs a look and the latest Sessions. svc without a
    /// command shows the same, once a service is known.
    Overview(Box<overview::OverviewCommand>),
    /// Follow a CI run to its commit and to the Sessions behind it.
    ///
    /// It shows how the run ended, what is known about its commit, and what was captured of each
    /// Session observed there. Without a note on the commit or a report of the client, no Session is
    /// named.
    Investigate(Box<investigate::Investigate>),
    /// List Sessions, latest first.
    ///
    /// Sessions are ordered by when their first fact was captured. A Session is found through its
    /// visible facts: the user of any of them, the model of a call, the agent behind a decision or
    /// an edit, the repository of a commit that a note links to the Session.
    Sessions(sessions::Sessions),
    /// Search everything that was said in the Sessions that you may read.
    ///
    /// Each Session that matches is shown with its best excerpts, best first. The words are
    /// alternatives, and rare ones count most. Whatever was captured a moment ago may not be found
    /// yet; whatever was never captured cannot be found.
    Search(Box<search::Search>),
    /// Show what was captured of a Session, and what became of its commits.
    ///
    /// It shows what happened and when, without content. What was not captured is listed as such;
    /// it may still have happened.
    Session(session::Session),
    /// Print what was said in a Session, exactly and in order.
    ///
    /// A client sends the whole history with every call. For a Session, each message is printed
    /// once; for a single call, everything that was sent and answered. Control characters are
    /// escaped. --json prints one part per line, and every text unchanged.
    Transcript(transcript::Transcript),
    /// Show what is known about a commit: the Sessions observed at it, and its CI runs.
    ///
    /// Facts whose repository cannot be determined are counted as skipped, with the reason.
    Commit(commit::Commit),
    /// Report a CI run, or look up reported runs.
    #[command(subcommand)]
    Ci(ci::Ci),
    /// Show how to set up a source so that it sends its evidence here.
    ///
    /// The snippet contains the URL of the service and no token. Only git-hooks changes anything:
    /// the hooks of the current repository. They run the svc that SVC_PROGRAM names, else the one
    /// on PATH, else this one. docs/integrate lists what arrives from each source.
    Install(install::Install),
    /// Send the Sessions that an agent keeps on disk.
    ///
    /// Nothing leaves this machine unless you name folders: only Sessions that worked there are
    /// sent. Without any, it shows what there is. It can be run again: only what is new is read, and
    /// nothing is stored twice. Exits with 1 if a transcript could not be read or a call was
    /// rejected.
    Import(import::Import),
    /// Report what an agent did, from the agent's own hook.
    #[command(subcommand)]
    Hook(hook::Hook),
    /// Show or send deliveries that could not be made yet.
    ///
    /// Whatever svc hook and svc ci report --soft-fail cannot deliver is kept in
    /// $XDG_DATA_HOME/svc/outbox (or the folder named by SVC_OUTBOX) and sent with the next
    /// delivery.
    #[command(subcommand)]
    Outbox(outbox::Outbox),
    /// Serve evidence to an agent over the Model Context Protocol.
    ///
    /// It speaks the protocol over standard input and output until its input ends, and asks the
    /// service with the authority of its token: a retrieval token reads the granted Sessions, an
    /// operator token reads everything. svc install mcp-AGENT shows how to set up an agent.
    Mcp(mcp::Mcp),
    /// Find evidence of earlier work by keywords, within the granted Sessions.
    #[command(subcommand)]
    Context(context::Context),
    /// Read exact evidence.
    #[command(subcommand)]
    Evidence(evidence::Evidence),
    /// Load a small sample organization, then find and read one of its Sessions.
    ///
    /// It delivers what three people and their agents did to one repository, through the public
    /// routes; then it finds a Session by keywords and reads one exact part. You can run it again:
    /// nothing is stored twice. If no service is running, it starts one on this machine for the
    /// duration of the demo. If the store already has other Sessions, it adds a single Session to
    /// them.
    Demo(demo::Demo),
    /// Check the setup: the service, the token, the sources, this clone, the agents, the disk.
    ///
    /// Each failed check comes with what fixes it. Nothing is changed or stored. Exits
    /// with 1 when a check fails. Whatever is not used here does not count as failed.
    Doctor(doctor::Doctor),
    /// Report what became of the agents' work: what was committed, kept, tested and merged.
    ///
    /// Reports are computed from the store and the mirrors, and are not stored. docs/reports.md
    /// explains what each number says and what it does not say.
    #[command(subcommand)]
    Report(Box<report::Report>),
    /// Show the published schemas and validate documents against them.
    ///
    /// The schemas are built into this program; no service is needed.
    #[command(subcommand)]
    Schema(schema::Schema),
    /// Show or upgrade the schema of the database.
    #[command(subcommand)]
    Db(db::Db),
    /// Copy the store and its mirrors into a folder while servers keep running.
    ///
    /// All tables are read in one snapshot. The folder has a manifest, does not depend on the
    /// backend, and holds no secrets of the service. It is as confidential as everything the agents
    /// saw.
    Backup(backup::Backup),
    /// Restore a backup into an empty store of either backend.
    ///
    /// The restore is all or nothing. A store that is not empty is refused unless you ask to
    /// replace it. Mirrors that already exist are left unchanged.
    Restore(backup::Restore),
    /// Look for damage in the store, or in a backup.
    ///
    /// It reads each row and checks the digest of every content, the counts, and everything that a
    /// row refers to. It names whatever is damaged and exits with 1. Nothing is changed.
    Verify(backup::Verify),
    /// Print visible facts as lines of JSON, for other programs.
    ///
    /// All facts come from one snapshot, ordered by kind and then by id. Text written by people,
    /// models and machines is left out unless you ask for it. schemas/ExportedFact.json describes a
    /// line.
    Export(export::Export),
    /// Show, fetch and clean up the mirrors of repositories.
    #[command(subcommand)]
    Mirror(mirror::Mirror),
    /// Record which Sessions worked on a commit, as git notes.
    #[command(subcommand)]
    Note(note::Note),
    /// Hide a fact from every answer.
    ///
    /// It appends a row to the quarantine log; the fact itself is never changed.
    Quarantine(quarantine::QuarantineChange),
    /// Show a quarantined fact again.
    ///
    /// It appends a row to the quarantine log; the fact itself is never changed.
    Release(quarantine::QuarantineChange),
    /// Hide many model calls from every answer.
    ///
    /// It counts the calls; with --apply it appends a row to the log for each that is visible.
    QuarantineInferenceCalls(quarantine::Bulk),
    /// Show many quarantined model calls again.
    ///
    /// It counts the calls; with --apply it appends a row to the log for each that is quarantined.
    ReleaseInferenceCalls(quarantine::Bulk),
    /// List what was quarantined and released, oldest first.
    QuarantineLog(quarantine::Log),
    /// Erase the captured content of a Session or a user: messages, payloads, texts of edits.
    ///
    /// Facts stay: that a call was made, when, with which model. By default it only shows what
    /// would be erased. With --apply and --reason it erases the content permanently, records that
    /// in an append-only log, and frees the space. Only an earlier backup can bring the content
    /// back.
    Erase(erase::Erase),
    /// Erase old content, as svc erase does.
    ///
    /// It runs once: use a timer to run it regularly. By default it only shows what would be
    /// erased. With --apply and --reason it erases the content.
    Gc(erase::Gc),
    /// Manage what the named retrieval tokens may read.
    ///
    /// Each token of SVC_RETRIEVAL_TOKENS reads what is granted to its name: single Sessions, or
    /// everything that a rule reaches. A change takes effect at once on every server, and is
    /// recorded in an append-only log.
    #[command(subcommand)]
    Grant(Box<grant::Grant>),
    /// Load and look at the price tables that costs are derived with.
    ///
    /// None comes with the service, and none is fetched. Costs that a source reported need none.
    #[command(subcommand)]
    Prices(prices::Prices),
    /// Store a token for the commands that ask a service.
    ///
    /// The service checks the token. It is kept in a private file,
    /// $XDG_CONFIG_HOME/svc/credentials.json, and sent only to the service at this URL. SVC_TOKEN
    /// takes precedence.
    Login(login::Login),
    /// Delete the stored tokens of a service.
    Logout(login::Logout),
    /// Show the configuration of the service and this shell.
    #[command(subcommand)]
    Config(config::Config),
    /// Print shell completions.
    ///
    /// For bash: svc completions bash > ~/.local/share/bash-completion/completions/svc. For zsh,
    /// write them to a file named _svc in a folder of fpath. For fish: svc completions fish >
    /// ~/.config/fish/completions/svc.fish.
    Completions(completions::Completions),
    /// Write the manual pages into a folder.
    ///
    /// There is one page for svc and one for each command, such as svc-ci-report.1.
    Man(man::Man),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use svc_client::environment::{ALLOW_PLAIN_HTTP, CA_FILE, TOKEN, TOKEN_FILE, URL};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Visits a command and all commands below it.
    fn visit(command: &clap::Command, visitor: &mut impl FnMut(&clap::Command)) {
        visitor(command);
        for below in command.get_subcommands() {
            visit(below, visitor);
        }
    }

    #[test]
    fn the_server_knows_every_variable_that_the_shell_reads() {
        let mut read = std::collections::BTreeSet::new();
        visit(&Cli::command(), &mut |command| {
            let variables = command.get_arguments().filter_map(clap::Arg::get_env);
            read.extend(variables.map(|name| name.to_string_lossy().into_owned()));
        });
        let unnamed = [
            URL,
            TOKEN,
            TOKEN_FILE,
            ALLOW_PLAIN_HTTP,
            CA_FILE,
            "SVC_DATABASE_URL",
            "SVC_ORG_ID",
            "SVC_OUTBOX",
            "SVC_REPOSITORY_ID",
            "SVC_REPOSITORY_HOST",
        ];
        read.extend(unnamed.map(str::to_owned));
        for name in read {
            let known =
                svc_server::env::find(&name).is_some() || svc_server::env::OTHERS.contains(&&*name);
            assert!(known, "{name}");
        }
    }

    #[test]
    fn the_choice_of_colours_is_known_before_the_arguments_are_read() {
        for (line, expected) in [
            ("svc facts", ColorChoice::Auto),
            ("svc facts --color never", ColorChoice::Never),
            ("svc --color=always nonsense", ColorChoice::Always),
            ("svc facts --color", ColorChoice::Auto),
            ("svc facts --color perhaps", ColorChoice::Auto),
        ] {
            let arguments = line.split(' ').map(OsString::from);
            assert_eq!(color_of(arguments), expected, "{line}");
        }
    }

    #[test]
    fn the_json_flag_is_accepted_before_and_after_a_command() {
        for line in [
            "svc --json facts",
            "svc facts --json",
            "svc db status --json",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(cli.format(), Format::Json, "{line}");
        }
    }

    #[test]
    fn invalid_usage_is_refused() {
        for line in [
            "svc",
            "svc nonsense",
            "svc db",
            "svc backup",
            "svc restore",
            "svc verify b --org acme",
            "svc export --kind sessions",
            "svc context",
            "svc quarantine-log --tail many",
            "svc quarantine inference_calls 1",
            "svc quarantine nonsense 1 --reason x",
            "svc quarantine-inference-calls --all",
            "svc release-inference-calls --reason x --between 2026-01-01T00:00:00Z",
            "svc login",
            "svc session",
            "svc overview --days 2",
            "svc overview --outcome won",
            "svc search",
            "svc search x --limit 21",
            "svc search x --kind tool",
            "svc sessions --limit 101",
            "svc sessions --cursor c --all",
            "svc session s --tail 1 --all",
            "svc investigate",
            "svc completions powershell",
            "svc man",
            "svc facts --color perhaps",
            "svc investigate 7 --attempt 0",
            "svc investigate 7 --system hudson",
            "svc ci outcome",
            "svc ci failures --limit 101",
            "svc ci failures --cursor c --all",
            "svc ci failures --result broken",
            "svc context retrieve",
            "svc context retrieve pager --max-bytes 1",
            "svc evidence read s",
            "svc report",
            "svc schema",
            "svc schema show",
            "svc schema validate Part",
            "svc report model --since-days 0",
            "svc report model --compare a",
            "svc report model --non-inferiority-margin 0.1",
            "svc report attribution-share",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
