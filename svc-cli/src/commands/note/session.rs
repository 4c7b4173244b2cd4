//! The Sessions that worked on uncommitted changes: those named by the environment, because an
//! agent runs git itself, and those remembered, because an agent edited and somebody else commits.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;
use svc_engine::capture::notes::Stamp;
use svc_engine::private;
use svc_model::id::SessionId;
use svc_model::json::{Json, Object};

use super::repository;
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The file of remembered Sessions, in the repository's git folder.
const FILE: &str = "svc-sessions";
/// The maximum size of that file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum size of a hook's input, in bytes.
const HOOK_BYTES_MAX: u64 = 25 * 1024 * 1024;
/// The agent's name for a Session without one.
const UNNAMED_TOOL: &str = "agent";

/// Variables in which agents pass their Session to child processes.
const VARIABLES: [(&str, &str); 2] = [
    ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    ("codex", "CODEX_THREAD_ID"),
];

/// An agent whose hooks pass a description of the call on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
}

impl Agent {
    const fn tool(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
        }
    }

    /// Returns the member of the hook's input that holds the Session.
    const fn member(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex => "session_id",
            Self::Cursor => "conversation_id",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Remember {
    /// The Session.
    #[arg(required_unless_present = "hook")]
    session: Option<String>,

    /// The agent.
    #[arg(long, value_name = "TOOL", required_unless_present = "hook")]
    tool: Option<String>,

    /// Read the Session from the input of this agent's hook.
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["tool", "session"])]
    hook: Option<Agent>,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
struct Remembered {
    tool: String,
    session_id: String,
    /// Whether it is newly remembered.
    added: bool,
}

impl Remember {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        if let Some(agent) = self.hook {
            // There is nothing to remember outside a repository or without a Session.
            drop(from_hook(agent).and_then(|stamp| remember(&stamp)));
            return Ok(());
        }
        let stamp = stamp(
            &self.tool.unwrap_or_default(),
            &self.session.unwrap_or_default(),
        )?;
        let remembered = Remembered {
            added: remember(&stamp)?,
            tool: stamp.tool,
            session_id: stamp.session_id.into(),
        };
        output.value(&remembered, |it| {
            let word = if it.added { "remembered" } else { "known" };
            format!("{word}: {} {}\n", escape(&it.tool), escape(&it.session_id))
        })
    }
}

/// Returns a Session of an agent.
pub(super) fn stamp(tool: &str, session_id: &str) -> Result<Stamp, CommandError> {
    let tool = tool.trim();
    if tool.is_empty() || tool.contains('\0') || tool.len() > 64 {
        return Err(CommandError::argument(
            "--tool",
            "must be a name of at most 64 bytes",
        ));
    }
    let session_id = SessionId::new(session_id)
        .map_err(|error| CommandError::argument("the Session", error.message()))?;
    Ok(Stamp {
        tool: tool.to_owned(),
        session_id,
    })
}

fn from_hook(agent: Agent) -> Result<Stamp, CommandError> {
    let mut described = Vec::new();
    io::stdin()
        .take(HOOK_BYTES_MAX)
        .read_to_end(&mut described)?;
    let described = Json::parse(&described).ok();
    let session_id = described
        .as_ref()
        .and_then(Json::as_object)
        .and_then(|call| call.get(agent.member())?.as_str());
    stamp(agent.tool(), session_id.unwrap_or_default())
}

/// Remembers a Session for the next commit, and returns whether it is new.
fn remember(stamp: &Stamp) -> Result<bool, CommandError> {
    let path = repository::own_path(FILE)?;
    if remembered(&path)?.contains(stamp) {
        return Ok(false);
    }
    let line = Json::Object(Object::from_iter([
        ("tool", stamp.tool.as_str()),
        ("session_id", stamp.session_id.as_str()),
    ]));
    let mut line = line.to_canonical();
    line.push(b'\n');
    // A single write of one line, because several agents may write at once.
    private::append_to(&path)?.write_all(&line)?;
    Ok(true)
}

/// Returns the remembered Sessions. Malformed lines are skipped.
fn remembered(path: &Path) -> Result<Vec<Stamp>, CommandError> {
    let mut text = String::new();
    match fs::File::open(path) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(text.lines().filter_map(read_line).collect())
}

fn read_line(line: &str) -> Option<Stamp> {
    let line = Json::parse(line.as_bytes()).ok()?.into_object()?;
    let text = |name| line.get(name).and_then(Json::as_str);
    stamp(text("tool")?, text("session_id")?).ok()
}

/// Returns the Sessions that the environment names.
fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Stamp> {
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

/// The Sessions that worked on the next commit.
pub(super) struct Pending {
    pub(super) stamps: Vec<Stamp>,
    file: std::path::PathBuf,
}

impl Pending {
    /// Returns the pending Sessions; none during a rebase, whose commits are the work of earlier
    /// Sessions and keep their notes.
    pub(super) fn now() -> Result<Self, CommandError> {
        let file = repository::own_path(FILE)?;
        for replaying in ["rebase-merge", "rebase-apply"] {
            if repository::own_path(replaying)?.exists() {
                return Ok(Self {
                    stamps: Vec::new(),
                    file: std::path::PathBuf::new(),
                });
            }
        }
        let mut stamps = remembered(&file)?;
        stamps.extend(of_environment(|name| std::env::var(name).ok()));
        Ok(Self { stamps, file })
    }

    /// Forgets the remembered Sessions once the commit names them.
    pub(super) fn forget(&self) -> Result<(), CommandError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
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

    #[test]
    fn a_line_that_is_no_session_is_passed_over() {
        assert!(read_line(r#"{"tool":"t","session_id":"s"}"#).is_some());
        for wrong in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"tool":"t"}"#,
            r#"{"tool":"","session_id":"s"}"#,
        ] {
            assert!(read_line(wrong).is_none(), "{wrong}");
        }
    }
}
