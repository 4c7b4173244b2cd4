//! Finds the Session of a payload.

use svc_model::id::{IdentityError, SessionId};
use svc_model::json::{Object, Text};

use super::metadata::Metadata;
use crate::gateway::GatewayError;
use svc_messages::embedded;
use svc_messages::identity::{is_uuid, usable};

/// The word before a Session's UUID at the end of a user identity.
const SUFFIX: &[u8] = b"session_";
const UUID_BYTES: usize = 36;

/// Returns the Session from the first usable source.
///
/// The gateway's trace id is never used: without a Session, every call has a different one.
pub(super) fn session(metadata: &Metadata<'_>) -> Result<Option<SessionId>, GatewayError> {
    let uuid = |text: &Text| {
        let text = text.trimmed();
        is_uuid(text.as_bytes()).then_some(text)
    };
    let found = metadata
        .get("session_id")
        .cloned()
        .or_else(|| metadata.user_identities().find_map(in_object))
        .or_else(|| metadata.user_identities().find_map(in_suffix))
        .or_else(|| metadata.headers("x-codex-turn-metadata").find_map(in_turn))
        .or_else(|| metadata.headers("x-svc-session").find_map(uuid))
        .or_else(|| metadata.headers("x-claude-code-session-id").next().cloned())
        .or_else(|| metadata.headers("x-session-id").next().cloned())
        .or_else(|| metadata.top_level("litellm_session_id").and_then(uuid))
        .or_else(|| metadata.top_level("session_id").and_then(uuid));
    let Some(found) = found else {
        return Ok(None);
    };
    match found
        .as_str()
        .map_or(Err(IdentityError::NotScalar), SessionId::new)
    {
        Ok(session) => Ok(Some(session)),
        Err(IdentityError::Blank) => Ok(None),
        Err(IdentityError::NotScalar | IdentityError::TooLong) => Err(GatewayError::InvalidPayload),
    }
}

/// Returns the UUID under `session_id` in a text that is a JSON object. The text is trimmed first,
/// as every identity is, because JSON allows fewer kinds of blank.
fn in_object(text: &Text) -> Option<Text> {
    uuid_of(&embedded::object(&text.trimmed())?, "session_id")
}

/// Returns the thread of a Codex turn, or else its Session. An agent that another agent started is
/// a thread of its own: its telemetry and its commits name that thread, while the Session is the
/// first agent's.
fn in_turn(text: &Text) -> Option<Text> {
    let turn = embedded::object(&text.trimmed())?;
    ["thread_id", "session_id"]
        .into_iter()
        .find_map(|member| uuid_of(&turn, member))
}

fn uuid_of(object: &Object, member: &str) -> Option<Text> {
    let id = usable(object.get(member))?.trimmed();
    is_uuid(id.as_bytes()).then_some(id)
}

/// Returns the UUID at the end of a text of the form `..._session_UUID`.
fn in_suffix(text: &Text) -> Option<Text> {
    let text = text.trimmed();
    let (_, session) = split_suffix(text.as_bytes())?;
    Some(std::str::from_utf8(session).ok()?.into())
}

