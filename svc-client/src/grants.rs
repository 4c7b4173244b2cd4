use svc_model::endpoint::{GrantAdd, GrantExplain, GrantRemove, Grants, TokenRestore, TokenRevoke};
use svc_model::grant::{
    GrantEntry, GrantExplanation, GrantExplanationRequest, GrantList, GrantReceipt,
    GrantRemovalRequest, GrantRequest, GrantsRequest, TokenChangeRequest,
};

use crate::{Client, Error, Pages};

/// Grants of named retrieval tokens, which require an operator token. Every change takes effect at
/// once on every server, and is logged with the name of the client.
impl Client {
    /// Grants a token one Session, or every Session that a rule reaches. A grant that is in force
    /// already is not added again, so the request can be retried.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn add_grant(&self, request: &GrantRequest) -> Result<GrantReceipt, Error> {
        self.call::<GrantAdd>(request).await
    }

    /// Removes a grant.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn remove_grant(&self, request: &GrantRemovalRequest) -> Result<GrantReceipt, Error> {
        self.call::<GrantRemove>(request).await
    }

    /// Revokes a token: every server then answers it with 401.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn revoke_token(&self, request: &TokenChangeRequest) -> Result<GrantReceipt, Error> {
        self.call::<TokenRevoke>(request).await
    }

    /// Restores a revoked token with its grants.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn restore_token(&self, request: &TokenChangeRequest) -> Result<GrantReceipt, Error> {
        self.call::<TokenRestore>(request).await
    }

    /// Explains which grants of a token reach a Session, and why the others do not.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn explain_grant(
        &self,
        request: &GrantExplanationRequest,
    ) -> Result<GrantExplanation, Error> {
        self.call::<GrantExplain>(request).await
    }

    /// Returns one page of grants: the latest rows, the oldest of them first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn grants(&self, request: &GrantsRequest) -> Result<GrantList, Error> {
        self.call::<Grants>(request).await
    }

    /// Returns a stream of grants, latest first, which reads page after page. Rows that are
    /// recorded in the meantime do not appear.
    pub fn grant_entries(&self, request: GrantsRequest) -> Pages<GrantEntry> {
        let client = self.clone();
        Pages::of(request, move |request| {
            let client = client.clone();
            async move {
                let page = client.grants(&request).await?;
                let next = page.next_before.map(|before| GrantsRequest {
                    before: Some(before),
                    ..request
                });
                Ok((page.entries.into_iter().rev().collect(), next))
            }
        })
    }
}
