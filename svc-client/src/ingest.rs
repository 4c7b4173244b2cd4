use svc_model::endpoint::{IngestCi, IngestGateway, IngestGatewayBatch, Logs, Traces};
use svc_model::ingest::event::Event;
use svc_model::ingest::{
    GatewayBatchReceipt, GatewayBatchRequest, GatewayCall, GatewayIngestRequest, GatewayProvider,
    IngestReceipt, IngestResult, LogsReceipt, LogsRequest, TracesReceipt, TracesRequest,
    VendorCIRequest,
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
