//! Search over everything that a caller may read: retrieval policy version 2.
//!
//! The index says which parts match. What it says is checked in the snapshot, and read there,
//! before it is answered: [`scope`] decides which Sessions may be searched, [`check`] where a part
//! is visible, and [`packing`] what of it fits.

mod check;
mod packing;
mod scope;

use std::sync::Arc;

use svc_engine_search::{Found, FoundSession, IndexError, IndexQuery, IndexReading, SearchIndex};
use svc_engine_store::{NumberedSession, StoreError};
use svc_model::context::ContextStatus;
use svc_model::endpoint::Search;
use svc_model::evidence::CaptureCompleteness;
use svc_model::field::{FieldKind, Violation, Violations};
use svc_model::id::SessionId;
use svc_model::limit::{SEARCH_CHECKED_PARTS_MAX, SEARCH_SESSION_PARTS_MAX};
use svc_model::search::{SearchCoverage, SearchRequest, SearchResult, SearchSkipped, SearchWord};
use svc_model::time::Instant;
use svc_model::version::{Version1, Version2};

use self::check::{Checked, CheckedSession};
use self::packing::Packer;
use super::answer::{AdmissionKind, Answer, ReadContext};
use super::grant::Reach;
use crate::error::Error;

pub(super) use self::scope::sessions_of_file;

/// Sessions whose rows are read at once.
const SESSIONS_AT_ONCE: usize = 32;
/// Sessions whose rows are read for one answer.
const SESSIONS_READ_MAX: usize = 2_048;

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => Self::Store(error),
            error => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "search.unavailable");
                Self::SearchUnavailable
            }
        }
    }
}

/// Returns the index, unless the server keeps none.
fn index(reading: &ReadContext<'_, '_>) -> Result<Arc<SearchIndex>, Error> {
    reading
        .resources
        .search
        .clone()
        .ok_or(Error::SearchDisabled)
}

impl Answer for Search {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn session(request: &Self::Request) -> Option<&SessionId> {
        request.filters.session_id.as_ref()
    }

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        if request.filters.user.is_some() && !matches!(reading.reach, Reach::All) {
            let only = Violation::new(
                FieldKind::ExtraForbidden,
                "only operators may ask for users",
            );
            let place = vec!["body".into(), "filters".into(), "user".into()];
            return Err(Error::Invalid(Violations::one(only.at(place))));
        }
        let index = index(reading)?;
        let index = index.reading()?;
        search(reading, &index, &request)
    }
}

/// Answers a search from one state of the index.
fn search(
    reading: &mut ReadContext<'_, '_>,
    index: &IndexReading<'_>,
    request: &SearchRequest,
) -> Result<SearchResult, Error> {
    let scope = scope::of(reading, index, &request.filters)?;
    let found = index.found(&IndexQuery {
        words: request.query.words(),
        sessions: &scope.sessions,
        kind: request.filters.kind,
        role: request.filters.role.as_ref().map(SearchWord::as_str),
        is_private: !matches!(reading.reach, Reach::All),
    })?;
    let mut coverage = SearchCoverage {
        sessions: scope.count,
        indexed_parts: index.parts(),
        candidates: found.candidates,
        all_scored: found.all_scored,
    };
    let limit = usize::try_from(request.limit.get()).unwrap_or(usize::MAX);
    let mut ranking = Ranking::default();
    ranking.check(reading, index, request, &found, limit)?;
    coverage.all_scored &= ranking.all_checked;
    let (items, skipped) = ranking.pack(reading, request, &found, limit)?;
    let status = match (items.is_empty(), skipped.response_budget) {
        (false, _) => ContextStatus::Matched,
        (true, 0) => ContextStatus::NoMatch,
        (true, _) => ContextStatus::BudgetExhausted,
    };
    Ok(SearchResult {
        schema_version: Version1,
        policy_version: Version2.into(),
        quarantine_revision: reading.snapshot.quarantine_revision()?,
        capture_completeness: CaptureCompleteness::Unknown.into(),
        status: status.into(),
        indexed_up_to: index.state.indexed_up_to,
        index_complete: index.state.indexed_up_to.is_some(),
        coverage,
        skipped,
        items,
    })
}

