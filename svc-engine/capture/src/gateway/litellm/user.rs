//! Finds the user of a call.

use svc_model::id::{IdentityError, UserId};
use svc_model::json::{Object, Text};

use super::metadata::Metadata;
use super::session::split_suffix;
use crate::gateway::GatewayError;
use crate::value::{DEVICE_CHARACTERS, device};
use svc_messages::embedded;
use svc_messages::identity::usable;

/// Returns the user from the first usable source, without any Session in the text.
pub(super) fn user(metadata: &Metadata<'_>) -> Result<Option<UserId>, GatewayError> {
    let named = metadata
        .get("user_id")
        .or_else(|| metadata.top_level("end_user"));
    let named = match named {
        Some(text) => Some(text.trimmed()),
        None => metadata
            .headers("x-svc-agent")
            .find_map(|agent| joined(b"agent:", agent.trimmed().as_bytes())),
    };
    let Some(named) = named else {
        return Ok(None);
    };
    let named = match embedded::object(&named) {
        Some(object) => account(&object),
        None => Some(named),
    };
    let Some(user) = named.and_then(without_session).map(of_device) else {
        return Ok(None);
    };
    match user
        .as_str()
        .map_or(Err(IdentityError::NotScalar), UserId::new)
    {
        Ok(user) => Ok(Some(user)),
        Err(IdentityError::Blank) => Ok(None),
        Err(IdentityError::NotScalar | IdentityError::TooLong) => Err(GatewayError::InvalidPayload),
    }
}

/// Returns the device, or else the account, from a user identity that is an object.
fn account(object: &Object) -> Option<Text> {
    [
        ("device_id", &b"device_"[..]),
        ("account_uuid", b"account_"),
    ]
    .into_iter()
    .find_map(|(member, prefix)| {
        let id = usable(object.get(member))?.trimmed();
        joined(prefix, first_characters(id.as_bytes(), DEVICE_CHARACTERS))
    })
}

fn without_session(user: Text) -> Option<Text> {
    match split_suffix(user.as_bytes()) {
        Some((before, _)) => Text::from_wtf8(before.strip_suffix(b"_").unwrap_or(before).to_vec()),
        None => Some(user),
    }
}

/// Returns the device in `user_DEVICE_account_ACCOUNT`, the form in which Claude Code named users
/// before it sent objects.
fn of_device(user: Text) -> Text {
    let named = user.as_str().and_then(|user| user.strip_prefix("user_"));
    let id = named.and_then(|named| Some(named.split_once("_account_")?.0));
    match id.and_then(device) {
        Some(device) => device.as_str().into(),
        None => user,
    }
}

fn joined(prefix: &[u8], text: &[u8]) -> Option<Text> {
    Text::from_wtf8([prefix, text].concat())
}

fn first_characters(text: &[u8], count: usize) -> &[u8] {
    let starts = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts
        .map(|(place, _)| place)
        .nth(count)
        .map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    const SESSION: &str = "0000000a-0000-4000-8000-0123456789ab";

    fn resolve(payload: &str) -> Result<Option<String>, GatewayError> {
        let payload = payload.replace('@', SESSION);
        let payload = Json::parse(payload.as_bytes())
            .unwrap()
            .into_object()
            .unwrap();
        user(&Metadata::new(&payload)).map(|found| found.map(String::from))
    }

    #[test]
    fn user_sources_are_tried_in_order() {
        for (payload, expected) in [
            (
                r#"{"end_user":"e","metadata":{"user_id":" m ","requester_metadata":{"user_id":"r"}}}"#,
                "m",
            ),
            (
                r#"{"end_user":"e","metadata":{"user_id":5,"requester_metadata":{"user_id":"r"}}}"#,
                "r",
            ),
            (
                r#"{"end_user":" e ","metadata":{"requester_custom_headers":{"x-svc-agent":"pi"}}}"#,
                "e",
            ),
            (
                r#"{"metadata":{"requester_custom_headers":{"X-Svc-Agent":" pi "}}}"#,
                "agent:pi",
            ),
        ] {
            assert_eq!(resolve(payload), Ok(Some(expected.to_owned())), "{payload}");
        }
        for payload in ["{}", r#"{"end_user":" "}"#, r#"{"user_id":"top"}"#] {
            assert_eq!(resolve(payload), Ok(None), "{payload}");
        }
    }

    #[test]
    fn a_user_that_is_an_object_becomes_its_device_or_account() {
        for (user, expected) in [
            (
                r#"{"device_id":"0123456789abcdef","account_uuid":"x"}"#,
                Some("device_0123456789ab"),
            ),
            (
                r#"{"device_id":" ","account_uuid":"short"}"#,
                Some("account_short"),
            ),
            (
                r#"{"device_id":5,"account_uuid":"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"}"#,
                Some(
                    "account_\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
                ),
            ),
            (r#"{"session_id":"x"}"#, None),
            ("{}", None),
        ] {
            let quoted = Json::from(user).to_canonical();
            let payload = format!(
                r#"{{"end_user":"fallback","metadata":{{"user_id":{}}}}}"#,
                String::from_utf8(quoted).unwrap()
            );
            assert_eq!(resolve(&payload), Ok(expected.map(str::to_owned)), "{user}");
        }
    }

    #[test]
    fn the_session_suffix_is_cut_off_the_user() {
        for (user, expected) in [
            ("user_a_account__session_@", Some("user_a_account_")),
            ("user_a_session_@", Some("user_a")),
            ("a _session_@", Some("a")),
            ("session_@", None),
            ("_session_@", None),
            (
                "xsession_@",
                Some("xsession_0000000a-0000-4000-8000-0123456789ab"),
            ),
        ] {
            let payload = format!(r#"{{"end_user":"{user}"}}"#);
            assert_eq!(resolve(&payload), Ok(expected.map(str::to_owned)), "{user}");
        }
    }

    #[test]
    fn every_spelling_of_a_device_is_the_same_user() {
        let id = "837792f0cc27d5db8367299f827ec2068ad55bb73be1b0dbb669dfb6044d8fee";
        let device = Some("device_837792f0cc27".to_owned());
        for user in [
            format!("user_{id}_account__session_@"),
            format!("user_{id}_account_0a_session_@"),
            format!(r#"{{\"device_id\":\"{id}\"}}"#),
        ] {
            let payload = format!(r#"{{"end_user":"{user}"}}"#);
            assert_eq!(resolve(&payload), Ok(device.clone()), "{user}");
        }
        for user in [
            format!("user_{id}0_account_"),
            format!("user_{id}"),
            format!("user_{}g_account_", &id[1..]),
            format!("x{id}"),
        ] {
            let payload = format!(r#"{{"end_user":"{user}"}}"#);
            assert_eq!(resolve(&payload), Ok(Some(user)), "{payload}");
        }
    }

    #[test]
    fn an_invalid_user_id_refuses_the_payload() {
        for user in ["a\\u0000", "\\udfff", &"x".repeat(1_025)] {
            let payload = format!(r#"{{"end_user":"{user}"}}"#);
            assert_eq!(resolve(&payload), Err(GatewayError::InvalidPayload));
        }
    }
}
