//! Plots: shares as bars with intervals, distributions of scores, and events over time. Each is
//! drawn into a box that scales with the page, with its numbers beside it as text.

use std::collections::BTreeSet;

use maud::{Markup, html};
use svc_engine::derive::statistics::Proportion;
use svc_model::reports::ScoreDistribution;

use super::text::{percent, score, whole};

/// A named share of a total.
pub(super) struct Share {
    pub(super) label: Markup,
    pub(super) count: u64,
    pub(super) total: u64,
}

impl Share {
    pub(super) fn new(label: impl Into<String>, count: u64, total: u64) -> Self {
        let label = label.into();
        Self {
            label: html! { (label) },
            count,
            total,
        }
    }
}

/// Formats a share: its rate, its counts and its 95 % interval. There is no rate if the total is
/// zero.
pub(super) fn rate(count: u64, total: u64) -> String {
    let share = Proportion::new(count, total);
    let counts = format!("{} of {}", whole(count), whole(total));
    match share.rate() {
        None => format!("no rate ({counts})"),
        Some(rate) => {
            let [low, high] = share.wilson();
            let (low, high) = (percent(low), percent(high));
            format!("{} ({counts}; {low} to {high})", percent(rate))
        }
    }
}

/// Formats a share without an interval, for the stages of a funnel.
pub(super) fn part(count: u64, total: u64) -> String {
    let counts = format!("{} of {}", whole(count), whole(total));
    match Proportion::new(count, total).rate() {
        None => format!("no rate ({counts})"),
        Some(rate) => format!("{} ({counts})", percent(rate)),
    }
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
                let drawn = Proportion::new(share.count, share.total);
                let drawn = drawn.rate().map(|rate| (rate, drawn.wilson()));
                (
                    share.label.clone(),
                    bar(drawn),
                    rate(share.count, share.total),
                )
            })
            .collect(),
    )
}

/// Draws the distribution of scores from 0 to 1: a box from the 10th to the 90th percentile, a line
/// at the median, a point at the mean.
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
                    score(spread.median),
                    score(spread.mean),
                    score(spread.p10),
                    score(spread.p90),
                    whole(spread.count)
                );
                (html! { (label) }, spread_box(spread), description)
            })
            .collect(),
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

/// Returns a coordinate of the drawing, whose whole width is 1000.
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
        let (low, high) = (percent(low), percent(high));
        format!("bar to {}, whisker from {low} to {high}", percent(rate))
    } else {
        format!("bar to {}", percent(rate))
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
    fn a_share_is_drawn_and_said_with_its_counts_and_interval() {
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
    fn a_spread_is_drawn_where_there_is_one() {
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