/// The Sessions of an answer, checked in the snapshot.
#[derive(Default)]
struct Ranking {
    /// The best first.
    sessions: Vec<CheckedSession>,
    withdrawn: u64,
    /// Sessions of which nothing may be answered.
    dropped: u64,
    all_checked: bool,
}

impl Ranking {
    /// Checks Sessions, best first, until enough are certain to be the best.
    fn check(
        &mut self,
        reading: &mut ReadContext<'_, '_>,
        index: &IndexReading<'_>,
        request: &SearchRequest,
        found: &Found,
        limit: usize,
    ) -> Result<(), Error> {
        let filters = &request.filters;
        let mut parts_left = SEARCH_CHECKED_PARTS_MAX;
        let mut rest = found.sessions.as_slice();
        let mut sessions_left = SESSIONS_READ_MAX;
        self.all_checked = true;
        while let Some(best) = rest.first() {
            if self.is_certain(best.score, limit) {
                break;
            }
            if parts_left == 0 || sessions_left == 0 {
                self.all_checked = false;
                break;
            }
            let (some, others) = rest.split_at(SESSIONS_AT_ONCE.min(limit.max(8)).min(rest.len()));
            rest = others;
            sessions_left = sessions_left.saturating_sub(some.len());
            reading.snapshot.check_deadline()?;
            let rows = rows(reading, some)?;
            for session in some {
                let row = rows.get(&session.session_number);
                let Some(row) = row.filter(|row| scope::is_of_time(filters, row)) else {
                    self.dropped += 1;
                    continue;
                };
                let count = session.parts.len().min(parts_left);
                parts_left -= count;
                let checked =
                    check::session(reading, index, filters, row, &session.parts[..count])?;
                self.add(checked);
            }
            self.sessions.sort_by(CheckedSession::order);
        }
        Ok(())
    }

    fn add(&mut self, checked: Checked) {
        self.withdrawn += checked.withdrawn;
        match checked.session {
            Some(session) => self.sessions.push(session),
            None => self.dropped += 1,
        }
    }

    /// Returns whether Sessions with at most this score change nothing.
    fn is_certain(&self, score: f64, limit: usize) -> bool {
        let last = self.sessions.get(limit.saturating_sub(1));
        last.is_some_and(|last| last.score > score)
    }

    /// Packs the best Sessions.
    fn pack(
        self,
        reading: &mut ReadContext<'_, '_>,
        request: &SearchRequest,
        found: &Found,
        limit: usize,
    ) -> Result<(Vec<svc_model::search::SearchSession>, SearchSkipped), Error> {
        let mut skipped = SearchSkipped {
            withdrawn: self.withdrawn,
            ..SearchSkipped::default()
        };
        let offered = limit
            .saturating_add(SESSIONS_AT_ONCE)
            .min(self.sessions.len());
        let best = &self.sessions[..offered];
        let mut packer = Packer::new(reading, request, best)?;
        for session in &self.sessions {
            if packer.sessions() == limit {
                break;
            }
            packer.offer_session(reading, session)?;
        }
        packer.offer_further(reading, SEARCH_SESSION_PARTS_MAX)?;
        // With conditions about calls, a Session counts only once it was checked.
        let matching = if check::has_call_filters(&request.filters) {
            self.sessions.len() as u64
        } else {
            (found.sessions.len() as u64).saturating_sub(self.dropped)
        };
        let (items, packed) = packer.finish();
        skipped.session_limit = matching
            .saturating_sub(items.len() as u64)
            .saturating_sub(packed.sessions_without_room);
        skipped.part_limit = packed.further_parts;
        skipped.response_budget = packed.without_room;
        skipped.non_finite_number = packed.non_finite;
        Ok((items, skipped))
    }
}

/// Returns the rows of Sessions.
fn rows(
    reading: &mut ReadContext<'_, '_>,
    sessions: &[FoundSession],
) -> Result<std::collections::HashMap<i64, NumberedSession>, StoreError> {
    let numbers: Vec<i64> = sessions
        .iter()
        .map(|session| session.session_number)
        .collect();
    reading.snapshot.sessions_numbered(&numbers)
}

/// Returns whether a moment is in the range of the filters.
fn is_in_range(since: Option<Instant>, until: Option<Instant>, moment: Instant) -> bool {
    since.is_none_or(|since| moment >= since) && until.is_none_or(|until| moment < until)
}
