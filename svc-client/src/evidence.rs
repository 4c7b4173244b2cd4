use svc_model::endpoint::{Endpoint, EvidenceInventory, EvidenceManifest, EvidenceReading};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
    Reference,
};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::version::Version1;

use crate::{Client, Error, PartStream};

/// The exact evidence of every Session, for an operator token; see [`Client::evidence`].
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a>(&'a Client);

impl Client {
    /// Returns access to the exact evidence of any Session. It requires an operator token; agents
    /// use [`Client::context`].
    pub fn evidence(&self) -> Evidence<'_> {
        Evidence(self)
    }
}

impl Evidence<'_> {
    /// Lists the visible calls of a Session.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn inventory(&self, session_id: &SessionId) -> Result<Inventory, Error> {
        self.0
            .call::<EvidenceInventory>(&inventory(session_id))
            .await
    }

    /// Lists the messages and parts of a call, with the reference of each part, and what the
    /// capture left out of the call.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn manifest(
        &self,
        session_id: &SessionId,
        inference_call_id: &InferenceCallId,
    ) -> Result<Manifest, Error> {
        self.0
            .call::<EvidenceManifest>(&manifest(session_id, inference_call_id))
            .await
    }

    /// Reads 1 to 32 distinct parts, complete and in this order.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind);
    /// [`Incomplete`](crate::ErrorKind::Incomplete) if the reply lacks a part.
    pub async fn read(
        &self,
        session_id: &SessionId,
        references: impl IntoIterator<Item = Reference>,
    ) -> Result<EvidenceRead, Error> {
        read::<EvidenceReading>(self.0, session_id, references).await
    }
}

impl Evidence<'_> {
    /// Reads any number of parts, complete and in this order, with as many per request as fit into
    /// a reply. If a reply lacks a part, the stream ends with
    /// [`Incomplete`](crate::ErrorKind::Incomplete).
    ///
    /// ```no_run
    /// # async fn read(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::id::{InferenceCallId, SessionId};
    ///
    /// let (session, call) = (SessionId::new("s")?, InferenceCallId::new("c")?);
    /// let evidence = client.evidence();
    /// let manifest = evidence.manifest(&session, &call).await?;
    /// let mut parts = evidence.parts(&session, manifest.references());
    /// while let Some(part) = parts.next().await {
    ///     let part = part?;
    ///     println!("{:?} {:?}", part.role, part.part);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn parts(
        &self,
        session_id: &SessionId,
        references: impl IntoIterator<Item = Reference>,
    ) -> PartStream {
        PartStream::by::<EvidenceReading>(self.0, session_id, references)
    }
}

pub(crate) fn inventory(session_id: &SessionId) -> InventoryRequest {
    InventoryRequest {
        session_id: session_id.clone(),
    }
}

pub(crate) fn manifest(
    session_id: &SessionId,
    inference_call_id: &InferenceCallId,
) -> ManifestRequest {
    ManifestRequest::new(session_id.clone(), inference_call_id.clone())
}

/// Reads parts through a route: all of them, or none.
pub(crate) async fn read<E>(
    client: &Client,
    session_id: &SessionId,
    references: impl IntoIterator<Item = Reference>,
) -> Result<EvidenceRead, Error>
where
    E: Endpoint<Request = EvidenceReadRequest, Reply = EvidenceRead>,
{
    let request = EvidenceReadRequest {
        schema_version: Version1,
        session_id: session_id.clone(),
        references: references.into_iter().collect(),
        explain: true,
    };
    client.call::<E>(&request).await
}
