//! The tables of the week, as `week.md` has them.

use std::collections::{BTreeMap, BTreeSet};

/// The call that is older than a day.
pub(super) const OLD: u32 = 10;

/// The call that is priced from its counts.
pub(super) const DERIVED: u32 = 12;

/// The figures that list Sessions.
pub(super) const OUTCOMES: [&str; 13] = [
    "changes",
    "accepted",
    "committed",
    "merged",
    "reverted",
    "passed",
    "failed",
    "no_verdict",
    "deleted",
    "no_commit_found",
    "not_observable",
    "rejected",
    "unpriced",
];

/// A call.
pub(super) struct WeekCall {
    pub(super) number: u32,
    pub(super) session: &'static str,
    pub(super) user: &'static str,
    pub(super) model: &'static str,
    /// In micro-USD; `None` if it is unknown.
    pub(super) cost: Option<i64>,
}

/// A figure of the overview.
struct Figure {
    name: &'static str,
    of_week: i64,
    of_day: i64,
    calls: BTreeSet<u32>,
}

/// A row of a division of the spend.
pub(super) struct SpendRow {
    division: &'static str,
    pub(super) name: &'static str,
    pub(super) cost: i64,
    pub(super) calls: BTreeSet<u32>,
}

/// The week.
pub(super) struct Week {
    pub(super) calls: Vec<WeekCall>,
    figures: Vec<Figure>,
    spend: Vec<SpendRow>,
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn numbers(text: &str) -> BTreeSet<u32> {
    text.split_whitespace().filter_map(number).collect()
}

impl Week {
    /// Reads the tables. The sums in them fit the calls that they name.
    pub(super) fn read() -> Self {
        let mut week = Self {
            calls: Vec::new(),
            figures: Vec::new(),
            spend: Vec::new(),
        };
        for line in include_str!("week.md").lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            match &cells[..] {
                ["", call, session, user, model, cost, _, ""] => {
                    week.calls.extend(number(call).map(|number| WeekCall {
                        number,
                        session,
                        user,
                        model,
                        cost: cost.parse().ok(),
                    }));
                }
                ["", first, second, third, calls, ""] => {
                    if let (Some(of_week), Some(of_day)) = (number(second), number(third)) {
                        week.figures.push(Figure {
                            name: first,
                            of_week,
                            of_day,
                            calls: numbers(calls),
                        });
                    } else if let Some(cost) = number(third) {
                        week.spend.push(SpendRow {
                            division: first,
                            name: second,
                            cost,
                            calls: numbers(calls),
                        });
                    }
                }
                _ => {}
            }
        }
        week.adds_up();
        week
    }

    fn adds_up(&self) {
        assert_eq!(
            (self.calls.len(), self.figures.len(), self.spend.len()),
            (13, 19, 18)
        );
        for days in [1, 7] {
            assert_eq!(self.of(days, |_| true), self.totals(days));
        }
        for row in &self.spend {
            let cost: i64 = self.named(&row.calls).filter_map(|call| call.cost).sum();
            assert_eq!(cost, row.cost, "{} {}", row.division, row.name);
        }
        for division in ["pull-request", "outcomes", "ci"] {
            let calls: Vec<u32> = self
                .division(division)
                .flat_map(|row| row.calls.iter().copied())
                .collect();
            assert_eq!(calls.len(), self.calls.len(), "{division}");
        }
    }

    fn named<'w>(&'w self, numbers: &'w BTreeSet<u32>) -> impl Iterator<Item = &'w WeekCall> {
        let calls = self.calls.iter();
        calls.filter(|call| numbers.contains(&call.number))
    }

    /// Returns the calls of the last days.
    fn within(&self, days: u32) -> impl Iterator<Item = &WeekCall> {
        let calls = self.calls.iter();
        calls.filter(move |call| days > 1 || call.number != OLD)
    }

