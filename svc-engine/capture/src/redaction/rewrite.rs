//! Replaces the credentials in a text.

use std::ops::Range;

use super::MARKER;
use super::anchor::{self, Anchor, Kind};
use super::counts::{Reason, RedactionCounts};
use super::{assignment, command, family, header, login, member, private_key};

/// The shortest text with a credential: `"apikey":"`, cut off before its value.
const TEXT_BYTES_MIN: usize = 10;

/// How often a text is searched. One replacement may expose another credential, as when a key loses
/// its line breaks; only contrived texts need more than two rounds.
const ROUNDS_MAX: usize = 8;

/// Returns what to replace at an anchor, and why.
fn find(text: &[u8], anchor: Anchor) -> Option<(Range<usize>, Reason)> {
    let found = |place: Option<Range<usize>>, reason| {
        place
            .filter(|place| !is_marked(&text[place.clone()]))
            .map(|place| (place, reason))
    };
    match anchor.kind {
        Kind::Authorization => found(member::value(text, anchor), Reason::StructuredCredential)
            .or_else(|| {
                found(
                    header::authorization(text, anchor),
                    Reason::AuthorizationHeader,
                )
            }),
        Kind::ApiKey => found(member::value(text, anchor), Reason::StructuredCredential)
            .or_else(|| found(assignment::api_key(text, anchor), Reason::ApiKeyAssignment))
            .or_else(|| found(assignment::secret(text, anchor), Reason::SecretAssignment)),
        Kind::Bearer => found(header::bearer(text, anchor), Reason::BearerToken),
        Kind::Name => found(assignment::secret(text, anchor), Reason::SecretAssignment)
            .or_else(|| found(header::cookies(text, anchor), Reason::SecretAssignment))
            .or_else(|| found(private_key::of_putty(text, anchor), Reason::PrivateKey)),
        Kind::Run => found(family::key(text, anchor.start), Reason::ProviderKey)
            .or_else(|| found(family::web_token(text, anchor.start), Reason::WebToken))
            .or_else(|| {
                let value = assignment::of_run(text, anchor.start);
                found(value, Reason::SecretAssignment)
            }),
        Kind::ShortKey => found(family::short_key(text, anchor), Reason::ProviderKey),
        Kind::Url => found(login::in_url(text, anchor), Reason::Login),
        Kind::Option => found(command::argument(text, anchor), Reason::Login),
        Kind::Port => found(login::of_pgpass(text, anchor), Reason::Login),
        Kind::Identified => found(login::in_sql(text, anchor), Reason::Login),
        Kind::Address => found(login::before_address(text, anchor), Reason::Login),
        Kind::Signature => found(login::signature(text, anchor), Reason::SecretAssignment),
        Kind::Pem => found(private_key::block(text, anchor), Reason::PrivateKey),
    }
}

/// Returns whether a value has been redacted before.
pub(super) fn is_marked(value: &[u8]) -> bool {
    header::without_bearer(value) == MARKER.as_bytes()
}

/// Returns the text with its credentials replaced; `None` if it contains none.
pub(super) fn rewritten(text: &[u8], counts: &mut RedactionCounts) -> Option<Vec<u8>> {
    let mut rewritten: Option<Vec<u8>> = None;
    for _ in 0..ROUNDS_MAX {
        let text = rewritten.as_deref().unwrap_or(text);
        let places = places(text, counts);
        if places.is_empty() {
            break;
        }
        rewritten = Some(replaced(text, &places));
    }
    rewritten
}

/// Returns the places to replace, in order. A place that overlaps an earlier one is left out.
fn places(text: &[u8], counts: &mut RedactionCounts) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    if text.len() < TEXT_BYTES_MIN {
        return places;
    }
    let mut end = 0;
    anchor::each(text, |anchor| {
        if anchor.start >= end
            && let Some((place, reason)) = find(text, anchor)
            && place.start >= end
        {
            counts.add(reason, 1);
            end = place.end;
            places.push(place);
        }
    });
    places
}

