//! What calls cost, and what the spend became.

use svc_model::open::Open;
use svc_model::spend::{
    CohortSpend, ItemCost, OutcomeSpend, SessionSpend, SpendBy, SpendCi, SpendFigure, SpendKey,
    SpendOutcomes, SpendRowWithoutKey,
};
use svc_model::time::Instant;

use crate::surface::Surface;

/// What has to be said of every cost.
pub const AT_LIST_PRICE: &str = "at list price";
/// What has to be said of calls without a commit.
pub const NO_EVIDENCE: &str =
    "That there is no evidence of a commit does not say that the work was in vain.";

const MICROS: u64 = 1_000_000;

/// Returns a cost in dollars: four digits after the point below 100, else two, rounded half up.
pub fn dollars(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (places, unit) = if micros < 100 * MICROS {
        (4, 100)
    } else {
        (2, 10_000)
    };
    let units = micros / unit + u64::from(micros % unit >= unit / 2);
    let per_dollar = MICROS / unit;
    let (whole, rest) = (units / per_dollar, units % per_dollar);
    format!("{sign}${whole}.{rest:0places$}")
}

/// Returns what the spend became, in words.
pub fn spend_outcomes(outcomes: &SpendOutcomes) -> [(&'static str, &OutcomeSpend); 7] {
    [
        ("merged", &outcomes.merged),
        ("committed, no merge known", &outcomes.committed),
        ("edits kept, no commit known", &outcomes.edits_kept),
        ("edits deleted", &outcomes.edits_deleted),
        ("edits rejected", &outcomes.rejected),
        (
            "other calls of Sessions with a commit",
            &outcomes.session_committed,
        ),
        ("no evidence of a commit", &outcomes.no_commit_evidence),
    ]
}

/// Returns what CI said of the commits, in words.
pub fn spend_verdicts(ci: &SpendCi) -> [(&'static str, &SpendFigure); 3] {
    [
        ("CI passed", &ci.passed),
        ("CI failed", &ci.failed),
        ("no CI verdict", &ci.no_verdict),
    ]
}

/// Returns what the rows of a report stand for.
pub fn spend_unit(by: &Open<SpendBy>) -> &str {
    by.known().map_or(by.as_str(), |by| spend_key_name(*by))
}

/// Returns the name of a key of rows.
pub const fn spend_key_name(by: SpendBy) -> &'static str {
    match by {
        SpendBy::PullRequest => "pull request",
        other => other.as_str(),
    }
}

/// Returns the range of time of a report: two dates if both ends are midnight.
pub fn period(start: Instant, end: Instant) -> String {
    let (start, end) = (start.to_string(), end.to_string());
    let dates = [&start, &end].map(|moment| moment.strip_suffix("T00:00:00Z"));
    match dates {
        [Some(start), Some(end)] => format!("{start} to {end}"),
        _ => format!("{start} to {end}"),
    }
}

impl Surface {
    /// Returns what some items cost, or the placeholder if there are none.
    pub fn item_cost(self, of: &ItemCost) -> String {
        match of.items {
            0 => self.none.to_owned(),
            _ => dollars(of.cost_usd_micros),
        }
    }

    /// Returns what calls cost at list price, or the placeholder if no cost is known.
    pub fn spent(self, spend: &SpendFigure) -> String {
        match spend.captured.items + spend.derived.items {
            0 => self.none.to_owned(),
            _ => dollars(spend.cost_usd_micros),
        }
    }

    /// Returns what a row stands for.
    pub fn spend_key(self, key: &SpendKey) -> String {
        match key {
            SpendKey::Without { row } => self.spend_row_without_key(row),
            SpendKey::Model {
                model_provider,
                model,
            } => {
                let provider = model_provider
                    .as_deref()
                    .map(|provider| self.escape(provider));
                let all: Vec<String> = provider.into_iter().chain([self.escape(model)]).collect();
                all.join(" ")
            }
            SpendKey::Session { session_id } => self.escape(session_id.as_str()),
            SpendKey::User { user_id } => self.escape(user_id.as_str()),
            SpendKey::Agent { agent } => self.escape(agent),
            SpendKey::Repository { repo, .. } => self.escape(repo),
            SpendKey::Commit {
                repo, commit_sha, ..
            } => format!("{} {}", self.escape(repo), commit_sha.as_str()),
            SpendKey::PullRequest {
                repo,
                pr_number,
                merged,
                ..
            } => {
                let merged = if *merged { " (merged)" } else { "" };
                format!("{} #{pr_number}{merged}", self.escape(repo))
            }
        }
    }

    fn spend_row_without_key(self, row: &Open<SpendRowWithoutKey>) -> String {
        let words = match row.known() {
            Some(SpendRowWithoutKey::NoModel) => "model not known",
            Some(SpendRowWithoutKey::NoUser) => "user not known",
            Some(SpendRowWithoutKey::NoAgent) => "agent not known",
            Some(SpendRowWithoutKey::Shared) => "shared by several",
            Some(SpendRowWithoutKey::NoPullRequest) => "no pull request known",
            Some(SpendRowWithoutKey::NoCommitEvidence) => "no evidence of a commit",
            None => return self.word(row.as_str()),
        };
        words.to_owned()
    }

    /// Returns what a Session cost, unless none of its calls has a cost.
    pub fn session_cost(self, spend: &SessionSpend) -> String {
        let priced = spend.captured.items + spend.derived.items;
        if priced == 0 && spend.unpriced_items > 0 {
            return self.none.to_owned();
        }
        dollars(spend.cost_usd_micros)
    }

    /// Says which price table costs were derived with, and why items have no price.
    pub fn spend_basis(self, report: &CohortSpend) -> String {
        let derived = match &report.price_table {
            Some(table) => format!(
                "Derived with {} table {} of {} (sha256 {}…).",
                table.format,
                self.escape(&table.name),
                &table.loaded_at.to_string()[..10],
                self.escape(table.digest.get(..4).unwrap_or(&table.digest)),
            ),
            None => "No price table is loaded, so nothing is derived.".to_owned(),
        };
        if report.unpriced.is_empty() {
            return derived;
        }
        format!("{derived} Not priced: {}.", self.counts(&report.unpriced))
    }

    /// Says what else has to be known of a report, if anything.
    pub fn spend_notes(self, report: &CohortSpend) -> Vec<String> {
        let mut notes = Vec::new();
        if report.cost_disagreements > 0 {
            notes.push(format!(
                "Calls whose receipts have another cost: {}. The call's stands.",
                self.whole(report.cost_disagreements)
            ));
        }
        if report.total.items_without_counts > 0 {
            notes.push(format!(
                "Without token counts: {} of {}.",
                self.whole(report.total.items_without_counts),
                self.whole(report.total.items())
            ));
        }
        if !report.attribution_skipped.is_empty() {
            notes.push(format!(
                "Not examined for commits: {}.",
                self.counts(&report.attribution_skipped)
            ));
        }
        let outcomes = report.outcomes.iter().flat_map(spend_outcomes);
        let guessed: u64 = outcomes.map(|(_, of)| of.similarity_items).sum();
        if guessed > 0 {
            notes.push(format!(
                "Tied to a commit by similarity only, which is a guess: {}.",
                self.whole(guessed)
            ));
        }
        notes.extend(report.lost_mirrors.map(|lost| self.lost_mirrors(lost)));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONSOLE, SHELL};

    #[test]
    fn dollars_are_rounded_half_up_from_the_exact_sum() {
        for (micros, shown) in [
            (0, "$0.0000"),
            (49, "$0.0000"),
            (50, "$0.0001"),
            (86_236, "$0.0862"),
            (99_520, "$0.0995"),
            (99_999_949, "$99.9999"),
            (99_999_950, "$100.0000"),
            (100_000_000, "$100.00"),
            (100_004_999, "$100.00"),
            (100_005_000, "$100.01"),
            (-50, "-$0.0001"),
            (i64::MAX, "$9223372036854.78"),
        ] {
            assert_eq!(dollars(micros), shown, "{micros}");
        }
    }

    #[test]
    fn a_row_is_named_by_what_it_stands_for() {
        let key = |key: serde_json::Value| -> SpendKey { serde_json::from_value(key).unwrap() };
        let sha = "a".repeat(40);
        for (json, shown) in [
            (
                serde_json::json!({"model_provider": "anthropic", "model": "m\u{1b}"}),
                "anthropic m\\u{1b}".to_owned(),
            ),
            (
                serde_json::json!({"model_provider": null, "model": "m"}),
                "m".to_owned(),
            ),
            (
                serde_json::json!({"repository": null, "repo": "a/b", "pr_number": 7, "merged": true}),
                "a/b #7 (merged)".to_owned(),
            ),
            (
                serde_json::json!({"repository": null, "repo": "a/b", "commit_sha": sha}),
                format!("a/b {sha}"),
            ),
            (
                serde_json::json!({"row": "no_commit_evidence"}),
                "no evidence of a commit".to_owned(),
            ),
            (
                serde_json::json!({"row": "new_word"}),
                "new_word".to_owned(),
            ),
        ] {
            assert_eq!(SHELL.spend_key(&key(json)), shown);
        }
        assert_eq!(
            CONSOLE.spend_key(&key(serde_json::json!({"row": "new_word"}))),
            "new word"
        );
    }

    #[test]
    fn a_cost_that_is_unknown_is_not_zero() {
        let spend = |priced, unpriced_items| SessionSpend {
            derived: ItemCost {
                items: priced,
                cost_usd_micros: 0,
            },
            unpriced_items,
            ..SessionSpend::default()
        };
        for (priced, unpriced, shown) in [
            (0, 0, "$0.0000"),
            (1, 0, "$0.0000"),
            (1, 1, "$0.0000"),
            (0, 1, "-"),
        ] {
            assert_eq!(SHELL.session_cost(&spend(priced, unpriced)), shown);
        }
    }

    #[test]
    fn a_period_of_whole_days_is_two_dates() {
        let at = |text: &str| Instant::parse(text).unwrap();
        let start = at("2026-11-01T00:00:00Z");
        let days = period(start, at("2026-11-08T00:00:00Z"));
        assert_eq!(days, "2026-11-01 to 2026-11-08");
        let moments = period(start, at("2026-11-08T00:00:01Z"));
        assert_eq!(moments, "2026-11-01T00:00:00Z to 2026-11-08T00:00:01Z");
    }
}
