//! What this process has seen of grants and revocations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::sync::Cache;
use svc_engine_store::{GrantMark, GrantRow};
use svc_model::grant::{GrantAction, TokenName};
use svc_model::id::SessionId;

use super::TokenGrants;

/// Maximum number of remembered verdicts, a few hundred bytes each.
const VERDICTS_MAX: usize = 4_096;

/// What this process has seen of the grants of tokens.
///
/// Revocations: if the database is reset to a state before a token was revoked, the token stays
/// revoked here until it is restored after that revocation. For every other token, its grants when
/// they were last read, and the verdicts of its rules about Sessions. A query uses these only if
/// its snapshot shows that nothing has changed since.
#[derive(Debug)]
pub struct SeenGrants {
    tokens: Mutex<SeenTokens>,
    verdicts: Cache<(TokenName, SessionId), ReachVerdict>,
}

#[derive(Debug, Default)]
struct SeenTokens {
    revocations: BTreeMap<TokenName, SeenRevocation>,
    /// Without those of tokens whose revocation was seen.
    grants: BTreeMap<TokenName, Arc<TokenGrants>>,
}

/// A revocation, and what was known when it was seen.
#[derive(Clone, Debug)]
pub(super) struct SeenRevocation {
    pub(super) row: GrantRow,
    /// The id of the row that had last restored the token. A later one takes the revocation back.
    pub(super) restored_before: Option<String>,
}

/// Whether the rules of a token reach a Session, and the mark under which this was decided.
#[derive(Clone, Debug)]
struct ReachVerdict {
    mark: GrantMark,
    is_reached: bool,
}

impl Default for SeenGrants {
    fn default() -> Self {
        Self {
            tokens: Mutex::default(),
            verdicts: Cache::new(VERDICTS_MAX),
        }
    }
}

impl SeenGrants {
    /// Remembers a revocation that this process has recorded.
    pub(crate) fn recorded(&self, row: &GrantRow) {
        if row.action == GrantAction::Revoke {
            self.set(&row.token, row, None);
        }
    }

    /// Returns the grants of a token as last read. They may have been removed since, so a query
    /// must check them in its snapshot.
    pub(crate) fn latest_grants(&self, token: &TokenName) -> Option<Arc<TokenGrants>> {
        self.lock().grants.get(token).cloned()
    }

    pub(super) fn of(&self, token: &TokenName) -> Option<SeenRevocation> {
        self.lock().revocations.get(token).cloned()
    }

    /// Returns whether this revocation was seen.
    pub(super) fn has(&self, token: &TokenName, row: &GrantRow) -> bool {
        let tokens = self.lock();
        let seen = tokens.revocations.get(token);
        seen.is_some_and(|seen| seen.row.grant_id == row.grant_id)
    }

    pub(super) fn set(&self, token: &TokenName, row: &GrantRow, restored_before: Option<String>) {
        let mut tokens = self.lock();
        tokens.grants.remove(token);
        let revocation = SeenRevocation {
            row: row.clone(),
            restored_before,
        };
        tokens.revocations.insert(token.clone(), revocation);
    }

    /// Forgets a revocation that was taken back.
    pub(super) fn forget(&self, token: &TokenName) {
        self.lock().revocations.remove(token);
    }

    /// Keeps the grants of a token, unless its revocation was seen in the meantime.
    pub(super) fn keep(&self, grants: &Arc<TokenGrants>) {
        let mut tokens = self.lock();
        if !tokens.revocations.contains_key(&grants.token) {
            let token = grants.token.clone();
            tokens.grants.insert(token, Arc::clone(grants));
        }
    }

    /// Returns whether the rules of a token reach a Session, if that was decided under the same mark.
    pub(super) fn verdict(
        &self,
        token: &TokenName,
        session_id: &SessionId,
        mark: &GrantMark,
    ) -> Option<bool> {
        let verdict = self.verdicts.get(&(token.clone(), session_id.clone()))?;
        (verdict.mark == *mark).then_some(verdict.is_reached)
    }

    /// Remembers whether the rules of a token reach a Session.
    pub(super) fn keep_verdict(
        &self,
        token: &TokenName,
        session_id: &SessionId,
        mark: GrantMark,
        is_reached: bool,
    ) {
        let verdict = ReachVerdict { mark, is_reached };
        let key = (token.clone(), session_id.clone());
        self.verdicts.insert(key, verdict);
    }

    fn lock(&self) -> MutexGuard<'_, SeenTokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
