//! What the items of a cohort cost, row by row, and what the spend became.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::RandomState;

use svc_model::open::Open;
use svc_model::query::AttributionSource;
use svc_model::reports::{Counts, LifecycleRepositorySkips};
use svc_model::spend::{
    CohortSpend, JoinedReceipts, OtherSpendRows, OutcomeSpend, PriceTableName, SpendBasis, SpendBy,
    SpendCi, SpendFigure, SpendOutcomes, SpendRow,
};

use super::figure::{SumTooLarge, add, figure};
use super::row::Key;
use super::{Cost, Item};
use crate::call_outcome::{CallOutcome, CallOutcomes, Outcome, ReachedCommit};
use crate::ci::Verdict;
use crate::policy::Policy;
use crate::price::PriceBook;
use crate::repository::Repositories;

/// What became of the work, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Work<'w> {
    /// What became of each call.
    pub outcomes: &'w CallOutcomes,
    /// The repositories.
    pub repositories: &'w Repositories,
}

impl<'w> Work<'w> {
    fn call(&self, item: &Item) -> Option<&'w CallOutcome> {
        self.outcomes.calls.get(&item.call?)
    }

    /// Returns the commit that an item is attributed to.
    pub(super) fn commit_of(&self, item: &Item) -> Option<&'w ReachedCommit> {
        self.outcomes.commits.get(self.call(item)?.commit?)
    }

    /// Returns the commits at which the Session of an item was observed.
    pub(super) fn commits_of_session(
        &self,
        item: &Item,
    ) -> impl Iterator<Item = &'w ReachedCommit> {
        let commits = self.outcomes.sessions.get(&item.session_id);
        let all = &self.outcomes.commits;
        commits
            .into_iter()
            .flatten()
            .filter_map(|commit| all.get(*commit))
    }

    fn outcome(&self, item: &Item) -> Outcome {
        let has_commit = || self.commits_of_session(item).next().is_some();
        match self.call(item) {
            Some(call) => call.outcome,
            None if has_commit() => Outcome::SessionCommitted,
            None => Outcome::NoCommitEvidence,
        }
    }

    /// Returns the verdict of the commit of an item, or else of the only commit of its Session.
    fn verdict(&self, item: &Item) -> Option<Verdict> {
        self.outcomes.verdict(self.call(item), &item.session_id)
    }
}

/// What is asked of the items.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// What the rows stand for.
    pub by: SpendBy,
    /// How many rows there may be.
    pub rows_max: usize,
    /// What became of the work; `None` if neither the rows nor the outcomes need it.
    pub work: Option<Work<'q>>,
    /// Whether to say what the spend became.
    pub outcomes: bool,
    /// The rates in force.
    pub book: Option<&'q PriceBook>,
}

/// Returns what the items of a cohort cost. What could not be examined is for the caller to add.
///
/// # Errors
///
/// If a sum is beyond 2^63-1.
pub fn report(
    items: &[Item],
    question: &Question<'_>,
    price_table: Option<PriceTableName>,
    quarantine_revision: u64,
) -> Result<CohortSpend, SumTooLarge> {
    let mut figures = Vec::with_capacity(items.len());
    let mut total = SpendFigure::default();
    let mut unpriced = Counts::default();
    let mut joined_receipts = JoinedReceipts::default();
    for item in items {
        let cost = Cost::of(item, question.book);
        if let Cost::Unknown(reason) = cost {
            unpriced.add(reason, 1);
        }
        let figure = figure(item, cost);
        add(&mut total, &figure)?;
        figures.push(figure);
        joined_receipts.ids += u64::from(item.receipts.ids);
        joined_receipts.counts += u64::from(item.receipts.counts);
        joined_receipts.unjoined += u64::from(item.receipts.unjoined);
    }
    let (rows, other_rows) = rows(items, &figures, question)?;
    let became = question.work.filter(|_| question.outcomes);
    let outcomes = became
        .map(|work| outcomes(items, &figures, &work))
        .transpose()?;
    let ci = became.map(|work| ci(items, &figures, &work)).transpose()?;
    Ok(CohortSpend {
        basis: SpendBasis::ListPrice.into(),
        by: Open::from(question.by),
        total,
        rows,
        other_rows,
        outcomes,
        ci,
        unpriced,
        price_table,
        joined_receipts,
        cost_disagreements: items.iter().filter(|item| item.is_disputed).count() as u64,
        repository_skipped: LifecycleRepositorySkips::default(),
        attribution_skipped: Counts::default(),
        lost_mirrors: None,
        provenance: Policy::Spend.provenance(quarantine_revision),
    })
}

