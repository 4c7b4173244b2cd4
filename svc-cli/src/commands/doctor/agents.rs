//! The configuration files of agents: whether they send evidence here.

use std::fs;
use std::path::{Path, PathBuf};

use super::Check;

/// An agent: where its configuration is, and what it contains when the agent sends evidence.
struct Agent {
    name: &'static str,
    file: &'static str,
    sends: &'static str,
    install: &'static str,
}

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude-code",
        file: ".claude/settings.json",
        sends: "CLAUDE_CODE_ENABLE_TELEMETRY",
        install: "svc install claude-code --print",
    },
    Agent {
        name: "codex",
        file: ".codex/config.toml",
        sends: "[otel",
        install: "svc install codex --print",
    },
    Agent {
        name: "cursor",
        file: ".cursor/hooks.json",
        sends: "svc hook cursor",
        install: "svc install cursor --print",
    },
];

pub(super) fn checks() -> Vec<Check> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let Some(home) = home.filter(|home| home.is_absolute()) else {
        return Vec::new();
    };
    AGENTS.iter().map(|agent| agent.check(&home)).collect()
}

impl Agent {
    fn check(&self, home: &Path) -> Check {
        let shown = format!("~/{}", self.file);
        match fs::read_to_string(home.join(self.file)) {
            Ok(text) if text.contains(self.sends) => {
                Check::ok(self.name, format!("{shown} is set up to send"))
            }
            Ok(_) => Check::warning(
                self.name,
                format!("{shown} is not set up to send"),
                self.install,
            ),
            // Without this folder, the agent is not used on this machine.
            Err(_) if home.join(self.file).parent().is_some_and(Path::is_dir) => {
                Check::warning(self.name, format!("{shown} does not exist"), self.install)
            }
            Err(_) => Check::absent(self.name, "not used on this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::State;

    #[test]
    fn an_agent_sends_where_its_configuration_says_so() {
        let home = tempfile::tempdir().expect("a folder");
        let [_, codex, _] = &AGENTS;
        assert_eq!(codex.check(home.path()).state, State::Absent);
        fs::create_dir(home.path().join(".codex")).expect("a folder");
        assert_eq!(codex.check(home.path()).state, State::Warning);
        let file = home.path().join(codex.file);
        fs::write(&file, "model = \"a\"\n").expect("a file");
        assert_eq!(codex.check(home.path()).state, State::Warning);
        fs::write(&file, "[otel]\nenvironment = \"production\"\n").expect("a file");
        assert_eq!(codex.check(home.path()).state, State::Ok);
    }
}
