//! Whether a mirror may be fetched for a push.
//!
//! A mirror belongs to one repository, but a fetch follows a name. So the delivered name must
//! belong to this repository and to no other: once another repository has had the name, nobody
//! knows whose commits and notes a fetch would bring.

use std::collections::BTreeSet;
use std::time::Duration;

use svc_engine_derive::repository::{Mention, Repositories};
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::{Lifetime, PullRequestMerge};
use svc_engine_store::{Store, StoreError, WaitingPush};
use svc_model::repository::{RepositoryDecline, RepositoryName};
use svc_model::time::Instant as Received;

/// The time limit for looking up names.
const READING_MAX: Duration = Duration::from_secs(30);

/// Returns the first merges of a pushed repository that were received at or after `from`. Names are
/// looked up among all stored facts, because some may be ahead of this server's clock.
pub(super) fn merges(
    store: &Store,
    waiting: &WaitingPush,
    lifetime: &Lifetime,
    from: Received,
    rows_max: usize,
) -> Result<Vec<PullRequestMerge>, StoreError> {
    let mut snapshot = store.snapshot(&Deadline::after(READING_MAX))?;
    let names = BTreeSet::from([waiting.delivered_repo.clone()]);
    let identities = waiting.push.repository.iter().cloned().collect();
    let boundary = snapshot.boundary(None)?;
    let claims = snapshot.repository_claims(&names, &identities, boundary)?;
    let Some(names) = Repositories::new(claims)
        .ok()
        .and_then(|repositories| repositories.names(lifetime))
    else {
        return Ok(Vec::new());
    };
    let names: Vec<RepositoryName> = names.all().iter().cloned().collect();
    snapshot.first_merges(lifetime, &names, (from, boundary), rows_max)
}

/// Returns for each push why the mirror may not be fetched for it, or `None` if it may. All claims
/// are read in one snapshot, from all stored facts.
pub(super) fn declines(
    store: &Store,
    waiting: &[WaitingPush],
) -> Result<Vec<Option<RepositoryDecline>>, StoreError> {
    let names: BTreeSet<_> = waiting
        .iter()
        .map(|delivery| delivery.delivered_repo.clone())
        .collect();
    let identities = waiting
        .iter()
        .filter_map(|delivery| delivery.push.repository.clone());
    let identities: BTreeSet<_> = identities.collect();
    let mut snapshot = store.snapshot(&Deadline::after(READING_MAX))?;
    let boundary = snapshot.boundary(None)?;
    let claims = snapshot.repository_claims(&names, &identities, boundary)?;
    let repositories = Repositories::new(claims).ok();
    let decline = |waiting: &WaitingPush| {
        let push = waiting.visible.then(|| Mention {
            name: waiting.delivered_repo.as_str(),
            identity: waiting.push.repository.as_ref(),
        });
        match &repositories {
            Some(repositories) => repositories.mirror(push).err(),
            // A name that so many repositories have had is of no use.
            None => Some(RepositoryDecline::MirrorIdentityUnresolved),
        }
    };
    Ok(waiting.iter().map(decline).collect())
}