/// The items of a row.
#[derive(Default)]
struct Sum {
    figure: SpendFigure,
    attributed: u64,
}

/// Returns the rows, and the sum of those beyond the limit.
fn rows(
    items: &[Item],
    figures: &[SpendFigure],
    question: &Question<'_>,
) -> Result<(Vec<SpendRow>, Option<OtherSpendRows>), SumTooLarge> {
    let mut sums: HashMap<Key<'_>, Sum, RandomState> = HashMap::default();
    for (item, figure) in items.iter().zip(figures) {
        let (key, is_attributed) = Key::of(item, question.by, question.work.as_ref());
        let sum = sums.entry(key).or_default();
        add(&mut sum.figure, figure)?;
        sum.attributed += u64::from(is_attributed);
    }
    let has_attributed = question.by.is_of_commits();
    let repositories = question.work.map(|work| work.repositories);
    let row = |(key, sum): (Key<'_>, Sum)| SpendRow {
        key: key.written(repositories),
        figure: sum.figure,
        attributed_items: has_attributed.then_some(sum.attributed),
    };
    let mut rows: Vec<SpendRow> = sums.into_iter().map(row).collect();
    rows.sort_unstable_by(|one, other| {
        let weight =
            |row: &SpendRow| Reverse((row.figure.cost_usd_micros, row.figure.unpriced_items));
        let order = weight(one).cmp(&weight(other));
        order.then_with(|| one.key.cmp(&other.key))
    });
    let others = rows.split_off(rows.len().min(question.rows_max));
    let others = (!others.is_empty())
        .then(|| together(&others))
        .transpose()?;
    Ok((rows, others))
}

fn together(rows: &[SpendRow]) -> Result<OtherSpendRows, SumTooLarge> {
    let mut others = OtherSpendRows {
        rows: rows.len() as u64,
        figure: SpendFigure::default(),
        attributed_items: rows.iter().map(|row| row.attributed_items).sum(),
    };
    for row in rows {
        add(&mut others.figure, &row.figure)?;
    }
    Ok(others)
}

fn outcomes(
    items: &[Item],
    figures: &[SpendFigure],
    work: &Work<'_>,
) -> Result<SpendOutcomes, SumTooLarge> {
    let mut outcomes = SpendOutcomes::default();
    for (item, figure) in items.iter().zip(figures) {
        let of = of(&mut outcomes, work.outcome(item));
        add(&mut of.figure, figure)?;
        match work.call(item).and_then(|call| call.source) {
            Some(AttributionSource::GitNotes) => of.git_notes_items += 1,
            Some(AttributionSource::Jaccard) => of.similarity_items += 1,
            None => {}
        }
    }
    Ok(outcomes)
}

fn of(outcomes: &mut SpendOutcomes, outcome: Outcome) -> &mut OutcomeSpend {
    match outcome {
        Outcome::Merged => &mut outcomes.merged,
        Outcome::Committed => &mut outcomes.committed,
        Outcome::EditsKept => &mut outcomes.edits_kept,
        Outcome::EditsDeleted => &mut outcomes.edits_deleted,
        Outcome::Rejected => &mut outcomes.rejected,
        Outcome::SessionCommitted => &mut outcomes.session_committed,
        Outcome::NoCommitEvidence => &mut outcomes.no_commit_evidence,
    }
}

fn ci(items: &[Item], figures: &[SpendFigure], work: &Work<'_>) -> Result<SpendCi, SumTooLarge> {
    let mut ci = SpendCi::default();
    for (item, figure) in items.iter().zip(figures) {
        let sum = match work.verdict(item) {
            Some(Verdict::Passed) => &mut ci.passed,
            Some(Verdict::Failed) => &mut ci.failed,
            None => &mut ci.no_verdict,
        };
        add(sum, figure)?;
    }
    Ok(ci)
}

#[cfg(test)]
mod tests;
