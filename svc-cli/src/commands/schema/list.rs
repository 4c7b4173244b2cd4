use serde::{Deserialize, Serialize};
use svc_model::json;
use svc_server::schemas::INDEX;

use crate::error::CommandError;
use crate::output::{Output, Table};

/// The maximum number of routes that are listed by name.
const NAMED_ROUTES_MAX: usize = 2;

/// The published schemas, for programs.
#[derive(Debug, Serialize)]
struct SchemaListing {
    schemas: Vec<SchemaEntry>,
}

#[derive(Debug, Deserialize, Serialize)]
struct SchemaEntry {
    #[serde(rename(deserialize = "type"))]
    name: String,
    /// `request`, `payload` (within a body, in a note, or printed by this program alone), `reply`
    /// or `problem`.
    direction: String,
    routes: Vec<SchemaRoute>,
}

#[derive(Debug, Deserialize, Serialize)]
struct SchemaRoute {
    method: String,
    path: String,
}

pub(super) fn run(output: &mut Output) -> Result<(), CommandError> {
    let schemas = json::from_slice(INDEX.as_bytes())
        .map_err(|error| CommandError::refused("unreadable", error.to_string()))?;
    output.value(&SchemaListing { schemas }, render)
}

fn render(listed: &SchemaListing) -> String {
    let mut table = Table::new(["schema", "is a", "routes"]);
    for entry in &listed.schemas {
        let routes = match entry.routes.len() {
            0 => "-".to_owned(),
            count if count > NAMED_ROUTES_MAX => format!("{count} routes"),
            _ => {
                let routes = entry.routes.iter();
                let routes = routes.map(|route| format!("{} {}", route.method, route.path));
                routes.collect::<Vec<_>>().join(", ")
            }
        };
        table.row([entry.name.clone(), entry.direction.clone(), routes]);
    }
    table.render()
}
