//! Observed links between Sessions and commits: conditions for them, and the link of a commit.

use svc_engine_fact::Lifetime;
use svc_model::context::CommitMatch;
use svc_model::id::SessionId;
use svc_model::open::Open;
use svc_model::query::ObservationSource;
use svc_model::repository::{CommitAnchor, CommitSha, RepositoryIdentity};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::statement::Statement;
use crate::sql::value::Row;

/// Returns the condition that an observation `f` is of a repository, according to both itself and
/// its push `p`, if that is visible. It decides as
/// `Repositories::of_observation` of the derivations does.
pub(crate) fn is_of(statement: &mut Statement<'_>, repository: &Lifetime) -> String {
    match repository {
        Lifetime::Identified(identity) => {
            let RepositoryIdentity {
                repository_provider,
                repository_host,
                repository_id,
            } = identity.clone();
            let provider = statement.value(repository_provider.as_str());
            let host = statement.own(repository_host.into());
            let id = statement.own(repository_id.into());
            let is = |row: &str| {
                format!(
                    "{row}.repository_provider = {provider} AND {row}.repository_host = {host} \
                    AND {row}.repository_id = {id}"
                )
            };
            let (own, pushed) = (is("f"), is("p"));
            format!("(f.repository_id IS NULL OR {own}) AND {pushed}")
        }
        Lifetime::Named(name) => {
            let name = statement.own(name.clone().into());
            format!(
                "f.repository_id IS NULL AND f.repo = {name} \
                AND (p.push_id IS NULL OR p.repository_id IS NULL AND p.repo = f.repo)"
            )
        }
    }
}

/// Returns the condition that some visible observation `f` of the Session of `row`, with its push
/// `p` if that is visible, meets `condition`.
pub(crate) fn some(row: &str, condition: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM visible_session_commit_observations f \
        LEFT JOIN visible_pushes p ON p.push_id = f.source_push_id AND p.org_id = f.org_id \
        WHERE f.org_id = {row}.org_id AND f.session_id = {row}.session_id AND {condition})"
    )
}

/// The visible observation that links a Session to a commit, if its push is visible and of the same
/// repository.
const MATCH: &str = "SELECT f.observation_id, f.source_push_id, f.captured_at_us, f.source
    FROM visible_session_commit_observations f
    JOIN visible_pushes p ON p.push_id = f.source_push_id AND p.org_id = f.org_id
        AND p.repository_provider = f.repository_provider
        AND p.repository_host = f.repository_host AND p.repository_id = f.repository_id
    WHERE f.org_id = $1 AND f.repository_provider = $2 AND f.repository_host = $3
        AND f.repository_id = $4 AND f.commit_sha = $5 AND f.session_id = $6";

/// The Sessions with a visible observation at a commit, in any repository.
const AT_COMMIT: &str = "SELECT f.session_id FROM visible_session_commit_observations f
    WHERE f.commit_sha = $2 AND f.org_id = $1 GROUP BY f.session_id ORDER BY f.session_id";

/// Reads where a link comes from, if not from a note.
fn source(row: &Row<'_>, place: usize) -> Result<Option<ObservationSource>, StoreError> {
    let Some(word) = row.optional_text(place)? else {
        return Ok(None);
    };
    let source = ObservationSource::from_wire(&word);
    source
        .map(Some)
        .ok_or(corrupt("session_commit_observations", "source"))
}

impl Snapshot<'_> {
    /// Returns the Sessions that were observed at a commit, in any repository, sorted.
    pub fn sessions_at_commit(&mut self, commit: &CommitSha) -> Result<Vec<SessionId>, StoreError> {
        let keys = [self.org_id.as_str().into(), commit.as_str().into()];
        self.connection()?.all(AT_COMMIT, &keys, |row| {
            SessionId::new(&row.text(0)?)
                .map_err(|_| corrupt("session_commit_observations", "session_id"))
        })
    }

    /// Returns the observed link between a Session and a commit, if it and its push are visible.
    pub fn commit_match(
        &mut self,
        session_id: &SessionId,
        anchor: &CommitAnchor,
    ) -> Result<Option<CommitMatch>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            anchor.repository_provider.as_str().into(),
            anchor.repository_host.as_str().into(),
            anchor.repository_id.as_str().into(),
            anchor.commit_sha.as_str().into(),
            session_id.as_str().into(),
        ];
        self.connection()?.first(MATCH, &keys, |row| {
            Ok(CommitMatch {
                observation_id: row.fact_id(0)?,
                source_push_id: row.fact_id(1)?,
                captured_at: Instant::from_microseconds(row.integer(2)?)
                    .ok_or(corrupt("session_commit_observations", "its time"))?,
                source: source(row, 3)?.map(Open::Known),
            })
        })
    }
}
