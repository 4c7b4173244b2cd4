use super::*;
use crate::json::{NodeBudget, Object};
use crate::request::{Incoming, Refusal, Request};

fn read<R: Request>(body: &str) -> Result<R, Refusal> {
    let none = Object::new();
    R::read(&Incoming {
        path: &none,
        query: &none,
        headers: &none,
        body: body.as_bytes(),
        memory: &NodeBudget::unlimited(),
    })
}

#[test]
fn the_name_of_a_token_is_plain_and_not_reserved() {
    for name in ["a", "review-agent", "A.b_c-1", &"x".repeat(64)] {
        assert_eq!(TokenName::new(name).unwrap().as_str(), name);
    }
    for name in [
        "",
        "-a",
        "a b",
        "a/b",
        "\u{e9}",
        "operator",
        "legacy",
        "retrieval",
        &"x".repeat(65),
    ] {
        assert!(TokenName::new(name).is_err(), "{name}");
    }
}

#[test]
fn a_grant_of_a_session_or_a_rule_is_read_back() {
    for target in [
        r#""session_id":"s""#,
        r#""user_id":"ann""#,
        r#""agent_harness":"codex","since":"2026-11-01T00:00:00Z""#,
        r#""repo":"acme/shop""#,
        r#""repository":{"repository_provider":"github","repository_host":"github.com","repository_id":"7"}"#,
    ] {
        let body = format!(r#"{{"token":"t",{target},"reason":"r"}}"#);
        let request: GrantRequest = read(&body).unwrap();
        let written = request.write().unwrap().body.unwrap();
        let again: GrantRequest = read(std::str::from_utf8(&written).unwrap()).unwrap();
        assert_eq!(again, request);
    }
    for target in [
        "",
        r#""session_id":"s","user_id":"ann","#,
        r#""user_id":null,"#,
        r#""repository":{},"#,
        r#""repository":7,"#,
        r#""repository":{"repository_id":"7"},"#,
        r#""session_id":"s","other":1,"#,
    ] {
        let body = format!(r#"{{"token":"t",{target}"reason":"r"}}"#);
        let refused = read::<GrantRequest>(&body);
        assert!(matches!(refused, Err(Refusal::Invalid(_))), "{target}");
    }
}

#[test]
fn a_change_needs_a_reason() {
    assert!(read::<TokenChangeRequest>(r#"{"token":"t","reason":"r"}"#).is_ok());
    assert!(read::<TokenChangeRequest>(r#"{"token":"t","reason":" "}"#).is_err());
    assert!(read::<TokenChangeRequest>(r#"{"token":"retrieval","reason":"r"}"#).is_err());
    assert!(read::<GrantRemovalRequest>(r#"{"grant_id":"01234567","reason":"r"}"#).is_ok());
    assert!(read::<GrantRemovalRequest>(r#"{"grant_id":"01234567"}"#).is_err());
}