    /// Returns whether a figure counts a call.
    pub(super) fn counts(&self, figure: &str, call: &WeekCall) -> bool {
        let figure = self.figures.iter().find(|known| known.name == figure);
        figure.expect("a figure").calls.contains(&call.number)
    }

    /// Returns whether the work of a call is known to have reached the repository.
    pub(super) fn is_in_repository(&self, call: &WeekCall) -> bool {
        let row = self
            .division("pull-request")
            .find(|row| row.calls.contains(&call.number));
        row.is_some_and(|row| row.name != "no_commit_evidence")
    }

    /// Returns the figures of the last days by name, without those that are 0.
    pub(super) fn totals(&self, days: u32) -> BTreeMap<String, i64> {
        let figures = self.figures.iter().map(|figure| {
            let count = if days == 1 {
                figure.of_day
            } else {
                figure.of_week
            };
            (figure.name.to_owned(), count)
        });
        figures.filter(|(_, count)| *count != 0).collect()
    }

    /// Returns the figures of some calls of the last days by name, without those that are 0.
    pub(super) fn of(&self, days: u32, is_of: impl Fn(&WeekCall) -> bool) -> BTreeMap<String, i64> {
        let calls: Vec<&WeekCall> = self.within(days).filter(|call| is_of(call)).collect();
        let different = |names: BTreeSet<&str>| count(names.len());
        let figures = self.figures.iter().map(|figure| {
            let found = match figure.name {
                "sessions" => different(calls.iter().map(|call| call.session).collect()),
                "people" => different(calls.iter().map(|call| call.user).collect()),
                "cost_usd_micros" => calls.iter().filter_map(|call| call.cost).sum(),
                _ => count(
                    calls
                        .iter()
                        .filter(|call| figure.calls.contains(&call.number))
                        .count(),
                ),
            };
            (figure.name.to_owned(), found)
        });
        figures.filter(|(_, count)| *count != 0).collect()
    }

    /// Returns the Sessions with some calls of the last days.
    pub(super) fn sessions(
        &self,
        days: u32,
        is_of: impl Fn(&WeekCall) -> bool,
    ) -> BTreeSet<String> {
        let calls = self.within(days).filter(|call| is_of(call));
        calls.map(|call| call.session.to_owned()).collect()
    }

    /// Returns the numbers of the pull requests that the work of a Session reached.
    pub(super) fn pull_requests(&self, session: &str) -> BTreeSet<i64> {
        let rows = self.division("pull-request").filter(|row| {
            let mut calls = self.named(&row.calls);
            calls.any(|call| call.session == session)
        });
        rows.filter_map(|row| number(row.name.strip_prefix('#')?))
            .collect()
    }

    /// Returns the rows of a division of the spend.
    pub(super) fn division(&self, division: &str) -> impl Iterator<Item = &SpendRow> {
        let rows = self.spend.iter();
        rows.filter(move |row| row.division == division)
    }

    /// Returns the calls by the value of something that each has.
    pub(super) fn by(
        &self,
        value: impl Fn(&WeekCall) -> String,
    ) -> BTreeMap<String, BTreeSet<u32>> {
        let mut rows: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for call in &self.calls {
            rows.entry(value(call)).or_default().insert(call.number);
        }
        rows
    }

    /// Returns the row of the pull request of a call.
    pub(super) fn pull_request_row(&self, call: &WeekCall) -> &'static str {
        let mut rows = self.division("pull-request");
        let row = rows.find(|row| row.calls.contains(&call.number));
        row.expect("a row").name
    }

    /// Returns a call.
    pub(super) fn call(&self, number: u32) -> &WeekCall {
        let mut calls = self.calls.iter();
        calls
            .find(|call| call.number == number)
            .expect("a call of the week")
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).expect("a small number")
}

/// Returns a cost below 100 dollars as it is printed.
pub(super) fn dollars(micros: i64) -> String {
    let units = (micros + 50) / 100;
    format!("${}.{:04}", units / 10_000, units % 10_000)
}
