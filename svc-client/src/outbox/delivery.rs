use sha2::{Digest as _, Sha256};
use svc_model::endpoint::{IngestCalls, IngestCi, IngestGateway, Logs};
use svc_model::id::SessionId;
use svc_model::ingest::event::Event;
use svc_model::ingest::{
    CallsReceipt, CallsRequest, Capture, GatewayCall, GatewayIngestRequest, IngestReceipt,
    IngestResult, LogsReceipt, LogsRequest, PROTOBUF, Skipped, VendorCIRequest,
};
use svc_model::json::Json;
use svc_model::request::{Outgoing, Request as _};

use super::name::DeliveryId;
use super::record::{DeliveryRecord, DeliveryRoute, RecordHeader};
use super::{OutboxError, status};
use crate::error::Failure;
use crate::reply::Success;
use crate::{Client, Error, ErrorKind};

/// Something that is to be delivered to the service.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delivery {
    /// One model call. If it has no [`Capture`], one is added, with the id of the delivery and the
    /// current time.
    Gateway(Box<GatewayIngestRequest>),
    /// Calls of one Session. Deliveries of one Session are sent in the order in which they were put:
    /// one waits while an earlier one does, because it may continue its calls.
    Calls(Box<CallsRequest>),
    /// The outcome of one CI run.
    Ci(Box<VendorCIRequest>),
    /// Log records: own events, or the telemetry of an agent.
    Logs(LogsRequest),
}

impl From<GatewayIngestRequest> for Delivery {
    fn from(request: GatewayIngestRequest) -> Self {
        Self::Gateway(Box::new(request))
    }
}

impl From<GatewayCall> for Delivery {
    fn from(call: GatewayCall) -> Self {
        GatewayIngestRequest::from(call).into()
    }
}

impl From<CallsRequest> for Delivery {
    fn from(request: CallsRequest) -> Self {
        Self::Calls(Box::new(request))
    }
}

impl From<VendorCIRequest> for Delivery {
    fn from(request: VendorCIRequest) -> Self {
        Self::Ci(Box::new(request))
    }
}

/// A borrowed request or call is copied, for callers that use it again, as `Client::ingest_call` does.
macro_rules! from_borrowed {
    ($($request:ty),+) => {
        $(impl From<&$request> for Delivery {
            fn from(request: &$request) -> Self {
                request.clone().into()
            }
        })+
    };
}
from_borrowed!(
    GatewayIngestRequest,
    GatewayCall,
    CallsRequest,
    VendorCIRequest,
    LogsRequest
);

impl From<LogsRequest> for Delivery {
    fn from(request: LogsRequest) -> Self {
        Self::Logs(request)
    }
}

impl From<&[Event]> for Delivery {
    fn from(events: &[Event]) -> Self {
        Self::Logs(events.into())
    }
}

impl From<&Event> for Delivery {
    fn from(event: &Event) -> Self {
        Self::Logs(event.into())
    }
}

impl Delivery {
    /// Writes the delivery in the form in which every attempt sends it.
    pub(super) fn into_record(self, id: DeliveryId) -> Result<DeliveryRecord, OutboxError> {
        let put_at = status::now();
        let order = match &self {
            Self::Calls(request) => Some(order(&request.session_id)),
            Self::Gateway(_) | Self::Ci(_) | Self::Logs(_) => None,
        };
        let (route, outgoing) = match self {
            Self::Gateway(mut request) => {
                request.capture.get_or_insert(Capture {
                    id: id.uuid(),
                    observed_at: put_at,
                });
                (DeliveryRoute::IngestGateway, request.write()?)
            }
            Self::Calls(request) => (DeliveryRoute::IngestCalls, request.write()?),
            Self::Ci(request) => (DeliveryRoute::IngestCi, request.write()?),
            Self::Logs(request) => {
                let route = match request {
                    LogsRequest::Json(_) => DeliveryRoute::Logs,
                    LogsRequest::Protobuf(_) => DeliveryRoute::LogsInProtobuf,
                };
                (route, request.write()?)
            }
        };
        Ok(DeliveryRecord {
            header: RecordHeader {
                version: svc_model::version::Version1,
                route,
                put_at,
                order,
                signatures: Vec::new(),
            },
            body: outgoing.body.unwrap_or_default(),
        })
    }
}

