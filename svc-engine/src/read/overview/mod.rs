//! The overview: what became of the work of the last days, from one snapshot.

mod attention;
mod memory;

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use svc_engine_derive::overview::{self, OverviewEvidence, OverviewTables, Selected, SessionRow};
use svc_engine_derive::place::RepositoryLabel;
use svc_engine_derive::policy::Policy;
use svc_engine_derive::repository::{Repositories, Selection};
use svc_engine_derive::spend::{Cost, Item, SumTooLarge};
use svc_engine_fact::Lifetime;
use svc_engine_store::Snapshot;
use svc_model::endpoint::OverviewQuery;
use svc_model::limit::REPORT_CALLS_MAX;
use svc_model::overview::{
    Overview, OverviewDay, OverviewDays, OverviewFigures, OverviewModel, OverviewPullRequest,
    OverviewRepository, OverviewRequest, OverviewSession, OverviewWindow,
};
use svc_model::problem::ReportBound;
use svc_model::query::ModelName;
use svc_model::spend::PriceTable;
use svc_model::time::Instant;
use svc_model::version::Version1;
use svc_view::{Absence, SHELL};

pub(in crate::read) use self::memory::OverviewMemory;
use self::memory::Recent;
use super::answer::{AdmissionKind, Answer, ReadContext};
use super::prices::book_of;
use super::reports::call_outcomes::{self, ReadOutcomes};
use super::reports::spend::without_calls;
use super::reports::{Extent, ReportSources, items};
use super::repository::{TouchedRepositories, select};
use super::title::session_title;
use crate::error::Error;

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// Returns what became of the work of the last days. Without a moment in the request, much work is
/// shown as it was at most a minute ago.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, or too many facts about them; or if several
/// repositories match, or the selector contradicts stored facts.
pub fn overview(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: &OverviewRequest,
    now: Instant,
) -> Result<Overview, Error> {
    let as_of = snapshot.bound(request.as_of.unwrap_or(now), now)?;
    let prices = snapshot.price_table_in_force(as_of)?;
    if request.as_of.is_some() {
        return derive(snapshot, sources, request, as_of, now, prices);
    }
    let recent = Recent {
        request: request.clone(),
        at: now,
        revisions: snapshot.revisions()?,
        price_table_id: prices.as_ref().map(|table| table.price_table_id),
    };
    let memory = &sources.memory.overviews;
    if let Some(known) = memory.get(&recent) {
        return Ok(Overview::clone(&known));
    }
    let overview = derive(snapshot, sources, request, as_of, now, prices)?;
    memory.insert(recent, &overview);
    Ok(overview)
}

fn derive(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    request: &OverviewRequest,
    as_of: Instant,
    now: Instant,
    prices: Option<PriceTable>,
) -> Result<Overview, Error> {
    let days = request.days.unwrap_or(OverviewDays::Seven).get();
    let window = window(days, as_of);
    let extent = Extent::within(window.clone(), as_of);
    let boundary = snapshot.boundary(Some(as_of))?;
    let selection = TouchedRepositories::by(&request.repository).read(snapshot, boundary)?;
    let selection = select(snapshot, &selection, &request.repository, boundary)?;
    let items_max = usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX);
    let items = items::read(snapshot, &extent, items_max)?;
    let prices = prices.map(|table| book_of(snapshot, &sources.memory.prices, table));
    let (price_table, book) = prices.transpose()?.unzip();
    let read = call_outcomes::read(snapshot, sources, &extent, &without_calls(&items))?;
    let items: Vec<(Item, Cost)> = match selection {
        // Nothing is known of the repository, so nothing reached it.
        Selection::None => Vec::new(),
        Selection::All | Selection::One(_) => items
            .into_iter()
            .map(|item| {
                let cost = Cost::of(&item, book.as_deref());
                (item, cost)
            })
            .collect(),
    };
    let unobservable: HashMap<_, _, RandomState> = read.unobservable.iter().copied().collect();
    let evidence = OverviewEvidence {
        window: &window,
        items: &items,
        outcomes: &read.outcomes,
        unobservable: &unobservable,
        reverted: &read.reverted,
    };
    let selected = Selected {
        repository: match &selection {
            Selection::One(repository) => Some(repository),
            Selection::All | Selection::None => None,
        },
        model: request.model.as_ref().map(ModelName::as_str),
        user_id: request.user_id.as_ref(),
        outcome: request.outcome,
    };
    let tables = overview::derive(evidence, selected).map_err(|SumTooLarge| ReportBound::Reply)?;
    let attention = attention::read(snapshot, &read, &tables, as_of.min(now))?;
    let limit = usize::try_from(request.limit.get()).unwrap_or(usize::MAX);
    let session_count = tables.sessions.len() as u64;
    let mut sessions = Vec::new();
    for row in tables.sessions.iter().take(limit) {
        let title = session_title(snapshot, &row.session_id)?;
        sessions.push(session(&read.of.repositories, row, title));
    }
    let ReadOutcomes {
        of,
        repository_skipped,
        attribution_skipped,
        lost_mirrors,
        ..
    } = read;
    let absence = match &selection {
        Selection::None => Absence::Repository,
        Selection::One(Lifetime::Named(name))
            if tables.figures.calls == 0 && !snapshot.is_repository_named(name, boundary)? =>
        {
            Absence::Repository
        }
        Selection::All | Selection::One(_) if request.is_narrowed() => Absence::Selection,
        Selection::All | Selection::One(_) => Absence::Calls,
    };
    let overview = Overview {
        schema_version: Version1,
        sentence: String::new(),
        window: OverviewWindow {
            days,
            start: window.start,
            end: window.end,
            as_of,
        },
        figures: tables.figures,
        repositories: repositories(&of.repositories, &tables),
        models: models(&tables),
        attention: attention.rows,
        attention_left_out: attention.left_out,
        sessions,
        session_count,
        unobservable: tables.unobservable,
        unpriced: tables.unpriced,
        price_table,
        repository_skipped,
        attribution_skipped,
        lost_mirrors,
        provenance: Policy::Overview.provenance(of.quarantine_revision),
        days: tables
            .days
            .into_iter()
            .map(|(day, figures)| OverviewDay {
                start: day.start,
                end: day.end,
                figures,
            })
            .collect(),
    };
    Ok(Overview {
        sentence: sentence(&overview, request, absence),
        ..overview
    })
}

