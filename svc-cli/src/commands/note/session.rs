//! Remembers Sessions that wrote files, for the commits that will contain the files, and reads the
//! Sessions that the environment names.

use std::env;
use std::io::{self, Read as _};
use std::path::Path;

use clap::Args;
use serde::Serialize;
use svc_engine::capture::notes::Stamp;
use svc_engine::clock::Clock;

use super::call::{self, Agent, ToolCall};
use super::remembered::{RememberedSession, RememberedSessions, stamp};
use super::repository;
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The maximum size of a hook's input, in bytes.
const HOOK_BYTES_MAX: u64 = 25 * 1024 * 1024;
/// The agent's name if its Session comes without one.
const UNNAMED_TOOL: &str = "agent";

/// Variables in which agents pass their Session to child processes.
const VARIABLES: [(&str, &str); 2] = [
    ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    ("codex", "CODEX_THREAD_ID"),
];

#[derive(Debug, Args)]
pub(crate) struct Remember {
    /// The Session.
    #[arg(required_unless_present = "hook")]
    session: Option<String>,

    /// The agent.
    #[arg(long, value_name = "TOOL", required_unless_present = "hook")]
    tool: Option<String>,

    /// A file that it wrote; repeatable. Without one, the Session counts for the next commit that
    /// no agent makes itself, whatever it changes.
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<String>,

    /// Read the Session and its files from the input of this agent's hook.
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["tool", "session", "files"])]
    hook: Option<Agent>,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
struct RememberResult {
    tool: String,
    session_id: String,
    /// Whether the Session, or one of its files, is newly remembered.
    added: bool,
}

impl Remember {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        if let Some(agent) = self.hook {
            // Outside a repository or without a Session, there is nothing to remember.
            drop(from_hook(agent).and_then(|call| remember(&call)));
            return Ok(());
        }
        let call = ToolCall {
            stamp: stamp(
                &self.tool.unwrap_or_default(),
                &self.session.unwrap_or_default(),
            )?,
            files: self.files,
            folder: None,
        };
        let remembered = RememberResult {
            added: remember(&call)?,
            tool: call.stamp.tool,
            session_id: call.stamp.session_id.into(),
        };
        output.value(&remembered, |remembered| {
            let word = if remembered.added {
                "remembered"
            } else {
                "known"
            };
            format!(
                "{word}: {} {}\n",
                escape(&remembered.tool),
                escape(&remembered.session_id)
            )
        })
    }
}

fn from_hook(agent: Agent) -> Result<ToolCall, CommandError> {
    let mut input = Vec::new();
    io::stdin().take(HOOK_BYTES_MAX).read_to_end(&mut input)?;
    ToolCall::read(agent, &input)
}

/// Remembers the Session of a call for the commits of its files, and returns whether anything is
/// new.
fn remember(call: &ToolCall) -> Result<bool, CommandError> {
    let remembered = RememberedSessions::here()?;
    let now = Clock::system().now();
    let entry = |file| RememberedSession {
        stamp: call.stamp.clone(),
        file,
        remembered_at: Some(now),
    };
    let files = in_work_tree(call);
    let mut entries: Vec<RememberedSession> =
        files.into_iter().map(|file| entry(Some(file))).collect();
    if entries.is_empty() {
        entries.push(entry(None));
    }
    remembered.add(&entries, now)
}

/// Returns the files of a call that are in the current work tree.
fn in_work_tree(call: &ToolCall) -> Vec<String> {
    if call.files.is_empty() {
        return Vec::new();
    }
    // A repository need not have a work tree.
    let Ok(top) = repository::git(&["rev-parse", "--show-toplevel"]) else {
        return Vec::new();
    };
    let folder = call.folder.clone().or_else(|| env::current_dir().ok());
    call::inside(Path::new(&top), &folder.unwrap_or_default(), &call.files)
}

/// Returns the Sessions that the environment names.
pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Stamp> {
    let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let own_tool = given("SVC_SESSION_TOOL").unwrap_or_else(|| UNNAMED_TOOL.to_owned());
    let named = VARIABLES
        .iter()
        .map(|(tool, name)| ((*tool).to_owned(), *name))
        .chain([(own_tool, "SVC_SESSION_ID")]);
    named
        .filter_map(|(tool, name)| stamp(&tool, &given(name)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_sessions() {
        let named = |given: &[(&str, &str)]| {
            let given: Vec<(String, String)> = given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let stamps = of_environment(|name| {
                let found = given.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone())
            });
            let shown = |stamp: Stamp| format!("{} {}", stamp.tool, stamp.session_id);
            stamps.into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(named(&[]), Vec::<String>::new());
        assert_eq!(
            named(&[
                ("CLAUDE_CODE_SESSION_ID", "c"),
                ("CODEX_THREAD_ID", " "),
                ("SVC_SESSION_ID", " s "),
            ]),
            ["claude-code c", "agent s"]
        );
        assert_eq!(
            named(&[("SVC_SESSION_ID", "s"), ("SVC_SESSION_TOOL", "mine")]),
            ["mine s"]
        );
    }
}
