use svc_model::json;
use svc_model::overview::{Overview, OverviewFigures, OverviewOutcome};
use svc_model::spend::{ItemCost, SpendFigure};
use svc_model::time::Instant;

use super::*;
use crate::{CONSOLE, SHELL};

fn sample() -> Overview {
    json::from_slice(include_bytes!("sample.json")).unwrap()
}

fn now() -> Instant {
    Instant::parse("2026-01-31T09:30:10Z").unwrap()
}

fn said(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| &*piece.said).collect()
}

fn sentence(change: impl FnOnce(&mut OverviewFigures)) -> String {
    let mut overview = sample();
    overview.figures = OverviewFigures {
        calls: 2,
        sessions: 1,
        ..OverviewFigures::default()
    };
    change(&mut overview.figures);
    let pieces = SHELL.overview_sentence(&overview, now());
    said(&pieces.unwrap())
}

#[test]
fn the_sentence_says_all_figures_and_where_they_lead() {
    let pieces = SHELL.overview_sentence(&sample(), now()).unwrap();
    assert_eq!(
        said(&pieces),
        "Last 7 days: 70 calls in 40 Sessions by 3 people, 12 changes, 10 accepted, 8 in pushed \
         commits (3 by similarity, a guess), 7 merged, 1 reverted, 5 green, 2 red now, 1 without a \
         verdict of CI, 1 thrown away, 1 with no commit found, 2 not observable (no push was \
         received near the calls), 2 proposals rejected, $41.2000 at list price (3 calls not priced)."
    );
    let behind = |outcome| {
        let mut pieces = pieces.iter();
        let piece = pieces.find(|piece| piece.behind == Behind::Outcome(outcome));
        piece.map(|piece| &*piece.said)
    };
    assert_eq!(behind(OverviewOutcome::Failed), Some("2 red now"));
    assert_eq!(
        behind(OverviewOutcome::Unpriced),
        Some("3 calls not priced")
    );
    assert_eq!(pieces[1].behind, Behind::Sessions);
    for outcome in OverviewOutcome::ALL {
        assert!(behind(*outcome).is_some(), "{outcome}");
    }
}

#[test]
fn the_sentence_leaves_out_what_is_zero_and_never_reads_as_a_failure() {
    for (change, expected) in [
        (
            (|_| ()) as fn(&mut OverviewFigures),
            "2 calls in 1 Session, no change was observed, cost unknown.",
        ),
        (
            |figures| {
                figures.people = 1;
                figures.changes = 1;
                figures.accepted = 1;
                figures.no_commit_found = 1;
                figures.spend = unpriced(1);
            },
            "2 calls in 1 Session by 1 person, 1 change accepted, 1 with no commit found, cost \
             unknown (1 call not priced).",
        ),
        (
            |figures| {
                figures.changes = 1;
                figures.accepted = 1;
                figures.committed = 1;
                figures.no_verdict = 1;
                figures.spend = priced(0);
            },
            "2 calls in 1 Session, 1 change accepted, 1 in a pushed commit, none known to be \
             merged, 1 without a verdict of CI, $0.0000 at list price.",
        ),
        (
            |figures| {
                figures.changes = 2;
                figures.not_observable = 2;
                figures.rejected = 1;
                figures.spend = priced(123_456_789);
            },
            "2 calls in 1 Session, 2 changes, 2 not observable (no push was received near the calls), \
             1 proposal rejected, $123.46 at list price.",
        ),
    ] {
        let sentence = sentence(change);
        assert_eq!(sentence, format!("Last 7 days: {expected}"));
        for never in ["wasted", "abandoned", "failed"] {
            assert!(!sentence.contains(never), "{sentence}");
        }
    }
}

fn unpriced(items: u64) -> SpendFigure {
    SpendFigure {
        calls: items,
        unpriced_items: items,
        ..SpendFigure::default()
    }
}

