//! What this process has seen of grants and revocations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_model::grant::{GrantAction, TokenName};

use super::TokenGrants;
use crate::store::GrantRow;

/// The revocations that this process has seen. If the database is reset to a state in which a token
/// was not revoked, the token stays revoked here until it is restored after that revocation.
///
/// For every other token, the grants of the last check, for queries that check them again in their
/// snapshots.
#[derive(Debug, Default)]
pub struct SeenRevocations(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    revocations: BTreeMap<TokenName, String>,
    /// Not those of a token whose revocation was seen.
    grants: BTreeMap<TokenName, Arc<TokenGrants>>,
}

impl SeenRevocations {
    /// Remembers a revocation that this process has recorded.
    pub(crate) fn recorded(&self, row: &GrantRow) {
        if row.action == GrantAction::Revoke {
            self.set(&row.token, Some(row));
        }
    }

    /// Returns the grants of a token as they were when it was last checked. Since then they may have
    /// been removed, so a query must check them in its snapshot.
    pub(crate) fn latest_grants(&self, token: &TokenName) -> Option<Arc<TokenGrants>> {
        self.lock().grants.get(token).cloned()
    }

    pub(super) fn of(&self, token: &TokenName) -> Option<String> {
        self.lock().revocations.get(token).cloned()
    }

    pub(super) fn set(&self, token: &TokenName, row: Option<&GrantRow>) {
        let mut seen = self.lock();
        match row {
            Some(row) => {
                seen.grants.remove(token);
                seen.revocations.insert(token.clone(), row.grant_id.clone());
            }
            None => drop(seen.revocations.remove(token)),
        }
    }

    /// Keeps the grants of a token, unless its revocation was seen in the meantime.
    pub(super) fn keep(&self, grants: &Arc<TokenGrants>) {
        let mut seen = self.lock();
        if !seen.revocations.contains_key(&grants.token) {
            let token = grants.token.clone();
            seen.grants.insert(token, Arc::clone(grants));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
