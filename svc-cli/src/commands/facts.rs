use clap::Args;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use svc_client::RawReply;
use svc_engine::store::{Snapshot, StoreError};
use svc_model::endpoint;
use svc_model::facts::{FactCount, FactTable, FactsCounts};
use svc_model::request::NoParameters;

use super::place::{DefaultPlace, StoreOrService, check_organization};
use super::service;
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Facts {
    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// The counts for a schema of any revision. `None` for a table that the schema lacks.
#[derive(Debug, Serialize)]
struct TableCounts {
    sessions: Option<u64>,
    #[serde(serialize_with = "as_map")]
    tables: Vec<(FactTable, Option<FactCount>)>,
    quarantine_revision: Option<u64>,
}

impl Facts {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let client = match StoreOrService::find(
            &self.service,
            &self.store,
            DefaultPlace::Service,
            output,
        )? {
            StoreOrService::Store(opened) => {
                let counts = TableCounts::read(&mut opened.ledger.snapshot()?)?;
                return output.value(&counts, render);
            }
            StoreOrService::Service(client) => client,
        };
        let reply: RawReply<FactsCounts> = service::block_on(async {
            check_organization(&client, &self.store).await?;
            Ok(client.call_raw::<endpoint::Facts>(&NoParameters).await?)
        })?;
        output.reply(&reply, |counts| render(&TableCounts::from(counts)))
    }
}

impl TableCounts {
    fn read(snapshot: &mut Snapshot<'_>) -> Result<Self, StoreError> {
        // Without the log, it is unknown which facts are visible.
        let has_log = snapshot.has_table("quarantine_log")?;
        let mut kinds = Vec::with_capacity(FactTable::ALL.len());
        for table in FactTable::ALL {
            if has_log && snapshot.has_table(table.as_str())? {
                kinds.push(*table);
            }
        }
        let counts = has_log.then(|| snapshot.fact_counts_of(&kinds));
        let counts = counts.transpose()?;
        let shown = counts.unwrap_or_default().shown();
        let count = |(table, count)| (table, kinds.contains(&table).then_some(count));
        let tables = shown.map(count).collect();
        let has_sessions = snapshot.has_table("sessions")?;
        Ok(Self {
            sessions: has_sessions.then(|| snapshot.session_count()).transpose()?,
            tables,
            quarantine_revision: has_log
                .then(|| snapshot.quarantine_revision())
                .transpose()?,
        })
    }
}

impl From<&FactsCounts> for TableCounts {
    fn from(counts: &FactsCounts) -> Self {
        let shown = counts.tables.shown();
        Self {
            sessions: Some(counts.sessions),
            tables: shown.map(|(table, count)| (table, Some(count))).collect(),
            quarantine_revision: Some(counts.quarantine_revision),
        }
    }
}

fn as_map<S: Serializer>(
    tables: &[(FactTable, Option<FactCount>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(tables.len()))?;
    for (table, count) in tables {
        map.serialize_entry(table.as_str(), count)?;
    }
    map.end()
}

/// Returns the counts as lines in a stable format: the name, then the numbers in columns.
fn render(counts: &TableCounts) -> String {
    const UNAVAILABLE: &str = "unavailable";
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let mut lines = vec![line("table", "total", "visible")];
    lines.push(match number(counts.sessions) {
        Some(sessions) => line("sessions", &sessions, "-"),
        None => line("sessions", UNAVAILABLE, ""),
    });
    for (table, count) in &counts.tables {
        lines.push(match count {
            Some(count) => line(
                table.as_str(),
                &count.total.to_string(),
                &count.visible.to_string(),
            ),
            None => line(table.as_str(), UNAVAILABLE, ""),
        });
    }
    let revision = number(counts.quarantine_revision);
    lines.push(format!(
        "quarantine_revision: {}\n",
        revision.as_deref().unwrap_or(UNAVAILABLE)
    ));
    lines.concat()
}

fn line(name: &str, total: &str, visible: &str) -> String {
    // As wide as the longest table name.
    let line = format!("{name:<27} {total:>7} {visible:>8}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use svc_model::facts::FactTables;
    use svc_model::json;

    use super::*;

    fn counts() -> FactsCounts {
        FactsCounts {
            sessions: 2,
            tables: FactTables {
                inference_calls: FactCount {
                    total: 12,
                    visible: 11,
                },
                ..FactTables::default()
            },
            quarantine_revision: 1,
        }
    }

    #[test]
    fn counts_are_lines_in_the_order_of_the_tables() {
        let text = render(&TableCounts::from(&counts()));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 14);
        assert_eq!(lines[0], "table                         total  visible");
        assert_eq!(lines[1], "sessions                          2        -");
        assert_eq!(lines[2], "inference_calls                  12       11");
        assert_eq!(lines[11], "session_commit_observations       0        0");
        assert_eq!(lines[13], "quarantine_revision: 1");
    }

    #[test]
    fn a_table_that_the_schema_lacks_is_unavailable_and_not_zero() {
        let mut counts = TableCounts::from(&counts());
        counts.sessions = None;
        counts.tables[1].1 = None;
        let text = render(&counts);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "sessions                    unavailable");
        assert_eq!(lines[2], "inference_calls                  12       11");
        assert_eq!(lines[3], "developer_decisions         unavailable");
        let json = json::to_vec(&counts, usize::MAX).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(json.starts_with(r#"{"sessions":null,"tables":{"inference_calls":{"total":12,"visible":11},"developer_decisions":null,"#), "{json}");
    }

    #[test]
    fn the_store_and_the_service_give_the_same_json() {
        assert_eq!(
            json::to_vec(&counts(), usize::MAX).unwrap(),
            json::to_vec(&TableCounts::from(&counts()), usize::MAX).unwrap()
        );
    }
}