/// Says what became of the work. Only without a moment in the request it is that of the last days,
/// so that the same question has the same answer.
fn sentence(overview: &Overview, request: &OverviewRequest, absence: Absence) -> String {
    let now = match request.as_of {
        Some(_) => Instant::MAX,
        None => overview.window.end,
    };
    match SHELL.overview_sentence(overview, now) {
        Some(pieces) => pieces.into_iter().map(|piece| piece.said).collect(),
        None => SHELL.overview_nothing(&overview.window, now, absence),
    }
}

/// Returns the days before a moment.
fn window(days: u64, as_of: Instant) -> Range<Instant> {
    let days = i64::try_from(days).unwrap_or(i64::MAX);
    let start = as_of
        .microseconds()
        .saturating_sub(days.saturating_mul(DAY_MICROSECONDS));
    let start = Instant::from_microseconds(start.max(0)).unwrap_or(as_of);
    start..as_of
}

fn repositories(known: &Repositories, tables: &OverviewTables) -> Vec<OverviewRepository> {
    let mut rows: Vec<OverviewRepository> = tables
        .repositories
        .iter()
        .map(|(repository, figures)| {
            let label = repository.as_ref();
            let label = label.map(|repository| RepositoryLabel::of(known, repository));
            let (repo, repository_identity) =
                label.map_or((None, None), |label| (Some(label.repo), label.identity));
            OverviewRepository {
                repo,
                repository_identity,
                figures: *figures,
            }
        })
        .collect();
    rows.sort_by(|one, other| {
        let key = |row: &OverviewRepository| rank(row.repo.is_none(), &row.figures);
        key(one)
            .cmp(&key(other))
            .then_with(|| one.repo.cmp(&other.repo))
    });
    rows
}

fn models(tables: &OverviewTables) -> Vec<OverviewModel> {
    let mut rows: Vec<OverviewModel> = tables
        .models
        .iter()
        .map(|(model, figures)| OverviewModel {
            model: model.as_deref().map(str::to_owned),
            figures: *figures,
        })
        .collect();
    // The sort is stable, and they were sorted by name.
    rows.sort_by_key(|row| rank(row.model.is_none(), &row.figures));
    rows
}

/// Orders rows: those with most calls first, unknown ones last.
fn rank(is_unknown: bool, figures: &OverviewFigures) -> (bool, std::cmp::Reverse<u64>) {
    (is_unknown, std::cmp::Reverse(figures.calls))
}

fn session(known: &Repositories, row: &SessionRow, title: Option<String>) -> OverviewSession {
    let name = |repository: &Lifetime| RepositoryLabel::of(known, repository).repo;
    let mut repositories: Vec<String> = row.repositories.iter().map(name).collect();
    repositories.sort_unstable();
    let mut pull_requests: Vec<OverviewPullRequest> = row
        .pull_requests
        .iter()
        .map(|(repository, pr_number, merged)| OverviewPullRequest {
            repo: name(repository),
            pr_number: *pr_number,
            merged: *merged,
        })
        .collect();
    pull_requests.sort_unstable();
    OverviewSession {
        session_id: row.session_id.clone(),
        title,
        user_ids: row.user_ids.iter().cloned().collect(),
        models: row
            .models
            .iter()
            .map(|model| (**model).to_owned())
            .collect(),
        repositories,
        pull_requests,
        last_observed_at: row.last_observed_at,
        figures: row.figures,
    }
}

impl Answer for OverviewQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Report;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        let memory = reading.report_memory()?;
        let sources = reading.report_sources(&memory);
        overview(reading.snapshot, sources, &request, reading.now)
    }
}
