//! Lists the jobs for the operator.

use svc_engine_fact::Lifetime;
use svc_model::time::Instant;

use super::claim::failures;
use crate::read::snapshot::Snapshot;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;

const LIST: &str = concat!(
    "SELECT j.mirror, j.repo, j.due_at_us, ",
    failures!(),
    ", j.lease_until_us, j.started_at_us, j.last_success_at_us, j.last_failure_at_us,
        j.last_failure,
        (SELECT COUNT(*) FROM mirror_deliveries d
            WHERE d.org_id = j.org_id AND d.mirror = j.mirror)
    FROM mirror_jobs j WHERE j.org_id = $1 ORDER BY j.mirror"
);

/// When the last visible push of exactly this repository was received.
const LAST_IDENTIFIED: &str = "SELECT MAX(f.captured_at_us) FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_provider = $2 AND f.repository_host = $3
        AND f.repository_id = $4";
const LAST_NAMED: &str = "SELECT MAX(f.captured_at_us) FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_id IS NULL AND f.repo = $2";

/// The job of one mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorStatus {
    /// The repository.
    pub lifetime: Lifetime,
    /// The name of the repository in the latest delivery.
    pub repo: String,
    /// What happens next.
    pub state: JobState,
    /// The number of pushes that wait for a refresh.
    pub waiting_pushes: u64,
    /// The number of failures in a row.
    pub attempts: u64,
    /// When a refresh last succeeded.
    pub last_success_at: Option<Instant>,
    /// When a refresh last failed.
    pub last_failure_at: Option<Instant>,
    /// The closed reason of the last failure.
    pub last_failure: Option<String>,
}

/// What happens next to a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Nothing: the mirror has read all pushes.
    Idle,
    /// A server claims the job as soon as one is free.
    Waiting,
    /// The job is tried again at this time.
    Retrying(Instant),
    /// A server has been working on the job since this time.
    Running(Instant),
    /// Nothing until something is delivered or an operator asks: the job has failed too often.
    GivenUp,
    /// Nothing, as in [`GivenUp`](Self::GivenUp): the mirror may not be fetched for the last
    /// pushes.
    Refused,
}

impl MirrorStatus {
    /// Returns whether there are pushes that the mirror may not have read yet. A new mirror is also
    /// behind for a moment.
    pub const fn is_behind(&self) -> bool {
        self.last_success_at.is_none() || self.waiting_pushes > 0 || self.is_failing()
    }

    /// Returns whether the last refresh failed or was refused, so that pushes may not have been
    /// read.
    pub const fn is_failing(&self) -> bool {
        matches!(
            self.state,
            JobState::Retrying(_) | JobState::GivenUp | JobState::Refused
        )
    }
}

impl Snapshot<'_> {
    /// Returns when the last visible push of a repository was received.
    pub fn last_push_at(&mut self, lifetime: &Lifetime) -> Result<Option<Instant>, StoreError> {
        let read = |row: &Row<'_>| row.optional_integer(0);
        let last = match lifetime {
            Lifetime::Identified(identity) => {
                let keys = [
                    self.org_id.as_str().into(),
                    identity.repository_provider.as_str().into(),
                    identity.repository_host.as_str().into(),
                    identity.repository_id.as_str().into(),
                ];
                self.connection()?.first(LAST_IDENTIFIED, &keys, read)?
            }
            Lifetime::Named(name) => {
                let keys = [self.org_id.as_str().into(), name.as_str().into()];
                self.connection()?.first(LAST_NAMED, &keys, read)?
            }
        };
        Ok(last.flatten().and_then(Instant::from_microseconds))
    }

    /// Returns the jobs of the mirrors as they stand at a moment, by repository.
    pub fn mirrors(&mut self, now: Instant) -> Result<Vec<MirrorStatus>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.connection()?.all(LIST, &keys, |row| {
            let instant = |index| {
                let microseconds = row.optional_integer(index)?;
                Ok::<_, StoreError>(microseconds.and_then(Instant::from_microseconds))
            };
            let lifetime = Lifetime::parse(&row.text(0)?);
            let (due_at, lease_until, started_at) = (instant(2)?, instant(4)?, instant(5)?);
            let (attempts, waiting_pushes) = (row.count(3)?, row.count(9)?);
            let (last_success_at, last_failure_at) = (instant(6)?, instant(7)?);
            let state = match (due_at, lease_until, started_at) {
                (_, Some(until), Some(started_at)) if until > now => JobState::Running(started_at),
                (Some(due_at), ..) if due_at > now => JobState::Retrying(due_at),
                (Some(_), ..) => JobState::Waiting,
                (None, ..) if attempts > 0 => JobState::GivenUp,
                // A remark on a success has the same time as the success.
                (None, ..) if last_failure_at > last_success_at => JobState::Refused,
                (None, ..) => JobState::Idle,
            };
            Ok(MirrorStatus {
                lifetime: lifetime.ok_or(corrupt("mirror_jobs", "its repository"))?,
                repo: row.text(1)?,
                state,
                waiting_pushes,
                attempts,
                last_success_at,
                last_failure_at,
                last_failure: row.optional_text(8)?,
            })
        })
    }
}
