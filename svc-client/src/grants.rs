use svc_model::endpoint::{GrantAdd, GrantExplain, GrantRemove, Grants, TokenRestore, TokenRevoke};
use svc_model::grant::{
    GrantEntry, GrantExplanation, GrantExplanationRequest, GrantList, GrantReceipt,
    GrantRemovalRequest, GrantRequest, GrantsRequest, TokenChangeRequest,
};

use crate::{Client, Error, Pages};

/// What the named retrieval tokens may read, for an operator token. Every change holds at once on
/// every server, and is kept in a log with the name of the client.
impl Client {
    /// Grants a token a Session, or all that a rule reaches. What it has already is not granted twice, so
    /// it may be sent again.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn add_grant(&self, request: &GrantRequest) -> Result<GrantReceipt, Error> {
        self.call::<GrantAdd>(request).await
    }

    /// Ends a grant.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn remove_grant(&self, request: &GrantRemovalRequest) -> Result<GrantReceipt, Error> {
        self.call::<GrantRemove>(request).await
    }

    /// Refuses a token everywhere.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn revoke_token(&self, request: &TokenChangeRequest) -> Result<GrantReceipt, Error> {
        self.call::<TokenRevoke>(request).await
    }

    /// Takes a revoked token again, with the grants that it has.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn restore_token(&self, request: &TokenChangeRequest) -> Result<GrantReceipt, Error> {
        self.call::<TokenRestore>(request).await
    }

    /// Says which grants of a token reach a Session, and why the others do not.
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

    /// Returns one page of grants: the latest rows, oldest first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn grants(&self, request: &GrantsRequest) -> Result<GrantList, Error> {
        self.call::<Grants>(request).await
    }

    /// Returns grants, latest first, page after page as they are asked for. What is recorded meanwhile
    /// does not appear.
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
