//! Plots: shares as bars with intervals, differences of shares, distributions of scores, and events
//! over time. Each is drawn into a box that scales with the page, with its numbers beside it as
//! text.

use std::collections::BTreeSet;

use maud::{Markup, html};
use svc_engine::derive::statistics::Proportion;
use svc_model::reports::{ModelRow, ScoreDistribution, Unobservable};
use svc_view::{CONSOLE, attribution};

use super::text::whole;

/// A named share of a total.
pub(super) struct Share {
    pub(super) label: Markup,
    pub(super) count: u64,
    pub(super) total: u64,
    /// Why it is unknown, if it is.
    pub(super) why: Option<Unobservable>,
}

impl Share {
    pub(super) fn new(label: impl Into<String>, count: u64, total: u64) -> Self {
        let label = label.into();
        Self {
            label: html! { (label) },
            count,
            total,
            why: None,
        }
    }

    /// Returns the share of a model's calls that are attributed, of those of which a commit could have
    /// been seen. Without a row, there are none.
    pub(super) fn attributed(label: impl Into<String>, row: Option<&ModelRow>) -> Self {
        let (count, total, why) = row.map_or((0, 0, None), attribution);
        Self::new(label, count, total).unless(why)
    }

    /// Draws it as unknown for a reason, if there is one and anything to count.
    #[must_use]
    pub(super) fn unless(mut self, why: Option<Unobservable>) -> Self {
        self.why = why.filter(|_| self.total > 0);
        self
    }
}

/// Formats a share: its rate, its counts and its 95 % interval. Without a total, there is no rate.
pub(super) fn rate(count: u64, total: u64) -> String {
    CONSOLE.rate(count, total, Proportion::new(count, total).wilson())
}

/// Draws shares as bars from 0 to 100 %, with whiskers for their 95 % intervals.
pub(super) fn shares(caption: &str, shares: &[Share]) -> Markup {
    figure(
        caption,
        "0 %",
        "100 %",
        shares
            .iter()
            .map(|share| {
                let of_cases = Proportion::new(share.count, share.total);
                let drawn = of_cases.rate().filter(|_| share.why.is_none());
                let drawn = drawn.map(|rate| (rate, of_cases.wilson()));
                let said = match share.why {
                    Some(why) => format!(
                        "not observable: {}; cases: {}",
                        why.reason(),
                        whole(share.total)
                    ),
                    None => rate(share.count, share.total),
                };
                (share.label.clone(), bar(drawn), said)
            })
            .collect(),
    )
}

/// A named part of a whole that is known exactly.
pub(super) struct Part {
    pub(super) label: String,
    pub(super) count: u64,
    pub(super) whole: u64,
    /// The same in words.
    pub(super) text: String,
}

/// Draws parts of a whole as bars, without intervals: nothing was sampled.
pub(super) fn parts(caption: &str, parts: &[Part]) -> Markup {
    figure(
        caption,
        "0 %",
        "100 %",
        parts
            .iter()
            .map(|drawn| {
                let rate = Proportion::new(drawn.count, drawn.whole).rate();
                let bar = bar(rate.map(|rate| (rate, [rate, rate])));
                (html! { (drawn.label) }, bar, drawn.text.clone())
            })
            .collect(),
    )
}

/// Draws the distribution of scores from 0 to 1: a box from the 10th to the 90th percentile, a line
/// at the median, and a point at the mean.
pub(super) fn spreads(caption: &str, spreads: &[(&str, &ScoreDistribution)]) -> Markup {
    figure(
        caption,
        "0",
        "1",
        spreads
            .iter()
            .map(|(label, spread)| {
                let description = format!(
                    "median {}, mean {}, p10 {}, p90 {} ({} files)",
                    CONSOLE.decimal(spread.median),
                    CONSOLE.decimal(spread.mean),
                    CONSOLE.decimal(spread.p10),
                    CONSOLE.decimal(spread.p90),
                    whole(spread.count)
                );
                (html! { (label) }, spread_box(spread), description)
            })
            .collect(),
    )
}

