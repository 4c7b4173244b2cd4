use svc_model::reports::{AttributionAlert, AttributionShareRow};

use super::page::{Page, bar, rate, repository};
use crate::output::{Table, escape};

/// Adds the shares of repositories, one per line.
pub(super) fn rows(page: &mut Page, rows: &[AttributionShareRow]) {
    if rows.is_empty() {
        page.line("  no pushed commit that could be looked at and that an agent could have made");
        return;
    }
    let mut table = Table::new([
        "repository",
        "from",
        "to",
        "git_notes_share",
        "",
        "by note",
        "by guess",
        "untied",
    ])
    .numbers(&[5, 6, 7]);
    for row in rows {
        let (notes, commits) = (row.git_notes_attributed, row.agent_plausible_commits);
        table.row([
            repository(&row.repo, row.repository_identity.as_ref()),
            row.window_start.to_string(),
            row.window_end.to_string(),
            rate(notes, commits),
            bar(notes, commits),
            notes.to_string(),
            row.jaccard_attributed.to_string(),
            row.unattributed.to_string(),
        ]);
    }
    page.table(&table);
}

/// Adds alerts about possibly missing notes.
pub(super) fn alerts(page: &mut Page, alerts: &[AttributionAlert]) {
    for alert in alerts {
        page.line(format!(
            "  {}: {} -- {}",
            repository(&alert.repo, alert.repository_identity.as_ref()),
            alert.kind,
            escape(&alert.reason)
        ));
    }
}
