//! Pages of Sessions, selected by what visible facts state about them.

use std::collections::BTreeSet;

use svc_engine_derive::price::PriceBook;
use svc_engine_derive::repository::{Names, Selection};
use svc_engine_store::{
    ClaimKind, ListedSession, SessionClaims, SessionCondition, SessionPage, Snapshot,
};
use svc_model::endpoint::{GrantSessions, SessionsQuery};
use svc_model::facts::AgentHarness;
use svc_model::id::{SessionId, UserId};
use svc_model::limit::SESSION_PAGE_ROWS_MAX;
use svc_model::problem::QueryFault;
use svc_model::query::{ModelName, SessionList, SessionSummary, SessionsRequest};
use svc_model::repository::RepositoryName;

use super::answer::{AdmissionKind, Answer, ReadContext};
use super::cursor::CursorKey;
use super::grant::{Reach, reached};
use super::prices::newest_book;
use super::repository::{TouchedRepositories, select};
use super::search::sessions_of_file;
use super::session_cursor::{SessionPosition, SessionsScope};
use super::spend::session_spend;
use super::title::session_title;
use crate::error::Error;

/// Returns one page of Sessions, or of those of them that are listed. Where the request asks for
/// costs, those that no source reported are derived with a price table, if there is one.
///
/// # Errors
///
/// If several repositories match, the selector contradicts stored facts, or the cursor does not
/// belong to the query.
pub fn sessions(
    snapshot: &mut Snapshot<'_>,
    key: &CursorKey,
    request: &SessionsRequest,
    among: Option<&[SessionId]>,
    prices: Option<&PriceBook>,
) -> Result<SessionList, Error> {
    let org_id = snapshot.org_id().clone();
    let scope = SessionsScope {
        org_id: &org_id,
        quarantine_revision: snapshot.quarantine_revision()?,
        request,
    };
    let after = match &request.cursor {
        Some(cursor) => Some(scope.position(key, cursor)?),
        None => None,
    };
    let boundary = snapshot.boundary(None)?;
    let repositories = TouchedRepositories::by(&request.repository).read(snapshot, boundary)?;
    let repository = match select(snapshot, &repositories, &request.repository, boundary)? {
        Selection::All => None,
        Selection::One(repository) => Some(repository),
        Selection::None if request.cursor.is_some() => {
            return Err(QueryFault::SessionCursorMismatch.into());
        }
        Selection::None => return Ok(SessionList::default()),
    };
    let names = repository
        .as_ref()
        .and_then(|repository| repositories.names(repository));
    let names: Vec<&str> = names
        .iter()
        .flat_map(Names::all)
        .map(RepositoryName::as_str)
        .collect();
    let repository = repository.as_ref();
    let claim = |kind, value: Option<_>| value.map(|value| SessionCondition::Claim(kind, value));
    // Rows are read along the first condition, so the most selective one comes first.
    let conditions: Vec<SessionCondition<'_>> = [
        repository.map(|repository| SessionCondition::Repository {
            repository,
            names: &names,
        }),
        claim(
            ClaimKind::User,
            request.user_id.as_ref().map(UserId::as_str),
        ),
        claim(
            ClaimKind::Harness,
            request
                .agent_harness
                .as_ref()
                .map(|agent_harness| agent_harness.as_str()),
        ),
        claim(
            ClaimKind::Model,
            request.model.as_ref().map(ModelName::as_str),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let question = SessionPage {
        captured_from: request.captured_after,
        before: request.captured_before.map(|before| (before, None)),
        conditions: &conditions,
        among,
        rows_max: SESSION_PAGE_ROWS_MAX,
    };
    let found = find(snapshot, &question, request.limit.get(), after)?;
    let ids: Vec<SessionId> = found
        .wanted
        .iter()
        .map(|wanted| wanted.session_id.clone())
        .collect();
    let mut claims = snapshot.session_claims(&ids)?;
    let calls = snapshot.session_call_counts(&ids)?;
    let mut sessions = Vec::with_capacity(found.wanted.len());
    for listed in found.wanted {
        let calls = calls.get(&listed.session_id).copied().unwrap_or_default();
        let mut session = summary(listed, &mut claims, calls);
        if request.spend {
            session.spend = Some(session_spend(snapshot, &session.session_id, prices)?);
        }
        if request.titles {
            session.title = session_title(snapshot, &session.session_id)?;
        }
        sessions.push(session);
    }
    Ok(SessionList {
        sessions,
        next_cursor: found.next.map(|position| scope.cursor(key, &position)),
    })
}

/// The Sessions of a page, and where the next page starts.
struct ListedSessions {
    wanted: Vec<ListedSession>,
    next: Option<SessionPosition>,
}

/// Reads rows until the page is full, the rows end, or the limit for one page is reached.
fn find(
    snapshot: &mut Snapshot<'_>,
    question: &SessionPage<'_>,
    limit: u64,
    mut after: Option<SessionPosition>,
) -> Result<ListedSessions, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut wanted: Vec<ListedSession> = Vec::new();
    let mut looked_at = 0;
    loop {
        // One more row than the page shows whether another page follows.
        let rows_max = (limit as u64 + 1)
            .max(looked_at)
            .min(question.rows_max - looked_at);
        let position = after
            .as_ref()
            .map(|after| (after.captured_at, Some(&after.session_id)));
        let before = position.or(question.before);
        let rows = snapshot.session_page(&SessionPage {
            before,
            rows_max,
            ..*question
        })?;
        let is_last = (rows.len() as u64) < rows_max;
        looked_at += rows.len() as u64;
        after = rows.last().map(SessionPosition::of).or(after);
        wanted.extend(rows.into_iter().filter(|row| row.is_wanted));
        if wanted.len() > limit {
            wanted.truncate(limit);
            let next = wanted.last().map(SessionPosition::of);
            return Ok(ListedSessions { wanted, next });
        }
        if is_last {
            return Ok(ListedSessions { wanted, next: None });
        }
        if looked_at >= question.rows_max {
            return Ok(ListedSessions {
                wanted,
                next: after,
            });
        }
        snapshot.check_deadline()?;
    }
}

