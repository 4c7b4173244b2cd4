//! The layout of reports for people.

use std::fmt::Display;

use svc_engine::derive::statistics::Proportion;
use svc_model::query::LifetimeIdentity;
use svc_model::reports::{Counts, Unobservable};
use svc_view::{Line, SHELL};

use crate::output::{Table, escape};

/// The length of the longest bar, in characters.
const BAR_CHARACTERS: usize = 10;

/// A report, line by line.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Adds a line. External text must already be escaped.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        self.0.push_str(line.as_ref().trim_end());
        self.0.push('\n');
    }

    /// Adds an empty line and the heading of a section.
    pub(super) fn heading(&mut self, heading: &str) {
        self.0.push('\n');
        self.line(heading);
    }

    pub(super) fn table(&mut self, table: &Table) {
        for line in table.render().lines() {
            self.line(format!("  {line}"));
        }
    }

    /// Adds what a section leaves out, or that it leaves out nothing.
    pub(super) fn skips<K: Copy + Ord + Display>(&mut self, what: &str, counts: &Counts<K>) {
        self.line(format!("  {what}: {}", SHELL.counts(counts)));
    }

    /// Adds what a section leaves out, if anything.
    pub(super) fn some_skips<K: Copy + Ord + Display>(&mut self, what: &str, counts: &Counts<K>) {
        if !counts.is_empty() {
            self.skips(what, counts);
        }
    }

    /// Adds what was said of something, one per line.
    pub(super) fn said(&mut self, lines: Vec<Line>) {
        for (what, said) in lines {
            self.line(format!("  {what}: {said}"));
        }
    }

    /// Adds why a rate is not observable, if it is not.
    pub(super) fn unobservable(&mut self, what: &str, why: Option<Unobservable>) {
        if let Some(why) = why {
            self.line(format!("  {}", why.sentence(what)));
        }
    }

    /// Adds how many mirrors are lost, if any are.
    pub(super) fn lost_mirrors(&mut self, lost: Option<u64>) {
        if let Some(lost) = lost {
            self.line(format!(
                "{} Is the folder of the mirrors mounted?",
                SHELL.lost_mirrors(lost)
            ));
        }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Returns the range of a report, for people.
pub(super) fn window(since_days: Option<u32>) -> String {
    match since_days {
        Some(1) => "last day".to_owned(),
        Some(days) => format!("last {days} days"),
        None => "all history".to_owned(),
    }
}

/// Returns the rate of a part, with its 95 % interval and counts. Without a total, there is no
/// rate.
pub(super) fn rate(count: u64, total: u64) -> String {
    SHELL.rate(count, total, Proportion::new(count, total).wilson())
}

/// Returns the rate of a part, as [`rate`] does, unless it is not known whether there is more.
pub(super) fn known_rate(count: u64, total: u64, why: Option<Unobservable>) -> String {
    match why {
        Some(_) if total > 0 => "- (not observable)".to_owned(),
        _ => rate(count, total),
    }
}

/// Returns the rate of a part without an interval, unless it is not known whether there is more.
pub(super) fn known_part(count: u64, total: u64, why: Option<Unobservable>) -> String {
    match why {
        Some(_) if total > 0 => "- (not observable)".to_owned(),
        _ => SHELL.part(count, total),
    }
}

/// Returns a bar for a rate, unless it is not known whether there is more.
pub(super) fn known_bar(count: u64, total: u64, why: Option<Unobservable>) -> String {
    bar(count, if why.is_some() { 0 } else { total })
}

/// Returns a bar for a rate. Without a rate there is no bar, because an empty one would mean zero.
pub(super) fn bar(count: u64, total: u64) -> String {
    let Some(share) = Proportion::new(count, total).rate() else {
        return " ".repeat(BAR_CHARACTERS);
    };
    let tenths = (1..=BAR_CHARACTERS).filter(|tenth| {
        let tenth = u32::try_from(*tenth).unwrap_or(u32::MAX);
        share * 10.0 >= f64::from(tenth) - 0.5
    });
    let tenths = tenths.count();
    format!(
        "{}{}",
        "#".repeat(tenths),
        ".".repeat(BAR_CHARACTERS - tenths)
    )
}

/// Returns the name of a repository, with its identity if there is one.
pub(super) fn repository(name: &str, identity: Option<&LifetimeIdentity>) -> String {
    match identity {
        None => escape(name),
        Some(identity) => {
            let identity = identity.to_string();
            format!("{} [{}]", escape(name), escape(&identity))
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_model::reports::SessionSkip;

    use super::*;

    #[test]
    fn a_rate_is_shown_with_its_counts_and_its_interval() {
        assert_eq!(rate(3, 4), "75.0% (3 of 4; 30.1% to 95.4%)");
        assert_eq!(rate(0, 0), "- (0 of 0)");
    }

    #[test]
    fn what_could_not_be_observed_has_no_rate_and_no_bar() {
        let why = Some(Unobservable::NoPush);
        assert_eq!(known_rate(0, 4, why), "- (not observable)");
        assert_eq!(known_part(0, 4, why), "- (not observable)");
        assert_eq!(known_bar(0, 4, why).trim(), "");
        assert_eq!(known_rate(3, 4, None), rate(3, 4));
        assert_eq!(known_rate(0, 0, why), "- (0 of 0)");
    }

    #[test]
    fn a_bar_is_as_long_as_its_rate() {
        for (count, drawn) in [
            (0, ".........."),
            (1, "#........."),
            (5, "#####....."),
            (10, "##########"),
        ] {
            assert_eq!(bar(count, 10), drawn);
        }
        assert_eq!(bar(0, 0).trim(), "");
    }

    #[test]
    fn omissions_are_one_line() {
        let mut page = Page::default();
        let none: Counts<SessionSkip> = Counts::default();
        page.some_skips("nothing", &none);
        page.skips("left out", &none);
        let counts = [
            (SessionSkip::NoAcceptedDecision, 2),
            (SessionSkip::ReachedACommit, 1),
        ];
        page.skips("left out", &counts.into_iter().collect());
        assert_eq!(
            page.finish(),
            "  left out: none\n  left out: no_accepted_decision 2, reached_a_commit 1\n"
        );
    }
}
