//! Reads settings one by one, and collects all errors.

use std::fmt;

use secrecy::SecretString;
use svc_engine::store::DatabaseUrl;
use svc_model::field::FromField as _;
use svc_model::id::{OrgId, SessionId};
use svc_model::json::Json;
use svc_model::limit;
use svc_model::repository::RepositoryHost;

use super::{Grant, StoreSettings};
use crate::env;
use crate::source::{Source, data_folder};

/// The default forge host.
const DEFAULT_FORGE_HOST: &str = "github.com";
/// The default organization.
const DEFAULT_ORG: &str = "default";

/// Reads settings, and collects errors.
pub(super) struct Reader<'s> {
    pub(super) source: &'s Source,
    pub(super) mistakes: Vec<String>,
}

impl<'s> Reader<'s> {
    /// Returns a reader that adds to the errors found so far.
    pub(super) fn new(source: &'s Source, mistakes: Vec<String>) -> Self {
        Self { source, mistakes }
    }

    pub(super) fn mistake(&mut self, name: &str, what: &str) {
        self.mistakes
            .push(format!("{} {what}", self.source.shown(name)));
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.source.get(name).unwrap_or_else(|unreadable| {
            self.mistakes.push(unreadable.0);
            None
        })
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text);
        if value.is_none() {
            self.mistake(name, expected);
        }
        value
    }

    /// Reads a setting with a parser whose error describes the problem. The error must not repeat
    /// the value.
    pub(super) fn checked<T, E: fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(name)?;
        parse(&text)
            .map_err(|error| self.mistake(name, &error.to_string()))
            .ok()
    }

    /// Reads the location of the store and the organization.
    pub(super) fn store(&mut self) -> Option<StoreSettings> {
        let org_id = self
            .text(env::ORG_ID)
            .unwrap_or_else(|| DEFAULT_ORG.to_owned());
        let org_id = OrgId::new(&org_id)
            .inspect_err(|_| {
                self.mistake(env::ORG_ID, "must be 1 to 64 of a-z, 0-9, '.', '_', '-'");
            })
            .ok();
        let url = if self.source.is_given(env::DATABASE_URL) {
            self.checked(env::DATABASE_URL, DatabaseUrl::parse)
        } else {
            let folder = data_folder();
            if folder.is_none() {
                self.mistake(env::DATABASE_URL, "is not set, and neither is HOME");
            }
            folder.map(|folder| DatabaseUrl::sqlite(&folder.join("svc.db")))
        };
        Some(StoreSettings {
            url: url?,
            org_id: org_id?,
            origin: self.source.origin(env::DATABASE_URL),
        })
    }

    pub(super) fn boolean(&mut self, name: &str, default: bool) -> bool {
        self.parsed(name, "must be true or false", truth)
            .unwrap_or(default)
    }

    /// Reads a setting that is on or off.
    pub(super) fn switch(&mut self, name: &str, default: bool) -> bool {
        self.parsed(name, "must be on or off", truth)
            .unwrap_or(default)
    }

    pub(super) fn number(&mut self, name: &str) -> Option<u64> {
        self.parsed(name, "must be a whole number from 1", |text| {
            text.parse().ok().filter(|number| *number > 0)
        })
    }

    pub(super) fn secret(&mut self, name: &str) -> Option<SecretString> {
        self.text(name).map(|text| SecretString::from(text.trim()))
    }

    pub(super) fn forge_host(&mut self) -> Option<RepositoryHost> {
        let host = self.text(env::FORGE_HOST);
        let host = RepositoryHost::new(host.as_deref().unwrap_or(DEFAULT_FORGE_HOST));
        if host.is_none() {
            self.mistake(env::FORGE_HOST, "must be a host name without a port");
        }
        host
    }

    pub(super) fn grant(&mut self) -> Grant {
        let single = self.parsed(env::RETRIEVAL_SESSION_ID, "must be a Session id", |text| {
            SessionId::new(text).ok()
        });
        let plural = self.parsed(
            env::RETRIEVAL_SESSION_IDS,
            "must be a JSON array of 1 to 32 distinct Session ids",
            plural_grant,
        );
        match (single, plural) {
            (None, None) => Grant::None,
            (Some(session_id), None) => Grant::Single(session_id),
            (None, Some(session_ids)) => Grant::Plural(session_ids),
            (Some(_), Some(_)) => {
                self.mistake(
                    env::RETRIEVAL_SESSION_IDS,
                    "excludes SVC_RETRIEVAL_SESSION_ID",
                );
                Grant::None
            }
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
        _ => None,
    }
}

fn plural_grant(text: &str) -> Option<Vec<SessionId>> {
    if text.len() > limit::GRANT_BYTES_MAX {
        return None;
    }
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let mut session_ids = items
        .iter()
        .map(|item| SessionId::from_field(item).ok())
        .collect::<Option<Vec<SessionId>>>()?;
    let given = session_ids.len();
    session_ids.sort();
    session_ids.dedup();
    let valid = session_ids.len() == given && (1..=limit::GRANT_SESSIONS_MAX).contains(&given);
    valid.then_some(session_ids)
}
