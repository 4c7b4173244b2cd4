//! The secrets: long enough, not placeholders, and all different.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use svc_model::grant::TokenName;
use svc_model::limit;

use super::Grant;
use super::reader::Reader;
use crate::env;

/// Words that are placeholders rather than secrets.
const PLACEHOLDERS: [&str; 8] = [
    "",
    "changeme",
    "change-me",
    "replace-me",
    "your-token",
    "your-secret",
    "password",
    "secret",
];

/// The secrets, checked against each other.
pub(super) struct Secrets {
    pub(super) operator: SecretString,
    pub(super) ingest: BTreeMap<String, SecretString>,
    pub(super) retrieval: Option<SecretString>,
    /// The named retrieval tokens.
    pub(super) named: BTreeMap<TokenName, SecretString>,
    /// The webhook secret, and the previous one.
    pub(super) webhook: Vec<SecretString>,
}

impl Secrets {
    pub(super) fn read(reader: &mut Reader<'_>, dev_mode: bool) -> Self {
        let operator = reader.secret(env::OPERATOR_TOKEN);
        let webhook = reader.secret(env::FORGE_WEBHOOK_SECRET);
        let webhook_previous = reader.secret(env::FORGE_WEBHOOK_SECRET_PREVIOUS);
        let legacy = reader.secret(env::API_BEARER_TOKEN);
        let retrieval = reader.secret(env::RETRIEVAL_TOKEN);
        let ingest = reader.parsed(
            env::INGEST_TOKENS,
            "must be a JSON object of client name to token; operator, legacy and retrieval are reserved",
            ingest_tokens,
        );
        let none_can_be_read = ingest.is_none()
            && !(reader.source.is_missing(env::INGEST_TOKENS)
                && reader.source.is_missing(env::API_BEARER_TOKEN));
        let mut ingest = ingest.unwrap_or_default();
        let named = reader
            .parsed(
                env::RETRIEVAL_TOKENS,
                "must be a JSON object of name to token; operator, legacy and retrieval are reserved",
                retrieval_tokens,
            )
            .unwrap_or_default();
        if let Some(legacy) = legacy {
            ingest.insert("legacy".to_owned(), legacy);
        }
        if !dev_mode {
            check(
                reader,
                env::OPERATOR_TOKEN,
                operator.as_ref(),
                Characters::Token,
            );
            check(
                reader,
                env::FORGE_WEBHOOK_SECRET,
                webhook.as_ref(),
                Characters::Any,
            );
            if webhook_previous.is_some() {
                check(
                    reader,
                    env::FORGE_WEBHOOK_SECRET_PREVIOUS,
                    webhook_previous.as_ref(),
                    Characters::Any,
                );
            }
            for (client, token) in &ingest {
                let name = match client.as_str() {
                    "legacy" => env::API_BEARER_TOKEN.to_owned(),
                    client => format!("{}[{client}]", env::INGEST_TOKENS),
                };
                check(reader, &name, Some(token), Characters::Token);
            }
            if ingest.is_empty() && !none_can_be_read {
                reader.mistake(env::INGEST_TOKENS, "or SVC_API_BEARER_TOKEN must be set");
            }
        }
        if retrieval.is_some() {
            check(
                reader,
                env::RETRIEVAL_TOKEN,
                retrieval.as_ref(),
                Characters::Token,
            );
        }
        let of_name = |name: &TokenName| format!("{}[{name}]", env::RETRIEVAL_TOKENS);
        for (name, token) in &named {
            check(reader, &of_name(name), Some(token), Characters::Token);
        }
        let all = ingest
            .iter()
            .map(|(client, token)| (format!("{}[{client}]", env::INGEST_TOKENS), token))
            .chain(
                operator
                    .iter()
                    .map(|token| (env::OPERATOR_TOKEN.to_owned(), token)),
            )
            .chain(
                webhook
                    .iter()
                    .map(|token| (env::FORGE_WEBHOOK_SECRET.to_owned(), token)),
            )
            .chain(
                webhook_previous
                    .iter()
                    .map(|token| (env::FORGE_WEBHOOK_SECRET_PREVIOUS.to_owned(), token)),
            )
            .chain(
                retrieval
                    .iter()
                    .map(|token| (env::RETRIEVAL_TOKEN.to_owned(), token)),
            )
            .chain(named.iter().map(|(name, token)| (of_name(name), token)));
        let mut seen: BTreeMap<&str, String> = BTreeMap::new();
        let mut equal = Vec::new();
        for (name, token) in all {
            if let Some(other) = seen.insert(token.expose_secret(), name.clone()) {
                equal.push(format!("{name} must differ from {other}"));
            }
        }
        if !dev_mode || retrieval.is_some() || !named.is_empty() {
            reader.mistakes.append(&mut equal);
        }
        Self {
            operator: operator.unwrap_or_default(),
            ingest,
            retrieval,
            named,
            webhook: webhook.into_iter().chain(webhook_previous).collect(),
        }
    }

