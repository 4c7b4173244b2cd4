//! The formats of the agents, each in a file of its own.

mod block;
mod claude_code;
mod codex;
mod copilot_cli;
mod gemini;
mod opencode;
mod pi;

use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::json::Object;
use svc_model::time::Instant;

use self::claude_code::ClaudeCode;
use self::codex::Codex;
use self::copilot_cli::CopilotCli;
use self::gemini::Gemini;
use self::opencode::OpenCode;
use self::pi::Pi;
use crate::context::{Context, Line, Meaning};
use crate::{Agent, Lost, value};

/// Reads the lines of one agent. What it keeps between lines is small, and goes into a bookmark.
pub(crate) trait ReadLine {
    /// Returns a reader of a file. The last components of its path tell what its lines do not.
    fn new(name: &Path) -> Self
    where
        Self: Sized;

    /// Reads a line.
    fn line<'l>(&mut self, line: &'l Line, context: &mut Context) -> Result<Meaning<'l>, Lost>;

    /// Returns the time of a line, if it has one.
    fn time(&self, line: &Object) -> Option<Instant> {
        value::instant(line.get("timestamp"))
    }

    /// Nothing more comes for now. Open answers are finished after this.
    fn end(&mut self, _context: &mut Context) {}

    /// The role of which adjacent input messages are one.
    fn merged_role(&self) -> Option<&'static str> {
        None
    }

    /// Whether outputs are kept, because later input may be composed of them anew.
    fn keeps_outputs(&self) -> bool {
        false
    }
}

macro_rules! formats {
    ($($agent:ident,)*) => {
        /// The reader of a format, with what it knows of the lines before.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub(crate) enum Format {
            $($agent(Box<$agent>),)*
        }

        impl Format {
            pub(crate) fn new(agent: Agent, name: &Path) -> Self {
                match agent {
                    $(Agent::$agent => Self::$agent(Box::new($agent::new(name))),)*
                }
            }

            /// Returns whether this is the format of an agent.
            pub(crate) fn is_of(&self, agent: Agent) -> bool {
                match self {
                    $(Self::$agent(_) => agent == Agent::$agent,)*
                }
            }

            fn reader(&self) -> &dyn ReadLine {
                match self {
                    $(Self::$agent(format) => &**format,)*
                }
            }

            fn reader_mut(&mut self) -> &mut dyn ReadLine {
                match self {
                    $(Self::$agent(format) => &mut **format,)*
                }
            }
        }
    };
}

// One line an agent.
formats! {
    ClaudeCode,
    Codex,
    Pi,
    OpenCode,
    Gemini,
    CopilotCli,
}

impl Format {
    pub(crate) fn line<'l>(
        &mut self,
        line: &'l Line,
        context: &mut Context,
    ) -> Result<Meaning<'l>, Lost> {
        self.reader_mut().line(line, context)
    }

    pub(crate) fn time(&self, line: &Object) -> Option<Instant> {
        self.reader().time(line)
    }

    pub(crate) fn end(&mut self, context: &mut Context) {
        self.reader_mut().end(context);
    }

    pub(crate) fn merged_role(&self) -> Option<&'static str> {
        self.reader().merged_role()
    }

    pub(crate) fn keeps_outputs(&self) -> bool {
        self.reader().keeps_outputs()
    }
}
