//! Authorship notes of git-ai: attestations of lines, a line `---`, and metadata as JSON. Only the
//! agents in the metadata are read. Git joins the notes of commits that become one, one after the
//! other; all of them are read.

use svc_model::id::SessionId;
use svc_model::json::{Json, Object};

use super::{GIT_AI_SESSIONS_MAX, NoteError, Sessions};

/// The line between attestations and metadata.
const DIVIDER: &str = "---";
/// The prefix of the schema version. Later minor versions only add members.
const SCHEMA: &str = "authorship/3.";
/// The lists of agents, in the current format and in the previous one.
const LISTS: [&str; 2] = ["sessions", "prompts"];

/// Returns the Sessions of a note. Unknown members are ignored.
pub(super) fn sessions(note: &str) -> Result<Vec<SessionId>, NoteError> {
    let mut sessions = Sessions::default();
    let mut rest = Some(metadata(note).ok_or(NoteError::Shape)?);
    while let Some(text) = rest {
        let next = metadata(text);
        // The attestations of a note that follows come after the object.
        let text = match next {
            Some(_) => &text[..object_end(text).ok_or(NoteError::NotJson)?],
            None => text,
        };
        add(text, &mut sessions)?;
        rest = next;
    }
    if sessions.named.len() > GIT_AI_SESSIONS_MAX {
        return Err(NoteError::TooManySessions);
    }
    Ok(sessions.named)
}

/// Adds the Sessions in the metadata of one note.
fn add(metadata: &str, sessions: &mut Sessions) -> Result<(), NoteError> {
    let metadata = Json::parse(metadata.as_bytes()).map_err(|_| NoteError::NotJson)?;
    let metadata = metadata.as_object().ok_or(NoteError::Shape)?;
    let version = metadata.get("schema_version").and_then(Json::as_str);
    if !version.is_some_and(|version| version.starts_with(SCHEMA)) {
        return Err(NoteError::Shape);
    }
    for list in LISTS {
        let Some(list) = metadata.get(list).and_then(Json::as_object) else {
            continue;
        };
        for (_, record) in list {
            if let Some(id) = record.as_object().and_then(agent_id) {
                sessions.add(id);
            }
        }
    }
    Ok(())
}

