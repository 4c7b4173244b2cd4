//! Checks the price table in force.

use svc_client::{Client, ErrorKind};
use svc_engine::clock::Clock;
use svc_model::spend::{PriceTable, UnpricedReason};
use svc_model::time::Instant;
use svc_view::SHELL;

use super::DoctorCheck;
use crate::commands::prices::check::{RecentSpend, last_days, recent_spend};
use crate::output::relative;

const TABLE: &str = "prices";
const SHARE: &str = "priced calls";
/// The age from which a price table is likely to lack models and to have old rates.
const DAYS_MAX: i64 = 60;
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;
/// The days whose calls should have a price.
const RECENT_DAYS: i64 = 7;
/// How many models without a price are named.
const NAMED_MAX: usize = 3;
const LOAD: &str = "load a newer file: svc prices load FILE";

/// Asks for the price table in force, and how many calls have a price; nothing if the service has
/// none of them, because it is older.
pub(super) async fn checks(client: &Client) -> Vec<DoctorCheck> {
    let now = Clock::system().now();
    let asked = [
        match client.price_tables().await {
            Ok(tables) => Ok(of(tables.first(), now)),
            Err(error) => Err((TABLE, error, "svc prices list")),
        },
        match last_days(RECENT_DAYS, now) {
            Ok(scope) => match recent_spend(client, scope).await {
                Ok(recent) => Ok(share(&recent)),
                Err(error) => Err((SHARE, error, "svc prices check")),
            },
            Err(error) => Ok(DoctorCheck::absent(SHARE, error.message())),
        },
    ];
    let checks = asked.into_iter().filter_map(|asked| match asked {
        Ok(check) => Some(check),
        Err((_, error, _)) if *error.kind() == ErrorKind::NotFound => None,
        Err((name, error, mend)) => Some(DoctorCheck::failed(name, error.to_string(), mend)),
    });
    checks.collect()
}

fn of(in_force: Option<&PriceTable>, now: Instant) -> DoctorCheck {
    let Some(table) = in_force else {
        let found = "no table was loaded: a cost that no source reports is unknown";
        return DoctorCheck::absent(TABLE, found);
    };
    let loaded = relative(table.loaded_at, now);
    let found = format!("{} table {}, loaded {loaded}", table.format, table.name);
    let age = now.microseconds() - table.loaded_at.microseconds();
    if age > DAYS_MAX * DAY_MICROSECONDS {
        DoctorCheck::warning(TABLE, found, LOAD)
    } else {
        DoctorCheck::ok(TABLE, found)
    }
}

/// Says how many of the latest calls have a price, and what would give the others one.
fn share(recent: &RecentSpend) -> DoctorCheck {
    let (report, absent) = (&recent.report, &recent.absent);
    let (items, unpriced) = (report.total.items(), report.total.unpriced_items);
    if items == 0 {
        return DoctorCheck::absent(SHARE, "no call in the last 7 days");
    }
    let priced = items.saturating_sub(unpriced);
    let share = u128::from(priced) * 100 / u128::from(items);
    let found = format!("{priced} of {items} of the last 7 days ({share}%)");
    if unpriced == 0 {
        return DoctorCheck::ok(SHARE, found);
    }
    let reasons = SHELL.counts(&report.unpriced);
    let found = format!("{found}; not priced: {reasons}");
    if report.unpriced.get(UnpricedReason::NoPriceTable) > 0 {
        return DoctorCheck::warning(SHARE, found, "load prices: svc prices load FILE");
    }
    if absent.is_empty() {
        // A service tier has no price in any table.
        return DoctorCheck::ok(SHARE, found);
    }
    let named = absent.iter().take(NAMED_MAX);
    let named: Vec<&str> = named.map(|absent| &*absent.model).collect();
    let more = match absent.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let found = format!("{found}; not in the table: {}{more}", named.join(", "));
    DoctorCheck::warning(
        SHARE,
        found,
        format!("{LOAD}; the models: svc prices check"),
    )
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::super::CheckState;
    use super::*;
    use crate::commands::prices::check::AbsentModel;

    #[test]
    fn a_table_is_old_after_sixty_days() {
        let text = r#"{"price_table_id":"00000000-0000-0000-0000-000000000001","format":"litellm",
            "name":"p.json","loaded_at":"2026-01-01T00:00:00Z","models":1,"ignored":0,
            "digest":"9f0c0000000000000000000000000000000000000000000000000000000000aa"}"#;
        let table = json::from_slice(text.as_bytes()).unwrap();
        for (now, state) in [
            ("2026-01-02T00:00:00Z", CheckState::Ok),
            ("2026-03-02T00:00:00Z", CheckState::Ok),
            ("2026-03-02T00:00:00.000001Z", CheckState::Warning),
            ("2025-12-31T00:00:00Z", CheckState::Ok),
        ] {
            let check = of(Some(&table), Instant::parse(now).unwrap());
            assert_eq!(check.state, state, "{now}");
        }
        let none = of(None, Instant::parse("2026-01-01T00:00:00Z").unwrap());
        assert_eq!(none.state, CheckState::Absent);
    }

    #[test]
    fn calls_without_a_price_are_counted_with_what_would_price_them() {
        let none = r#"{"items":0,"cost_usd_micros":0}"#;
        let recent = |calls: u64, unpriced: u64, reasons: &str, absent: &[&str]| RecentSpend {
            report: json::from_slice(
                format!(
                    r#"{{"basis":"list_price","by":"model","total":{{"calls":{calls},
                    "receipts_only":0,"captured":{none},"derived":{none},
                    "unpriced_items":{unpriced},"cost_usd_micros":0,"input_tokens_uncached":0,
                    "cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":0,
                    "items_without_counts":0}},"rows":[],"other_rows":null,"outcomes":null,
                    "ci":null,"unpriced":{reasons},"price_table":null,
                    "joined_receipts":{{"ids":0,"counts":0,"unjoined":0}},
                    "cost_disagreements":0,"repository_skipped":{{}},"attribution_skipped":{{}},
                    "provenance":{{"policy_version":"spend-1","policy_digest":"{}",
                    "quarantine_revision":0}}}}"#,
                    "0".repeat(64)
                )
                .as_bytes(),
            )
            .unwrap(),
            absent: absent.iter().map(|model| AbsentModel::of(model)).collect(),
        };
        let four = ["a", "b", "c", "d"];
        for (recent, state, found) in [
            (
                recent(0, 0, "{}", &[]),
                CheckState::Absent,
                "no call in the last 7 days",
            ),
            (
                recent(4, 0, "{}", &[]),
                CheckState::Ok,
                "4 of 4 of the last 7 days (100%)",
            ),
            (
                recent(3, 1, r#"{"tier_price_unknown":1}"#, &[]),
                CheckState::Ok,
                "2 of 3 of the last 7 days (66%); not priced: tier_price_unknown 1",
            ),
            (
                recent(3, 3, r#"{"no_price_table":3}"#, &["a"]),
                CheckState::Warning,
                "0 of 3 of the last 7 days (0%); not priced: no_price_table 3",
            ),
            (
                recent(5, 4, r#"{"model_not_in_table":4}"#, &four),
                CheckState::Warning,
                "1 of 5 of the last 7 days (20%); not priced: model_not_in_table 4; not in the \
                 table: a, b, c and 1 more",
            ),
        ] {
            let check = share(&recent);
            assert_eq!((check.state, &*check.found), (state, found));
            assert_eq!(check.mend.is_some(), state == CheckState::Warning);
        }
    }
}
