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

/// Adds alerts about possibly missing notes, with the shares that they are about, because the
/// report of models does not show the shares of the earlier window.
pub(super) fn alerts(page: &mut Page, alerts: &[AttributionAlert]) {
    let share =
        |row: &AttributionShareRow| rate(row.git_notes_attributed, row.agent_plausible_commits);
    for alert in alerts {
        let before = alert.baseline.as_ref();
        let before = before.map_or_else(String::new, |row| format!(", before {}", share(row)));
        page.line(format!(
            "  {}: {} -- {}: now {}{before}",
            repository(&alert.repo, alert.repository_identity.as_ref()),
            alert.kind,
            escape(&alert.reason),
            share(&alert.current),
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alert_has_the_counts_of_both_windows() {
        let row = |notes: u64, commits: u64| {
            json!({
                "org_id": "acme", "repo": "own/app", "repository_identity": null,
                "window_start": "2026-11-01T00:00:00Z", "window_end": "2026-11-08T00:00:00Z",
                "agent_plausible_commits": commits, "git_notes_attributed": notes,
                "jaccard_attributed": 0, "unattributed": commits - notes,
                "git_notes_share": 0.0, "git_notes_share_ci": [0.0, 1.0],
                "provenance": {
                    "policy_version": "1", "quarantine_revision": 0, "policy_digest": null,
                },
            })
        };
        let alert = |baseline| {
            let alert = json!({
                "org_id": "acme", "repo": "own/app", "repository_identity": null,
                "kind": "sustained_decline", "current": row(2, 10), "baseline": baseline,
                "reason": "it fell",
            });
            let mut page = Page::default();
            alerts(&mut page, &[serde_json::from_value(alert).unwrap()]);
            page.finish()
        };
        let now = "  own/app: sustained_decline -- it fell: now 20.0% (2 of 10; 5.7% to 51.0%)";
        assert_eq!(
            alert(row(9, 10)),
            format!("{now}, before 90.0% (9 of 10; 59.6% to 98.2%)\n")
        );
        assert_eq!(alert(json!(null)), format!("{now}\n"));
    }
}
