use clap::Args;
use serde::Serialize;
use svc_engine::capture::notes::{self, StampError};
use svc_engine::clock::Clock;
use svc_model::time::Instant;

use super::pending::PendingSessions;
use super::{NOTES, remembered, repository};
use crate::error::CommandError;
use crate::output::{Output, escape};

#[derive(Debug, Args)]
pub(crate) struct Stamp {
    /// The Session.
    #[arg(required_unless_present = "pending")]
    session: Option<String>,

    /// The agent.
    #[arg(long, value_name = "TOOL", required_unless_present = "pending")]
    tool: Option<String>,

    /// Stamp with the Session that the environment names, and with the remembered Sessions that
    /// wrote a file which the commit changes.
    #[arg(long, conflicts_with_all = ["tool", "session"])]
    pending: bool,

    /// The commit.
    #[arg(long, default_value = "HEAD")]
    commit: String,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
struct StampResult {
    commit: String,
    /// Whether the commit's note was changed.
    stamped: bool,
    sessions: Vec<NamedSession>,
}

#[derive(Debug, Serialize)]
struct NamedSession {
    tool: String,
    session_id: String,
}

impl Stamp {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let commit = repository::commit(&self.commit)?;
        let now = now();
        let pending = if self.pending {
            Some(PendingSessions::of(&commit, now)?)
        } else {
            None
        };
        if let Some(trouble) = pending
            .as_ref()
            .and_then(|pending| pending.trouble.as_ref())
        {
            let trouble = trouble.message();
            output.warning(&format!("remembered Sessions may be left out: {trouble}"));
        }
        let stamps = match &pending {
            Some(pending) => pending.stamps.clone(),
            None => vec![remembered::stamp(
                &self.tool.unwrap_or_default(),
                &self.session.unwrap_or_default(),
            )?],
        };
        let note = repository::note(NOTES, &commit)?;
        let addition = notes::addition(note.as_deref(), &stamps, now)?;
        if let Some(line) = &addition {
            let notes = format!("--ref={NOTES}");
            repository::git_with(&["notes", &notes, "append", "-F", "-", &commit], line)?;
        }
        if let Some(pending) = pending {
            pending.forget(now)?;
        }
        let named = |stamp: notes::Stamp| NamedSession {
            tool: stamp.tool,
            session_id: stamp.session_id.into(),
        };
        let outcome = StampResult {
            commit,
            stamped: addition.is_some(),
            sessions: stamps.into_iter().map(named).collect(),
        };
        output.value(&outcome, render)
    }
}

/// Returns the current time in whole seconds, which is precise enough for a note.
fn now() -> Instant {
    const SECOND: i64 = 1_000_000;
    let now = Clock::system().now();
    Instant::from_microseconds(now.microseconds() / SECOND * SECOND).unwrap_or(now)
}

fn render(outcome: &StampResult) -> String {
    let short = outcome.commit.get(..10).unwrap_or_default();
    if outcome.sessions.is_empty() {
        return format!("{short}: no Session is named\n");
    }
    let word = if outcome.stamped {
        "stamped"
    } else {
        "already stamped"
    };
    let lines = outcome.sessions.iter().map(|named| {
        let (tool, session_id) = (escape(&named.tool), escape(&named.session_id));
        format!("{short}: {word}: {tool} {session_id}\n")
    });
    lines.collect()
}

impl From<StampError> for CommandError {
    fn from(error: StampError) -> Self {
        let code = match error {
            StampError::Foreign => "foreign_note",
            StampError::TooLarge => "note_too_large",
        };
        Self::refused(code, error.to_string())
            .hint("see the note: git notes --ref=refs/notes/svc show")
    }
}
