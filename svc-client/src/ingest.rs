use svc_model::endpoint::{IngestCalls, IngestCi, IngestGateway, IngestGatewayBatch, Logs, Traces};
use svc_model::ingest::event::Event;
use svc_model::ingest::{
    CallsReceipt, CallsRequest, Conversation, GatewayBatchReceipt, GatewayBatchRequest,
    GatewayCall, GatewayIngestRequest, GatewayProvider, IngestReceipt, IngestResult, LogsReceipt,
    LogsRequest, SentCall, TracesReceipt, TracesRequest, VendorCIRequest,
};
use svc_model::json::{Json, Object};
use svc_model::open::Open;
use svc_model::request::Outgoing;

use crate::{Client, Error};

impl Client {
    /// Delivers one model call.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_gateway(
        &self,
        request: &GatewayIngestRequest,
    ) -> Result<Open<IngestReceipt>, Error> {
        let named =
            request.capture.is_some() || request.payload.as_object().is_some_and(has_call_id);
        self.delivering(named).call::<IngestGateway>(request).await
    }

    /// Delivers one model call of any program: see [`GatewayCall::builder`], and the first example
    /// of this crate.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_call(&self, call: &GatewayCall) -> Result<Open<IngestReceipt>, Error> {
        self.ingest_gateway(call.request()).await
    }

    /// Delivers calls of one Session: see [`CallsRequest::builder`]. Every call has an id, so the
    /// service recognises those that are repeated.
    ///
    /// The receipt says how many calls are stored, and why others are not.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind); [`Incomplete`](crate::ErrorKind::Incomplete) if the
    /// receipt does not count exactly the calls that were sent.
    pub async fn ingest_calls(&self, request: &CallsRequest) -> Result<CallsReceipt, Error> {
        self.call::<IngestCalls>(request).await
    }

    /// Delivers the next call of a conversation. It is given with its whole input, and sent with
    /// what is new in it. If the service does not have the call before it, it is sent again whole.
    /// The conversation remembers it once the service has it.
    ///
    /// # Errors
    ///
    /// As [`Client::ingest_calls`]. Then the call can be delivered again, or left out: the next one
    /// does not build on it.
    pub async fn ingest_next_call(
        &self,
        conversation: &mut Conversation,
        call: SentCall,
    ) -> Result<CallsReceipt, Error> {
        let mut receipt = self.ingest_calls(&conversation.next(&call)).await?;
        if receipt.lacks_earlier_calls() {
            receipt = self.ingest_calls(&conversation.whole(&call)).await?;
        }
        if receipt.has_every_call() {
            conversation.remember(call);
        }
        Ok(receipt)
    }

    /// Delivers payloads as a gateway's own webhook logger does. Items that were rejected when the
    /// request was read are not sent.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind); [`Incomplete`](crate::ErrorKind::Incomplete) if the
    /// receipt does not count exactly the payloads that were sent.
    pub async fn ingest_gateway_batch(
        &self,
        request: &GatewayBatchRequest,
    ) -> Result<GatewayBatchReceipt, Error> {
        let named = request.payloads.iter().flatten().all(has_call_id);
        self.delivering(named)
            .call::<IngestGatewayBatch>(request)
            .await
    }

    /// Delivers the unchanged body of a gateway's own webhook logger: one payload, an array, or
    /// NDJSON. The body is not parsed. So the delivery counts as unnamed, unless the caller uses
    /// [`Client::with_named_deliveries`], and the counts of the receipt are not checked.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_gateway_body(
        &self,
        provider: GatewayProvider,
        body: impl Into<Vec<u8>>,
    ) -> Result<GatewayBatchReceipt, Error> {
        let outgoing = Outgoing {
            body: Some(body.into()),
            ..Outgoing::default()
        }
        .with_path("provider", provider.as_str());
        Ok(self.send::<IngestGatewayBatch>(outgoing).await?.value)
    }

    /// Delivers the outcome of one CI run.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_ci(&self, request: &VendorCIRequest) -> Result<IngestResult, Error> {
        self.call::<IngestCi>(request).await
    }

    /// Delivers log records of coding agents. The receipt confirms that they were received, but
    /// does not say what became of each.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_logs(&self, request: &LogsRequest) -> Result<LogsReceipt, Error> {
        self.call::<Logs>(request).await
    }

    /// Delivers spans of programs that call models. The receipt confirms that they were received,
    /// but does not say what became of each.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_traces(&self, request: &TracesRequest) -> Result<TracesReceipt, Error> {
        self.call::<Traces>(request).await
    }

    /// Delivers own events. They are stored together or not at all, and may have about 25 MB in
    /// total.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_events(&self, events: &[Event]) -> Result<LogsReceipt, Error> {
        self.ingest_logs(&events.into()).await
    }

    fn delivering(&self, named: bool) -> Self {
        if named {
            self.with_named_deliveries()
        } else {
            self.clone()
        }
    }
}

/// Returns whether a payload has an id, by which a redelivery is recognised.
fn has_call_id(payload: &Object) -> bool {
    payload
        .get("litellm_call_id")
        .and_then(Json::as_text)
        .is_some_and(|id| !id.is_blank())
}
