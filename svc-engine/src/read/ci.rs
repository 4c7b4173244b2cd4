//! The outcome of one run, and a repository's outcomes, page by page.

use std::collections::BTreeMap;

use svc_engine_derive::repository::{Mention, Names, Repositories, Selection};
use svc_engine_fact::Lifetime;
use svc_engine_store::{CiOutcomePage, Snapshot};
use svc_model::endpoint::{CiFailuresQuery, CiOutcomeQuery};
use svc_model::open::Open;
use svc_model::problem::{Decline, QueryFault};
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRecord, CiOutcomeRequest,
};
use svc_model::repository::RepositoryName;
use svc_model::time::Instant;

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::cursor::{CursorKey, FailuresScope, OutcomePosition};
use super::repository::{TouchedRepositories, repository_of, retain_selected, select};
use super::runs::{self, record};
use crate::error::Error;

/// Returns the outcome of one run.
///
/// # Errors
///
/// If the selector matches several repositories or contradicts stored facts.
pub fn ci_outcome(
    snapshot: &mut Snapshot<'_>,
    request: &CiOutcomeRequest,
) -> Result<CiOutcomeAnswer, Error> {
    let boundary = match request.as_of {
        // The link carries the requested boundary, like the links on a page of outcomes.
        Some(as_of) => as_of,
        // The time of the latest fact instead of the current time: two queries with nothing stored
        // between them return the same link.
        None => match snapshot.latest_repository_fact(Instant::MAX)? {
            Some(latest) => latest,
            None => return Ok(None.into()),
        },
    };
    let run_id = request.run_id.as_str();
    let mut rows = if request.latest {
        snapshot.ci_outcomes_of_attempts(request.provider, run_id, boundary)?
    } else {
        snapshot.ci_outcomes_of_run(request.provider, run_id, request.run_attempt, boundary)?
    };
    let repositories = retain_selected(snapshot, &request.repository, &mut rows, boundary)?;
    let mut runs = runs::by_run(rows);
    if runs.len() > 1 {
        return Err(Decline::RepositorySelectorAmbiguous.into());
    }
    let run = runs.pop();
    let attempts = run.as_ref().map(|run| run.attempts.clone());
    let outcome = run.map(|run| {
        let repository = repository_of(&repositories, &run.last);
        record(run.last, repository.as_ref(), boundary)
    });
    Ok(CiOutcomeAnswer {
        attempts: attempts.filter(|_| request.latest),
        ..outcome.into()
    })
}

/// Returns one page of a repository's outcomes with the requested result.
///
/// # Errors
///
/// If the selector matches several repositories or contradicts stored facts, or the cursor does not
/// belong to the query.
pub fn ci_failures(
    snapshot: &mut Snapshot<'_>,
    key: &CursorKey,
    request: &CiFailuresRequest,
) -> Result<CiFailures, Error> {
    // The same on every page. Facts stored later have a later capture time, so a past boundary is
    // final, and facts stored between two pages do not invalidate a cursor.
    let boundary = request.as_of.unwrap_or(request.captured_before);
    let repositories = TouchedRepositories::by(&request.repository).read(snapshot, boundary)?;
    let repository = match select(snapshot, &repositories, &request.repository, boundary)? {
        Selection::One(repository) => repository,
        Selection::None if request.cursor.is_some() => {
            return Err(QueryFault::CursorMismatch.into());
        }
        Selection::None => return Ok(last_page(request, Vec::new())),
        Selection::All => return Err(QueryFault::MissingSelector.into()),
    };
    let org_id = snapshot.org_id().clone();
    let scope = FailuresScope {
        org_id: &org_id,
        repository: &repository,
        boundary,
        quarantine_revision: snapshot.quarantine_revision()?,
        request,
    };
    let before = match &request.cursor {
        Some(cursor) => {
            let position = scope.position(key, cursor)?;
            (position.captured_at, Some(position.outcome_id))
        }
        None => (end(request, boundary), None),
    };
    let known = repositories.names(&repository);
    let known: Vec<&str> = known
        .iter()
        .flat_map(Names::all)
        .map(RepositoryName::as_str)
        .collect();
    // Some facts have the identity but no name.
    let nameless = repository.identity().map(|_| "");
    let names: Vec<&str> = known.iter().copied().chain(nameless).collect();
    // One more row than the page shows whether another page follows.
    let limit = request.limit.get();
    let question = CiOutcomePage {
        identity: repository.identity(),
        names: &names,
        result: request.result,
        captured_from: request.captured_after,
        before,
        workflow_name: request.workflow_name.as_deref(),
        pr_number: request.pr_number,
        boundary,
        rows_max: limit + 1,
    };
    let mut rows = snapshot.ci_outcome_page(&question)?;
    let more = rows.len() as u64 > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let last = rows.last().map(|row| OutcomePosition {
        captured_at: row.captured_at,
        outcome_id: row.outcome_id,
    });
    let next_cursor = last
        .filter(|_| more)
        .map(|position| scope.cursor(key, position));
    let outcomes: Vec<_> = rows
        .into_iter()
        .map(|row| record(row, Some(&repository), boundary))
        .collect();
    let mut page = CiFailures {
        next_cursor,
        ..last_page(request, outcomes)
    };
    if request.explain && request.cursor.is_none() {
        let question = CiOutcomePage {
            identity: None,
            names: &known,
            rows_max: limit,
            ..question
        };
        page.repository_known = page.outcomes.is_empty()
            && match &repository {
                // An identity gets its names from facts, so it is known.
                Lifetime::Identified(_) => true,
                Lifetime::Named(name) => snapshot.is_repository_named(name, boundary)?,
            };
        unresolved(snapshot, &repositories, &question, boundary, &mut page)?;
    }
    Ok(page)
}

