//! Which Sessions may be searched.

use std::collections::{BTreeSet, HashSet};

use svc_engine_derive::repository::{Names, Selection};
use svc_engine_search::{IndexReading, SearchableSessions, followed_tables};
use svc_engine_store::{ClaimKind, NumberedSession, SessionCondition, SessionPage, Snapshot};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::problem::Decline;
use svc_model::query::RepositorySelector;
use svc_model::repository::RepositoryName;
use svc_model::search::{FilePath, SearchFilters, SearchWord};

use super::super::answer::ReadContext;
use super::super::grant::{Reach, reached};
use super::super::repository::{TouchedRepositories, select};
use super::index;
use crate::error::Error;

/// Sessions that are searched of those that meet a condition, the latest.
const SESSIONS_MAX: u64 = 100_000;
/// Calls of a range whose Sessions are looked up. Of a range with more, every Session is searched.
const CALLS_MAX: u64 = 50_000;
/// Rows of the quarantine log that the index may be behind. If it is behind by more, it is not asked
/// for files.
const CHANGES_MAX: u64 = 1_000;

/// The Sessions that may be searched.
pub(super) struct Scope {
    pub(super) sessions: SearchableSessions,
    /// How many exist.
    pub(super) count: u64,
}

/// Returns the Sessions that the caller may read and that meet the filters, but for those that are
/// about single calls.
pub(super) fn of(
    reading: &mut ReadContext<'_, '_>,
    index: &IndexReading<'_>,
    filters: &SearchFilters,
) -> Result<Scope, Error> {
    let mut kept = Kept::default();
    let granted = granted(reading)?;
    let count = match &granted {
        Some(numbers) => numbers.len() as u64,
        None => reading.snapshot.session_count()?,
    };
    if let Some(granted) = granted {
        kept.only(granted);
    }
    let snapshot = &mut *reading.snapshot;
    if let Some(session_id) = &filters.session_id {
        let numbers = snapshot.session_numbers(std::slice::from_ref(session_id))?;
        kept.only(numbers.into_values());
    }
    if let Some(commit) = &filters.commit {
        let sessions = snapshot.sessions_at_commit(commit)?;
        kept.only(snapshot.session_numbers(&sessions)?.into_values());
    }
    if let Some(repository) = &filters.repository {
        kept.only(of_repository(snapshot, &repository.selector())?);
    }
    let [model, agent] =
        [&filters.model, &filters.agent].map(|asked| asked.as_ref().map(SearchWord::as_str));
    let claims = [
        (ClaimKind::User, filters.user.as_ref().map(UserId::as_str)),
        (ClaimKind::Model, model),
        (ClaimKind::Harness, agent),
    ];
    for (kind, value) in claims {
        if let Some(value) = value {
            kept.only(that_meet(snapshot, SessionCondition::Claim(kind, value))?);
        }
    }
    if filters.since.is_some() || filters.until.is_some() {
        let observed = snapshot.sessions_observed(filters.since, filters.until, CALLS_MAX)?;
        if let Some(observed) = observed {
            kept.only(observed);
        }
    }
    if let Some(file) = &filters.file {
        kept.only(of_file(snapshot, index, file)?);
    }
    Ok(Scope {
        sessions: kept.0,
        count,
    })
}

/// The Sessions that are left.
struct Kept(SearchableSessions);

impl Default for Kept {
    fn default() -> Self {
        Self(SearchableSessions::All)
    }
}

impl Kept {
    fn only(&mut self, numbers: impl IntoIterator<Item = i64>) {
        let numbers: HashSet<i64> = numbers.into_iter().collect();
        self.0 = SearchableSessions::Numbered(match &self.0 {
            SearchableSessions::All => numbers,
            SearchableSessions::Numbered(kept) => kept.intersection(&numbers).copied().collect(),
        });
    }
}

/// Returns the numbers of the Sessions that exist and are granted to the caller; nothing if it may
/// read all.
fn granted(reading: &mut ReadContext<'_, '_>) -> Result<Option<Vec<i64>>, Error> {
    if matches!(reading.reach, Reach::All) {
        return Ok(None);
    }
    let grants = &reading.resources.grants;
    let sessions = reached(reading.snapshot, grants, reading.reach)?;
    let numbers = reading.snapshot.session_numbers(&sessions)?;
    Ok(Some(numbers.into_values().collect()))
}