    pub(super) fn check_retrieval(&self, reader: &mut Reader<'_>, grant: &Grant) {
        let sessions = reader.source.is_given(env::RETRIEVAL_SESSION_ID)
            || reader.source.is_given(env::RETRIEVAL_SESSION_IDS);
        match (&self.retrieval, grant) {
            (Some(_), Grant::None) if !sessions => reader.mistake(
                env::RETRIEVAL_TOKEN,
                "needs SVC_RETRIEVAL_SESSION_ID or SVC_RETRIEVAL_SESSION_IDS",
            ),
            // A token that is given and cannot be read is reported where it is read.
            (None, Grant::Single(_) | Grant::Plural(_))
                if !reader.source.is_given(env::RETRIEVAL_TOKEN) =>
            {
                reader.mistake(
                    env::RETRIEVAL_TOKEN,
                    "must be set, because a Session is granted",
                );
            }
            _ => {}
        }
    }
}

/// Which characters a secret may have.
#[derive(Clone, Copy)]
enum Characters {
    /// Printable ASCII without spaces, because it is sent in a header.
    Token,
    /// Any.
    Any,
}

fn check(
    reader: &mut Reader<'_>,
    name: &str,
    secret: Option<&SecretString>,
    characters: Characters,
) {
    let Some(secret) = secret.map(ExposeSecret::expose_secret) else {
        // A secret that is set but cannot be read is already reported, and is not missing.
        if reader.source.is_missing(name) {
            reader.mistake(name, "must be set");
        }
        return;
    };
    let printable = secret.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    if PLACEHOLDERS.contains(&secret.to_lowercase().as_str()) {
        reader.mistake(name, "is a placeholder");
    } else if secret.chars().count() < limit::SECRET_CHARACTERS_MIN {
        reader.mistake(name, "must have at least 24 characters");
    } else if matches!(characters, Characters::Token) && !printable {
        reader.mistake(name, "must be printable ASCII without spaces");
    }
}

/// The members of a JSON object in order, including duplicates, which are errors here.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

fn retrieval_tokens(text: &str) -> Option<BTreeMap<TokenName, SecretString>> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let mut tokens = BTreeMap::new();
    for (name, token) in members {
        let name = TokenName::new(&name).ok()?;
        let earlier = tokens.insert(name, SecretString::from(token.trim()));
        if earlier.is_some() {
            return None;
        }
    }
    Some(tokens)
}

fn ingest_tokens(text: &str) -> Option<BTreeMap<String, SecretString>> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let mut tokens = BTreeMap::new();
    for (name, token) in members {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let valid = name.len() <= 64
            && name.bytes().next().is_some_and(plain)
            && name
                .bytes()
                .all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
            && !matches!(name.as_str(), "operator" | "legacy" | "retrieval");
        if !valid
            || tokens
                .insert(name, SecretString::from(token.trim()))
                .is_some()
        {
            return None;
        }
    }
    Some(tokens)
}
