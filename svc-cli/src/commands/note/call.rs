//! What an agent's hook reports on standard input about a call: the Session, and the files that the
//! call wrote.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use svc_engine::capture::notes::Stamp;
use svc_model::json::{Json, Object};

use super::remembered::{ENTRIES_MAX, stamp};
use crate::error::CommandError;

/// The tools that write the files that they name. Other tools may only read theirs.
const WRITERS: [&str; 5] = ["Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch"];
/// The members that may name a file.
const MEMBERS: [&str; 3] = ["file_path", "notebook_path", "path"];
/// How the lines of a Codex patch start that name a file which exists afterwards.
const HEADERS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Move to: "];

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

/// A tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) stamp: Stamp,
    /// The files that it wrote, as the agent names them.
    pub(super) files: Vec<String>,
    /// The folder that relative paths start from, if it is not the current one.
    pub(super) folder: Option<PathBuf>,
}

impl ToolCall {
    /// Reads the input of an agent's hook.
    pub(super) fn read(agent: Agent, input: &[u8]) -> Result<Self, CommandError> {
        let input = Json::parse(input).ok().and_then(Json::into_object);
        let input = input.unwrap_or_default();
        let text = |name: &str| input.get(name).and_then(Json::as_str);
        let folder = text("cwd").map(PathBuf::from);
        Ok(Self {
            stamp: stamp(agent.tool(), text(agent.member()).unwrap_or_default())?,
            files: files(&input),
            folder: folder.filter(|folder| folder.is_absolute()),
        })
    }
}

fn files(input: &Object) -> Vec<String> {
    // A hook that is only about edits does not name the tool.
    let tool = input.get("tool_name").and_then(Json::as_str);
    if tool.is_some_and(|tool| !WRITERS.contains(&tool)) {
        return Vec::new();
    }
    let mut files = named(input);
    match input.get("tool_input") {
        Some(Json::Object(arguments)) => files.extend(named(arguments)),
        Some(arguments) => {
            let text = arguments.as_str().unwrap_or_default();
            match Json::parse(text.as_bytes()) {
                Ok(Json::Object(arguments)) => files.extend(named(&arguments)),
                _ => files.extend(patched(text)),
            }
        }
        None => {}
    }
    files.truncate(ENTRIES_MAX);
    files
}

fn named(members: &Object) -> Vec<String> {
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    let files = MEMBERS.into_iter().filter_map(text).map(str::to_owned);
    let mut files: Vec<String> = files.collect();
    files.extend(patched(text("command").unwrap_or_default()));
    files
}

fn patched(patch: &str) -> Vec<String> {
    let file = |line: &str| {
        let mut headers = HEADERS.iter();
        let file = headers.find_map(|header| line.strip_prefix(header))?;
        Some(file.trim().to_owned())
    };
    patch.lines().filter_map(file).collect()
}

/// Returns the files that are in a work tree, each once, relative to its top.
pub(super) fn inside(top: &Path, folder: &Path, files: &[String]) -> Vec<String> {
    let inside = files
        .iter()
        .filter(|file| !file.is_empty())
        .filter_map(|file| relative(top, &folder.join(file)));
    let inside: BTreeSet<String> = inside.collect();
    inside.into_iter().collect()
}

