//! How much of what agents wrote remained, from 0 to 1.

use maud::{Markup, html};
use svc_model::reports::{RetentionScores, ThresholdShare};

use crate::console::plot::{self, Share};

/// Shows the scores at the final head and at the merge.
pub(super) fn shown(sides: [(&str, &RetentionScores); 2]) -> Markup {
    if sides
        .iter()
        .all(|(_, scores)| scores.distribution.count == 0)
    {
        return html! { p { "No file is scored." } };
    }
    let spreads = sides.map(|(side, scores)| (side, &scores.distribution));
    html! {
        (plot::spreads("What is left: box from p10 to p90, line at the median, dashes at the mean", &spreads))
        (thresholds("Files of which less is left than a threshold, with 95 % intervals",
            sides.map(|(side, scores)| (side, &scores.thresholds))))
    }
}

/// Shows the share of files below each threshold.
pub(super) fn thresholds(caption: &str, sides: [(&str, &Vec<ThresholdShare>); 2]) -> Markup {
    let shares: Vec<Share> = sides
        .into_iter()
        .flat_map(|(side, shares)| shares.iter().map(move |share| (side, share)))
        .map(|(side, share)| {
            let label = format!("{side}, below {:.1}", share.threshold);
            Share::new(label, share.below, share.total)
        })
        .collect();
    plot::shares(caption, &shares)
}
