use clap::Args;
use serde::Serialize;
use svc_engine::capture::notes::NotesRef;

use super::repository;
use crate::error::CommandError;
use crate::output::{Output, Table, escape};

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The commit.
    #[arg(default_value = "HEAD")]
    commit: String,
}

/// The notes of a commit, for programs.
#[derive(Debug, Serialize)]
struct CommitNotes {
    commit: String,
    notes: Vec<Naming>,
}

#[derive(Debug, Serialize)]
struct Naming {
    notes_ref: &'static str,
    session_ids: Vec<String>,
    /// Why the service ignores the note.
    ignored: Option<String>,
}

impl Show {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let commit = repository::commit(&self.commit)?;
        let mut shown = CommitNotes {
            notes: Vec::new(),
            commit,
        };
        for notes in NotesRef::ALL {
            let Some(note) = repository::note(notes.as_str(), &shown.commit)? else {
                continue;
            };
            let (session_ids, ignored) = match notes.sessions(&note) {
                Ok(sessions) => (sessions.into_iter().map(String::from).collect(), None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            shown.notes.push(Naming {
                notes_ref: notes.as_str(),
                session_ids,
                ignored,
            });
        }
        output.value(&shown, render)
    }
}

fn render(shown: &CommitNotes) -> String {
    if shown.notes.is_empty() {
        return "no note names a Session\n".to_owned();
    }
    let mut table = Table::new(["notes", "session"]);
    for notes in &shown.notes {
        for session_id in &notes.session_ids {
            table.row([notes.notes_ref.to_owned(), escape(session_id)]);
        }
        if let Some(ignored) = &notes.ignored {
            table.row([notes.notes_ref.to_owned(), format!("(ignored: {ignored})")]);
        }
    }
    table.render()
}
