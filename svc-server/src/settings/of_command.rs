//! The settings of commands that work directly on the store, without a server.

use svc_engine::mirror::MirrorConfig;
use svc_engine::store::DatabaseUrl;
use svc_model::id::OrgId;

use super::reader::SettingsReader;
use super::{Overrides, SearchSetting, SettingsError, mirrors};
use crate::env;
use crate::source::{SettingOrigin, Strictness};

/// The settings for a command that works directly on the store: the store and the organization. No
/// secrets are needed or created.
#[derive(Debug)]
pub struct StoreSettings {
    /// The database.
    pub url: DatabaseUrl,
    /// The organization.
    pub org_id: OrgId,
    /// Where the store is configured.
    pub origin: SettingOrigin,
    /// Where the search index of a server of this machine is.
    pub search: SearchSetting,
}

impl StoreSettings {
    /// Reads the settings of this process.
    ///
    /// # Errors
    ///
    /// Reports all errors at once.
    pub fn load(overrides: Overrides) -> Result<Self, SettingsError> {
        let mut mistakes = Vec::new();
        let source = overrides.source(Strictness::Misspelled, &mut mistakes);
        let mut reader = SettingsReader::new(&source, mistakes);
        let store = reader.store();
        match store {
            Some(store) if reader.mistakes.is_empty() => Ok(store),
            _ => Err(SettingsError(reader.mistakes)),
        }
    }
}

/// The settings for a command that works on a store and its mirrors.
#[derive(Debug)]
pub struct MirrorSettings {
    /// The store.
    pub store: StoreSettings,
    /// The configuration of mirrors, if they are enabled.
    pub mirror: Option<MirrorConfig>,
}

impl MirrorSettings {
    /// Reads the settings of this process.
    ///
    /// # Errors
    ///
    /// Reports all errors at once.
    pub fn load(overrides: Overrides) -> Result<Self, SettingsError> {
        let mut mistakes = Vec::new();
        let source = overrides.source(Strictness::Misspelled, &mut mistakes);
        let mut reader = SettingsReader::new(&source, mistakes);
        let store = reader.store();
        let dev_mode = reader.value(&env::DEV_MODE).unwrap_or_default();
        let forge_host = reader.value(&env::FORGE_HOST);
        let database = store.as_ref().map(|store| &store.url);
        let mirror = mirrors::read(&mut reader, database, dev_mode, forge_host.as_ref());
        match store {
            Some(store) if reader.mistakes.is_empty() => Ok(Self { store, mirror }),
            _ => Err(SettingsError(reader.mistakes)),
        }
    }
}
