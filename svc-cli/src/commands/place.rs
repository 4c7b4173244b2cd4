//! Where a command works that can use a store directly or ask its service.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use svc_client::Client;
use svc_engine::backup::unfinished_in;
use svc_engine::store::{self, DatabaseUrl, Ledger, SchemaState, StoreError};
use svc_model::id::OrgId;
use svc_server::{SearchSetting, SettingOrigin, StoreSettings};

use super::{service, store as settings};
use crate::credentials::Credentials;
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::Output;

/// What a command uses by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultPlace {
    /// The store on this machine, unless the user is logged in to a service.
    Store,
    /// The service.
    Service,
}

/// Where a command works.
pub(crate) enum StoreOrService {
    /// Directly on a store.
    Store(OpenedLedger),
    /// Through a service.
    Service(Client),
}

/// A store, and the organization whose facts are meant.
pub(crate) struct OpenedLedger {
    pub(crate) ledger: Ledger,
    pub(crate) org_id: OrgId,
    url: DatabaseUrl,
    search: SearchSetting,
}

impl OpenedLedger {
    /// Returns the file of the search index of a server on this machine.
    pub(crate) fn search_index(&self) -> Option<&Path> {
        self.search.path().map(PathBuf::as_path)
    }

    /// Returns the files beside a SQLite database that restores have put aside or left, and the
    /// unfinished backups beside it and in the current folder.
    pub(crate) fn copies(&self) -> Vec<PathBuf> {
        let mut found = unfinished_in(Path::new(""));
        let DatabaseUrl::Sqlite(database) = &self.url else {
            return found;
        };
        // Beside the file that a link leads to.
        let database = fs::canonicalize(database).unwrap_or_else(|_| database.clone());
        let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
            return found;
        };
        // The second is what a restore leaves that was killed.
        let beginnings = [".replaced-", ".restoring-"].map(|end| {
            let mut beginning = name.to_owned();
            beginning.push(end);
            beginning
        });
        let is_copy = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            beginnings
                .iter()
                .any(|beginning| name.starts_with(beginning.as_encoded_bytes()))
        };
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut beside: Vec<PathBuf> = entries
            .filter(|entry| is_copy(&entry.file_name()))
            .map(|entry| entry.path())
            .collect();
        if std::env::current_dir().ok().as_deref() != Some(folder) {
            beside.extend(unfinished_in(folder));
        }
        beside.sort();
        found.append(&mut beside);
        found
    }
}

impl StoreOrService {
    /// Returns the place that the options, the environment, the configuration and the last login
    /// select, in this order of precedence.
    pub(crate) fn find(
        service: &ServiceOptions,
        store: &StoreOptions,
        otherwise: DefaultPlace,
        output: &mut Output,
    ) -> Result<Self, CommandError> {
        if asks_service(service, store, otherwise)? {
            Ok(Self::Service(service::client(service)?))
        } else {
            Self::open(settings::settings(store)?, output)
        }
    }

    fn open(settings: StoreSettings, output: &mut Output) -> Result<Self, CommandError> {
        let state = store::schema_state(&settings.url)?;
        if state == SchemaState::Absent {
            let error = CommandError::from(StoreError::Schema(state));
            return Err(error.hint(format!(
                "this store is {}; to reach the store of another machine, use its service: svc login URL",
                settings.url.shown()
            )));
        }
        Ok(Self::Store(OpenedLedger {
            ledger: settings::ledger(&settings.url, &settings.org_id, output)?,
            org_id: settings.org_id,
            url: settings.url,
            search: settings.search,
        }))
    }

    /// Returns the URL of a server of this store that runs on this machine.
    pub(crate) fn running(&self) -> Option<String> {
        match self {
            Self::Store(opened) => svc_server::running_at(&opened.url),
            Self::Service(_) => None,
        }
    }

    /// Returns the place for people, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Store(opened) => opened.url.shown(),
            Self::Service(client) => client.url().to_owned(),
        }
    }
}

/// Returns whether the options, the environment, the configuration and the last login, in this
/// order of precedence, select a service rather than a store.
pub(crate) fn asks_service(
    service: &ServiceOptions,
    store: &StoreOptions,
    otherwise: DefaultPlace,
) -> Result<bool, CommandError> {
    let is_given = |option: &Option<String>| settings::given(option.as_deref()).is_some();
    match (is_given(&service.url), is_given(&store.database_url)) {
        (true, true) => {
            return Err(CommandError::refused(
                "invalid_argument",
                "--url selects a service and --database-url a store: give only one of them",
            ));
        }
        (true, false) => return Ok(true),
        (false, true) => return Ok(false),
        (false, false) => {}
    }
    Ok(match settings::settings(store)?.origin {
        SettingOrigin::Flag | SettingOrigin::Environment => false,
        SettingOrigin::File => service::given(service)?.is_some(),
        SettingOrigin::Default => {
            otherwise == DefaultPlace::Service
                || service::given(service)?.is_some()
                || Credentials::load()?.current().is_some()
        }
    })
}

/// Refuses a service that belongs to a different organization.
pub(crate) async fn check_organization(
    client: &Client,
    store: &StoreOptions,
) -> Result<(), CommandError> {
    let Some(wanted) = settings::given(store.org_id.as_deref()) else {
        return Ok(());
    };
    let org_id = client.me().await?.org_id;
    if org_id.as_str() == wanted.to_ascii_lowercase() {
        return Ok(());
    }
    Err(CommandError::refused(
        "other_organization",
        format!(
            "the service at {} belongs to organization {org_id}",
            client.url()
        ),
    ))
}
