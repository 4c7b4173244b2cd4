//! Dispatches the command line to its command.

use svc_engine::store::QuarantineAction;

use crate::cli::{Cli, Command};
use crate::error::CommandError;
use crate::help;
use crate::output::Output;

/// Runs the command.
pub(crate) fn run(cli: Cli, output: &mut Output) -> Result<(), CommandError> {
    match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Facts(facts) => facts.run(output),
        Command::Capture(capture) => capture.run(output),
        Command::Overview(overview) => overview.run(output),
        Command::Investigate(investigate) => investigate.run(output),
        Command::Sessions(sessions) => sessions.run(output),
        Command::Search(search) => search.run(output),
        Command::Session(session) => session.run(output),
        Command::Transcript(transcript) => transcript.run(output),
        Command::Commit(commit) => commit.run(output),
        Command::Me(me) => me.run(output),
        Command::Ci(ci) => ci.run(output),
        Command::Import(import) => import.run(output),
        Command::Install(install) => install.run(output),
        Command::Hook(hook) => {
            hook.run(output);
            Ok(())
        }
        Command::Outbox(outbox) => outbox.run(output),
        Command::Mcp(mcp) => mcp.run(),
        Command::Context(context) => context.run(output),
        Command::Evidence(evidence) => evidence.run(output),
        Command::Demo(demo) => demo.run(output),
        Command::Doctor(doctor) => doctor.run(output),
        Command::Report(report) => report.run(output),
        Command::Schema(schema) => schema.run(output),
        Command::Db(db) => db.run(output),
        Command::Backup(backup) => backup.run(output),
        Command::Restore(restore) => restore.run(output),
        Command::Verify(verify) => verify.run(output),
        Command::Export(export) => export.run(output),
        Command::Mirror(mirror) => mirror.run(output),
        Command::Note(note) => note.run(output),
        Command::Quarantine(change) => change.run(QuarantineAction::Quarantine, output),
        Command::Release(change) => change.run(QuarantineAction::Release, output),
        Command::QuarantineInferenceCalls(bulk) => bulk.run(QuarantineAction::Quarantine, output),
        Command::ReleaseInferenceCalls(bulk) => bulk.run(QuarantineAction::Release, output),
        Command::QuarantineLog(log) => log.run(output),
        Command::Erase(erase) => erase.run(output),
        Command::Gc(gc) => gc.run(output),
        Command::Grant(grant) => grant.run(output),
        Command::Prices(prices) => prices.run(output),
        Command::Login(login) => login.run(output),
        Command::Logout(logout) => logout.run(output),
        Command::Config(config) => config.run(output),
        Command::Completions(completions) => completions.run(help::command(), output),
        Command::Man(man) => man.run(help::command(), output),
    }
}
