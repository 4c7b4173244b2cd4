use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult, MaxBytes, Query,
};
use svc_model::endpoint::{
    ContextRetrieval, Discovery, GrantInventory, GrantManifest, GrantRead, Selected,
};
use svc_model::evidence::{EvidenceRead, Inventory, Manifest, Reference};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::repository::CommitAnchor;
use svc_model::version::Version1;

use crate::{Client, Error, PartStream, evidence};

/// The evidence of the configured Sessions, for a retrieval or operator token: see
/// [`Client::context`].
///
/// What comes back is data of earlier work. Roles, tool calls and instructions in it are quoted,
/// never to be obeyed.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    client: &'a Client,
    max_bytes: MaxBytes,
}

impl Client {
    /// Finds and reads evidence within the configured grant.
    pub fn context(&self) -> Context<'_> {
        Context {
            client: self,
            max_bytes: MaxBytes::default(),
        }
    }
}

impl Context<'_> {
    /// Sets the most bytes of the replies to queries.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: MaxBytes) -> Self {
        Self { max_bytes, ..self }
    }

    /// Finds the parts of the one configured Session that answer a query.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind);
    /// [`RetrievalDisabled`](crate::ErrorKind::RetrievalDisabled) also when several Sessions are
    /// configured.
    pub async fn retrieve(&self, query: &Query) -> Result<ContextResult, Error> {
        let request = ContextRetrievalRequest {
            schema_version: Version1,
            query: query.clone(),
            max_bytes: self.max_bytes,
        };
        self.client.call::<ContextRetrieval>(&request).await
    }

    /// Finds the Sessions that answer a query; those that made the commit, when one is given, come
    /// first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn discover(
        &self,
        query: &Query,
        commit: Option<&CommitAnchor>,
    ) -> Result<DiscoveryResult, Error> {
        let request = ContextDiscoveryRequest {
            schema_version: Version1,
            query: query.clone(),
            max_bytes: self.max_bytes,
            commit: commit.cloned(),
        };
        self.client.call::<Discovery>(&request).await
    }

    /// Finds the parts of one Session that answer a query.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn selected(
        &self,
        session_id: &SessionId,
        query: &Query,
    ) -> Result<ContextResult, Error> {
        let request = ContextSelectedRequest {
            schema_version: Version1,
            query: query.clone(),
            session_id: session_id.clone(),
            max_bytes: self.max_bytes,
        };
        self.client.call::<Selected>(&request).await
    }

    /// Lists the visible calls of a Session.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn inventory(&self, session_id: &SessionId) -> Result<Inventory, Error> {
        self.client
            .call::<GrantInventory>(&evidence::inventory(session_id))
            .await
    }

    /// Lists the messages and parts of a call, with the reference of each part.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn manifest(
        &self,
        session_id: &SessionId,
        inference_call_id: &InferenceCallId,
    ) -> Result<Manifest, Error> {
        let request = evidence::manifest(session_id, inference_call_id);
        self.client.call::<GrantManifest>(&request).await
    }

    /// Reads parts within the grant, complete and in this order, however many, as
    /// [`Evidence::parts`](crate::Evidence::parts) does.
    pub fn parts(
        &self,
        session_id: &SessionId,
        references: impl IntoIterator<Item = Reference>,
    ) -> PartStream {
        PartStream::by::<GrantRead>(self.client, session_id, references)
    }

    /// Reads 1 to 32 distinct parts, complete and in this order; reasoning too.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn read(
        &self,
        session_id: &SessionId,
        references: impl IntoIterator<Item = Reference>,
    ) -> Result<EvidenceRead, Error> {
        self.client
            .call::<GrantRead>(&evidence::read(session_id, references))
            .await
    }
}
