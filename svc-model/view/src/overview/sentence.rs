use svc_model::overview::{
    Overview, OverviewFigures, OverviewOutcome, OverviewSession, OverviewWindow,
};
use svc_model::spend::{SpendFigure, UnpricedReason};
use svc_model::time::Instant;

use crate::spend::dollars;
use crate::surface::{Surface, clock};

/// How long after its end, in microseconds, a window still reaches up to now.
const NOW: u64 = 60 * 60 * 1_000_000;

/// The list that a number of an overview leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// None: these are words.
    Nothing,
    /// All Sessions.
    Sessions,
    /// The Sessions with a call that this figure counts.
    Outcome(OverviewOutcome),
}

/// What there is none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Calls in the window.
    Calls,
    /// Calls in the window that the filters select.
    Selection,
    /// Facts about the repository that the filters select.
    Repository,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The words, with the blanks and commas around them.
    pub said: String,
    /// The list behind them.
    pub behind: Behind,
}

/// Collects the pieces of a sentence.
struct Sentence(Vec<Piece>);

impl Sentence {
    fn say(&mut self, said: impl Into<String>) {
        self.link(said.into(), Behind::Nothing);
    }

    fn link(&mut self, said: String, behind: Behind) {
        self.0.push(Piece { said, behind });
    }

    /// Adds a number after a comma.
    fn add(&mut self, said: String, outcome: OverviewOutcome) {
        self.say(", ");
        self.link(said, Behind::Outcome(outcome));
    }

    /// Adds a number after a comma, unless it is 0.
    fn add_some(&mut self, surface: Surface, count: u64, what: &str, outcome: OverviewOutcome) {
        if count > 0 {
            self.add(format!("{} {what}", surface.whole(count)), outcome);
        }
    }
}

impl Surface {
    /// Returns a number of things.
    pub fn many(self, count: u64, one: &str, more: &str) -> String {
        let what = if count == 1 { one } else { more };
        format!("{} {what}", self.whole(count))
    }

    /// Returns a number of calls of models.
    pub fn calls_of_models(self, count: u64) -> String {
        self.many(count, "call", "calls")
    }

    /// Returns a number of changes.
    pub fn changes(self, count: u64) -> String {
        self.many(count, "change", "changes")
    }

    /// Returns a number of Sessions.
    pub fn sessions(self, count: u64) -> String {
        self.many(count, "Session", "Sessions")
    }

    /// Names the time that an overview covers.
    fn overview_period(window: &OverviewWindow, now: Instant) -> (bool, String) {
        let length = match window.days {
            1 => "24 hours".to_owned(),
            days => format!("{days} days"),
        };
        let age = now.microseconds().saturating_sub(window.end.microseconds());
        if age.unsigned_abs() < NOW {
            (true, length)
        } else {
            (false, format!("{length} up to {} UTC", clock(window.end)))
        }
    }

    /// Says that there are no calls in the time that an overview covers, and of what.
    pub fn overview_nothing(
        self,
        window: &OverviewWindow,
        now: Instant,
        absence: Absence,
    ) -> String {
        let (is_last, length) = Self::overview_period(window, now);
        let last = if is_last { "last " } else { "" };
        match absence {
            Absence::Calls => format!("No call was captured in the {last}{length}."),
            Absence::Selection => {
                format!("No call of this selection was captured in the {last}{length}.")
            }
            Absence::Repository => format!(
                "No fact names this repository, so no call of the {last}{length} is known to have \
                 reached it."
            ),
        }
    }

    /// Says in one sentence what became of the calls of an overview; `None` if there are none.
    pub fn overview_sentence(self, overview: &Overview, now: Instant) -> Option<Vec<Piece>> {
        let figures = &overview.figures;
        if figures.calls == 0 {
            return None;
        }
        let mut sentence = Sentence(Vec::new());
        let (is_last, length) = Self::overview_period(&overview.window, now);
        let last = if is_last { "Last " } else { "" };
        sentence.say(format!("{last}{length}: "));
        sentence.link(self.calls_in_sessions(figures), Behind::Sessions);
        self.say_changes(figures, &mut sentence);
        self.say_commits(figures, &mut sentence);
        self.say_unknown(overview, &mut sentence);
        self.say_spend(overview, &mut sentence);
        sentence.say(".");
        Some(sentence.0)
    }

