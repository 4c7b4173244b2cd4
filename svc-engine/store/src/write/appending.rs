//! Facts that are being written: what they share in their transaction, and what is remembered once
//! it is committed.

use std::cell::Cell;

use svc_model::facts::FactTable;

use super::call_keys::{CallKeys, KnownCall};
use super::claims::{KnownClaim, KnownClaims};
use super::composition::Compositions;
use super::content::Encoder;
use super::continuations::CopiedCall;
use super::outcome::Verdict;
use super::recall::Recalled;
use super::redelivery::Difference;
use super::session_claims::{KnownSessionClaim, KnownSessionClaims};
use super::sessions::Numbers;
use super::transaction::Transaction;
use super::witness::Epoch;
use crate::pack::content_key::{ByHash, ContentKey, SessionKey};
use crate::sql::driver::LockWait;
use crate::sql::error::StoreError;

/// Facts that are being written, in their transaction.
pub(crate) struct Appending<'a, 't> {
    pub(crate) transaction: &'a mut Transaction<'t>,
    pub(crate) encoder: &'a Encoder,
    pub(crate) known_claims: &'a KnownClaims,
    pub(crate) known_session_claims: &'a KnownSessionClaims,
    pub(crate) epoch: &'a mut Epoch,
    /// The kind of fact that is being written.
    pub(crate) table: &'a Cell<Option<FactTable>>,
    /// The tables that somebody else had locked when they were last written.
    pub(crate) locked: &'a [FactTable],
    /// What is known of the calls.
    pub(crate) calls: StagedCalls,
    /// The numbers of the calls' Sessions.
    pub(crate) session_numbers: Numbers,
    pub(crate) afterwards: Afterwards,
}

impl Appending<'_, '_> {
    /// Begins to write facts of a kind. The wait for a table that was found locked is short.
    pub(crate) fn enter(&mut self, table: FactTable) -> Result<(), StoreError> {
        self.table.set(Some(table));
        self.wait_if_locked(table, LockWait::Short)
    }

    /// Ends writing facts of a kind.
    pub(crate) fn leave(&mut self, table: FactTable) -> Result<(), StoreError> {
        self.table.set(None);
        self.wait_if_locked(table, LockWait::Usual)
    }

    fn wait_if_locked(&mut self, table: FactTable, wait: LockWait) -> Result<(), StoreError> {
        if !self.locked.contains(&table) {
            return Ok(());
        }
        self.transaction.connection.set_lock_wait(wait)
    }
}

/// What is known of the calls of a transaction before they are inserted.
#[derive(Debug, Default)]
pub(crate) struct StagedCalls {
    /// What becomes of the calls, found while the new contents are staged.
    pub(crate) verdicts: Vec<Verdict>,
    /// The keys of the calls, and which calls have them.
    pub(crate) keys: CallKeys,
    /// How the inputs of calls begin that continue other calls.
    pub(crate) compositions: Compositions,
    /// The calls that agents copied to other Sessions, with the places of the copies.
    pub(crate) copies: Vec<CallCopy>,
    /// The same, once the calls have ids.
    pub(crate) copied: Vec<CopiedCall>,
}

/// A call that an agent copied to another Session.
#[derive(Debug)]
pub(crate) struct CallCopy {
    /// The place of the copy among the calls of the transaction.
    pub(crate) place: usize,
    /// The call.
    pub(crate) of: KnownCall,
    /// Its Session.
    pub(crate) session_id: String,
}

/// What to do once the transaction is committed. If it fails, nothing is done.
#[derive(Debug, Default)]
pub(crate) struct Afterwards {
    /// The stored contents.
    pub(crate) content: ByHash<ContentKey, i64>,
    /// The contents that became known after their sender had looked them up.
    pub(crate) known_content: ByHash<ContentKey, i64>,
    /// The Sessions that get new contents, and the contents that they already have.
    pub(crate) recalled: Recalled,
    /// The Sessions of the facts.
    pub(crate) touched_sessions: Vec<SessionKey>,
    /// The step by which the marks of these Sessions change.
    pub(crate) session_step: i64,
    /// The stored claims on names.
    pub(crate) claims: Vec<KnownClaim>,
    /// The stored claims about Sessions.
    pub(crate) session_claims: Vec<KnownSessionClaim>,
    /// The new Sessions.
    pub(crate) new_sessions: Vec<String>,
    /// The redeliveries that differ from the stored facts.
    pub(crate) differences: Vec<Difference>,
}

impl Afterwards {
    /// Logs the new Sessions, and the redeliveries that differ.
    pub(crate) fn log(&self) {
        for session_id in &self.new_sessions {
            tracing::debug!(session_id, "session.stored");
        }
        for difference in &self.differences {
            difference.log();
        }
    }

    /// Returns the id of a content of the calls.
    pub(crate) fn content_id(&self, key: &ContentKey) -> Option<i64> {
        let stored = self
            .content
            .get(key)
            .or_else(|| self.known_content.get(key));
        let recalled = || self.recalled.get(key.session.as_ref()?, &key.hash);
        stored.copied().or_else(recalled)
    }

    /// Adds what was stored to the caches.
    pub(crate) fn remember(
        self,
        encoder: &Encoder,
        known_claims: &mut KnownClaims,
        known_session_claims: &mut KnownSessionClaims,
    ) {
        let known = encoder.known();
        let mut of_sessions: ByHash<SessionKey, Vec<_>> = ByHash::default();
        for (ContentKey { session, hash }, content_id) in self.content {
            match session {
                None => known.remember_shared(hash, content_id),
                Some(session) => {
                    let contents = of_sessions.entry(session).or_default();
                    contents.push((hash, content_id));
                }
            }
        }
        let touched = self.touched_sessions;
        let step = self.session_step;
        self.recalled.remember(known, touched, step, of_sessions);
        for claim in self.claims {
            known_claims.remember(claim);
        }
        for claim in self.session_claims {
            known_session_claims.remember(claim);
        }
    }
}