fn summary(
    listed: ListedSession,
    claims: &mut SessionClaims,
    inference_calls: u64,
) -> SessionSummary {
    let session_id = listed.session_id;
    let mut values = |kind| {
        let values = claims.remove(&(session_id.clone(), kind));
        values.unwrap_or_default().into_iter()
    };
    SessionSummary {
        captured_at: listed.captured_at,
        first_observed_at: listed.first_observed_at,
        last_observed_at: listed.last_observed_at,
        user_ids: values(ClaimKind::User)
            .filter_map(|value| UserId::new(&value).ok())
            .collect(),
        models: values(ClaimKind::Model).collect(),
        agent_harnesses: values(ClaimKind::Harness)
            .filter_map(|value| AgentHarness::from_wire(&value).map(Into::into))
            .collect(),
        repositories: values(ClaimKind::Repository)
            .filter_map(|value| RepositoryName::new(&value))
            .collect(),
        inference_calls,
        session_id,
        spend: None,
        title: None,
    }
}

impl Answer for SessionsQuery {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        list(reading, &request)
    }
}

impl Answer for GrantSessions {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        list(reading, &request)
    }
}

fn list(
    reading: &mut ReadContext<'_, '_>,
    request: &SessionsRequest,
) -> Result<SessionList, Error> {
    let among = among(reading, request)?;
    let in_force = if request.spend {
        newest_book(reading)?
    } else {
        None
    };
    let prices = in_force.as_ref().map(|(_, book)| &**book);
    let key = &reading.resources.cursor_key;
    sessions(reading.snapshot, key, request, among.as_deref(), prices)
}

/// Returns the only Sessions that a list can have, if they are known: those that the caller may
/// read, that were observed at the commit, and that worked on the file.
fn among(
    reading: &mut ReadContext<'_, '_>,
    request: &SessionsRequest,
) -> Result<Option<Vec<SessionId>>, Error> {
    let mut among: Option<Vec<SessionId>> = None;
    let mut keep = |sessions: Vec<SessionId>| {
        among = Some(match among.take() {
            None => sessions,
            Some(among) => {
                let sessions: BTreeSet<SessionId> = sessions.into_iter().collect();
                let both = among.into_iter().filter(|id| sessions.contains(id));
                both.collect()
            }
        });
    };
    if !matches!(reading.reach, Reach::All) {
        let grants = &reading.resources.grants;
        keep(reached(reading.snapshot, grants, reading.reach)?.into_owned());
    }
    if let Some(commit) = &request.commit {
        keep(reading.snapshot.sessions_at_commit(commit)?);
    }
    if let Some(file) = &request.file {
        keep(sessions_of_file(reading, file)?);
    }
    Ok(among)
}