    fn calls_in_sessions(self, figures: &OverviewFigures) -> String {
        let calls = self.calls_of_models(figures.calls);
        let sessions = self.many(figures.sessions, "Session", "Sessions");
        let people = match figures.people {
            0 => String::new(),
            people => format!(" by {}", self.many(people, "person", "people")),
        };
        format!("{calls} in {sessions}{people}")
    }

    fn say_changes(self, figures: &OverviewFigures, sentence: &mut Sentence) {
        let OverviewFigures {
            changes, accepted, ..
        } = *figures;
        if changes == 0 {
            sentence.say(", no change was observed");
            return;
        }
        let changed = self.many(changes, "change", "changes");
        if changes == accepted {
            sentence.add(format!("{changed} accepted"), OverviewOutcome::Accepted);
        } else {
            sentence.add(changed, OverviewOutcome::Changes);
            sentence.add_some(self, accepted, "accepted", OverviewOutcome::Accepted);
        }
    }

    fn say_commits(self, figures: &OverviewFigures, sentence: &mut Sentence) {
        if figures.committed == 0 {
            return;
        }
        let guessed = match figures.committed_by_similarity {
            0 => String::new(),
            some => format!(" ({} by similarity, a guess)", self.whole(some)),
        };
        let committed = match figures.committed {
            1 => "in a pushed commit",
            _ => "in pushed commits",
        };
        sentence.add(
            format!("{} {committed}{guessed}", self.whole(figures.committed)),
            OverviewOutcome::Committed,
        );
        if figures.merged == 0 {
            sentence.say(", none known to be merged");
        }
        for (count, what, outcome) in [
            (figures.merged, "merged", OverviewOutcome::Merged),
            (figures.reverted, "reverted", OverviewOutcome::Reverted),
            (figures.passed, "green", OverviewOutcome::Passed),
            (figures.failed, "red now", OverviewOutcome::Failed),
            (
                figures.no_verdict,
                "without a verdict of CI",
                OverviewOutcome::NoVerdict,
            ),
        ] {
            sentence.add_some(self, count, what, outcome);
        }
    }

    fn say_unknown(self, overview: &Overview, sentence: &mut Sentence) {
        let figures = &overview.figures;
        for (count, what, outcome) in [
            (figures.deleted, "thrown away", OverviewOutcome::Deleted),
            (
                figures.no_commit_found,
                "with no commit found",
                OverviewOutcome::NoCommitFound,
            ),
            (
                figures.not_observable,
                "not observable",
                OverviewOutcome::NotObservable,
            ),
        ] {
            sentence.add_some(self, count, what, outcome);
        }
        let reasons = self.not_observable(overview);
        if figures.not_observable > 0 && !reasons.is_empty() {
            sentence.say(format!(" ({})", reasons.join("; ")));
        }
        if figures.rejected > 0 {
            let rejected = self.many(figures.rejected, "proposal rejected", "proposals rejected");
            sentence.add(rejected, OverviewOutcome::Rejected);
        }
    }

    fn say_spend(self, overview: &Overview, sentence: &mut Sentence) {
        let spend = &overview.figures.spend;
        let unpriced = spend.unpriced_items;
        match cost(spend) {
            Some(cost) => sentence.say(format!(", {cost} at list price")),
            None => sentence.say(", cost unknown"),
        }
        if unpriced > 0 {
            sentence.say(" (");
            let unpriced = self.many(unpriced, "call not priced", "calls not priced");
            sentence.link(unpriced, Behind::Outcome(OverviewOutcome::Unpriced));
            sentence.say(")");
        }
    }

    /// Says why nobody could have seen a commit of some changes, the most frequent reason first.
    pub fn not_observable(self, overview: &Overview) -> Vec<String> {
        let mut reasons: Vec<_> = overview.unobservable.iter_open().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let many = reasons.len() > 1;
        let said = reasons.into_iter().map(|(reason, count)| {
            let reason = match reason.known() {
                Some(reason) => reason.reason().to_owned(),
                None => self.word(reason.as_str()),
            };
            if many {
                format!("{} {reason}", self.whole(count))
            } else {
                reason
            }
        });
        said.collect()
    }