fn priced(cost_usd_micros: i64) -> SpendFigure {
    SpendFigure {
        calls: 1,
        derived: ItemCost {
            items: 1,
            cost_usd_micros,
        },
        cost_usd_micros,
        ..SpendFigure::default()
    }
}

#[test]
fn without_calls_the_words_say_so_of_the_period() {
    let mut overview = sample();
    overview.figures = OverviewFigures::default();
    assert_eq!(SHELL.overview_sentence(&overview, now()), None);
    let window = &mut overview.window;
    assert_eq!(
        SHELL.overview_nothing(window, now(), Absence::Calls),
        "No call was captured in the last 7 days."
    );
    window.days = 1;
    let later = Instant::parse("2026-02-02T00:00:00Z").unwrap();
    assert_eq!(
        SHELL.overview_nothing(window, later, Absence::Selection),
        "No call of this selection was captured in the 24 hours up to 2026-01-31 09:30:00 UTC."
    );
    assert_eq!(
        SHELL.overview_nothing(window, later, Absence::Repository),
        "No fact names this repository, so no call of the 24 hours up to 2026-01-31 09:30:00 UTC is \
         known to have reached it."
    );
}

#[test]
fn the_parts_of_a_step_are_those_that_reached_the_step_before() {
    let rows = flow(&sample().figures);
    let counts: Vec<u64> = rows
        .iter()
        .map(|row| row.parts.iter().map(|part| part.count).sum())
        .collect();
    assert_eq!(counts, [12, 12, 8, 8]);
    let unknown: Vec<&str> = rows
        .iter()
        .flat_map(|row| &row.parts)
        .filter(|part| part.evidence == Evidence::Unknown)
        .map(|part| part.said)
        .collect();
    assert_eq!(
        unknown,
        [
            "without a decision",
            "no commit found",
            "not observable",
            "no merge known",
            "no verdict"
        ]
    );
    let all = bar(&sample().figures);
    assert_eq!(all.changes(), 12);
    assert_eq!(
        (all.merged, all.committed, all.unknown, all.failed),
        (7, 1, 3, 2)
    );
}

#[test]
fn what_needs_a_look_is_said_with_its_evidence() {
    let overview = sample();
    let said: Vec<String> = overview
        .attention
        .iter()
        .map(|attention| SHELL.attention(attention, now()))
        .collect();
    assert_eq!(
        said,
        [
            "acme/orders: CI failed at 9b2f3a6c1d, which holds pull request 16 (build, test); 2 \
             Sessions are behind it",
            "Session s\\u{1b}3: all edits of 1 call were gone before its end",
            "acme/orders: 12 commits near agents' calls, and no note names a Session",
            "own/app: the last push was received 9d ago; usually one comes every 4h",
            "gateway: the last delivery arrived 36h ago; usually one comes every 5m",
            "later_kind",
        ]
    );
}

#[test]
fn a_session_has_marks_tokens_and_a_cost() {
    let overview = sample();
    let [first, second] = &overview.sessions[..] else {
        panic!("two Sessions");
    };
    let marks = |session| {
        let marks = CONSOLE.marks(session).into_iter();
        marks.map(|mark| mark.said).collect::<Vec<_>>()
    };
    assert_eq!(
        marks(first),
        [
            "2 accepted",
            "2 committed",
            "1 green",
            "1 red now",
            "PR 16 merged"
        ]
    );
    assert_eq!(marks(second), ["1 not observable"]);
    let spend = |session: &svc_model::overview::OverviewSession| {
        let spend = &session.figures.spend;
        (SHELL.tokens(spend), SHELL.cost(spend))
    };
    assert_eq!(
        spend(first),
        (
            "3300 in, 150 out".to_owned(),
            "$1.2346 (+1 not priced)".to_owned()
        )
    );
    assert_eq!(spend(second), ("-".to_owned(), "-".to_owned()));
    assert_eq!(
        SHELL.not_priced(&overview),
        [
            "2 without token counts",
            "1 because no price table is loaded"
        ]
    );
}
