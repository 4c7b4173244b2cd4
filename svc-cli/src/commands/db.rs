use clap::{Args, Subcommand};
use serde::Serialize;
use svc_engine::store::{self, SchemaState, StoreError};

use super::store::settings;
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Show whether the schema is at the revision that this version needs.
    Status(Status),
    /// Upgrade the schema to the revision that this version needs.
    Upgrade(StoreOptions),
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Exit with 1 unless the schema is at that revision.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    store: StoreOptions,
}

/// The schema, for programs.
#[derive(Debug, Serialize)]
struct Schema {
    state: &'static str,
    revision: Option<i64>,
    head: i64,
}

impl Db {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Status(status) => {
                let url = settings(&status.store)?.url;
                let state = store::schema_state(&url)?;
                output.value(&schema(state), render_status)?;
                if state == SchemaState::Absent {
                    output.note(&format!(
                        "this store is {}; another one is named by --database-url or SVC_DATABASE_URL",
                        url.shown()
                    ));
                }
                match state {
                    state if !status.check || matches!(state, SchemaState::AtHead(_)) => Ok(()),
                    state => Err(StoreError::Schema(state).into()),
                }
            }
            Self::Upgrade(options) => {
                let url = settings(&options)?.url;
                let before = store::schema_state(&url)?;
                let revision = store::upgrade(&url)?;
                output.value(&schema(SchemaState::AtHead(revision)), |schema| {
                    let done = match before {
                        SchemaState::AtHead(_) => "is already at",
                        _ => "upgraded to",
                    };
                    format!("database schema {done} {}\n", schema.head)
                })
            }
        }
    }
}

fn schema(state: SchemaState) -> Schema {
    let revision = match state {
        SchemaState::Absent => None,
        SchemaState::Behind(revision)
        | SchemaState::AtHead(revision)
        | SchemaState::Ahead(revision) => Some(revision),
    };
    Schema {
        state: state.as_str(),
        revision,
        head: SchemaState::head(),
    }
}

fn render_status(schema: &Schema) -> String {
    let Schema {
        state,
        revision,
        head,
    } = schema;
    match revision {
        Some(revision) if revision == head => format!("database schema: {state} ({revision})\n"),
        _ => format!("database schema: {state} (supported head {head})\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_one_line() {
        let head = SchemaState::head();
        for (state, line) in [
            (
                SchemaState::Absent,
                format!("database schema: absent (supported head {head})\n"),
            ),
            (
                SchemaState::Behind(0),
                format!("database schema: behind (supported head {head})\n"),
            ),
            (
                SchemaState::AtHead(head),
                format!("database schema: at_head ({head})\n"),
            ),
            (
                SchemaState::Ahead(99),
                format!("database schema: ahead (supported head {head})\n"),
            ),
        ] {
            assert_eq!(render_status(&schema(state)), line);
        }
    }
}
