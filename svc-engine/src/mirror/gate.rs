//! Whether a push may be fetched for.
//!
//! A mirror is of one repository, and a fetch follows a name. So the name that was delivered must lead
//! to this repository and to no other: once another repository has borne it, nobody can tell whose
//! commits and notes would come.

use std::collections::BTreeSet;
use std::time::Duration;

use svc_model::repository::RepositoryDecline;
use svc_model::time::Instant as Received;

use crate::deadline::Deadline;
use crate::derive::repository::{Mention, Repositories};
use crate::store::{Store, StoreError, WaitingPush};

/// How long the names may take to read.
const READING_MAX: Duration = Duration::from_secs(30);

/// Returns of each push why it may not be fetched for, if so. What facts prove is read in one
/// snapshot, and facts received by now count.
pub(super) fn declines(
    store: &Store,
    waiting: &[WaitingPush],
    now: Received,
) -> Result<Vec<Option<RepositoryDecline>>, StoreError> {
    let names: BTreeSet<_> = waiting.iter().map(|it| it.delivered_repo.clone()).collect();
    let identities = waiting.iter().filter_map(|it| it.push.repository.clone());
    let identities: BTreeSet<_> = identities.collect();
    let claims = store
        .snapshot(&Deadline::after(READING_MAX))?
        .repository_claims(&names, &identities, now)?;
    let repositories = Repositories::new(claims).ok();
    let decline = |waiting: &WaitingPush| {
        let push = waiting.visible.then(|| Mention {
            name: waiting.delivered_repo.as_str(),
            identity: waiting.push.repository.as_ref(),
        });
        match &repositories {
            Some(repositories) => repositories.mirror(push).err(),
            // A name that so many have borne leads nowhere.
            None => Some(RepositoryDecline::MirrorIdentityUnresolved),
        }
    };
    Ok(waiting.iter().map(decline).collect())
}
