//! The store that a command works on.

use svc_engine::store::{DatabaseUrl, Ledger, Obstacle, SchemaState, StoreError};
use svc_model::id::OrgId;
use svc_server::{Overrides, StoreSettings};

use crate::error::{CommandError, chain};
use crate::options::StoreOptions;
use crate::output::Output;

/// Returns the settings of the store from the options, the environment and the configuration.
pub(crate) fn settings(options: &StoreOptions) -> Result<StoreSettings, CommandError> {
    Ok(StoreSettings::load(overrides(options)?)?)
}

/// Returns what the options set.
pub(crate) fn overrides(options: &StoreOptions) -> Result<Overrides, CommandError> {
    let org_id = given(options.org_id.as_deref());
    if let Some(org_id) = &org_id {
        OrgId::new(org_id.trim()).map_err(|_| {
            CommandError::argument("--org", "must be 1 to 64 of a-z, 0-9, '.', '_', '-'")
        })?;
    }
    Ok(Overrides {
        database_url: given(options.database_url.as_deref()),
        org_id,
        ..Overrides::default()
    })
}

/// Opens the facts of an organization for a command. An organization that the store does not know
/// looks like one without facts, so the user is warned if the store has others.
pub(crate) fn ledger(
    url: &DatabaseUrl,
    org_id: &OrgId,
    output: &mut Output,
) -> Result<Ledger, CommandError> {
    let ledger = Ledger::open(url, org_id.clone())?;
    // If they cannot be read, the command itself reports it.
    let others = ledger.organizations_instead().unwrap_or_default();
    if !others.is_empty() {
        let others: Vec<&str> = others.iter().map(OrgId::as_str).collect();
        output.warning(&format!(
            "this store has no facts of organization {org_id}; it has: {}. Choose one with --org or \
             SVC_ORG_ID",
            others.join(", ")
        ));
    }
    Ok(ledger)
}

/// Returns an option. An empty one counts as unset.
pub(crate) fn given(option: Option<&str>) -> Option<String> {
    option
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let (code, hint) = match &error {
            StoreError::NotOwner { owner, .. } => {
                return Self::refused("not_the_owner", chain(&error)).hint(format!(
                    "run the same command as {owner}: name that role in SVC_DATABASE_URL or \
                     --database-url"
                ));
            }
            StoreError::NotRewritten(table) => {
                return Self::refused("not_rewritten", chain(&error)).hint(format!(
                    "in psql, as the owner of the table: VACUUM (FULL, VERBOSE) {table}"
                ));
            }
            StoreError::Schema(SchemaState::Absent) => {
                return Self::refused("schema", "no service has used this database yet")
                    .hint("to create the schema: svc db upgrade")
                    .hint("to look at a sample first: svc demo");
            }
            StoreError::Schema(SchemaState::Behind(_)) => (
                "schema",
                Some("to upgrade the database to the revision of this version: svc db upgrade"),
            ),
            StoreError::Schema(_) | StoreError::MigrationChanged(_) => {
                ("schema", Some("use the same version of svc as the service"))
            }
            StoreError::Deadline => ("deadline", None),
            StoreError::ErasedByAnother => (
                "erased_by_another",
                Some("the same command goes on with what is left; what was erased stays erased"),
            ),
            StoreError::Corrupt { .. } => ("corrupt_row", None),
            other => (
                "database_unavailable",
                other
                    .obstacle()
                    .map(Obstacle::mend)
                    .or(Some("the database is set by SVC_DATABASE_URL")),
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
