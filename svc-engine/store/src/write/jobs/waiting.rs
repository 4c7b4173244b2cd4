//! What waits for a mirror: pushes that it has not read, and notes whose commits no branch has
//! reached.

use svc_engine_fact::{Lifetime, Push};
use svc_model::repository::{
    CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use svc_model::time::Instant;

use super::MirrorJobs;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;

const PUSHES: &str = "SELECT d.push_id, d.repo, d.clone_url, d.delivered_at_us, f.repo,
        f.repository_provider, f.repository_host, f.repository_id, f.ref, f.before_sha, f.after_sha,
        f.forced, f.captured_at_us, CAST(CASE WHEN EXISTS
            (SELECT 1 FROM visible_pushes v WHERE v.push_id = f.push_id)
            THEN 1 ELSE 0 END AS BIGINT)
    FROM mirror_deliveries d
    JOIN pushes f ON f.push_id = d.push_id AND COALESCE(f.org_id, '') = d.org_id
    WHERE d.org_id = $1 AND d.mirror = $2
    ORDER BY d.delivered_at_us, d.push_id LIMIT $3";
const DEFERRED: &str = "SELECT notes_ref, commit_sha FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 ORDER BY notes_ref, commit_sha";

/// A push that waits for its mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPush {
    /// The push as stored, but with the clone URL of the latest delivery.
    pub push: Push,
    /// Whether the push is visible.
    pub visible: bool,
    /// The name of the repository in the latest delivery.
    pub delivered_repo: RepositoryName,
    /// When the push was last delivered.
    pub delivered_at: Instant,
}

/// A note whose commit no branch has reached yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeferredNote {
    /// The ref of the note.
    pub notes_ref: String,
    /// The commit that carries it.
    pub commit_sha: CommitSha,
}

impl MirrorJobs {
    /// Returns the pushes that wait for a mirror, in the order of their deliveries.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn waiting_pushes(
        &self,
        lifetime: &Lifetime,
        pushes_max: usize,
    ) -> Result<Vec<WaitingPush>, StoreError> {
        let mirror = lifetime.to_string();
        let rows_max = i64::try_from(pushes_max).unwrap_or(i64::MAX);
        self.read(|snapshot| {
            let keys = [
                snapshot.org_id.as_str().into(),
                mirror.as_str().into(),
                rows_max.into(),
            ];
            snapshot.connection()?.all(PUSHES, &keys, read_push)
        })
    }

    /// Returns the notes of a mirror whose commits no branch has reached.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn deferred_notes(&self, lifetime: &Lifetime) -> Result<Vec<DeferredNote>, StoreError> {
        let mirror = lifetime.to_string();
        self.read(|snapshot| {
            let keys = [snapshot.org_id.as_str().into(), mirror.as_str().into()];
            snapshot.connection()?.all(DEFERRED, &keys, |row| {
                Ok(DeferredNote {
                    notes_ref: row.text(0)?,
                    commit_sha: read_commit(&row.text(1)?, "mirror_deferred_notes")?,
                })
            })
        })
    }
}

fn read_push(row: &Row<'_>) -> Result<WaitingPush, StoreError> {
    let wrong = |what| corrupt("pushes", what);
    let instant = |index| {
        let instant = Instant::from_microseconds(row.integer(index)?);
        instant.ok_or(wrong("a time"))
    };
    let name = RepositoryName::new(&row.text(1)?);
    Ok(WaitingPush {
        push: Push {
            push_id: row.fact_id(0)?,
            provider: RepositoryProvider::Github,
            repo: row.text(4)?,
            repository: read_identity(row, 5)?,
            clone_url: row.text(2)?,
            r#ref: row.text(8)?,
            before_sha: read_commit(&row.text(9)?, "pushes")?,
            after_sha: read_commit(&row.text(10)?, "pushes")?,
            forced: row.integer(11)? != 0,
            captured_at: instant(12)?,
        },
        visible: row.integer(13)? != 0,
        delivered_repo: name.ok_or(corrupt("mirror_deliveries", "its name"))?,
        delivered_at: instant(3)?,
    })
}

fn read_identity(row: &Row<'_>, first: usize) -> Result<Option<RepositoryIdentity>, StoreError> {
    let texts = (
        row.optional_text(first)?,
        row.optional_text(first + 1)?,
        row.optional_text(first + 2)?,
    );
    let (Some(provider), Some(host), Some(id)) = texts else {
        return Ok(None);
    };
    let identity = (
        RepositoryProvider::from_wire(&provider),
        RepositoryHost::new(&host),
        RepositoryId::new(&id),
    );
    match identity {
        (Some(repository_provider), Some(repository_host), Some(repository_id)) => {
            Ok(Some(RepositoryIdentity {
                repository_provider,
                repository_host,
                repository_id,
            }))
        }
        _ => Err(corrupt("pushes", "its repository")),
    }
}

fn read_commit(text: &str, table: &'static str) -> Result<CommitSha, StoreError> {
    CommitSha::new(text).ok_or(corrupt(table, "a commit"))
}
