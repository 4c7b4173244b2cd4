//! The secrets: long enough, not placeholders, and all different.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use svc_model::grant::TokenName;
use svc_model::limit;

use super::Grant;
use super::reader::SettingsReader;
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
pub(super) struct SecretSettings {
    pub(super) operator: SecretString,
    pub(super) ingest: BTreeMap<String, SecretString>,
    pub(super) retrieval: Option<SecretString>,
    /// The named retrieval tokens.
    pub(super) named: BTreeMap<TokenName, SecretString>,
    /// The webhook secret, and the previous one.
    pub(super) webhook: Vec<SecretString>,
}

impl SecretSettings {
    pub(super) fn read(reader: &mut SettingsReader<'_>, dev_mode: bool) -> Self {
        let operator = reader.secret(&env::OPERATOR_TOKEN);
        let webhook = reader.secret(&env::FORGE_WEBHOOK_SECRET);
        let webhook_previous = reader.secret(&env::FORGE_WEBHOOK_SECRET_PREVIOUS);
        let legacy = reader.secret(&env::API_BEARER_TOKEN);
        let retrieval = reader.secret(&env::RETRIEVAL_TOKEN);
        let ingest = reader.given(&env::INGEST_TOKENS);
        let none_can_be_read = ingest.is_none()
            && !(reader.source.is_missing(env::INGEST_TOKENS.name)
                && reader.source.is_missing(env::API_BEARER_TOKEN.name));
        let mut ingest = ingest.unwrap_or_default();
        let named = reader.given(&env::RETRIEVAL_TOKENS).unwrap_or_default();
        if let Some(legacy) = legacy {
            ingest.insert("legacy".to_owned(), legacy);
        }
        if !dev_mode {
            let mut check =
                |name: &str, secret, characters| check(reader, name, secret, characters);
            check(
                env::OPERATOR_TOKEN.name,
                operator.as_ref(),
                Characters::Token,
            );
            check(
                env::FORGE_WEBHOOK_SECRET.name,
                webhook.as_ref(),
                Characters::Any,
            );
            if webhook_previous.is_some() {
                let name = env::FORGE_WEBHOOK_SECRET_PREVIOUS.name;
                check(name, webhook_previous.as_ref(), Characters::Any);
            }
            for (client, token) in &ingest {
                let name = match client.as_str() {
                    "legacy" => env::API_BEARER_TOKEN.name.to_owned(),
                    client => format!("{}[{client}]", env::INGEST_TOKENS.name),
                };
                check(&name, Some(token), Characters::Token);
            }
            if ingest.is_empty() && !none_can_be_read {
                reader.mistake(
                    env::INGEST_TOKENS.name,
                    "or SVC_API_BEARER_TOKEN must be set",
                );
            }
        }
        if retrieval.is_some() {
            check(
                reader,
                env::RETRIEVAL_TOKEN.name,
                retrieval.as_ref(),
                Characters::Token,
            );
        }
        let of_name = |name: &TokenName| format!("{}[{name}]", env::RETRIEVAL_TOKENS.name);
        for (name, token) in &named {
            check(reader, &of_name(name), Some(token), Characters::Token);
        }
        let single = [
            (env::OPERATOR_TOKEN, &operator),
            (env::FORGE_WEBHOOK_SECRET, &webhook),
            (env::FORGE_WEBHOOK_SECRET_PREVIOUS, &webhook_previous),
            (env::RETRIEVAL_TOKEN, &retrieval),
        ];
        let single = single.into_iter();
        let single = single
            .filter_map(|(setting, secret)| Some((setting.name.to_owned(), secret.as_ref()?)));
        let of_client = |client: &String| format!("{}[{client}]", env::INGEST_TOKENS.name);
        let ingesting = ingest.iter();
        let all = ingesting
            .map(|(client, token)| (of_client(client), token))
            .chain(single)
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

    pub(super) fn check_retrieval(&self, reader: &mut SettingsReader<'_>, grant: &Grant) {
        let sessions = reader.source.is_given(env::RETRIEVAL_SESSION_ID.name)
            || reader.source.is_given(env::RETRIEVAL_SESSION_IDS.name);
        match (&self.retrieval, grant) {
            (Some(_), Grant::None) if !sessions => reader.mistake(
                env::RETRIEVAL_TOKEN.name,
                "needs SVC_RETRIEVAL_SESSION_ID or SVC_RETRIEVAL_SESSION_IDS",
            ),
            // A token that is given and cannot be read is reported where it is read.
            (None, Grant::Single(_) | Grant::Plural(_))
                if !reader.source.is_given(env::RETRIEVAL_TOKEN.name) =>
            {
                reader.mistake(
                    env::RETRIEVAL_TOKEN.name,
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
    reader: &mut SettingsReader<'_>,
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
