//! The secrets of the service itself, which are redacted.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use secrecy::ExposeSecret as _;
use svc_engine::capture::redaction;

use super::secrets::SecretSettings;
use crate::env;
use crate::source::Source;

/// Returns every secret in the settings: the tokens, the webhook secrets, the clone tokens, and the
/// database password.
pub(super) fn secrets(source: &Source, secrets: &SecretSettings) -> redaction::Secrets {
    // An unreadable setting is reported where it is used.
    let text = |name| source.get(name).ok().flatten();
    let fetched_with = text(env::FORGE_CLONE_TOKENS.name)
        .and_then(|text| env::FORGE_CLONE_TOKENS.parse(&text).ok())
        .unwrap_or_default();
    let mut known: BTreeSet<String> = secrets
        .ingest
        .values()
        .chain([&secrets.operator])
        .chain(&secrets.retrieval)
        .chain(secrets.named.values())
        .chain(&secrets.webhook)
        .chain(fetched_with.values())
        .map(|secret| secret.expose_secret().to_owned())
        .collect();
    for token in fetched_with.values() {
        // A user name and a password.
        if let Some((_, password)) = token.expose_secret().split_once(':') {
            known.insert(password.to_owned());
        }
    }
    if let Some(url) = text(env::DATABASE_URL.name) {
        known.extend(passwords(&url));
    }
    redaction::Secrets::new(known.iter().map(String::as_str))
}

/// Returns the password in a database URL, both encoded and decoded.
fn passwords(url: &str) -> Vec<String> {
    let (location, query) = url.split_once('?').unwrap_or((url, ""));
    let login = location.split_once("://").and_then(|(_, rest)| {
        let (login, _) = rest.rsplit_once('@')?;
        let (_, password) = login.split_once(':')?;
        Some(password)
    });
    let parameter = query
        .split('&')
        .filter_map(|parameter| parameter.strip_prefix("password="));
    login
        .into_iter()
        .chain(parameter)
        .flat_map(|password| {
            let decoded = percent_decode_str(password).decode_utf8_lossy();
            [password.to_owned(), decoded.into_owned()]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use svc_engine::capture::redaction::{MARKER, Redactor};
    use svc_model::grant::TokenName;

    use super::*;

    #[test]
    fn every_secret_of_the_settings_is_redacted() {
        let source = Source::of(&[
            (
                "SVC_DATABASE_URL",
                "postgres://svc:data%2Fbase-pass@db/svc?password=second-password",
            ),
            (
                "SVC_FORGE_CLONE_TOKENS",
                r#"{"git.example":"clone-clone-clone","other.example":"me:fetch-fetch"}"#,
            ),
        ]);
        let given = SecretSettings {
            operator: SecretString::from("operator-operator"),
            ingest: [("a".to_owned(), SecretString::from("ingest-ingest"))].into(),
            retrieval: Some(SecretString::from("retrieval-retrieval")),
            named: [(
                TokenName::new("ci").unwrap(),
                SecretString::from("named-named-named"),
            )]
            .into(),
            webhook: vec![
                SecretString::from("webhook-webhook"),
                SecretString::from("previous-previous"),
            ],
        };
        let secrets = secrets(&source, &given);
        for secret in [
            "data%2Fbase-pass",
            "data/base-pass",
            "second-password",
            "clone-clone-clone",
            "me:fetch-fetch",
            "operator-operator",
            "ingest-ingest",
            "retrieval-retrieval",
            "named-named-named",
            "webhook-webhook",
            "previous-previous",
        ] {
            let mut text = format!("before {secret} after");
            Redactor::new(&secrets).string(&mut text);
            assert_eq!(text, format!("before {MARKER} after"));
        }
        let mut text = "fetch-fetch is a password".to_owned();
        Redactor::new(&secrets).string(&mut text);
        assert_eq!(text, format!("{MARKER} is a password"));
        assert!(!format!("{secrets:?}").contains("operator"));
    }

    #[test]
    fn a_url_without_a_password_has_none() {
        for url in [
            "",
            "sqlite:///tmp/x.db",
            "postgres://svc@db/svc",
            "postgres://db:5432/svc",
        ] {
            assert_eq!(passwords(url), [""; 0], "{url}");
        }
    }
}
