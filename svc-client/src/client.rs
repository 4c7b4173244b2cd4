//! The client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;

use crate::base_url::BaseUrl;
use crate::retry::RetryPolicy;
use crate::trace::Trace;

/// A client for one service with one token.
///
/// It is cheap to clone: clones share their connections. A clone may have another timeout
/// ([`Client::with_timeout`]). For a single call, write `client.with_timeout(..).facts().await`.
///
/// # Retries
///
/// | Route | After which failures |
/// |---|---|
/// | every read, `POST /ingest/calls`, `POST /ingest/ci`, `POST /ingest/forge`, `POST /v1/logs`, `POST /v1/traces`, every change of grants and tokens | all that [`Error::is_retryable`](crate::Error::is_retryable) names |
/// | `POST /ingest/gateway` and its batch form, when every delivery names itself | the same |
/// | the same without a name; `POST /v1/quarantine`, `POST /v1/release` | those after which the service has certainly used nothing of the request: [`ErrorKind::never_arrived`](crate::ErrorKind::never_arrived) |
///
/// [`RetryPolicy`] says how often and after which pauses. A delivery names itself by `capture`, or
/// by the `litellm_call_id` of its payload; in a batch, only by the latter. If it is repeated, the
/// service recognises it as a redelivery, which is a success with `stored: false`. If you know that
/// the deliveries are named in another way, use [`Client::with_named_deliveries`]. Use an
/// [`Outbox`](crate::Outbox) for deliveries that must not be lost after the last retry.
///
/// # Cancellation
///
/// Dropping the future of a call cancels it, at any point. The service may still carry it out.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<ClientState>,
    pub(crate) timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) deliveries: Deliveries,
    pub(crate) trace: Option<Trace>,
}

/// The state that clones share.
pub(crate) struct ClientState {
    pub(crate) http: reqwest::Client,
    pub(crate) base_url: BaseUrl,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) reply_bytes_max: usize,
}

/// Whether the service recognises a delivery that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deliveries {
    Named,
    Unnamed,
}

impl Client {
    /// Returns a clone with this timeout for each call, retries included.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// Returns a clone that retries by this policy.
    #[must_use]
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self {
            retry,
            ..self.clone()
        }
    }

    /// Returns a clone that treats every delivery as named, so that all deliveries may be retried.
    /// The caller must ensure that they are. Requests that are not deliveries, such as
    /// [`Client::quarantine`], are retried as before.
    #[must_use]
    pub fn with_named_deliveries(&self) -> Self {
        Self {
            deliveries: Deliveries::Named,
            ..self.clone()
        }
    }

    /// Returns the URL of the service, without a trailing slash.
    pub fn url(&self) -> &str {
        self.shared.base_url.as_str()
    }

    /// Returns whether the service is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.shared.base_url.is_loopback()
    }

    /// Returns whether the client has a token.
    pub fn has_token(&self) -> bool {
        self.shared.authorization.is_some()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.url())
            .field("token", &self.has_token().then_some("[REDACTED]"))
            .field("timeout", &self.timeout)
            .field("deliveries", &self.deliveries)
            .field("retry", &self.retry)
            .field("reply_bytes_max", &self.shared.reply_bytes_max)
            .finish_non_exhaustive()
    }
}
