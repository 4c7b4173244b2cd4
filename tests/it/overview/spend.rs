//! What the spend report says, over HTTP and to an agent.

use std::collections::{BTreeMap, BTreeSet};

use harness::server::Server;
use serde_json::Value;

use super::history::{Commits, NAME};
use super::week::{DERIVED, Week, WeekCall};
use super::{DAY_MICROSECONDS, entries, moment, read, some_counts};

/// What the rows of a report may stand for.
pub(super) const KEYS: [&str; 7] = [
    "model",
    "session",
    "repository",
    "pull-request",
    "commit",
    "user",
    "agent",
];

/// Checks the report by everything that it can be divided by.
pub(super) fn check(server: &Server, week: &Week, commits: &Commits) {
    let (start, end) = (moment(-7 * DAY_MICROSECONDS), moment(DAY_MICROSECONDS));
    for by in KEYS {
        let query = format!("cohort_start={start}&cohort_end={end}&as_of={end}&by={by}");
        let spend = read(server, &format!("/v1/reports/spend?{query}"));
        check_report(&spend["report"], by, week, commits);
    }
}

/// Checks a report of the week.
pub(super) fn check_report(report: &Value, by: &str, week: &Week, commits: &Commits) {
    assert_eq!(report["by"], by);
    assert_eq!(report["basis"], "list_price");
    assert_eq!(report["price_table"]["name"], "list.json");
    assert_eq!(report["unpriced"]["model_not_in_table"], 1);
    let total = &report["total"];
    assert_eq!(total["cost_usd_micros"], week.totals(7)["cost_usd_micros"]);
    let all = week.calls.iter().map(|call| call.number).collect();
    figure(total, &all, week);

    let rows: Vec<&Value> = entries(&report["rows"]).iter().collect();
    let expected = week.by(|call| row(by, week, call, commits));
    let names: BTreeSet<String> = rows.iter().map(|row| name(&row["key"])).collect();
    assert_eq!(names, expected.keys().cloned().collect(), "{by}");
    for row in &rows {
        let calls = &expected[&name(&row["key"])];
        figure(row, calls, week);
        let is_attributed = |number: &&u32| week.counts("committed", week.call(**number));
        let attributed = calls.iter().filter(is_attributed).count();
        let is_of_commits = matches!(by, "repository" | "pull-request" | "commit");
        let found = row.get("attributed_items").and_then(Value::as_u64);
        assert_eq!(
            found,
            is_of_commits.then_some(attributed as u64),
            "{by}: {row}"
        );
        if let Some(merged) = row["key"].get("merged") {
            assert_eq!(*merged, row["key"]["pr_number"] != 22);
        }
    }
    adds_up(rows.iter().copied(), total);
    let weights = rows.iter().map(|row| row["cost_usd_micros"].as_i64());
    assert!(weights.rev().is_sorted(), "{by}");

    for division in ["outcomes", "ci"] {
        let members = report[division].as_object().expect("a division");
        let known = week.division(division).map(|row| row.name);
        assert_eq!(members.len(), known.count(), "{division}");
        for row in week.division(division) {
            let found = &report[division][row.name];
            assert_eq!(
                found["cost_usd_micros"], row.cost,
                "{division} {}",
                row.name
            );
            figure(found, &row.calls, week);
        }
        adds_up(members.values(), total);
    }
    assert_eq!(report["outcomes"]["merged"]["git_notes_items"], 5);
    assert_eq!(report["outcomes"]["committed"]["similarity_items"], 1);
}

/// Checks that a figure is of these calls.
fn figure(found: &Value, calls: &BTreeSet<u32>, week: &Week) {
    let of = |is_of: fn(&WeekCall) -> bool| {
        let costs = calls.iter().map(|number| week.call(*number));
        let costs = costs
            .filter(|call| is_of(call))
            .filter_map(|call| call.cost);
        let costs: Vec<i64> = costs.collect();
        (costs.len(), costs.iter().sum::<i64>())
    };
    let item = |name: &str| {
        let of = &found[name];
        let items = usize::try_from(of["items"].as_u64().expect("a count"));
        (
            items.expect("a count"),
            of["cost_usd_micros"].as_i64().expect("a cost"),
        )
    };
    assert_eq!(
        item("captured"),
        of(|call| call.number != DERIVED),
        "{found}"
    );
    assert_eq!(
        item("derived"),
        of(|call| call.number == DERIVED),
        "{found}"
    );
    let (priced, cost) = of(|_| true);
    assert_eq!(found["calls"], calls.len(), "{found}");
    assert_eq!(found["unpriced_items"], calls.len() - priced, "{found}");
    assert_eq!(found["cost_usd_micros"], cost, "{found}");
}

/// Checks that rows add up to the total, in each of its members.
fn adds_up<'v>(rows: impl Iterator<Item = &'v Value>, total: &Value) {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows {
        for (name, count) in flat(row) {
            *sums.entry(name).or_default() += count;
        }
    }
    for (name, count) in flat(total) {
        assert_eq!(sums[&name], count, "{name}");
    }
}

fn flat(figure: &Value) -> BTreeMap<String, i64> {
    let members = figure.as_object().expect("a figure");
    some_counts(members.iter().map(|(name, value)| {
        let cost = value.get("cost_usd_micros");
        (name.as_str(), cost.unwrap_or(value))
    }))
}

/// Returns the name of the row of a call.
fn row(by: &str, week: &Week, call: &WeekCall, commits: &Commits) -> String {
    let of_pull_request = week.pull_request_row(call);
    match by {
        "model" => call.model.to_owned(),
        "session" => call.session.to_owned(),
        "user" => call.user.to_owned(),
        "agent" => "no_agent".to_owned(),
        "repository" if of_pull_request != "no_commit_evidence" => NAME.to_owned(),
        "commit" => match of_pull_request.strip_prefix('#') {
            Some(number) => commits.heads[&number.parse().expect("a number")].clone(),
            None => of_pull_request.to_owned(),
        },
        _ => of_pull_request.to_owned(),
    }
}

/// Returns the name of a row.
fn name(key: &Value) -> String {
    if let Some(number) = key.get("pr_number") {
        return format!("#{number}");
    }
    let mut members = [
        "row",
        "commit_sha",
        "session_id",
        "user_id",
        "model",
        "repo",
    ]
    .into_iter();
    let name = members.find_map(|member| key.get(member)?.as_str());
    name.unwrap_or_else(|| panic!("{key}")).to_owned()
}
