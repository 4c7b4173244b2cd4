use serde::{Deserialize, Serialize};
use svc_model::endpoint::{IngestCi, IngestGateway};
use svc_model::ingest::{
    Capture, GatewayIngestRequest, IngestReceipt, IngestResult, Skipped, VendorCIRequest,
};
use svc_model::request::{Outgoing, Request as _};

use super::name::DeliveryId;
use super::record::{Header, Record};
use super::{OutboxError, status};
use crate::error::Failure;
use crate::{Client, Error, ErrorKind};

/// Something to deliver to the service.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delivery {
    /// One model call. Without a [`Capture`] it is given one: the id of the delivery, and the moment
    /// at which it is put.
    Gateway(Box<GatewayIngestRequest>),
    /// The outcome of one CI run.
    Ci(Box<VendorCIRequest>),
}

impl From<GatewayIngestRequest> for Delivery {
    fn from(request: GatewayIngestRequest) -> Self {
        Self::Gateway(Box::new(request))
    }
}

impl From<VendorCIRequest> for Delivery {
    fn from(request: VendorCIRequest) -> Self {
        Self::Ci(Box::new(request))
    }
}

/// Where a body goes, as its file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Route {
    IngestGateway,
    IngestCi,
}

impl Delivery {
    /// Writes the delivery as it will be sent, however often.
    pub(super) fn into_record(self, id: DeliveryId) -> Result<Record, OutboxError> {
        let put_at = status::now();
        let (route, outgoing) = match self {
            Self::Gateway(mut request) => {
                request.capture.get_or_insert(Capture {
                    id: id.uuid(),
                    observed_at: put_at,
                });
                (Route::IngestGateway, request.write()?)
            }
            Self::Ci(request) => (Route::IngestCi, request.write()?),
        };
        Ok(Record {
            header: Header {
                version: svc_model::version::Version1,
                route,
                put_at,
            },
            body: outgoing.body.unwrap_or_default(),
        })
    }
}

impl Record {
    /// Sends the body, and returns when the service has acknowledged it.
    pub(super) async fn send(self, client: &Client) -> Result<(), Error> {
        let outgoing = Outgoing {
            body: Some(self.body),
            ..Outgoing::default()
        };
        match self.header.route {
            Route::IngestGateway => {
                // Every call in an outbox has a capture, so a repeated one is recognised.
                let client = client.with_named_deliveries();
                let reply = client.send::<IngestGateway>(outgoing).await?;
                match reply.value {
                    IngestReceipt::Fact(IngestResult { .. })
                    | IngestReceipt::Skipped(Skipped { skipped: true, .. }) => Ok(()),
                    IngestReceipt::Skipped(Skipped { skipped: false, .. }) => {
                        Err(Failure::new(ErrorKind::Unreadable).after(reply.attempts))
                    }
                }
            }
            Route::IngestCi => client.send::<IngestCi>(outgoing).await.map(drop),
        }
    }
}