/// Returns where the object ends that a text begins with.
fn object_end(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the text after the divider. In JSON no line is a divider: strings have no line breaks.
fn metadata(note: &str) -> Option<&str> {
    let mut rest = note;
    loop {
        let (line, after) = rest.split_once('\n')?;
        if line.strip_suffix('\r').unwrap_or(line) == DIVIDER {
            return Some(after);
        }
        rest = after;
    }
}

fn agent_id(record: &Object) -> Option<&svc_model::json::Text> {
    record.get("agent_id")?.as_object()?.get("id")?.as_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::{GIT_AI_NOTE_BYTES_MAX, NotesRef};

    fn read(note: &str) -> Result<Vec<String>, NoteError> {
        let sessions = NotesRef::GitAi.sessions(note.as_bytes())?;
        Ok(sessions.into_iter().map(String::from).collect())
    }

    const NOTE: &str = r#"src/pager.rs
  s_1f996adffcb53c::t_0a1b2c3d4e5f60 12-31,40
  h_5244d79ce4809c 32-39
"docs/read me.md"
  s_b8af10d3dda112::t_99887766554433 1-8
---
{"schema_version":"authorship/3.0.0","base_commit_sha":"6b1d0c5a7f3e2d1c0b9a8f7e6d5c4b3a29181706",
 "prompts":{"7f3e2d1c0b9a8f7e":{"agent_id":{"tool":"cursor","id":" c-1 ","model":"m"},"accepted_lines":2},
            "0123456789abcdef":{"agent_id":{"tool":"claude","id":"5b1f8a70"}}},
 "humans":{"h_5244d79ce4809c":{"author":"Rae Okafor <rae@example.test>"}},
 "sessions":{"s_1f996adffcb53c":{"agent_id":{"tool":"claude","id":"5b1f8a70","model":"m"},"human_author":"rae"},
             "s_b8af10d3dda112":{"agent_id":{"tool":"codex","id":"019efea2","model":"m"},"new":{}}},
 "later":[1]}
"#;

    #[test]
    fn each_agent_of_prompts_and_sessions_is_named_once() {
        assert_eq!(read(NOTE).unwrap(), ["5b1f8a70", "019efea2", "c-1"]);
        assert_eq!(
            read(&NOTE.replace('\n', "\r\n")).unwrap(),
            read(NOTE).unwrap()
        );
    }

    #[test]
    fn a_note_may_consist_of_metadata_only() {
        let note = "---\n{\"schema_version\":\"authorship/3.1.0\",\"prompts\":{}}";
        assert_eq!(read(note).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_first_line_that_is_only_a_divider_starts_the_metadata() {
        let inside = "a\n  s_1::t_1 1\n --- \n----\n---\n";
        let good =
            r#"{"schema_version":"authorship/3.0.0","sessions":{"s":{"agent_id":{"id":"a"}}}}"#;
        assert_eq!(read(&(inside.to_owned() + good)).unwrap(), ["a"]);
        let twice = format!("---\n---\n{good}");
        assert_eq!(read(&twice), Err(NoteError::NotJson));
    }

    #[test]
    fn notes_that_git_joined_are_read_together() {
        let note = |id: &str| {
            format!(
                "a.txt\n  s_1::t_1 1-1\n---\n{{\n  \"schema_version\": \"authorship/3.0.0\",\n  \
                 \"base\": \"}} \\\" {{\",\n  \"sessions\": {{\"s\": {{\"agent_id\": {{\"id\": \"{id}\"}}}}}}\n}}"
            )
        };
        for between in ["\n", "\n\n", "\r\n"] {
            let joined = [note("a"), note("b"), note("a"), note("c")].join(between);
            assert_eq!(read(&joined).unwrap(), ["a", "b", "c"]);
        }
        for (other, error) in [
            ("b\n---\n{}", NoteError::Shape),
            ("b\n---\n{", NoteError::NotJson),
            ("b\n---\n{}\n---\n", NoteError::Shape),
            ("more", NoteError::NotJson),
        ] {
            assert_eq!(
                read(&format!("{}\n{other}", note("a"))),
                Err(error),
                "{other}"
            );
        }
    }

    #[test]
    fn a_record_without_an_agent_id_is_dropped_alone() {
        let note = r#"---
{"schema_version":"authorship/3.0.0","sessions":{"a":0,"b":{},"c":{"agent_id":[]},
 "d":{"agent_id":{"id":1}},"e":{"agent_id":{"id":"\u0000"}},"f":{"agent_id":{"id":"kept"}}},"prompts":[]}"#;
        assert_eq!(read(note).unwrap(), ["kept"]);
    }

    #[test]
    fn a_note_of_another_format_is_refused() {
        for (wrong, error) in [
            ("", NoteError::Shape),
            ("---", NoteError::Shape),
            ("text\n", NoteError::Shape),
            ("---\n", NoteError::NotJson),
            ("---\n[]", NoteError::Shape),
            ("---\n{}", NoteError::Shape),
            ("---\n{\"schema_version\":3}", NoteError::Shape),
            (
                "---\n{\"schema_version\":\"authorship/4.0.0\"}",
                NoteError::Shape,
            ),
            (
                "---\n{\"schema_version\":\"authorship/3.0.0\"} more",
                NoteError::NotJson,
            ),
        ] {
            assert_eq!(read(wrong), Err(error), "{wrong:?}");
        }
    }

    #[test]
    fn the_size_and_the_number_of_sessions_are_bounded() {
        let many = |count: usize| {
            let records: Vec<_> = (0..count)
                .map(|number| format!(r#""{number}":{{"agent_id":{{"id":"{number}"}}}}"#))
                .collect();
            let records = records.join(",");
            format!("---\n{{\"schema_version\":\"authorship/3.0.0\",\"sessions\":{{{records}}}}}")
        };
        assert_eq!(
            read(&many(GIT_AI_SESSIONS_MAX)).unwrap().len(),
            GIT_AI_SESSIONS_MAX
        );
        assert_eq!(
            read(&many(GIT_AI_SESSIONS_MAX + 1)),
            Err(NoteError::TooManySessions)
        );
        let large = "x\n".repeat(GIT_AI_NOTE_BYTES_MAX / 2) + "---\n{}";
        assert_eq!(read(&large), Err(NoteError::TooLarge));
    }
}