/// Returns a text with the marker at these places, which are in order and do not overlap.
pub(super) fn replaced(text: &[u8], places: &[Range<usize>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + places.len() * MARKER.len());
    let mut kept = 0;
    for place in places {
        out.extend_from_slice(&text[kept..place.start]);
        out.extend_from_slice(MARKER.as_bytes());
        kept = place.end;
    }
    out.extend_from_slice(&text[kept..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks how a text is redacted. In `expected`, `#` stands for the marker.
    fn check(text: &str, expected: &str, reason: &[(Reason, usize)]) {
        let mut counts = RedactionCounts::default();
        let redacted = rewritten(text.as_bytes(), &mut counts);
        let redacted = redacted.map_or(text.to_owned(), |bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(redacted, expected.replace('#', MARKER), "{text}");
        let mut expected_counts = RedactionCounts::default();
        for (reason, replaced) in reason {
            expected_counts.add(*reason, *replaced);
        }
        assert_eq!(counts, expected_counts, "{text}");
        let again = rewritten(redacted.as_bytes(), &mut RedactionCounts::default());
        assert_eq!(again, None, "redacted again: {text}");
    }

    fn unchanged(text: &str) {
        check(text, text, &[]);
    }

    #[test]
    fn the_token_of_an_authorization_header_is_replaced() {
        let reason = [(Reason::AuthorizationHeader, 1)];
        for (text, expected) in [
            (
                "call with Authorization: Bearer abcdefghijklmnop1234",
                "call with Authorization: Bearer #",
            ),
            (
                "AUTHORIZATION=bearer\tabcdefghijklmnop==.",
                "AUTHORIZATION=bearer\t#.",
            ),
            (
                "-H 'authorization : Bearer abc-._~+/defghijk'",
                "-H 'authorization : Bearer #'",
            ),
            (
                "Proxy-Authorization:\nBearer abcdefghijklmnop",
                "Proxy-Authorization:\nBearer #",
            ),
        ] {
            check(text, expected, &reason);
        }
        unchanged("Authorization: Bearer short");
        unchanged("Authorization: Basic authentication");
        unchanged("Authorization Bearer");
        unchanged("the authorization: bearers of tokens");
    }

    #[test]
    fn the_value_of_a_quoted_credential_member_is_replaced() {
        let reason = [(Reason::StructuredCredential, 1)];
        for (text, expected) in [
            (
                r#"{"api_key": "x", "other": "y"}"#,
                r##"{"api_key": "#", "other": "y"}"##,
            ),
            (
                r#"{"Authorization":"Bearer abcdefghijklmnop"}"#,
                r##"{"Authorization":"#"}"##,
            ),
            (r#"{'x-api-key' : 'a b "c"'}"#, r"{'x-api-key' : '#'}"),
            (
                r#"{"OPENAI_API_KEY":"a\"b"}"#,
                r##"{"OPENAI_API_KEY":"#"}"##,
            ),
            (
                r#"{"proxy-authorization":'x'}"#,
                r#"{"proxy-authorization":'#'}"#,
            ),
            (r#"{"apikey":"cut off and on"#, r##"{"apikey":"#"##),
            (r#"{"apikey":"","#, r##"{"apikey":"#","##),
            (
                r#"{\"api_key\": \"hunter2\", \"n\": 1}"#,
                r##"{\"api_key\": \"#\", \"n\": 1}"##,
            ),
            (r#"{\"api_key\":\"a\\\"b\"}"#, r##"{\"api_key\":\"#\"}"##),
            (
                r#"\\\"api_key\\\":\\\"x\\\","#,
                r##"\\\"api_key\\\":\\\"#\\\","##,
            ),
            (
                r#"[{"key": "api_key", "value": "hunter2"}]"#,
                r##"[{"key": "api_key", "value": "#"}]"##,
            ),
            (
                r#"{"name":"Authorization","value":"Basic abc"}"#,
                r##"{"name":"Authorization","value":"#"}"##,
            ),
            (
                r#"{"key":"x-api-key","value":{"stringValue":"x"}}"#,
                r##"{"key":"x-api-key","value":{"stringValue":"#"}}"##,
            ),
            (
                r#"{\"key\":\"api_key\",\"value\":\"x\"}"#,
                r##"{\"key\":\"api_key\",\"value\":\"#\"}"##,
            ),
        ] {
            check(text, expected, &reason);
        }
        unchanged("{\"api_key\": \"line\nbreak\"}");
        unchanged(r#"{"api_keys": "x", "my_apikey": "x", "api key": "x", "api_key_id": "x"}"#);
        unchanged(r#"{"api_key": 5, "authorization": null, "x": "api_key"}"#);
        unchanged(r#"{"api_key': "x"}"#);
        unchanged(r#"{"type":"api_key","value":"x"}"#);
        unchanged(r#"["key","api_key","value","x"]"#);
    }

    #[test]
    fn the_value_assigned_to_an_api_key_is_replaced() {
        let reason = [(Reason::ApiKeyAssignment, 1)];
        for (text, expected) in [
            ("api_key=abcdefghijklmnop", "api_key=#"),
            ("OPENAI_API_KEY=\"12345678\"", "OPENAI_API_KEY=\"#\""),
            (
                "export MY-OWN_api-key = 'abcdefgh'",
                "export MY-OWN_api-key = '#'",
            ),
            ("Api Key: abcdefghijklmnop==, next", "Api Key: #, next"),
            ("?apikey=abc._~+/-defghijklmn&x=1", "?apikey=#&x=1"),
            ("self._api_key = \"abcdefgh\"", "self._api_key = \"#\""),
            (
                r#"run OPENAI_API_KEY=\"12345678\" now"#,
                r##"run OPENAI_API_KEY=\"#\" now"##,
            ),
            ("\u{e9}api_key=abcdefghijklmnop", "\u{e9}api_key=#"),
        ] {
            check(text, expected, &reason);
        }
        for text in [
            "api_key=short",
            "api_key=\"1234567\"",
            "api_key = \"has a blank\"",
            "myapikey=abcdefghijklmnop",
            "api_key=process.env.OPENAI_API_KEY",
            "rapi_key=abcdefghijklmnop",
            "api_key == \"12345678\"",
            "api_key: str = Field()",
            "api_keys=abcdefghijklmnop",
            "api_key, other",
            "the api key is: short",
            "api_key=\"abcdefgh'",
        ] {
            unchanged(text);
        }
    }

    #[test]
    fn a_bearer_token_is_replaced() {
        let reason = [(Reason::BearerToken, 1)];
        check(
            "curl -H \"X: bearer abcdefghijklmnop\"",
            "curl -H \"X: bearer #\"",
            &reason,
        );
        check(
            r#"{\"h\":\"Bearer abcdefghijklmnop=\"}"#,
            r#"{\"h\":\"Bearer #\"}"#,
            &reason,
        );
        unchanged("Bearer short");
        unchanged("Bearer\nabcdefghijklmnop");
        unchanged("forbearer abcdefghijklmnop");
        unchanged("the bearer of this letter");
    }

    #[test]
    fn keys_with_a_known_prefix_are_replaced() {
        let reason = [(Reason::ProviderKey, 1)];
        for key in [
            "sk-abcdefghijklmnopqrst",
            "sk-proj-abc_DEF-0123456789",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "gho_ABCDEFGHIJKLMNOP",
            "ghu_abcdefghijklmnop",
            "ghs_abcdefghijklmnop_more",
            "ghr_abcdefghijklmnop",
            "github_pat_11ABCDEFG0abcdefghij_klmnop",
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdefABCDEF",
            "xoxp-123456789012",
            "xoxa-123456789012",
            "xoxr-123456789012",
            "xoxs-123456789012",
        ] {
            check(&format!("key {key}."), "key #.", &reason);
            check(&format!("\"{key}\""), "\"#\"", &reason);
            unchanged(&format!("x{key}"));
        }
        for text in [
            "sk-short",
            "SK-abcdefghijklmnopqrst",
            "task-abcdefghijklmnopqrst",
            "_sk-abcdefghijklmnopqrst",
            "ghp_short",
            "ghs_configuration_value",
            "ghx_abcdefghijklmnop",
            "AKIASHORT",
            "AKIAIOSFODNN7EXAMPLEx",
            "AKIAIOSFODNN7example",
            "xoxq-123456789012",
            "sk-folding-cube-container",
            "xoxb-short",
            "--sk-abcdefghijklmnopqrst",
        ] {
            unchanged(text);
        }
    }

    #[test]
    fn a_json_web_token_is_replaced() {
        let reason = [(Reason::WebToken, 1)];
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_0123";
        check(&format!("cookie={token};"), "cookie=#;", &reason);
        check(
            &format!("{token}.fourth-segment.fifth-segment"),
            "#",
            &reason,
        );
        check(&format!("see {token}."), "see #.", &reason);
        unchanged("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0");
        unchanged("eyJhbGciOiJIUzI1NiJ9.x.y");
        unchanged(&format!("x{token}"));
        unchanged("data:application/json;base64,eyJ2ZXJzaW9uIjozfQ==");
    }

    #[test]
    fn a_private_key_is_replaced() {
        let reason = [(Reason::PrivateKey, 1)];
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
        for label in [
            "PRIVATE KEY",
            "RSA PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        ] {
            for line_break in ["\n", "\\n", " ", "\" +\n    \""] {
                let text = format!(
                    "a -----BEGIN {label}-----{line_break}{body}{line_break}-----END {label}----- b"
                );
                check(&text, "a # b", &reason);
            }
        }
        check(
            &format!("-----BEGIN PRIVATE KEY-----\n{body}"),
            "#",
            &reason,
        );
        let headed = format!(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{body}\n-----END RSA PRIVATE KEY-----"
        );
        check(&headed, "#", &reason);
        unchanged("if text.startswith(\"-----BEGIN PRIVATE KEY-----\"):");
        unchanged("from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----");
        unchanged(&format!(
            "-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"
        ));
        unchanged(&format!(
            "-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----"
        ));
    }

    #[test]
    fn a_random_value_assigned_to_a_token_or_password_is_replaced() {
        let reason = [(Reason::SecretAssignment, 1)];
        for (text, expected) in [
            ("GITHUB_TOKEN=a1b2c3d4e5f6a7b8", "GITHUB_TOKEN=#"),
            (
                "https://h/?access_token=a1b2c3d4e5f6a7b8&x=1",
                "https://h/?access_token=#&x=1",
            ),
            ("token: 'a1b2c3d4e5f6a7b8'", "token: '#'"),
            ("token := \"a1b2c3d4e5f6a7b8\"", "token := \"#\""),
            (
                r#"{"accessToken":"a1b2c3d4e5f6a7b8"}"#,
                r##"{"accessToken":"#"}"##,
            ),
            (
                r#"{\"password\":\"hunter22\"}"#,
                r##"{\"password\":\"#\"}"##,
            ),
            ("PASSWORD=hunter2222", "PASSWORD=#"),
            ("db_passwd = 's3cretpw!'", "db_passwd = '#'"),
        ] {
            check(text, expected, &reason);
        }
        for text in [
            "token = get_token()",
            "max_tokens: 100",
            "let token = tokenizer.next_token();",
            "token: String,",
            "token = self.session.token_v2",
            "password: str | None = None",
            "password = os.environ[\"PASSWORD1\"]",
            "password=\"${DB_PASSWORD1}\"",
            "f(token=token, password=password)",
            "token == a1b2c3d4e5f6a7b8",
            "token_count=1234567890123456",
            "token=1234567890123456",
            "token=load_from_v1_v2_v3(x)",
            "\"type\": \"password\"",
            "password: correct-horse-battery",
            "passwords=hunter2222",
            "token\n= a1b2c3d4e5f6a7b8",
            "the token: a word",
        ] {
            unchanged(text);
        }
    }

    #[test]
    fn a_credential_inside_another_is_replaced_with_it() {
        check(
            "Authorization: Bearer sk-abcdefghijklmnopqrst and sk-abcdefghijklmnopqrst",
            "Authorization: Bearer # and #",
            &[(Reason::AuthorizationHeader, 1), (Reason::ProviderKey, 1)],
        );
        check(
            r#"{"authorization": "see Authorization: Bearer abcdefghijklmnop", "x": "api_key=abcdefghijklmnop"}"#,
            r##"{"authorization": "#", "x": "api_key=#"}"##,
            &[
                (Reason::StructuredCredential, 1),
                (Reason::ApiKeyAssignment, 1),
            ],
        );
        check(
            "api_key=sk-abcdefghijklmnopqrst",
            "api_key=#",
            &[(Reason::ApiKeyAssignment, 1)],
        );
    }

    #[test]
    fn a_marker_is_not_redacted_again() {
        for text in [
            "Authorization: Bearer #",
            "\"api_key\": \"#\"",
            "\"authorization\": \"Bearer #\"",
            "API_KEY=\"#\"",
            "api_key=#",
            "Bearer #",
            "token=\"#\"",
            "#",
        ] {
            unchanged(&text.replace('#', MARKER));
        }
    }
}