    /// Says why calls have no cost, the most frequent reason first.
    pub fn not_priced(self, overview: &Overview) -> Vec<String> {
        let mut reasons: Vec<_> = overview.unpriced.iter_open().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let said = reasons.into_iter().map(|(reason, count)| {
            let said = match reason.known() {
                Some(reason) => unpriced(*reason).to_owned(),
                None => self.word(reason.as_str()),
            };
            format!("{} {said}", self.whole(count))
        });
        said.collect()
    }

    /// Returns what became of a Session, in short: each mark with the list behind it.
    pub fn marks(self, session: &OverviewSession) -> Vec<Piece> {
        let figures = &session.figures;
        let mut marks = Vec::new();
        let mut mark = |count: u64, what: &str, outcome| {
            if count > 0 {
                marks.push(Piece {
                    said: format!("{} {what}", self.whole(count)),
                    behind: Behind::Outcome(outcome),
                });
            }
        };
        mark(figures.accepted, "accepted", OverviewOutcome::Accepted);
        mark(figures.committed, "committed", OverviewOutcome::Committed);
        mark(figures.reverted, "reverted", OverviewOutcome::Reverted);
        mark(figures.passed, "green", OverviewOutcome::Passed);
        mark(figures.failed, "red now", OverviewOutcome::Failed);
        mark(figures.deleted, "thrown away", OverviewOutcome::Deleted);
        mark(
            figures.no_commit_found,
            "no commit found",
            OverviewOutcome::NoCommitFound,
        );
        mark(
            figures.not_observable,
            "not observable",
            OverviewOutcome::NotObservable,
        );
        mark(figures.rejected, "rejected", OverviewOutcome::Rejected);
        let pulls = session.pull_requests.iter().map(|pull| Piece {
            said: if pull.merged {
                format!("PR {} merged", pull.pr_number)
            } else {
                format!("PR {}", pull.pr_number)
            },
            behind: Behind::Nothing,
        });
        marks.extend(pulls);
        marks
    }

    /// Returns the tokens in and out of the calls of which they are known.
    pub fn tokens(self, spend: &SpendFigure) -> String {
        if spend.items() == spend.items_without_counts {
            return self.none.to_owned();
        }
        let whole = |count: i64| self.whole(count.unsigned_abs());
        let input =
            spend.input_tokens_uncached + spend.cache_read_tokens + spend.cache_write_tokens;
        format!("{} in, {} out", whole(input), whole(spend.output_tokens))
    }

    /// Returns what calls cost at list price, and how many of them have no cost.
    pub fn cost(self, spend: &SpendFigure) -> String {
        match (cost(spend), spend.unpriced_items) {
            (None, _) => self.none.to_owned(),
            (Some(cost), 0) => cost,
            (Some(cost), unpriced) => format!("{cost} (+{} not priced)", self.whole(unpriced)),
        }
    }
}

/// Returns what calls cost, if the cost of any is known.
fn cost(spend: &SpendFigure) -> Option<String> {
    let is_known = spend.captured.items + spend.derived.items > 0;
    is_known.then(|| dollars(spend.cost_usd_micros))
}

/// Says why a call has no cost.
const fn unpriced(reason: UnpricedReason) -> &'static str {
    match reason {
        UnpricedReason::NoModel => "without a model",
        UnpricedReason::NoCounts => "without token counts",
        UnpricedReason::UsageNotRecorded => "without the parts of the input",
        UnpricedReason::TierPriceUnknown => "of a service tier whose price is unknown",
        UnpricedReason::NoPriceTable => "because no price table is loaded",
        UnpricedReason::ModelNotInTable => "of a model that the price table lacks",
        UnpricedReason::AmbiguousPrice => "with several prices in the table",
        UnpricedReason::PriceFormUnknown => "with a price in an unknown form",
        UnpricedReason::CacheLifetimeUnknown => "with a cache write of unknown price",
    }
}
