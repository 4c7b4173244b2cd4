//! Reads settings one by one, and collects all errors.

use secrecy::SecretString;
use svc_engine::store::DatabaseUrl;

use super::{Grant, StoreSettings, search};
use crate::env::{self, Setting};
use crate::source::{Source, data_folder};

/// Reads settings, and collects errors.
pub(super) struct SettingsReader<'s> {
    pub(super) source: &'s Source,
    pub(super) mistakes: Vec<String>,
}

impl<'s> SettingsReader<'s> {
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

    /// Returns a setting that is given. A value that breaks its rule is an error, and then unset.
    pub(super) fn given<T>(&mut self, setting: &Setting<T>) -> Option<T> {
        let text = self.text(setting.name)?;
        let parsed = setting.parse(&text);
        parsed
            .map_err(|rule| self.mistake(setting.name, &rule))
            .ok()
    }

    /// Returns a setting that is given, or else its default. `None` after an error.
    pub(super) fn value<T>(&mut self, setting: &Setting<T>) -> Option<T> {
        if self.source.is_given(setting.name) {
            self.given(setting)
        } else {
            setting.default()
        }
    }

    pub(super) fn secret(&mut self, setting: &Setting<String>) -> Option<SecretString> {
        self.given(setting)
            .map(|text| SecretString::from(text.trim()))
    }

    /// Reads the location of the store and the organization.
    pub(super) fn store(&mut self) -> Option<StoreSettings> {
        let org_id = self.value(&env::ORG_ID);
        let url = if self.source.is_given(env::DATABASE_URL.name) {
            self.given(&env::DATABASE_URL)
        } else {
            let folder = data_folder();
            if folder.is_none() {
                self.mistake(env::DATABASE_URL.name, "is not set, and neither is HOME");
            }
            folder.map(|folder| DatabaseUrl::sqlite(&folder.join("svc.db")))
        };
        let search = search::read(self, url.as_ref());
        Some(StoreSettings {
            url: url?,
            org_id: org_id?,
            search,
            origin: self.source.origin(env::DATABASE_URL.name),
        })
    }

    pub(super) fn grant(&mut self) -> Grant {
        let single = self.given(&env::RETRIEVAL_SESSION_ID);
        let plural = self.given(&env::RETRIEVAL_SESSION_IDS);
        match (single, plural) {
            (None, None) => Grant::None,
            (Some(session_id), None) => Grant::Single(session_id),
            (None, Some(session_ids)) => Grant::Plural(session_ids),
            (Some(_), Some(_)) => {
                self.mistake(
                    env::RETRIEVAL_SESSION_IDS.name,
                    "excludes SVC_RETRIEVAL_SESSION_ID",
                );
                Grant::None
            }
        }
    }
}
