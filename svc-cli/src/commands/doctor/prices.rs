//! Checks the price table in force.

use svc_client::{Client, ErrorKind};
use svc_engine::clock::Clock;
use svc_model::spend::PriceTable;
use svc_model::time::Instant;

use super::DoctorCheck;
use crate::output::relative;

const NAME: &str = "prices";
/// The age from which a price table is likely to lack models and to have old rates.
const DAYS_MAX: i64 = 60;
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// Asks for the price table in force; nothing if the service has none of them, because it is older.
pub(super) async fn check(client: &Client) -> Option<DoctorCheck> {
    match client.price_tables().await {
        Ok(tables) => Some(of(tables.first(), Clock::system().now())),
        Err(error) if *error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(DoctorCheck::failed(
            NAME,
            error.to_string(),
            "svc prices list",
        )),
    }
}

fn of(in_force: Option<&PriceTable>, now: Instant) -> DoctorCheck {
    let Some(table) = in_force else {
        let found = "no table was loaded: a cost that no source reports is unknown";
        return DoctorCheck::absent(NAME, found);
    };
    let loaded = relative(table.loaded_at, now);
    let found = format!("{} table {}, loaded {loaded}", table.format, table.name);
    let age = now.microseconds() - table.loaded_at.microseconds();
    if age > DAYS_MAX * DAY_MICROSECONDS {
        let mend = "load a newer file: svc prices load FILE";
        DoctorCheck::warning(NAME, found, mend)
    } else {
        DoctorCheck::ok(NAME, found)
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json;

    use super::super::CheckState;
    use super::*;

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
}
