//! Where agents keep their transcripts.

use std::collections::BTreeSet;
use std::env;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err::{self as fs, DirEntry};
use svc_transcripts::Agent;

/// How deep in a folder the stores of `OpenCode` are looked for.
const FOLDERS_WITHIN: u32 = 3;

/// The transcripts that were found, and the folders that could not be read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<PathBuf>,
    pub(super) unreadable: Vec<(PathBuf, io::Error)>,
    /// Whether the places were named, and are not the agent's own.
    are_named: bool,
    /// The files that were found, each by its device and inode: some agents link a file twice.
    known: BTreeSet<(u64, u64)>,
}

impl Found {
    /// Finds the transcripts of an agent in its own places.
    pub(super) fn of_agent(agent: Agent) -> Self {
        let mut found = Self::default();
        for place in own_places(agent) {
            if place.exists() {
                found.add(agent, place);
            }
        }
        found
    }

    /// Finds the transcripts of an agent at these paths. A file is taken whatever its name is.
    pub(super) fn at(agent: Agent, paths: &[PathBuf]) -> Self {
        let mut found = Self {
            are_named: true,
            ..Self::default()
        };
        for path in paths {
            found.add(agent, path.clone());
        }
        found
    }

    fn add(&mut self, agent: Agent, path: PathBuf) {
        match fs::metadata(&path) {
            Err(error) => self.unreadable.push((path, error)),
            Ok(about) if about.is_file() => self.add_file(path),
            Ok(_) if agent == Agent::OpenCode => self.add_stores(&path, FOLDERS_WITHIN),
            Ok(_) => self.walk(agent, path),
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        match fs::metadata(&path) {
            Ok(about) if self.known.insert((about.dev(), about.ino())) => self.files.push(path),
            Ok(_) => {}
            Err(error) => self.unreadable.push((path, error)),
        }
    }

    /// Takes the database of a folder, or else the tree of files that older versions wrote, or else
    /// those of the folders in it.
    fn add_stores(&mut self, folder: &Path, within: u32) {
        let database = folder.join("opencode.db");
        if database.is_file() {
            return self.add_file(database);
        }
        let mut trees = [folder.join("storage"), folder.to_owned()].into_iter();
        if let Some(tree) = trees.find(|tree| tree.join("message").is_dir()) {
            return self.files.push(tree);
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.filter_map(Result::ok),
            Err(error) => return self.unreadable.push((folder.to_owned(), error)),
        };
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        folders.sort();
        for folder in folders.iter().filter(|_| within > 0) {
            self.add_stores(folder, within - 1);
        }
    }

    /// Takes the transcripts in a folder and below it. Links are not followed.
    fn walk(&mut self, agent: Agent, folder: PathBuf) {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.unreadable.push((folder, error));
                    continue;
                }
            };
            let mut entries: Vec<DirEntry> = entries.filter_map(Result::ok).collect();
            entries.sort_by_key(DirEntry::file_name);
            for entry in entries {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind)
                        if kind.is_file()
                            && is_transcript(agent, &entry.path(), self.are_named) =>
                    {
                        self.add_file(entry.path());
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns the folder that a variable names, or else one beneath the home.
fn place(variable: &str, beneath_home: &str) -> Option<PathBuf> {
    let given = env::var_os(variable).filter(|value| !value.is_empty());
    given.map(PathBuf::from).or_else(|| home(beneath_home))
}

fn home(beneath: &str) -> Option<PathBuf> {
    let home = env::var_os("HOME").filter(|value| !value.is_empty())?;
    Some(PathBuf::from(home).join(beneath))
}

/// Returns the folders in which an agent keeps transcripts.
fn own_places(agent: Agent) -> Vec<PathBuf> {
    let (root, beneath): (_, &[&str]) = match agent {
        Agent::ClaudeCode => (place("CLAUDE_CONFIG_DIR", ".claude"), &["projects"]),
        Agent::Codex => (
            place("CODEX_HOME", ".codex"),
            &["sessions", "archived_sessions"],
        ),
        Agent::Pi => (home(".pi/agent"), &["sessions"]),
        Agent::OpenCode => (place("XDG_DATA_HOME", ".local/share"), &["opencode"]),
        Agent::Gemini => (home(".gemini"), &["tmp"]),
        Agent::CopilotCli => (home(".copilot"), &["session-state"]),
    };
    let root = root.into_iter();
    root.flat_map(|root| beneath.iter().map(move |name| root.join(name)))
        .collect()
}

/// Returns whether a file in a folder of an agent is one of its transcripts. In a folder that was named,
/// it may have another name than the agent gave it.
fn is_transcript(agent: Agent, path: &Path, is_named: bool) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        return false;
    };
    let (stem, endings) = name.split_once('.').unwrap_or((name, ""));
    let ends_with =
        |ending| endings == ending || path.extension().is_some_and(|last| last == ending);
    let has_lines = ends_with("jsonl");
    match agent {
        Agent::ClaudeCode => {
            let mut folders = path.components();
            let of_subagent = folders.any(|folder| folder.as_os_str() == "subagents");
            has_lines && (!of_subagent || stem.starts_with("agent-"))
        }
        Agent::Codex => has_lines || ends_with("jsonl.zst"),
        Agent::Gemini => {
            let is_its_own = stem.starts_with("session-") || (is_named && stem != "logs");
            has_lines || (is_its_own && ends_with("json"))
        }
        Agent::Pi | Agent::OpenCode | Agent::CopilotCli => has_lines,
    }
}

