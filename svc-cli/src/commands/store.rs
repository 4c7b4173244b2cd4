//! The store that a command works on.

use svc_engine::store::{self, DatabaseUrl, Ledger, SchemaState, StoreError};
use svc_model::id::OrgId;

use crate::cli::StoreOptions;
use crate::error::{CommandError, chain};

/// The organization of a service that nobody configured.
const DEFAULT_ORG: &str = "default";

/// Where a store is and whose facts are meant.
#[derive(Debug)]
pub(crate) struct StoreSettings {
    pub(crate) url: DatabaseUrl,
    pub(crate) org_id: OrgId,
}

/// Returns what the options and the environment say of the store.
pub(crate) fn settings(options: &StoreOptions) -> Result<StoreSettings, CommandError> {
    let Some(url) = given(options.database_url.as_deref()) else {
        return Err(CommandError::refused("no_database", "no database is named")
            .hint("name it by --database-url or SVC_DATABASE_URL"));
    };
    let url = DatabaseUrl::parse(&url)
        .map_err(|rule| CommandError::argument("the database URL", rule))?;
    let org_id = given(options.org_id.as_deref());
    let org_id = OrgId::new(org_id.as_deref().unwrap_or(DEFAULT_ORG))
        .map_err(|rule| CommandError::refused("invalid_argument", rule.to_string()))?;
    Ok(StoreSettings { url, org_id })
}

/// Opens the facts of the organization. Reading works on an older schema too.
pub(crate) fn ledger(options: &StoreOptions) -> Result<Ledger, CommandError> {
    let settings = settings(options)?;
    let state = store::schema_state(&settings.url)?;
    if state == SchemaState::Absent {
        return Err(StoreError::Schema(state).into());
    }
    Ok(Ledger::open(&settings.url, settings.org_id)?)
}

/// Returns an option; an empty one counts as none.
pub(crate) fn given(option: Option<&str>) -> Option<String> {
    option
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let (code, hint) = match &error {
            StoreError::Schema(SchemaState::Absent | SchemaState::Behind(_)) => (
                "schema",
                Some("bring the database to the revision of this version: svc db upgrade"),
            ),
            StoreError::Schema(_) | StoreError::MigrationChanged(_) => (
                "schema",
                Some("use the version of svc that the service has"),
            ),
            StoreError::Deadline => ("deadline", None),
            StoreError::Corrupt { .. } => ("corrupt_row", None),
            _ => (
                "database_unavailable",
                Some("the database is that of SVC_DATABASE_URL"),
            ),
        };
        let refused = Self::refused(code, chain(&error));
        match hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    }
}

impl From<svc_engine::error::Error> for CommandError {
    fn from(error: svc_engine::error::Error) -> Self {
        match error {
            svc_engine::error::Error::Store(error) => error.into(),
            other => Self::refused("refused", chain(&other)),
        }
    }
}
