//! Properties that hold for every note.

use proptest::prelude::*;

use super::*;

fn kind() -> impl Strategy<Value = NotesRef> {
    prop_oneof![Just(NotesRef::Svc), Just(NotesRef::GitAi)]
}

/// Texts that resemble notes.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("---\n".to_owned()),
        Just(r#""v":1"#.to_owned()),
        Just(r#""sessions":"#.to_owned()),
        Just(r#"{"v":1,"sessions":[]}"#.to_owned()),
        Just(r#"{"tool":"t","session_id":"s","stamped_at":"x"}"#.to_owned()),
        Just(r#"{"schema_version":"authorship/3.0.0","#.to_owned()),
        Just(r#"{"agent_id":{"id":"s"}}"#.to_owned()),
        "\\PC{0,3}",
        Just("\u{feff}".to_owned()),
        Just("\n".to_owned()),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn reading_never_panics(kind in kind(), note in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ignored = kind.sessions(&note);
    }

    #[test]
    fn reading_an_almost_valid_note_never_panics(kind in kind(), note in nearly()) {
        if let Ok(sessions) = kind.sessions(note.as_bytes()) {
            let distinct: std::collections::HashSet<_> = sessions.iter().collect();
            prop_assert_eq!(distinct.len(), sessions.len());
        }
    }

    #[test]
    fn stamped_sessions_are_read_back(stamps in proptest::collection::vec(("\\PC{0,8}", "[ab\u{e9}\"\\\\]{1,4}"), 1..12)) {
        let at = svc_model::time::Instant::from_microseconds(0).expect("a moment");
        let mut note = Vec::new();
        for (tool, session_id) in &stamps {
            let stamp = Stamp {
                tool: tool.clone(),
                session_id: SessionId::new(session_id).expect("a Session"),
            };
            let before = (!note.is_empty()).then_some(note.as_slice());
            if let Some(line) = addition(before, std::slice::from_ref(&stamp), at).expect("room") {
                note.extend_from_slice(line.as_bytes());
                note.push(b'\n');
            }
            prop_assert_eq!(addition(Some(&note), &[stamp], at), Ok(None));
        }
        let read: Vec<_> = NotesRef::Svc.sessions(&note).expect("a note").into_iter().map(String::from).collect();
        let mut expected: Vec<&str> = Vec::new();
        for (_, session_id) in &stamps {
            if !expected.contains(&session_id.as_str()) {
                expected.push(session_id);
            }
        }
        prop_assert_eq!(read, expected);
    }
}
