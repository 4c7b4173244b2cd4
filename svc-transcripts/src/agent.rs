use std::fmt;

/// An agent whose transcripts can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// pi.
    Pi,
    /// `OpenCode`.
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Copilot CLI.
    CopilotCli,
}

impl Agent {
    /// All agents.
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Pi,
        Self::OpenCode,
        Self::Gemini,
        Self::CopilotCli,
    ];

    /// Returns the name of the agent, as commands and calls have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::CopilotCli => "copilot-cli",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
