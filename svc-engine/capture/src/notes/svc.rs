//! The notes of this service: one or more JSON objects in a row, because git concatenates notes
//! when it amends or rebases commits.

use svc_model::id::{SessionId, is_trimmed};
use svc_model::json::{Json, Object, Text};

use super::{NoteError, Sessions};

/// One Session in a note.
pub(super) struct StampedSession<'a> {
    pub(super) tool: &'a Text,
    pub(super) session_id: &'a Text,
}

/// Returns the Sessions of a note. One invalid object invalidates the whole note: nobody meant to
/// publish the rest.
pub(super) fn sessions(note: &str) -> Result<Vec<SessionId>, NoteError> {
    let mut sessions = Sessions::default();
    for object in objects(note)? {
        for stamped in read(&object)? {
            sessions.add(stamped.session_id);
        }
    }
    Ok(sessions.named)
}

/// Returns the objects of a note.
pub(super) fn objects(note: &str) -> Result<Vec<Object>, NoteError> {
    let mut objects = Vec::new();
    let mut rest = note.trim_matches(is_trimmed);
    if rest.is_empty() {
        return Err(NoteError::NotJson);
    }
    while !rest.is_empty() {
        let (object, after) = split_object(rest).ok_or(NoteError::NotJson)?;
        let object = Json::parse(object.as_bytes()).map_err(|_| NoteError::NotJson)?;
        objects.push(object.into_object().ok_or(NoteError::NotJson)?);
        rest = after.trim_start_matches(is_trimmed);
    }
    Ok(objects)
}

/// Splits a text after the brace that closes its first object.
fn split_object(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(text.split_at(place + 1));
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads one object of a note.
pub(super) fn read(object: &Object) -> Result<Vec<StampedSession<'_>>, NoteError> {
    let version = object.get("v").and_then(Json::as_number);
    let sessions = object.get("sessions").and_then(Json::as_array);
    match (object.len(), version, sessions) {
        (2, Some(version), Some(sessions)) if version.as_str() == "1" => sessions
            .iter()
            .map(|session| read_session(session).ok_or(NoteError::Shape))
            .collect(),
        _ => Err(NoteError::Shape),
    }
}

