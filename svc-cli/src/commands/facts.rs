use clap::Args;
use svc_client::RawReply;
use svc_engine::read;
use svc_model::endpoint;
use svc_model::facts::{FactTable, FactsCounts};
use svc_model::request::NoParameters;

use super::{service, store};
use crate::cli::{ServiceOptions, StoreOptions};
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Facts {
    #[command(flatten)]
    service: ServiceOptions,

    #[command(flatten)]
    store: StoreOptions,
}

impl Facts {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        if store::given(self.store.database_url.as_deref()).is_some() {
            let ledger = store::ledger(&self.store)?;
            let counts = read::facts(&mut ledger.snapshot()?)?;
            return output.value(&counts, render);
        }
        let client = service::client(&self.service)?;
        let reply: RawReply<FactsCounts> = service::block_on(async {
            Ok(client.call_raw::<endpoint::Facts>(&NoParameters).await?)
        })?;
        output.reply(&reply, render)
    }
}

/// Returns the counts as lines that scripts rely on: the name, then the numbers in columns.
pub(crate) fn render(counts: &FactsCounts) -> String {
    let mut lines = vec![
        line("table", "total", "visible"),
        line("sessions", &counts.sessions.to_string(), "-"),
    ];
    for table in FactTable::ALL {
        let count = counts.tables.get(*table);
        lines.push(line(
            table.as_str(),
            &count.total.to_string(),
            &count.visible.to_string(),
        ));
    }
    lines.push(format!(
        "quarantine_revision: {}\n",
        counts.quarantine_revision
    ));
    lines.concat()
}

fn line(name: &str, total: &str, visible: &str) -> String {
    // As wide as the longest name of a table.
    format!("{name:<27} {total:>7} {visible:>8}\n")
}

#[cfg(test)]
mod tests {
    use svc_model::facts::{FactCount, FactTables};

    use super::*;

    #[test]
    fn counts_are_lines_in_the_order_of_the_tables() {
        let counts = FactsCounts {
            sessions: 2,
            tables: FactTables {
                inference_calls: FactCount {
                    total: 12,
                    visible: 11,
                },
                ..FactTables::default()
            },
            quarantine_revision: 1,
        };
        let text = render(&counts);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 14);
        assert_eq!(lines[0], "table                         total  visible");
        assert_eq!(lines[1], "sessions                          2        -");
        assert_eq!(lines[2], "inference_calls                  12       11");
        assert_eq!(lines[11], "session_commit_observations       0        0");
        assert_eq!(lines[13], "quarantine_revision: 1");
    }
}
