//! Checks in the agents' configuration files whether they send evidence here.

use std::fs;
use std::path::{Path, PathBuf};

use svc_model::json::Json;

use super::DoctorCheck;
use crate::output::escape;

/// An agent: where its configuration is, and what it contains if the agent sends evidence.
struct Agent {
    name: &'static str,
    file: &'static str,
    sends: &'static str,
    /// Returns what keeps evidence from arriving even though it is sent.
    obstacle: fn(&str) -> Option<String>,
    install: &'static str,
}

/// The variables of Claude Code that say how logs are sent, each with how its value begins when
/// logs arrive here.
const CLAUDE_CODE_SENDS: [(&str, &str); 3] = [
    ("OTEL_LOGS_EXPORTER", "otlp"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/"),
    ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/"),
];

const AGENTS: [Agent; 3] = [
    Agent {
        name: "claude-code",
        file: ".claude/settings.json",
        sends: "CLAUDE_CODE_ENABLE_TELEMETRY",
        obstacle: of_claude_code,
        install: "svc install claude-code --print",
    },
    Agent {
        name: "codex",
        file: ".codex/config.toml",
        sends: "[otel",
        obstacle: |_| None,
        install: "svc install codex --print",
    },
    Agent {
        name: "cursor",
        file: ".cursor/hooks.json",
        sends: "svc hook cursor",
        obstacle: |_| None,
        install: "svc install cursor --print",
    },
];

pub(super) fn checks() -> Vec<DoctorCheck> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let Some(home) = home.filter(|home| home.is_absolute()) else {
        return Vec::new();
    };
    AGENTS.iter().map(|agent| agent.check(&home)).collect()
}

impl Agent {
    fn check(&self, home: &Path) -> DoctorCheck {
        let shown = format!("~/{}", self.file);
        match fs::read_to_string(home.join(self.file)) {
            Ok(text) if text.contains(self.sends) => match (self.obstacle)(&text) {
                None => DoctorCheck::ok(self.name, format!("{shown} is set up to send")),
                Some(obstacle) => {
                    DoctorCheck::warning(self.name, format!("{shown}: {obstacle}"), self.install)
                }
            },
            Ok(_) => DoctorCheck::warning(
                self.name,
                format!("{shown} is not set up to send"),
                self.install,
            ),
            // Without this folder, the agent is not used on this machine.
            Err(_) if home.join(self.file).parent().is_some_and(Path::is_dir) => {
                DoctorCheck::warning(self.name, format!("{shown} does not exist"), self.install)
            }
            Err(_) => DoctorCheck::absent(self.name, "not used on this machine"),
        }
    }
}

/// Returns which variable in the settings of Claude Code keeps its logs from arriving. A variable
/// that is absent may be set elsewhere. Of the two protocols, the one for logs takes precedence.
fn of_claude_code(settings: &str) -> Option<String> {
    let settings = Json::parse(settings.as_bytes()).ok()?;
    let variables = settings.as_object()?.get("env")?.as_object()?;
    let value = |name: &str| variables.get(name)?.as_str();
    let [exporter, of_all, of_logs] = CLAUDE_CODE_SENDS;
    let protocol = value(of_logs.0).map_or(of_all, |_| of_logs);
    [exporter, protocol]
        .into_iter()
        .find_map(|(name, arrives)| {
            let value = value(name)?;
            (!value.starts_with(arrives)).then(|| {
                let value = escape(value);
                format!("{name} is {value}, which does not arrive here")
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::CheckState;

    #[test]
    fn settings_of_claude_code_that_prevent_delivery_are_found() {
        let obstacle = |variables: &str| of_claude_code(&format!(r#"{{"env":{{{variables}}}}}"#));
        for arrives in [
            "",
            r#""OTEL_LOGS_EXPORTER":"otlp","OTEL_EXPORTER_OTLP_PROTOCOL":"http/json""#,
            r#""OTEL_EXPORTER_OTLP_PROTOCOL":"grpc","OTEL_EXPORTER_OTLP_LOGS_PROTOCOL":"http/protobuf""#,
        ] {
            assert_eq!(obstacle(arrives), None, "{arrives}");
        }
        for (variables, name) in [
            (r#""OTEL_LOGS_EXPORTER":"console""#, "OTEL_LOGS_EXPORTER"),
            (
                r#""OTEL_EXPORTER_OTLP_PROTOCOL":"grpc""#,
                "OTEL_EXPORTER_OTLP_PROTOCOL",
            ),
            (
                r#""OTEL_EXPORTER_OTLP_PROTOCOL":"http/json","OTEL_EXPORTER_OTLP_LOGS_PROTOCOL":"grpc""#,
                "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
            ),
        ] {
            let message = obstacle(variables).expect("an obstacle");
            assert!(message.starts_with(&format!("{name} is ")), "{message}");
        }
        assert_eq!(of_claude_code("no JSON"), None);
    }

    #[test]
    fn an_agent_without_telemetry_settings_is_a_warning() {
        let home = tempfile::tempdir().expect("a folder");
        let [_, codex, _] = &AGENTS;
        assert_eq!(codex.check(home.path()).state, CheckState::Absent);
        fs::create_dir(home.path().join(".codex")).expect("a folder");
        assert_eq!(codex.check(home.path()).state, CheckState::Warning);
        let file = home.path().join(codex.file);
        fs::write(&file, "model = \"a\"\n").expect("a file");
        assert_eq!(codex.check(home.path()).state, CheckState::Warning);
        fs::write(&file, "[otel]\nenvironment = \"production\"\n").expect("a file");
        assert_eq!(codex.check(home.path()).state, CheckState::Ok);
    }
}
