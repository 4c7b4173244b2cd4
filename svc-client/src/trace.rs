//! What stands beside a reply: by which name the service knows the request, and how often it was sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::Client;
use crate::reply::Success;

/// What is known of a request that was answered with success, beside its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// The name of the route: see [`Endpoint::NAME`](crate::model::endpoint::Endpoint::NAME).
    pub endpoint: &'static str,
    /// The service's own name of the request, by which its log knows it. An error has its own:
    /// [`Error::request_id`](crate::Error::request_id).
    pub request_id: Option<String>,
    /// How often the request was sent.
    pub attempts: u32,
    /// When it was answered by the service's clock, to the second.
    pub answered_at: Option<SystemTime>,
}

/// The last request of a client that was answered with success: see [`Client::traced`].
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Option<Answered>>>);

impl Trace {
    /// Returns the last request that was answered with success; nothing before the first.
    pub fn last(&self) -> Option<Answered> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn record(&self, endpoint: &'static str, success: &Success) {
        let answered = Answered {
            endpoint,
            request_id: success.request_id.clone(),
            attempts: success.attempts,
            answered_at: success.answered_at,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answered);
    }
}

impl Client {
    /// Returns a clone, and the trace of what this clone asks, whichever of its methods does: the
    /// request id of every success.
    ///
    /// ```
    /// # use svc_client::testing::{Answer, FakeServer};
    /// # let health = Answer::text(200, r#"{"status":"ok","version":"0.1.0"}"#);
    /// # let server = FakeServer::start([health.header("x-request-id", "4f1c")]);
    /// # let client = server.client();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// # runtime.block_on(async {
    /// let (client, trace) = client.traced();
    /// client.health().await?;
    /// let answered = trace.last().expect("an answer");
    /// assert_eq!(answered.request_id.as_deref(), Some("4f1c"));
    /// # Ok::<(), svc_client::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn traced(&self) -> (Self, Trace) {
        let trace = Trace::default();
        let client = Self {
            trace: Some(trace.clone()),
            ..self.clone()
        };
        (client, trace)
    }
}