/// A difference of two rates, from -1 to 1.
pub(super) struct RateDifference {
    pub(super) label: String,
    /// The difference, or `None` if one of the rates has no cases.
    pub(super) at: Option<f64>,
    /// Its confidence interval.
    pub(super) interval: Option<(f64, f64)>,
    /// The threshold to compare it with.
    pub(super) threshold: Option<f64>,
    /// The same in words.
    pub(super) text: String,
}

/// Draws differences of rates: a line at each difference, a whisker for its interval, and dashes at
/// the threshold.
pub(super) fn differences(caption: &str, differences: &[RateDifference]) -> Markup {
    figure(
        caption,
        "−1",
        "1",
        differences
            .iter()
            .map(|drawn| {
                (
                    html! { (drawn.label) },
                    difference(drawn),
                    drawn.text.clone(),
                )
            })
            .collect(),
    )
}

fn difference(drawn: &RateDifference) -> Markup {
    let (Some(at), Some((low, high))) = (drawn.at, drawn.interval) else {
        return frame("no line, since there is nothing to compare", &html! {});
    };
    let place = |difference: f64| place(f64::midpoint(difference, 1.0));
    let label = format!("line at {at:.4}, whisker from {low:.4} to {high:.4}");
    frame(
        &label,
        &html! {
            line.zero x1="500" y1="0" x2="500" y2="20" vector-effect="non-scaling-stroke" {}
            line.whisker x1=(place(low)) y1="10" x2=(place(high)) y2="10" vector-effect="non-scaling-stroke" {}
            @for end in [low, high] {
                line.whisker x1=(place(end)) y1="5" x2=(place(end)) y2="15" vector-effect="non-scaling-stroke" {}
            }
            line.event x1=(place(at)) y1="2" x2=(place(at)) y2="18" vector-effect="non-scaling-stroke" {}
            @if let Some(threshold) = drawn.threshold {
                line.mean x1=(place(threshold)) y1="0" x2=(place(threshold)) y2="20" vector-effect="non-scaling-stroke" {}
            }
        },
    )
}

fn figure(caption: &str, low: &str, high: &str, rows: Vec<(Markup, Markup, String)>) -> Markup {
    html! {
        figure.plot {
            figcaption { (caption) }
            ul {
                @for (label, drawn, description) in rows {
                    li {
                        span.label { (label) }
                        span.drawn { (drawn) }
                        span.said { (description) }
                    }
                }
            }
            p.axis aria-hidden="true" { span { (low) } span { (high) } }
        }
    }
}

/// Returns a coordinate in the drawing, which is 1000 wide.
fn place(share: f64) -> String {
    format!("{:.1}", share.clamp(0.0, 1.0) * 1000.0)
}

fn frame(label: &str, drawn: &Markup) -> Markup {
    html! {
        svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track x="0" y="0" width="1000" height="20" {}
            @for quarter in ["250", "500", "750"] {
                line.grid x1=(quarter) y1="0" x2=(quarter) y2="20" vector-effect="non-scaling-stroke" {}
            }
            (drawn)
        }
    }
}

/// Draws a bar with a whisker. Without a rate, the track is empty.
fn bar(rate: Option<(f64, [f64; 2])>) -> Markup {
    let Some((rate, [low, high])) = rate else {
        return frame("no bar, because there is nothing to count", &html! {});
    };
    let has_interval = low < high;
    let label = if has_interval {
        let (low, high) = (CONSOLE.percent(low), CONSOLE.percent(high));
        format!(
            "bar to {}, whisker from {low} to {high}",
            CONSOLE.percent(rate)
        )
    } else {
        format!("bar to {}", CONSOLE.percent(rate))
    };
    frame(
        &label,
        &html! {
            rect.bar x="0" y="4" width=(place(rate)) height="12" {}
            @if has_interval {
                line.whisker x1=(place(low)) y1="10" x2=(place(high)) y2="10" vector-effect="non-scaling-stroke" {}
                line.whisker x1=(place(low)) y1="5" x2=(place(low)) y2="15" vector-effect="non-scaling-stroke" {}
                line.whisker x1=(place(high)) y1="5" x2=(place(high)) y2="15" vector-effect="non-scaling-stroke" {}
            }
        },
    )
}