/// Adds outcomes that have a name of the repository but no identity, if the name belongs to an
/// identity.
fn unresolved(
    snapshot: &mut Snapshot<'_>,
    repositories: &Repositories,
    question: &CiOutcomePage<'_>,
    boundary: Instant,
    page: &mut CiFailures,
) -> Result<(), Error> {
    let reason = |name| {
        repositories
            .of(Mention {
                name,
                identity: None,
            })
            .err()
    };
    let names = question.names.iter();
    let declined: Vec<_> = names
        .filter_map(|name| Some((*name, reason(name)?)))
        .collect();
    let names: Vec<&str> = declined.iter().map(|(name, _)| *name).collect();
    let question = CiOutcomePage {
        names: &names,
        ..*question
    };
    let mut skipped = BTreeMap::new();
    let counts = snapshot.ci_outcomes_without_identity(&question)?;
    for ((_, reason), count) in declined.into_iter().zip(counts) {
        if count > 0 {
            *skipped.entry(reason.into()).or_default() += count;
        }
    }
    if skipped.is_empty() {
        return Ok(());
    }
    let rows = snapshot.ci_outcome_page(&question)?;
    let outcomes = rows.into_iter().map(|row| record(row, None, boundary));
    page.unresolved_ci_outcomes = Some(outcomes.collect());
    page.repository_skipped = Some(skipped);
    Ok(())
}

const fn last_page(request: &CiFailuresRequest, outcomes: Vec<CiOutcomeRecord>) -> CiFailures {
    CiFailures {
        result: Open::Known(request.result),
        outcomes,
        next_cursor: None,
        repository_known: false,
        repository_skipped: None,
        unresolved_ci_outcomes: None,
    }
}

/// Returns the first time outside the query: the earlier of the exclusive capture bound and the
/// time after the inclusive boundary.
fn end(request: &CiFailuresRequest, boundary: Instant) -> Instant {
    let after = Instant::from_microseconds(boundary.microseconds() + 1);
    after.map_or(request.captured_before, |after| {
        after.min(request.captured_before)
    })
}

impl Answer for CiOutcomeQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        ci_outcome(reading.snapshot, &request)
    }
}

impl Answer for CiFailuresQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        mut request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        request.captured_before = reading.bound(request.captured_before)?;
        if let Some(as_of) = &mut request.as_of {
            *as_of = reading.bound(*as_of)?;
        }
        ci_failures(reading.snapshot, &reading.resources.cursor_key, &request)
    }
}
