//! Makes the mirror of a stored push due.

use svc_engine_fact::{Lifetime, Push};
use svc_model::id::{FactId, OrgId};
use svc_model::repository::RepositoryName;
use svc_model::time::Instant;

use crate::read::deliveries::{NewestPush, identity_keys, newest_push};
use crate::sql::connection::Connection;
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::write::transaction::Transaction;

/// A request to refresh the mirror of a pushed repository. It is not a fact, and is deleted when it
/// is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The push. This delivery or an earlier one stores it. This delivery says where to fetch from.
    pub push: Push,
    /// When the mirror is due, unless it is due earlier. Pushes that follow before then share its
    /// refresh.
    pub due_at: Instant,
}

/// The visible stored push with the key of the delivered one.
const IDENTIFIED: &str = "SELECT f.push_id, f.repo FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_id IS NOT NULL AND f.repository_provider = $2
        AND f.repository_host = $3 AND f.repository_id = $4 AND f.ref = $5 AND f.before_sha = $6
        AND f.after_sha = $7";
const NAMED: &str = "SELECT f.push_id, f.repo FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_id IS NULL AND f.repo = $2 AND f.ref = $3
        AND f.before_sha = $4 AND f.after_sha = $5";
const DELIVER: &str = "INSERT INTO mirror_deliveries
    (org_id, mirror, push_id, repo, clone_url, delivered_at_us) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (org_id, mirror, push_id) DO UPDATE SET repo = excluded.repo,
        clone_url = excluded.clone_url, delivered_at_us = excluded.delivered_at_us";
/// A delivery ends the wait after earlier failures, and never makes a mirror wait longer.
const DUE: &str = "INSERT INTO mirror_jobs (org_id, mirror, repo, due_at_us, attempts, notes)
    VALUES ($1, $2, $3, $4, 0, '')
    ON CONFLICT (org_id, mirror) DO UPDATE SET repo = excluded.repo,
        due_at_us = CASE WHEN mirror_jobs.due_at_us < excluded.due_at_us
            THEN mirror_jobs.due_at_us ELSE excluded.due_at_us END,
        attempts = 0";
pub(crate) const WAITING: &str =
    "SELECT 1 FROM mirror_deliveries WHERE org_id = $1 AND mirror = $2 LIMIT 1";

/// Makes the mirrors of stored pushes due.
pub(crate) fn request(
    transaction: &mut Transaction<'_>,
    requests: &[&RefreshRequest],
) -> Result<(), StoreError> {
    let mut found = Vec::new();
    for request in requests {
        found.extend(find(transaction.connection, transaction.org_id, request)?);
    }
    // Servers that make the same mirrors due at once must lock them in the same order.
    found.sort_by(|a, b| (&a.mirror, &a.push_id).cmp(&(&b.mirror, &b.push_id)));
    for delivery in &found {
        delivery.write(transaction.connection, transaction.org_id)?;
    }
    Ok(())
}

/// A push that its mirror must look at.
struct DuePush {
    mirror: String,
    push_id: FactId,
    repo: String,
    clone_url: String,
    delivered_at: Instant,
    due_at: Instant,
}

impl DuePush {
    fn write(&self, connection: &mut Connection, org_id: &OrgId) -> Result<(), StoreError> {
        let (org_id, mirror) = (org_id.as_str(), self.mirror.as_str());
        let delivery = [
            org_id.into(),
            mirror.into(),
            self.push_id.into(),
            self.repo.as_str().into(),
            self.clone_url.as_str().into(),
            self.delivered_at.into(),
        ];
        let job = [
            org_id.into(),
            mirror.into(),
            self.repo.as_str().into(),
            self.due_at.into(),
        ];
        // The job first, as when a job ends. In another order the two would deadlock.
        connection.execute(DUE, &job)?;
        connection.execute(DELIVER, &delivery).map(drop)
    }
}

/// Returns the visible stored push with the data of this delivery, if its repository has a name.
fn find(
    connection: &mut Connection,
    org_id: &OrgId,
    RefreshRequest { push, due_at }: &RefreshRequest,
) -> Result<Option<DuePush>, StoreError> {
    let mut keys: Vec<Value<'_>> = vec![org_id.as_str().into()];
    let select = if let Some(repository) = &push.repository {
        keys.extend(identity_keys(repository));
        IDENTIFIED
    } else {
        keys.push(push.repo.as_str().into());
        NAMED
    };
    keys.extend([
        push.r#ref.as_str().into(),
        push.before_sha.as_str().into(),
        push.after_sha.as_str().into(),
    ]);
    let stored = connection.first(select, &keys, |row| Ok((row.fact_id(0)?, row.text(1)?)))?;
    let Some((push_id, stored_repo)) = stored else {
        return Ok(None);
    };
    let Some(name) = RepositoryName::new(&stored_repo) else {
        return Ok(None);
    };
    let lifetime = Lifetime::of(push.repository.as_ref(), &name);
    let delivered = RepositoryName::new(&push.repo).unwrap_or(name);
    Ok(Some(DuePush {
        mirror: lifetime.to_string(),
        push_id,
        repo: delivered.into(),
        clone_url: push.clone_url.clone(),
        delivered_at: push.captured_at,
        due_at: *due_at,
    }))
}

/// Makes a mirror due at a moment. If no delivery waits, delivers the newest push again. Returns
/// whether there is anything to refresh from.
pub(crate) fn make_due(
    transaction: &mut Transaction<'_>,
    lifetime: &Lifetime,
    now: Instant,
    due_at: Instant,
) -> Result<bool, StoreError> {
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let mirror = lifetime.to_string();
    let newest = newest_push(connection, org_id, lifetime)?;
    let Some(NewestPush {
        push_id,
        repo,
        clone_url,
    }) = newest
    else {
        return Ok(false);
    };
    if RepositoryName::new(&repo).is_none() {
        return Ok(false);
    }
    let keys = [org_id.as_str().into(), mirror.as_str().into()];
    if connection.first(WAITING, &keys, |_| Ok(()))?.is_some() {
        let job = [
            org_id.as_str().into(),
            mirror.as_str().into(),
            repo.as_str().into(),
            due_at.into(),
        ];
        connection.execute(DUE, &job)?;
        return Ok(true);
    }
    let delivery = DuePush {
        mirror,
        push_id,
        repo,
        clone_url,
        delivered_at: now,
        due_at,
    };
    delivery.write(connection, org_id)?;
    Ok(true)
}