/// Splits a trimmed text into the part before `session_UUID`, and the UUID.
pub(super) fn split_suffix(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, session) = text.split_at_checked(text.len().checked_sub(UUID_BYTES)?)?;
    let before = before.strip_suffix(SUFFIX)?;
    let apart = matches!(before.last(), None | Some(b'_'));
    (apart && is_uuid(session)).then_some((before, session))
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    const A: &str = "0000000a-0000-4000-8000-0123456789AB";
    const B: &str = "0000000b-0000-4000-8000-0123456789ab";

    fn resolve(payload: &str) -> Result<Option<String>, GatewayError> {
        let payload = payload.replace("@A", A).replace("@B", B);
        let payload = Json::parse(payload.as_bytes())
            .unwrap()
            .into_object()
            .unwrap();
        session(&Metadata::new(&payload)).map(|found| found.map(String::from))
    }

    /// Sets the member at a path of the payload, unless it is there.
    fn set(object: &mut Object, path: &[&str], value: &str) {
        match path {
            [member] if !object.contains_key(member) => {
                object.insert(*member, value);
            }
            [_] | [] => {}
            [holder, rest @ ..] => {
                if !object.contains_key(holder) {
                    object.insert(*holder, Object::new());
                }
                let inner = object.get_mut(holder).and_then(Json::as_object_mut);
                set(inner.unwrap(), rest, value);
            }
        }
    }

    #[test]
    fn session_sources_are_tried_in_order() {
        const CUSTOM: &str = "requester_custom_headers";
        let id = |number: usize| format!("{number:08}-0000-4000-8000-0123456789ab");
        let object = |number| format!("{{\"session_id\":\"{}\"}}", id(number));
        let suffix = |number| format!("user_x_account__session_{}", id(number));
        let sources: [(&[&str], String); 11] = [
            (&["metadata", "session_id"], id(0)),
            (&["metadata", "requester_metadata", "session_id"], id(1)),
            (&["end_user"], object(2)),
            (&["metadata", "user_id"], object(3)),
            (&["end_user"], suffix(4)),
            (&["metadata", "user_id"], suffix(5)),
            (&["metadata", CUSTOM, "x-codex-turn-metadata"], object(6)),
            (&["metadata", CUSTOM, "x-svc-session"], id(7)),
            (
                &[
                    "metadata",
                    "requester_metadata",
                    "headers",
                    "x-claude-code-session-id",
                ],
                id(8),
            ),
            (
                &["metadata", "requester_metadata", "headers", "x-session-id"],
                id(9),
            ),
            (&["litellm_session_id"], id(10)),
        ];
        for first in 0..sources.len() {
            let mut payload = Object::from_iter([("session_id", id(11))]);
            for (path, value) in &sources[first..] {
                set(&mut payload, path, value);
            }
            let found = session(&Metadata::new(&payload)).unwrap();
            assert_eq!(found.map(String::from), Some(id(first)), "source {first}");
        }
    }

    #[test]
    fn a_header_without_a_valid_session_does_not_hide_a_later_one() {
        for header in ["x-svc-session", "x-codex-turn-metadata"] {
            let named = match header {
                "x-svc-session" => "@A",
                _ => r#"{\"session_id\":\"@A\"}"#,
            };
            let payload = format!(
                r#"{{"metadata":{{"requester_custom_headers":{{"{header}":"mine"}},
                    "requester_metadata":{{"headers":{{"{header}":"{named}"}}}}}}}}"#
            );
            assert_eq!(resolve(&payload), Ok(Some(A.to_owned())), "{header}");
        }
    }

    #[test]
    fn a_thread_started_by_codex_is_its_own_session() {
        for (turn, found) in [
            (r#"{\"session_id\":\"@A\",\"thread_id\":\"@B\"}"#, Some(B)),
            (
                r#"{\"session_id\":\"@A\",\"thread_id\":\"plain\"}"#,
                Some(A),
            ),
            (r#"{\"session_id\":\"@A\",\"thread_id\":null}"#, Some(A)),
            (r#"{\"thread_id\":\"@B\"}"#, Some(B)),
            (r#"{\"thread_id\":7}"#, None),
        ] {
            let payload = format!(
                r#"{{"metadata":{{"requester_custom_headers":{{"x-codex-turn-metadata":"{turn}"}}}}}}"#
            );
            assert_eq!(resolve(&payload), Ok(found.map(str::to_owned)), "{turn}");
        }
    }

    #[test]
    fn requester_metadata_is_the_second_source_of_the_user_identity() {
        let payload =
            r#"{"metadata":{"user_id":" ","requester_metadata":{"user_id":"u_session_@A"}}}"#;
        assert_eq!(resolve(payload), Ok(Some(A.to_owned())));
        let payload =
            r#"{"metadata":{"user_id":"plain","requester_metadata":{"user_id":"u_session_@A"}}}"#;
        assert_eq!(resolve(payload), Ok(None));
    }

    #[test]
    fn a_session_suffix_follows_an_underscore_and_keeps_its_spelling() {
        for text in [
            "session_@A",
            "user_a_account__session_@A",
            "_session_@A",
            " x_session_@A ",
        ] {
            let payload = format!(r#"{{"end_user":"{text}"}}"#);
            assert_eq!(resolve(&payload), Ok(Some(A.to_owned())), "{text}");
        }
        for text in [
            "xsession_@A",
            "Session_@A",
            "session_@A.",
            "session-@A",
            "@A",
            "session_@Ab",
        ] {
            let payload = format!(r#"{{"end_user":"{text}"}}"#);
            assert_eq!(resolve(&payload), Ok(None), "{text}");
        }
    }

    #[test]
    fn blanks_around_an_object_with_a_session_are_trimmed() {
        for blanks in [" ", "\\u00a0", "\\u2003\\u001f"] {
            for payload in [
                r#"{"end_user":"?{\"session_id\":\"@A\"}?"}"#,
                r#"{"metadata":{"user_id":"?{\"session_id\":\"@A\"}?"}}"#,
                r#"{"metadata":{"requester_custom_headers":
                    {"x-codex-turn-metadata":"?{\"session_id\":\"@A\"}?"}}}"#,
            ] {
                let payload = payload.replace('?', blanks);
                assert_eq!(resolve(&payload), Ok(Some(A.to_owned())), "{payload}");
            }
        }
    }

    #[test]
    fn session_headers_are_found_in_both_places_and_in_any_case() {
        for header in [
            r#""x-codex-turn-metadata":"{\"session_id\":\"@A\"}""#,
            r#""X-Codex-Turn-Metadata":"{\"session_id\":\"@A\"}""#,
            r#""x-svc-session":" @A ""#,
            r#""X-Svc-Session":"@A""#,
            r#""X-Claude-Code-Session-Id":"@A""#,
            r#""x-session-id":"@A""#,
        ] {
            for payload in [
                format!(r#"{{"metadata":{{"requester_custom_headers":{{{header}}}}}}}"#),
                format!(r#"{{"metadata":{{"requester_metadata":{{"headers":{{{header}}}}}}}}}"#),
            ] {
                assert_eq!(resolve(&payload), Ok(Some(A.to_owned())), "{payload}");
            }
            for payload in [
                format!(r#"{{"metadata":{{"headers":{{{header}}}}}}}"#),
                format!(
                    r#"{{"metadata":{{"requester_metadata":{{"requester_custom_headers":{{{header}}}}}}}}}"#
                ),
                format!(r#"{{"headers":{{{header}}}}}"#),
            ] {
                assert_eq!(resolve(&payload), Ok(None), "{payload}");
            }
        }
    }

    #[test]
    fn values_that_are_not_session_ids_are_ignored() {
        for payload in [
            "{}",
            r#"{"trace_id":"@A","id":"@A"}"#,
            r#"{"metadata":{"trace_id":"@A","requester_metadata":{"trace_id":"@A"}}}"#,
            r#"{"session_id":"plain","litellm_session_id":"plain"}"#,
            r#"{"session_id":"","litellm_session_id":5}"#,
            r#"{"metadata":[],"end_user":{"session_id":"@A"}}"#,
            r#"{"metadata":{"session_id":" ","requester_metadata":{"session_id":["@A"]}}}"#,
            r#"{"end_user":"{\"session_id\":\"plain\"}"}"#,
            r#"{"end_user":"[{\"session_id\":\"@A\"}]"}"#,
            r#"{"metadata":{"requester_custom_headers":{"x-svc-session":"plain","x-codex-turn-metadata":"@A"}}}"#,
            r#"{"metadata":{"requester_custom_headers":{"x-svc-session":["@A"]}}}"#,
            r#"{"response":{"id":"@A"},"model_parameters":{"session_id":"@A"}}"#,
        ] {
            assert_eq!(resolve(payload), Ok(None), "{payload}");
        }
    }

    #[test]
    fn the_gateways_own_ids_are_the_last_session_sources() {
        assert_eq!(
            resolve(r#"{"session_id":"@B","litellm_session_id":" @A "}"#),
            Ok(Some(A.to_owned()))
        );
        assert_eq!(resolve(r#"{"session_id":"@B"}"#), Ok(Some(B.to_owned())));
        let header = r#"{"session_id":"@B","metadata":{"requester_metadata":{"headers":{"x-session-id":"any"}}}}"#;
        assert_eq!(resolve(header), Ok(Some("any".to_owned())));
    }

    #[test]
    fn an_invalid_session_id_refuses_the_payload() {
        for session in ["a\\u0000b", "\\ud800", &"x".repeat(1_025)] {
            let payload = format!(r#"{{"metadata":{{"session_id":"{session}"}}}}"#);
            assert_eq!(resolve(&payload), Err(GatewayError::InvalidPayload));
        }
    }
}