/// Returns whether a file is one document of JSON, as older versions of Gemini CLI wrote.
pub(super) fn is_document(agent: Agent, path: &Path) -> bool {
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    agent == Agent::Gemini && is_json
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(found: &Found) -> Vec<String> {
        let names = found.files.iter().map(|path| path.file_name().unwrap());
        names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn each_transcript_is_found_once() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["projects/-w/s/subagents/workflows/w", "elsewhere"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for name in [
            "projects/-w/s.jsonl",
            "projects/-w/notes.txt",
            "projects/-w/s/subagents/agent-1.jsonl",
            "projects/-w/s/subagents/agent-1.meta.json",
            "projects/-w/s/subagents/workflows/w/agent-2.jsonl",
            "projects/-w/s/subagents/workflows/w/journal.jsonl",
            "elsewhere/other.jsonl",
        ] {
            fs::write(at(name), "").unwrap();
        }
        let twice = at("projects/-w/s/agent-1-again.jsonl");
        fs::hard_link(at("projects/-w/s/subagents/agent-1.jsonl"), twice).unwrap();
        symlink(at("elsewhere"), at("projects/-w/link")).unwrap();
        symlink(at("elsewhere/other.jsonl"), at("projects/-w/x.jsonl")).unwrap();
        let found = Found::at(Agent::ClaudeCode, &[at("projects")]);
        assert_eq!(found.files.len(), 3, "{:?}", names(&found));
        let found = Found::at(Agent::ClaudeCode, &[at("projects/-w/notes.txt"), at("no")]);
        assert_eq!(names(&found), ["notes.txt"], "it was named");
        assert_eq!(found.unreadable.len(), 1);
    }

    #[test]
    fn stores_are_found_in_a_folder_that_holds_several() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in [
            "old/storage/message",
            "older/message",
            "new",
            "other/x/y/z/w/message",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("new/opencode.db"), "").unwrap();
        let found = Found::at(Agent::OpenCode, &[place.path().to_owned()]);
        assert_eq!(
            found.files,
            [at("new/opencode.db"), at("old/storage"), at("older")]
        );
    }

    #[test]
    fn each_agent_has_its_own_files() {
        for (agent, name, expected) in [
            (Agent::Codex, "sessions/2026/01/02/rollout-1.jsonl", true),
            (Agent::Codex, "archived_sessions/rollout-1.jsonl.zst", true),
            (Agent::Codex, "sessions/x.json", false),
            (Agent::Gemini, "tmp/p/chats/session-1.json", true),
            (Agent::Gemini, "tmp/p/logs.json", false),
            (Agent::Pi, "sessions/--w--/a.jsonl", true),
            (Agent::CopilotCli, "session-state/x/events.jsonl", true),
            (Agent::CopilotCli, "session-state/x/workspace.yaml", false),
        ] {
            let path = Path::new(name);
            assert_eq!(is_transcript(agent, path, false), expected, "{name}");
            assert_eq!(is_transcript(agent, path, true), expected, "{name}");
        }
        let copy = Path::new("backup/chat.json");
        assert!(is_transcript(Agent::Gemini, copy, true));
        assert!(!is_transcript(Agent::Gemini, copy, false));
        assert!(is_document(Agent::Gemini, Path::new("session-1.json")));
        assert!(!is_document(Agent::Gemini, Path::new("session-1.jsonl")));
    }
}
