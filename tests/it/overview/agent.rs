//! What the tools answer.

use std::collections::{BTreeMap, BTreeSet};

use harness::server::{OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

use super::history::{Commits, NAME};
use super::week::{OUTCOMES, Week, WeekCall, dollars};
use super::{EMPTY_SELECTION, SENTENCES, UNKNOWN_REPOSITORY, each, entries, some_counts, spend};
use crate::mcp::agent::{Agent, TRANSPORTS};

/// Checks the tools `overview` and `spend_report`.
pub(super) fn check(server: &Server, week: &Week, commits: &Commits) {
    for transport in TRANSPORTS {
        let agent = Agent::connect(server, transport, OPERATOR_TOKEN);
        for (days, sentence) in SENTENCES {
            let overview = agent.structured("overview", json!({"days": days}));
            assert_eq!(overview["sentence"], sentence);
            assert_eq!(figures(&overview["figures"]), known(week.totals(days)));
            let not_priced = json!(["1 of a model that the price table lacks"]);
            assert_eq!(overview["not_priced_because"], not_priced, "{overview:#}");
            let next = overview["next"].as_str().expect("a sentence");
            let spend = format!(r#"spend_report {{"by":"pull-request","since_days":{days}}}"#);
            assert!(next.contains(&spend), "{next}");
            let narrowed = agent.structured("overview", json!({"days": days, "model": "m1"}));
            let next = narrowed["next"].as_str().expect("a sentence");
            assert!(!next.contains("spend_report"), "{next}");
            let repositories = [(NAME, true), ("unknown", false)];
            assert_eq!(each(&overview["by_repository"], "repo"), [NAME, "unknown"]);
            for (row, (_, is_in)) in entries(&overview["by_repository"]).iter().zip(repositories) {
                let is_of = |call: &WeekCall| week.is_in_repository(call) == is_in;
                assert_eq!(figures(row), known(week.of(days, is_of)));
            }
            let models = ["m1", "m2", "m3", "m9"];
            assert_eq!(each(&overview["by_model"], "model"), models);
            for (row, model) in entries(&overview["by_model"]).iter().zip(models) {
                let expected = week.of(days, |call| call.model == model);
                assert_eq!(figures(row), known(expected), "{model}");
            }
            let kinds = each(&overview["attention"], "kind");
            assert_eq!(kinds, ["failed_commit", "deleted_edits"]);
            for outcome in OUTCOMES {
                let arguments = json!({"days": days, "outcome": outcome, "limit": 20});
                let listed = agent.structured("overview", arguments);
                // An empty list is left out.
                let sessions = listed["sessions"].as_array().into_iter().flatten();
                let sessions: BTreeSet<String> = sessions
                    .map(|row| row["session"].as_str().expect("an id").to_owned())
                    .collect();
                let expected = week.sessions(days, |call| week.counts(outcome, call));
                assert_eq!(sessions, expected, "{outcome}");
                assert_eq!(listed["session_count"], expected.len(), "{outcome}");
            }
        }
        for (filter, said) in [
            (json!({"repo": "no/such"}), UNKNOWN_REPOSITORY),
            (json!({"model": "nope"}), EMPTY_SELECTION),
        ] {
            let overview = agent.structured("overview", filter);
            assert_eq!(overview["sentence"], said);
            let next = overview["next"].as_str().expect("a sentence");
            assert!(next.starts_with("For all calls"), "{next}");
        }
        for by in spend::KEYS {
            let arguments = json!({"by": by, "since_days": 7});
            let report = agent.structured("spend_report", arguments);
            spend::check_report(&report["report"], by, week, commits);
        }
        let arguments = json!({"by": "pull-request", "since_days": 7});
        let said = agent.answer("spend_report", arguments);
        let total = dollars(week.totals(7)["cost_usd_micros"]);
        assert!(
            said.contains(&format!("at list price: {total} (")),
            "{said}"
        );
        assert!(!said.contains(" 1 calls"), "{said}");
        for row in week.division("pull-request") {
            let cost = format!(": {} (", dollars(row.cost));
            assert!(said.contains(&cost), "{}: {cost}\n{said}", row.name);
        }
    }
}

/// Returns the counts of an answer.
fn figures(of: &Value) -> BTreeMap<String, i64> {
    let members = of.as_object().expect("figures").iter();
    some_counts(members.map(|(name, value)| (name.as_str(), value)))
}

/// Returns the figures that the tool has.
fn known(mut figures: BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    for absent in ["sessions", "people", "accepted_by_people"] {
        figures.remove(absent);
    }
    figures
}
