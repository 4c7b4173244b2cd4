//! What the calls of a cohort cost, and what the spend became.

use std::collections::HashSet;

use svc_engine_derive::spend::{self, Item, Question, SumTooLarge, Work};
use svc_engine_store::Snapshot;
use svc_model::endpoint::CohortSpendReport;
use svc_model::id::SessionId;
use svc_model::limit::{REPORT_CALLS_MAX, SPEND_ITEMS_MAX};
use svc_model::problem::ReportBound;
use svc_model::spend::{CohortSpend, SpendBy, SpendReport, SpendRequest};
use svc_model::version::Version1;

use super::{Extent, ReportSources, call_outcomes, items};
use crate::error::Error;
use crate::read::answer::{AdmissionKind, Answer, ReadContext};
use crate::read::prices::book_in_force;

/// What is asked of the spend of a cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendQuestion {
    /// What the rows stand for.
    pub by: SpendBy,
    /// How many rows there may be.
    pub rows_max: u64,
    /// Whether to say what the spend became.
    pub outcomes: bool,
}

impl SpendQuestion {
    /// Returns whether the answer depends on the commits that the work reached.
    pub const fn needs_commits(self) -> bool {
        self.outcomes || self.by.is_of_commits()
    }
}

/// Returns what the calls of a cohort cost, and what the spend became.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, receipts or facts about them, or if a sum is
/// too large.
pub fn spend_report(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: &SpendRequest,
) -> Result<SpendReport, Error> {
    let question = SpendQuestion {
        by: request.by,
        rows_max: request.limit.get(),
        outcomes: request.outcomes,
    };
    Ok(SpendReport {
        schema_version: Version1,
        scope: request.scope,
        report: cohort_spend(snapshot, sources, &Extent::from(&request.scope), question)?,
    })
}

/// Returns what the calls of a cohort cost, and what the spend became.
///
/// # Errors
///
/// As [`spend_report`].
pub fn cohort_spend(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    extent: &Extent,
    question: SpendQuestion,
) -> Result<CohortSpend, Error> {
    let needs_commits = question.needs_commits();
    let items_max = if needs_commits {
        REPORT_CALLS_MAX
    } else {
        SPEND_ITEMS_MAX
    };
    let items = items::read(
        snapshot,
        extent,
        usize::try_from(items_max).unwrap_or(usize::MAX),
    )?;
    let (price_table, book) =
        book_in_force(snapshot, &sources.memory.prices, extent.as_of)?.unzip();
    let read = if needs_commits {
        let further = without_calls(&items);
        Some(call_outcomes::read(snapshot, sources, extent, &further)?)
    } else {
        None
    };
    let question = Question {
        by: question.by,
        rows_max: usize::try_from(question.rows_max).unwrap_or(usize::MAX),
        work: read.as_ref().map(|read| Work {
            outcomes: &read.outcomes,
            repositories: &read.of.repositories,
        }),
        outcomes: question.outcomes,
        book: book.as_deref(),
    };
    snapshot.check_deadline()?;
    let revision = snapshot.quarantine_revision()?;
    let report = spend::report(&items, &question, price_table, revision);
    let report = report.map_err(|SumTooLarge| ReportBound::Reply)?;
    Ok(match read {
        Some(read) => CohortSpend {
            repository_skipped: read.repository_skipped,
            attribution_skipped: read.attribution_skipped,
            lost_mirrors: read.lost_mirrors,
            ..report
        },
        None => report,
    })
}

/// Returns the Sessions that have receipts and no call in the cohort, sorted.
pub(in crate::read) fn without_calls(items: &[Item]) -> Vec<SessionId> {
    let sessions = |is_call: bool| {
        let items = items
            .iter()
            .filter(move |item| item.call.is_some() == is_call);
        items.map(|item| &item.session_id).collect::<HashSet<_>>()
    };
    let (with, without) = (sessions(true), sessions(false));
    let mut sessions: Vec<SessionId> = without.difference(&with).map(|id| (*id).clone()).collect();
    sessions.sort_unstable();
    sessions
}

impl Answer for CohortSpendReport {
    const ADMISSION: AdmissionKind = AdmissionKind::Report;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        mut request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        request.scope.as_of = reading.bound(request.scope.as_of)?;
        let memory = reading.report_memory()?;
        let sources = reading.report_sources(&memory);
        spend_report(reading.snapshot, sources, &request)
    }
}