fn spread_box(spread: &ScoreDistribution) -> Markup {
    let (Some(low), Some(median), Some(high)) = (spread.p10, spread.median, spread.p90) else {
        return frame("no box, because there is nothing to count", &html! {});
    };
    let label = format!("box from {low:.4} to {high:.4}, line at {median:.4}");
    // A box without width stays visible.
    let width = place((high - low).max(0.006));
    frame(
        &label,
        &html! {
            rect.bar x=(place(low.min(0.994))) y="4" width=(width) height="12" {}
            line.whisker x1=(place(median)) y1="1" x2=(place(median)) y2="19" vector-effect="non-scaling-stroke" {}
            @if let Some(mean) = spread.mean {
                line.mean x1=(place(mean)) y1="4" x2=(place(mean)) y2="16" vector-effect="non-scaling-stroke" {}
            }
        },
    )
}

/// Draws the times of one kind of event, in thousandths from the first to the last of all events.
pub(super) fn moments(label: &str, at: &BTreeSet<u64>) -> Markup {
    html! {
        svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track x="0" y="0" width="1000" height="20" {}
            @for at in at {
                line.event x1=(at) y1="2" x2=(at) y2="18" vector-effect="non-scaling-stroke" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_drawn_and_described_with_its_counts_and_interval() {
        let drawn = shares(
            "Passed",
            &[Share::new("a <b>", 3, 4), Share::new("c", 0, 0)],
        )
        .0;
        for part in [
            "<figcaption>Passed</figcaption>",
            "a &lt;b&gt;",
            "75.0 % (3 of 4; 30.1 % to 95.4 %)",
            "width=\"750.0\"",
            "x1=\"300.6\"",
            "x2=\"954.4\"",
            "aria-label=\"bar to 75.0 %, whisker from 30.1 % to 95.4 %\"",
            "no rate (0 of 0)",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert!(!drawn.contains("style"));
    }

    #[test]
    fn a_part_is_drawn_without_an_interval() {
        let part = |part, whole| Part {
            label: "a".to_owned(),
            count: part,
            whole,
            text: "$1".to_owned(),
        };
        let drawn = parts("Spent", &[part(1, 4), part(0, 0)]).0;
        assert!(drawn.contains("aria-label=\"bar to 25.0 %\"") && drawn.contains("$1"));
        assert!(drawn.contains("no bar"), "{drawn}");
    }

    #[test]
    fn what_could_not_be_observed_has_no_bar() {
        let why = Some(Unobservable::NoPush);
        let drawn = shares("Pushed", &[Share::new("a", 0, 4).unless(why)]).0;
        assert!(
            drawn.contains("not observable: no push was received near the calls; cases: 4<"),
            "{drawn}"
        );
        assert!(
            !drawn.contains("0.0 %") && drawn.contains("no bar"),
            "{drawn}"
        );
    }

    #[test]
    fn a_difference_is_drawn_from_the_middle_and_only_with_cases() {
        let mut difference = RateDifference {
            label: "rate <b>".to_owned(),
            at: Some(-0.2),
            interval: Some((-1.4, 0.5)),
            threshold: Some(-0.1),
            text: "-0.2000".to_owned(),
        };
        let drawn = differences("A less B", std::slice::from_ref(&difference)).0;
        for part in [
            "rate &lt;b&gt;",
            "line at -0.2000, whisker from -1.4000 to 0.5000",
            // What exceeds the drawing ends at its edge.
            "x1=\"0.0\"",
            "x2=\"750.0\"",
            "x1=\"400.0\"",
            "x1=\"450.0\"",
            ">−1<",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        difference.at = None;
        assert!(differences("x", &[difference]).0.contains("no line"));
    }

    #[test]
    fn a_spread_is_drawn_only_if_there_is_one() {
        let none = ScoreDistribution {
            count: 0,
            mean: None,
            median: None,
            p10: None,
            p90: None,
        };
        assert!(spreads("x", &[("head", &none)]).0.contains("no box"));
        let one = ScoreDistribution {
            count: 1,
            mean: Some(1.0),
            median: Some(1.0),
            p10: Some(1.0),
            p90: Some(1.0),
        };
        let drawn = spreads("x", &[("head", &one)]).0;
        assert!(drawn.contains("box from 1.0000 to 1.0000"), "{drawn}");
        assert!(drawn.contains("(1 files)") && drawn.contains("x=\"994.0\""));
    }
}
