//! Carries out calls: writes a request, sends it with retries, and reads the reply within its cap.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER,
};
use reqwest::{Response, Url};
use svc_model::endpoint::{Access, Endpoint, Method, Repeat};
use svc_model::ingest::is_protobuf;
use svc_model::json::WriteError;
use svc_model::request::{Outgoing, Request as _};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{Instrument as _, debug, debug_span};

use crate::client::{Client, Deliveries};
use crate::error::{Error, ErrorKind, Failure};
use crate::reply::{RawReply, Success};
use crate::{address, refusal, retry};

/// The default content type.
const JSON: &str = "application/json";
/// The header with the id that the service gave the request.
const REQUEST_ID: &str = "x-request-id";
/// The maximum length of a request id.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// The maximum size of an unsuccessful answer in bytes. A longer one is not read to its end.
const REFUSAL_BYTES_MAX: usize = 1024 * 1024;
/// A timeout that is practically unlimited, in place of one that a clock cannot represent.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(365 * 24);

/// One request, ready to be sent, also more than once.
struct PreparedRequest {
    method: Method,
    url: Url,
    headers: Vec<(&'static str, String)>,
    body: Option<Bytes>,
    authorization: Option<HeaderValue>,
}

impl PreparedRequest {
    fn has_content_type(&self) -> bool {
        self.headers
            .iter()
            .any(|(name, _)| *name == CONTENT_TYPE.as_str())
    }
}

impl Client {
    /// Calls a route.
    ///
    /// Every route has its own method. Use this one in code that is generic over routes, and to set
    /// members of a request that the other methods leave at their defaults.
    ///
    /// ```no_run
    /// # async fn ask(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::{context::*, endpoint::Discovery, version::Version1};
    ///
    /// let found = client
    ///     .call::<Discovery>(&ContextDiscoveryRequest {
    ///         schema_version: Version1,
    ///         query: Query::new("pager window")?,
    ///         max_bytes: MaxBytes::default(),
    ///         commit: None,
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn call<E: Endpoint>(&self, request: &E::Request) -> Result<E::Reply, Error> {
        Ok(self.call_raw::<E>(request).await?.value)
    }

    /// Calls a route and returns the value of the reply with its original bytes.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`]; [`ErrorKind::Incomplete`] if the reply does not account for exactly what
    /// was requested or sent.
    pub async fn call_raw<E: Endpoint>(
        &self,
        request: &E::Request,
    ) -> Result<RawReply<E::Reply>, Error> {
        let outgoing = request.write();
        let outgoing = outgoing.map_err(|error| unwritable(error).after(0))?;
        let reply = self.send::<E>(outgoing).await?;
        let tally = E::tally(request, &reply.value);
        reply.checked(tally)
    }

    /// Sends a request that is already written, and reads its reply.
    pub(crate) async fn send<E: Endpoint>(
        &self,
        outgoing: Outgoing,
    ) -> Result<RawReply<E::Reply>, Error> {
        self.exchange::<E>(outgoing).await?.decode()
    }

    /// Sends a request that is already written, and returns the success without parsing it.
    pub(crate) async fn exchange<E: Endpoint>(&self, outgoing: Outgoing) -> Result<Success, Error> {
        let span = debug_span!("svc_client.call", endpoint = E::NAME);
        let prepared = self
            .prepare::<E>(outgoing)
            .map_err(|kind| Failure::new(kind).after(0))?;
        let success = self
            .send_until_deadline::<E>(&prepared)
            .instrument(span)
            .await?;
        if let Some(trace) = &self.trace {
            trace.record(E::NAME, &success);
        }
        Ok(success)
    }

    fn prepare<E: Endpoint>(&self, outgoing: Outgoing) -> Result<PreparedRequest, ErrorKind> {
        let target = address::target(E::PATH, &outgoing);
        let url = self
            .shared
            .base_url
            .join(&target)
            .ok_or(ErrorKind::Unaddressable)?;
        let body = outgoing.body.map(Bytes::from);
        if body
            .as_ref()
            .is_some_and(|body| body.len() > E::BODY_BYTES_MAX)
        {
            return Err(ErrorKind::TooLarge);
        }
        let authorization = match E::ACCESS {
            // A webhook is signed and carries no token.
            Access::Open | Access::Signature => None,
            Access::Any
            | Access::Ingest
            | Access::Operator
            | Access::Context(_)
            | Access::Search => self.shared.authorization.clone(),
        };
        Ok(PreparedRequest {
            method: E::METHOD,
            url,
            headers: outgoing.headers,
            body,
            authorization,
        })
    }

