//! What named retrieval tokens may read: queries, changes and explanations.

use std::sync::Arc;

use svc_engine_store::{ChangedGrant, GrantChange, Snapshot};
use svc_model::grant::{
    GrantAction, GrantReceipt, GrantRemovalRequest, GrantRequest, TokenChangeRequest, TokenName,
};
use svc_model::id::SessionId;
use svc_model::problem::QueryFault;
use svc_model::quarantine::QuarantineReason;

use super::{Engine, EngineState};
use crate::error::Error;
use crate::read::{self, Reach, TokenGrants};

impl Engine {
    /// See [`read::token_grants`]. Takes no slot.
    ///
    /// # Errors
    ///
    /// [`Error::TokenRevoked`], or if the store does not answer.
    pub async fn token_grants(&self, token: TokenName) -> Result<Arc<TokenGrants>, Error> {
        let read = move |inner: &EngineState, snapshot: &mut Snapshot<'_>| {
            read::token_grants(snapshot, &inner.resources.grants, &token)
        };
        self.short(read).await
    }

    /// Returns the grants of a token as they were when it was last checked, without asking the
    /// store. Every read within this reach checks them again. A reply that does not depend on such
    /// a read, or a refusal, needs [`Engine::token_grants`] first.
    pub fn latest_grants(&self, token: &TokenName) -> Option<Arc<TokenGrants>> {
        self.0.resources.grants.latest_grants(token)
    }

    /// Returns the Sessions granted to a token; `None` if they are too many to list. Takes no slot.
    ///
    /// # Errors
    ///
    /// As [`Engine::token_grants`].
    pub async fn granted_sessions(
        &self,
        grants: Arc<TokenGrants>,
    ) -> Result<Option<Vec<SessionId>>, Error> {
        let reach = Reach::Granted(grants);
        let read = move |inner: &EngineState, snapshot: &mut Snapshot<'_>| {
            read::few_reached(snapshot, &inner.resources.grants, &reach)
        };
        self.short(read).await
    }

    /// Grants a Session or a rule to a token, on behalf of a client. A grant that the token already
    /// has is not added again.
    ///
    /// # Errors
    ///
    /// If the repository cannot be determined, the token has too many grants, or the grant was not
    /// recorded.
    pub async fn add_grant(
        &self,
        request: GrantRequest,
        client_id: String,
    ) -> Result<GrantReceipt, Error> {
        let change = self.change(&request.reason, client_id);
        let token = request.token.clone();
        let target = move |_: &EngineState, snapshot: &mut Snapshot<'_>| {
            read::grant_target(snapshot, &request)
        };
        let target = self.short(target).await?;
        let added = self.0.store.add_grant(token, target, change).await?;
        let added = added.map_err(QueryFault::from)?;
        let row = added.row.clone();
        let reach = self.short(move |_, snapshot| read::grant_reach(snapshot, &row));
        let reach = Some(reach.await?);
        Ok(GrantReceipt {
            reach,
            ..self.receipt_of(added)
        })
    }

    /// Ends a grant, on behalf of a client.
    ///
    /// # Errors
    ///
    /// If the request names no grant or several, or if the removal was not recorded.
    pub async fn remove_grant(
        &self,
        request: GrantRemovalRequest,
        client_id: String,
    ) -> Result<GrantReceipt, Error> {
        let change = self.change(&request.reason, client_id);
        let removed = self.0.store.remove_grant(request.grant_id.into(), change);
        let removed = removed.await?.map_err(QueryFault::from)?;
        Ok(self.receipt_of(removed))
    }

    /// Revokes or restores a token, on behalf of a client. A revocation that the store has lost is
    /// recorded again before it is taken back, so that every server learns of both.
    ///
    /// # Errors
    ///
    /// If a token that was not revoked is to be restored, or if the change was not recorded.
    pub async fn change_token(
        &self,
        request: TokenChangeRequest,
        action: GrantAction,
        client_id: String,
    ) -> Result<GrantReceipt, Error> {
        if action == GrantAction::Restore {
            let token = request.token.clone();
            let lost = self.short(move |inner, snapshot| {
                read::lost_revocation(snapshot, &inner.resources.grants, &token)
            });
            if lost.await?.is_some() {
                let change = self.change(&request.reason, client_id.clone());
                let token = request.token.clone();
                let again = self
                    .0
                    .store
                    .change_token(token, GrantAction::Revoke, change);
                let again = again.await?.map_err(QueryFault::from)?;
                self.0.resources.grants.recorded(&again.row);
            }
        }
        let change = self.change(&request.reason, client_id);
        let changed = self.0.store.change_token(request.token, action, change);
        let changed = changed.await?.map_err(QueryFault::from)?;
        self.0.resources.grants.recorded(&changed.row);
        Ok(self.receipt_of(changed))
    }

    fn change(&self, reason: &QuarantineReason, client_id: String) -> GrantChange {
        GrantChange {
            grant_id: self.0.ids.fresh(),
            reason: reason.as_str().to_owned(),
            recorded_at: self.0.clock.now(),
            client_id,
        }
    }

    fn receipt_of(&self, changed: ChangedGrant) -> GrantReceipt {
        GrantReceipt {
            org_id: self.org_id().clone(),
            entry: read::grant_entry(changed.row),
            unchanged: changed.unchanged,
            reach: None,
            configured: None,
        }
    }
}
