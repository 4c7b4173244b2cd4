//! Writes the notes of this service: the text to append to a commit's note.

use std::collections::BTreeSet;

use svc_model::id::SessionId;
use svc_model::json::{Json, Object};
use svc_model::time::Instant;

use super::{SVC_NOTE_BYTES_MAX, svc};

/// A Session that worked on a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The agent.
    pub tool: String,
    /// Its Session.
    pub session_id: SessionId,
}

/// Why a commit cannot be stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// The commit has a note that readers ignore, and would still ignore after the addition.
    #[error("the commit has a note that is not one of this service")]
    Foreign,
    /// The note would be too large for readers.
    #[error("the note would be larger than 65,536 bytes")]
    TooLarge,
}

/// Returns the line that adds these Sessions to a commit's note, or `None` if the note names all of
/// them. The order of the Sessions does not matter.
///
/// # Errors
///
/// See [`StampError`].
pub fn addition(
    note: Option<&[u8]>,
    stamps: &[Stamp],
    stamped_at: Instant,
) -> Result<Option<String>, StampError> {
    let note = note.filter(|note| !note.trim_ascii().is_empty());
    let known = note.map_or(Ok(BTreeSet::new()), known)?;
    let missing: BTreeSet<&Stamp> = stamps
        .iter()
        .filter(|stamp| !known.contains(*stamp))
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let sessions: Json = missing
        .into_iter()
        .map(|stamp| {
            Object::from_iter([
                ("tool", stamp.tool.as_str().to_owned()),
                ("session_id", stamp.session_id.as_str().to_owned()),
                ("stamped_at", stamped_at.to_string()),
            ])
        })
        .collect();
    let object: Object = [("v", Json::from(1)), ("sessions", sessions)]
        .into_iter()
        .collect();
    let canonical = Json::Object(object).to_canonical();
    let line = String::from_utf8_lossy(&canonical).into_owned();
    // git puts a blank line between two parts and a line break at the end.
    let length = note.map_or(0, |note| note.len() + 2) + line.len() + 1;
    if length > SVC_NOTE_BYTES_MAX {
        return Err(StampError::TooLarge);
    }
    Ok(Some(line))
}

/// Returns the Sessions that a note names.
fn known(note: &[u8]) -> Result<BTreeSet<Stamp>, StampError> {
    let text = String::from_utf8_lossy(note);
    let objects = svc::objects(&text).map_err(|_| StampError::Foreign)?;
    let mut known = BTreeSet::new();
    for object in &objects {
        for stamped in svc::read(object).map_err(|_| StampError::Foreign)? {
            let session_id = stamped.session_id.as_str().map(SessionId::new);
            if let (Some(tool), Some(Ok(session_id))) = (stamped.tool.as_str(), session_id) {
                known.insert(Stamp {
                    tool: tool.to_owned(),
                    session_id,
                });
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::NotesRef;

    fn at() -> Instant {
        Instant::from_microseconds(1_767_225_600_000_000).unwrap()
    }

    fn stamp(tool: &str, session_id: &str) -> Stamp {
        Stamp {
            tool: tool.to_owned(),
            session_id: SessionId::new(session_id).unwrap(),
        }
    }

    fn add(note: Option<&str>, stamps: &[Stamp]) -> Result<Option<String>, StampError> {
        addition(note.map(str::as_bytes), stamps, at())
    }

    #[test]
    fn sessions_are_sorted_and_named_once() {
        let line = add(
            None,
            &[
                stamp("codex", "z"),
                stamp("claude-code", "b"),
                stamp("codex", "a\u{e9}"),
                stamp("codex", "z"),
            ],
        );
        assert_eq!(
            line.unwrap().unwrap(),
            concat!(
                r#"{"v":1,"sessions":["#,
                r#"{"tool":"claude-code","session_id":"b","stamped_at":"2026-01-01T00:00:00Z"},"#,
                r#"{"tool":"codex","session_id":"a\u00e9","stamped_at":"2026-01-01T00:00:00Z"},"#,
                r#"{"tool":"codex","session_id":"z","stamped_at":"2026-01-01T00:00:00Z"}]}"#,
            )
        );
    }

    #[test]
    fn a_session_already_in_the_note_is_not_added_again() {
        let first = add(None, &[stamp("t", "a")]).unwrap().unwrap();
        assert_eq!(add(Some(&first), &[stamp("t", "a")]), Ok(None));
        assert_eq!(add(Some(&first), &[]), Ok(None));
        let second = add(Some(&first), &[stamp("t", "a"), stamp("u", "a")])
            .unwrap()
            .unwrap();
        let note = format!("{first}\n\n{second}\n");
        assert_eq!(second.matches("session_id").count(), 1);
        assert_eq!(
            add(Some(&note), &[stamp("t", "a"), stamp("u", "a")]),
            Ok(None)
        );
        let third = add(Some(&note), &[stamp("t", "b")]).unwrap().unwrap();
        let note = note + "\n" + &third;
        let sessions = NotesRef::Svc.sessions(note.as_bytes()).unwrap();
        assert_eq!(
            sessions.iter().map(SessionId::as_str).collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn a_foreign_note_is_left_alone() {
        for foreign in ["reviewed by me", r#"{"v":2}"#, r#"{"v":1,"sessions":[{}]}"#] {
            assert_eq!(
                add(Some(foreign), &[stamp("t", "a")]),
                Err(StampError::Foreign)
            );
        }
        assert!(add(Some(" \n"), &[stamp("t", "a")]).unwrap().is_some());
    }

    #[test]
    fn a_stamp_never_makes_a_note_too_large_to_read() {
        let mut note = String::new();
        let mut number = 0;
        loop {
            let session_id = format!("{number}{}", "x".repeat(1_000));
            let before = (!note.is_empty()).then_some(note.as_str());
            match add(before, &[stamp("t", &session_id)]) {
                Ok(line) => {
                    let line = line.unwrap();
                    note = if note.is_empty() {
                        line + "\n"
                    } else {
                        format!("{note}\n{line}\n")
                    };
                }
                Err(error) => {
                    assert_eq!(error, StampError::TooLarge);
                    break;
                }
            }
            number += 1;
        }
        assert!(number > 50);
        assert_eq!(
            NotesRef::Svc.sessions(note.as_bytes()).unwrap().len(),
            number
        );
    }
}