fn relative(top: &Path, file: &Path) -> Option<String> {
    // Git names a file by its real path, but an agent by the path that it was given.
    let top = top.canonicalize().ok()?;
    let real = file.canonicalize().ok().or_else(|| {
        let folder = file.parent()?.canonicalize().ok()?;
        Some(folder.join(file.file_name()?))
    })?;
    let inside = real.strip_prefix(top).ok()?.to_str()?;
    super::remembered::is_kept_path(inside).then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(agent: Agent, input: &str) -> Vec<String> {
        ToolCall::read(agent, input.as_bytes()).unwrap().files
    }

    #[test]
    fn a_call_names_its_session_and_what_it_wrote() {
        let claude = r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w/sub","hook_event_name":"PostToolUse",
            "tool_name":"Write","tool_input":{"file_path":"/w/a.rs","content":"x"},"tool_response":{"filePath":"/w/a.rs"}}"#;
        let call = ToolCall::read(Agent::ClaudeCode, claude.as_bytes()).unwrap();
        let expected = ToolCall {
            stamp: stamp("claude-code", "s").unwrap(),
            files: vec!["/w/a.rs".to_owned()],
            folder: Some(PathBuf::from("/w/sub")),
        };
        assert_eq!(call, expected);
        let notebook = r#"{"session_id":"s","cwd":"w","tool_name":"NotebookEdit","tool_input":{"notebook_path":"/w/a.ipynb"}}"#;
        let call = ToolCall::read(Agent::ClaudeCode, notebook.as_bytes()).unwrap();
        assert_eq!(call.files, ["/w/a.ipynb"]);
        assert_eq!(call.folder, None, "a relative folder is ignored");
        let codex = r#"{"session_id":"s","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a b.rs\n@@\n-x\n+*** Add File: quoted\n*** Move to: c.rs\r\n*** Add File: /w/d.rs\n+z\n*** Delete File: e.rs\n*** End Patch\n"}}"#;
        let named = read(Agent::Codex, codex);
        assert_eq!(named, ["a b.rs", "c.rs", "/w/d.rs"]);
        let patch =
            r#"{"session_id":"s","tool_name":"apply_patch","tool_input":"*** Add File: a.rs\n"}"#;
        assert_eq!(read(Agent::Codex, patch), ["a.rs"]);
        for cursor in [
            r#"{"conversation_id":"c","tool_name":"Write","tool_input":{"file_path":"/w/a.rs"}}"#,
            r#"{"conversation_id":"c","tool_name":"Write","tool_input":"{\"path\":\"/w/a.rs\"}"}"#,
            r#"{"conversation_id":"c","hook_event_name":"afterFileEdit","file_path":"/w/a.rs","edits":[]}"#,
        ] {
            assert_eq!(read(Agent::Cursor, cursor), ["/w/a.rs"], "{cursor}");
        }
    }

    #[test]
    fn a_call_may_name_no_file_but_needs_a_session() {
        for without in [
            r#"{"session_id":"s"}"#,
            r#"{"session_id":"s","tool_input":7}"#,
            r#"{"session_id":"s","tool_input":{"file_path":7}}"#,
            r#"{"session_id":"s","tool_name":"Read","tool_input":{"file_path":"/w/a.rs"}}"#,
            r#"{"session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
        ] {
            assert_eq!(read(Agent::ClaudeCode, without), [""; 0], "{without}");
        }
        for wrong in ["", "{", "[]", "{}", r#"{"session_id":7}"#] {
            assert!(ToolCall::read(Agent::ClaudeCode, wrong.as_bytes()).is_err());
        }
    }

    #[test]
    fn files_are_relative_to_the_top_of_the_work_tree() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().join("top");
        fs::create_dir_all(top.join("sub")).unwrap();
        for file in ["top/a.rs", "top/sub/b.rs", "outside.rs"] {
            fs::write(scratch.path().join(file), "").unwrap();
        }
        symlink(&top, scratch.path().join("linked")).unwrap();
        let linked = scratch.path().join("linked");
        let of = |file: &str| inside(&top, &linked.join("sub"), &[file.to_owned()]);
        let absolute = |file: &str| scratch.path().join(file).display().to_string();
        assert_eq!(of(&absolute("top/a.rs")), ["a.rs"]);
        assert_eq!(of(&absolute("linked/sub/b.rs")), ["sub/b.rs"]);
        assert_eq!(of("b.rs"), ["sub/b.rs"]);
        assert_eq!(of("../a.rs"), ["a.rs"]);
        assert_eq!(of("gone.rs"), ["sub/gone.rs"]);
        let none: [&str; 0] = [];
        for outside in ["../../outside.rs", "..", "", "/", "/nowhere/x", "a\0b"] {
            assert_eq!(of(outside), none, "{outside:?}");
        }
        let both = ["b.rs".to_owned(), absolute("top/sub/b.rs")];
        assert_eq!(inside(&linked, &linked.join("sub"), &both), ["sub/b.rs"]);
    }
}
