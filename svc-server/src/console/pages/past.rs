//! The range of reports that no route offers: some days, or all history.

use maud::{Markup, html};
use svc_engine::read::Extent;
use svc_model::problem::Problem;

use super::period::until;
use crate::console::layout::{Field, InputKind};
use crate::console::text::moment;
use crate::console::visit::{Visit, invalid};

/// All history, which may be too much for a large store.
const ALL: &str = "all";
/// The numbers of days to choose from.
const DAYS: [(&str, &str); 5] = [
    ("7", "7 days"),
    (DAYS_DEFAULT, "31 days"),
    ("92", "92 days"),
    ("365", "365 days"),
    (ALL, "all history"),
];
const DAYS_DEFAULT: &str = "31";
const DAYS_MAX: u32 = 365;

/// Returns a field for the range.
pub(super) fn field(visit: &Visit) -> Field<'_> {
    Field {
        label: "Calls of",
        name: "days",
        value: visit.given("days").unwrap_or(DAYS_DEFAULT),
        kind: InputKind::One(&DAYS),
    }
}

/// Reads the range and its end from the address.
pub(super) fn read(visit: &Visit) -> Result<Extent, Problem> {
    let as_of = until(visit)?;
    let days = visit.given("days").unwrap_or(DAYS_DEFAULT);
    match days.parse() {
        Ok(days @ 1..=DAYS_MAX) => Ok(Extent::days_before(as_of, days)),
        _ if days == ALL => Ok(Extent::all_until(as_of)),
        _ => Err(invalid("days", "must be 1 to 365, or all")),
    }
}

/// Describes the range, in different words for all history and for some days.
pub(super) fn describe((all, some): (&str, &str), extent: &Extent) -> Markup {
    let observed = extent.observed();
    html! {
        @if extent.is_all() {
            p { (all) " up to " (moment(observed.end)) "." }
        } @else {
            p {
                (some) " that were observed from " (moment(observed.start)) " to "
                (moment(observed.end)) ", with everything known about them since."
            }
        }
    }
}