impl DeliveryRecord {
    /// Sends the body, and returns when the service has acknowledged it.
    pub(super) async fn send(self, client: &Client) -> Result<(), Error> {
        let outgoing = Outgoing {
            body: Some(self.body),
            ..Outgoing::default()
        };
        match self.header.route {
            DeliveryRoute::IngestGateway => {
                // Every call in an outbox has a capture, so the service recognises a repeated one.
                let client = client.with_named_deliveries();
                let answer = client.exchange::<IngestGateway>(outgoing).await?;
                acknowledged(&answer, |answer| {
                    let receipt = answer.decode::<IngestReceipt>();
                    receipt.is_ok_and(|receipt| {
                        !matches!(
                            receipt.value,
                            IngestReceipt::Skipped(Skipped { skipped: false, .. })
                        )
                    })
                })
            }
            DeliveryRoute::IngestCalls => {
                let answer = client.exchange::<IngestCalls>(outgoing).await?;
                let receipt = answer.decode::<CallsReceipt>();
                if receipt.is_ok_and(|receipt| receipt.value.lacks_earlier_calls()) {
                    let missing = Failure {
                        request_id: answer.request_id,
                        ..Failure::new(ErrorKind::EarlierCallsMissing)
                    };
                    return Err(missing.after(answer.attempts));
                }
                acknowledged(&answer, |answer| answer.decode::<CallsReceipt>().is_ok())
            }
            DeliveryRoute::IngestCi => {
                let answer = client.exchange::<IngestCi>(outgoing).await?;
                acknowledged(&answer, |answer| answer.decode::<IngestResult>().is_ok())
            }
            DeliveryRoute::Logs => {
                let answer = client.exchange::<Logs>(outgoing).await?;
                acknowledged(&answer, |answer| is_export_receipt(&answer.bytes))
            }
            DeliveryRoute::LogsInProtobuf => {
                let outgoing = outgoing.with_header("content-type", PROTOBUF);
                let answer = client.exchange::<Logs>(outgoing).await?;
                acknowledged(&answer, |answer| answer.decode::<LogsReceipt>().is_ok())
            }
        }
    }
}

/// Returns the word for the order of a Session's deliveries. It is not the id itself, which is too
/// long for a header.
fn order(session_id: &SessionId) -> String {
    let digest = Sha256::digest(session_id.as_str());
    let digits = digest[..16].iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Returns an error unless a success acknowledges a delivery. It does if it is the receipt of the
/// route, or another object with the id that the service gives a request. The latter is the receipt
/// of a newer service; waiting for a known receipt would block the queue forever. Anything else
/// comes from something between the client and the service.
fn acknowledged(answer: &Success, is_receipt: impl Fn(&Success) -> bool) -> Result<(), Error> {
    let is_object = || matches!(Json::parse(&answer.bytes), Ok(Json::Object(_)));
    if is_receipt(answer) || answer.request_id.is_some() && is_object() {
        Ok(())
    } else {
        Err(answer.unreadable())
    }
}

/// Returns whether an answer is the receipt of an export of logs: an empty object, or the object
/// with which a collector reports a partial success. Any other object comes from something else.
fn is_export_receipt(bytes: &[u8]) -> bool {
    let answer = Json::parse(bytes).ok().and_then(Json::into_object);
    answer.is_some_and(|answer| answer.iter().all(|(name, _)| name == "partialSuccess"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_an_export_is_its_receipt() {
        for receipt in ["{}", " {} ", r#"{"partialSuccess":{}}"#] {
            assert!(is_export_receipt(receipt.as_bytes()), "{receipt}");
        }
        for other in [
            "",
            "[]",
            "null",
            "true",
            "<html>",
            r#"{"login":"required"}"#,
        ] {
            assert!(!is_export_receipt(other.as_bytes()), "{other}");
        }
    }
}