fn read_session(session: &Json) -> Option<StampedSession<'_>> {
    let session = session.as_object()?;
    let text = |name| session.get(name).and_then(Json::as_text);
    text("stamped_at")?;
    (session.len() == 3).then_some(StampedSession {
        tool: text("tool")?,
        session_id: text("session_id")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::{NotesRef, SVC_NOTE_BYTES_MAX};

    fn read(note: &str) -> Result<Vec<String>, NoteError> {
        let sessions = NotesRef::Svc.sessions(note.as_bytes())?;
        Ok(sessions.into_iter().map(String::from).collect())
    }

    fn one(session_id: &str) -> String {
        format!(
            r#"{{"v":1,"sessions":[{{"tool":"t","session_id":"{session_id}","stamped_at":"x"}}]}}"#
        )
    }

    #[test]
    fn any_or_no_white_space_may_separate_the_objects_of_a_note() {
        for between in [
            "",
            "\n\n",
            " \t\r\n",
            "\u{3000}\u{85}\u{a0}",
            "\u{1c}\u{1f}",
        ] {
            let note = [&*one("a"), &*one("b"), ""].join(between);
            assert_eq!(read(&note).unwrap(), ["a", "b"], "{between:?}");
        }
        assert_eq!(read(&format!(" \n{}\n", one("a"))).unwrap(), ["a"]);
        let braces = one(r#"}{\"\\"#) + &one("b");
        assert_eq!(read(&braces).unwrap(), ["}{\"\\", "b"]);
    }

    #[test]
    fn a_note_with_anything_but_objects_is_refused() {
        for wrong in [
            String::new(),
            " \n".to_owned(),
            "\u{feff}".to_owned() + &one("a"),
            "# comment\n".to_owned() + &one("a"),
            one("a") + "trailing",
            one("a") + ",",
            format!("[{}]", one("a")),
            one("a") + "{",
            one("a") + "}",
            one("a") + "\0",
            "null".to_owned(),
            "{".to_owned(),
            r#"{"v":1,"sessions":["#.to_owned(),
        ] {
            assert_eq!(read(&wrong), Err(NoteError::NotJson), "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_or_extra_member_refuses_the_whole_note() {
        for wrong in [
            r"{}",
            r#"{"v":1}"#,
            r#"{"sessions":[]}"#,
            r#"{"v":1,"sessions":[],"more":0}"#,
            r#"{"v":1,"sessions":{}}"#,
            r#"{"v":1,"sessions":[0]}"#,
            r#"{"v":1,"sessions":[{}]}"#,
            r#"{"v":1,"sessions":[{"tool":"t","session_id":"s"}]}"#,
            r#"{"v":1,"sessions":[{"tool":"t","session_id":"s","stamped_at":1}]}"#,
            r#"{"v":1,"sessions":[{"tool":null,"session_id":"s","stamped_at":"x"}]}"#,
            r#"{"v":1,"sessions":[{"tool":"t","session_id":7,"stamped_at":"x"}]}"#,
            r#"{"v":1,"sessions":[{"tool":"t","session_id":"s","stamped_at":"x","prompt":"p"}]}"#,
        ] {
            assert_eq!(read(wrong), Err(NoteError::Shape), "{wrong}");
            let after_good = one("good") + wrong;
            assert_eq!(read(&after_good), Err(NoteError::Shape), "{wrong}");
        }
    }

    #[test]
    fn only_the_integer_one_is_a_valid_version() {
        for version in ["1.0", "1e0", "true", "\"1\"", "2", "0", "-1", "null", "NaN"] {
            let note = one("a").replacen("\"v\":1", &format!("\"v\":{version}"), 1);
            assert_eq!(read(&note), Err(NoteError::Shape), "{version}");
        }
    }

    #[test]
    fn the_last_of_several_equal_members_wins() {
        let note = r#"{"v":2,"sessions":0,"v":1,"sessions":[{"tool":1,"session_id":"a","stamped_at":"","session_id":"b","tool":"t"}]}"#;
        assert_eq!(read(note).unwrap(), ["b"]);
        assert_eq!(
            read(r#"{"v":1,"sessions":[],"v":2}"#),
            Err(NoteError::Shape)
        );
    }

    #[test]
    fn a_session_named_by_two_tools_is_read_once() {
        let note = r#"{"v":1,"sessions":[
            {"tool":"t","session_id":"a","stamped_at":"x"},
            {"tool":"u","session_id":" a ","stamped_at":"y"},
            {"tool":"","session_id":"b","stamped_at":""}]}"#;
        assert_eq!(read(&(note.to_owned() + &one("a"))).unwrap(), ["a", "b"]);
        assert_eq!(
            read(r#"{"v":1,"sessions":[]}"#).unwrap(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_invalid_session_id_is_dropped_alone() {
        let long = "x".repeat(1_025);
        for dropped in ["", "   ", r"\u0000", r"\ud800", &*long] {
            let note = one(dropped) + &one("kept");
            assert_eq!(read(&note).unwrap(), ["kept"], "{dropped}");
        }
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let note = one("caf\u{e9}").replace('\u{e9}', "\u{1}");
        let note: Vec<u8> = note
            .bytes()
            .map(|byte| if byte == 1 { 0xe9 } else { byte })
            .collect();
        let sessions = NotesRef::Svc.sessions(&note).unwrap();
        assert_eq!(sessions[0].as_str(), "caf\u{fffd}");
        let wide: Vec<u8> = one("a").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(NotesRef::Svc.sessions(&wide), Err(NoteError::NotJson));
    }

    #[test]
    fn a_note_is_bounded_by_its_size_and_not_by_its_sessions() {
        let padded = |bytes: usize| {
            let note = one("a");
            let padding = " ".repeat(bytes - note.len());
            note + &padding
        };
        assert_eq!(read(&padded(SVC_NOTE_BYTES_MAX)).unwrap(), ["a"]);
        assert_eq!(
            read(&padded(SVC_NOTE_BYTES_MAX + 1)),
            Err(NoteError::TooLarge)
        );
        let sessions: Vec<_> = (0..1_200)
            .map(|number| format!(r#"{{"tool":"","session_id":"{number}","stamped_at":""}}"#))
            .collect();
        let many = format!(r#"{{"v":1,"sessions":[{}]}}"#, sessions.join(","));
        assert_eq!(read(&many).unwrap().len(), 1_200);
    }
}
