//! What the route answers.

use std::collections::{BTreeMap, BTreeSet};

use harness::server::Server;
use serde_json::{Value, json};

use super::history::{Commits, NAME};
use super::week::{OLD, OUTCOMES, Week, WeekCall};
use super::{SENTENCES, each, entries, read, some_counts};

/// Checks the overview, and that each of its figures leads to its Sessions.
pub(super) fn check(server: &Server, week: &Week, commits: &Commits) {
    for (days, sentence) in SENTENCES {
        let path = format!("/v1/overview?days={days}&limit=100");
        let overview = read(server, &path);
        assert_eq!(overview["sentence"], sentence);
        let totals = figures(&overview["figures"]);
        assert_eq!(totals, week.totals(days), "{overview:#}");
        by_name(
            &overview["repositories"],
            "repo",
            &[NAME, "unknown"],
            |name, call| week.is_in_repository(call) == (name == NAME),
            week,
            days,
        );
        let models = ["m1", "m2", "m3", "m9"];
        by_name(
            &overview["models"],
            "model",
            &models,
            |name, call| call.model == name,
            week,
            days,
        );
        of_days(&overview["days"], week, days);
        let attention = json!([
            {
                "kind": "failed_commit", "repo": NAME, "commit_sha": commits.squashed,
                "pr_number": 16, "workflows": ["CI"], "session_ids": ["squash"],
                "repository_identity": overview["attention"][0]["repository_identity"],
            },
            {"kind": "deleted_edits", "session_id": "gone", "calls": 1},
        ]);
        assert_eq!(overview["attention"], attention, "{overview:#}");
        assert_eq!(overview["attention_left_out"], 0);
        let unseen = if days == 1 {
            json!({})
        } else {
            json!({"push_absent": 1})
        };
        assert_eq!(overview["unobservable"], unseen);
        assert_eq!(overview["unpriced"], json!({"model_not_in_table": 1}));
        assert_eq!(overview["price_table"]["name"], "list.json");
        // The first commit has only a README, and the revert adds nothing.
        let skipped = json!({"no_code_diff": 2});
        assert_eq!(overview["attribution_skipped"], skipped);
        sessions(&overview, week, days);
        for outcome in OUTCOMES {
            let listed = read(server, &format!("{path}&outcome={outcome}"));
            let ids: BTreeSet<String> = ids(&listed["sessions"]);
            let expected = week.sessions(days, |call| week.counts(outcome, call));
            assert_eq!(ids, expected, "{outcome}");
            assert_eq!(listed["session_count"], expected.len(), "{outcome}");
            assert_eq!(listed["figures"], overview["figures"], "{outcome}");
        }
    }
}

/// Returns the ids of listed Sessions.
fn ids(sessions: &Value) -> BTreeSet<String> {
    let ids = each(sessions, "session_id").into_iter();
    ids.map(str::to_owned).collect()
}

/// Returns figures by name, without those that are 0.
fn figures(figures: &Value) -> BTreeMap<String, i64> {
    let spend = &figures["spend"];
    let members = figures.as_object().expect("figures").iter();
    let members = members.map(|(name, value)| (name.as_str(), value));
    some_counts(members.chain([
        ("cost_usd_micros", &spend["cost_usd_micros"]),
        ("unpriced", &spend["unpriced_items"]),
    ]))
}

/// Checks rows with these names, in this order, each with the calls that it is of.
fn by_name(
    rows: &Value,
    member: &str,
    names: &[&str],
    is_of: impl Fn(&str, &WeekCall) -> bool,
    week: &Week,
    days: u32,
) {
    assert_eq!(each(rows, member), names);
    for (row, name) in entries(rows).iter().zip(names) {
        let expected = week.of(days, |call| is_of(name, call));
        assert_eq!(figures(&row["figures"]), expected, "{name}");
    }
}

/// Checks that the days have each call once, and that the old call has a day of its own.
fn of_days(rows: &Value, week: &Week, days: u32) {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    let all: Vec<_> = entries(rows)
        .iter()
        .map(|day| figures(&day["figures"]))
        .collect();
    for day in &all {
        for (name, count) in day {
            *sums.entry(name.clone()).or_default() += count;
        }
    }
    let mut expected = week.totals(days);
    for different in ["sessions", "people"] {
        // The calls of a Session may be of two days, if midnight was between them.
        sums.remove(different);
        expected.remove(different);
    }
    assert_eq!(sums, expected);
    let old = week.of(7, |call| call.number == OLD);
    assert_eq!(all.contains(&old), days == 7, "{all:?}");
}

fn sessions(overview: &Value, week: &Week, days: u32) {
    let all = &overview["sessions"];
    assert_eq!(ids(all), week.sessions(days, |_| true));
    for session in entries(all) {
        let id = session["session_id"].as_str().expect("an id");
        let expected = week.of(days, |call| call.session == id);
        assert_eq!(figures(&session["figures"]), expected, "{id}");
        assert_eq!(session["title"], format!("work on {id}"));
        let pull_requests = entries(&session["pull_requests"]).iter();
        let numbers: BTreeSet<i64> = pull_requests
            .clone()
            .filter_map(|of| of["pr_number"].as_i64())
            .collect();
        assert_eq!(numbers, week.pull_requests(id), "{id}");
        for of in pull_requests {
            assert_eq!(of["merged"], of["pr_number"] != 22, "{id}");
        }
        let is_in = |call: &WeekCall| call.session == id && week.is_in_repository(call);
        let repositories: &[&str] = if week.sessions(days, is_in).is_empty() {
            &[]
        } else {
            &[NAME]
        };
        assert_eq!(session["repositories"], json!(repositories), "{id}");
    }
}