/// Returns the numbers of the Sessions that were observed at a commit of a repository. If several
/// repositories have the name, it stands for all of them.
fn of_repository(
    snapshot: &mut Snapshot<'_>,
    selector: &RepositorySelector,
) -> Result<Vec<i64>, Error> {
    let boundary = snapshot.boundary(None)?;
    let repositories = TouchedRepositories::by(selector).read(snapshot, boundary)?;
    let repository = match select(snapshot, &repositories, selector, boundary) {
        Ok(Selection::One(repository)) => repository,
        Ok(Selection::All | Selection::None) | Err(Error::Query(_)) => return Ok(Vec::new()),
        Err(Error::Declined(Decline::RepositorySelectorAmbiguous)) => {
            let name = selector.repo.as_ref().map_or("", RepositoryName::as_str);
            let condition = SessionCondition::Claim(ClaimKind::Repository, name);
            return that_meet(snapshot, condition);
        }
        Err(error) => return Err(error),
    };
    let names = repositories.names(&repository);
    let names: Vec<&str> = names
        .iter()
        .flat_map(Names::all)
        .map(RepositoryName::as_str)
        .collect();
    let repository = &repository;
    let names = &names;
    that_meet(snapshot, SessionCondition::Repository { repository, names })
}

/// Returns the numbers of the Sessions that meet a condition.
fn that_meet(
    snapshot: &mut Snapshot<'_>,
    condition: SessionCondition<'_>,
) -> Result<Vec<i64>, Error> {
    let rows = snapshot.session_page(&SessionPage {
        captured_from: None,
        before: None,
        conditions: &[condition],
        among: None,
        rows_max: SESSIONS_MAX,
    })?;
    let wanted = rows.into_iter().filter(|row| row.is_wanted);
    Ok(wanted.map(|row| row.session_number).collect())
}

/// Returns the numbers of the Sessions that worked on a file. Those of which something was withdrawn
/// since the index last looked are left out.
fn of_file(
    snapshot: &mut Snapshot<'_>,
    index: &IndexReading<'_>,
    file: &FilePath,
) -> Result<BTreeSet<i64>, Error> {
    let mut sessions = index.sessions_of_file(file.name(), |path| file.is_end_of(path))?;
    let state = &index.state;
    let changes = snapshot.quarantine_after(state.quarantine_revision(), CHANGES_MAX)?;
    if changes.len() as u64 == CHANGES_MAX {
        return Ok(BTreeSet::new());
    }
    for table in followed_tables() {
        let of_table = changes.iter().filter(|change| change.table == Some(table));
        let ids: Vec<FactId> = of_table.filter_map(|change| change.fact_id).collect();
        for changed in snapshot.sessions_of_facts(table, &ids)? {
            sessions.remove(&changed);
        }
    }
    for erased in snapshot.erased_sessions_after(state.erasure_revision())? {
        sessions.remove(&erased);
    }
    Ok(sessions)
}

/// Returns the Sessions that worked on a file.
///
/// # Errors
///
/// If the server keeps no index, or it cannot be read.
pub(in crate::read) fn sessions_of_file(
    reading: &mut ReadContext<'_, '_>,
    file: &FilePath,
) -> Result<Vec<SessionId>, Error> {
    let index = index(reading)?;
    let index = index.reading()?;
    let numbers: Vec<i64> = of_file(reading.snapshot, &index, file)?
        .into_iter()
        .collect();
    let sessions = reading.snapshot.sessions_numbered(&numbers)?;
    let sessions = sessions.into_values().map(|session| session.session_id);
    Ok(sessions.collect())
}

/// Returns whether a Session may have calls in the range of the filters.
pub(super) fn is_of_time(filters: &SearchFilters, session: &NumberedSession) -> bool {
    filters
        .since
        .is_none_or(|since| session.last_observed_at >= since)
        && filters
            .until
            .is_none_or(|until| session.first_observed_at < until)
}