    async fn send_until_deadline<E: Endpoint>(
        &self,
        prepared: &PreparedRequest,
    ) -> Result<Success, Error> {
        let deadline = Instant::now() + self.timeout.min(LONGEST_TIMEOUT);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let attempt = timeout_at(deadline, self.attempt::<E>(prepared)).await;
            let failure = match attempt.unwrap_or_else(|_| Err(Failure::new(ErrorKind::TimedOut))) {
                Ok(success) => {
                    return Ok(Success {
                        attempts,
                        ..success
                    });
                }
                Err(failure) => failure,
            };
            debug!(attempts, code = failure.kind.code(), "call.failed");
            let pause = self
                .may_repeat::<E>(&failure.kind)
                .then(|| self.retry.pause(attempts, failure.retry_after))
                .flatten()
                .filter(|pause| *pause < deadline.saturating_duration_since(Instant::now()));
            let Some(pause) = pause else {
                return Err(failure.after(attempts));
            };
            sleep(pause).await;
        }
    }

    /// Returns whether a failed request is retried: only if it may succeed and repeating it is
    /// harmless.
    fn may_repeat<E: Endpoint>(&self, kind: &ErrorKind) -> bool {
        let harmless = match (E::REPEAT, self.deliveries) {
            (Repeat::Safe, _) | (Repeat::WhenNamed, Deliveries::Named) => true,
            (Repeat::WhenNamed, Deliveries::Unnamed) | (Repeat::Never, _) => kind.never_arrived(),
        };
        harmless && kind.is_retryable()
    }

    async fn attempt<E: Endpoint>(&self, prepared: &PreparedRequest) -> Result<Success, Failure> {
        let method = match prepared.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
        };
        let mut request = self
            .shared
            .http
            .request(method, prepared.url.clone())
            .header(ACCEPT, HeaderValue::from_static(JSON));
        for (name, value) in &prepared.headers {
            request = request.header(*name, value);
        }
        if let Some(authorization) = &prepared.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(body) = &prepared.body {
            request = request.body(body.clone());
            if !prepared.has_content_type() {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(JSON));
            }
        }
        let response = request.send().await.map_err(broken)?;
        let request_id = request_id(response.headers());
        let answered_at = answered_at(response.headers());
        let outcome = self.read::<E>(response).await;
        match outcome {
            Ok(success) => Ok(Success {
                request_id,
                answered_at,
                ..success
            }),
            Err(failure) => Err(Failure {
                request_id,
                ..failure
            }),
        }
    }

    async fn read<E: Endpoint>(&self, response: Response) -> Result<Success, Failure> {
        let status = response.status().as_u16();
        if status != 200 {
            let retry_after = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|header| retry::retry_after(header.to_str().ok()?));
            // If the body is too large or incomplete, the status alone decides.
            let body = body(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
            return Err(Failure {
                retry_after,
                ..Failure::new(refusal::kind(status, &body))
            });
        }
        let content_type = response.headers().get(CONTENT_TYPE);
        let in_protobuf =
            content_type.is_some_and(|content_type| content_type.to_str().is_ok_and(is_protobuf));
        let bytes_max = self.shared.reply_bytes_max.min(E::REPLY_BYTES_MAX);
        Ok(Success {
            bytes: body(response, bytes_max).await?,
            in_protobuf,
            attempts: 0,
            request_id: None,
            answered_at: None,
        })
    }
}

/// Reads a whole body, without ever holding more than the cap in memory.
async fn body(mut response: Response, bytes_max: usize) -> Result<Bytes, Failure> {
    let too_large = || Failure::new(ErrorKind::ReplyTooLarge { bytes_max });
    let announced = response.content_length().unwrap_or(0);
    let announced = usize::try_from(announced).map_err(|_| too_large())?;
    if announced > bytes_max {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(announced);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if chunk.len() > bytes_max - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

pub(crate) fn unwritable(error: WriteError) -> Failure {
    let kind = match error {
        WriteError::Budget => ErrorKind::TooLarge,
        WriteError::NonFinite
        | WriteError::Key
        | WriteError::Unreadable(_)
        | WriteError::Refused(_) => ErrorKind::Unwritable,
    };
    Failure::new(kind).caused_by(error)
}

/// Returns the failure of an exchange that broke off, without the URL, because that names Sessions.
fn broken(error: reqwest::Error) -> Failure {
    let kind = if error.is_connect() {
        ErrorKind::Connect
    } else if error.is_timeout() {
        ErrorKind::TimedOut
    } else {
        ErrorKind::Transport
    };
    Failure::new(kind).caused_by(error.without_url())
}

/// Returns when the service answered, by its own clock.
fn answered_at(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

/// Returns the id that the service gave the request, if it is printable.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    (1..=REQUEST_ID_BYTES_MAX)
        .contains(&id.len())
        .then(|| id.to_owned())
}
