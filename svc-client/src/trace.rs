//! Metadata of replies: the service's request id, and the number of attempts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::Client;
use crate::reply::Success;

/// The metadata of a successful request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// The name of the route: see [`Endpoint::NAME`](crate::model::endpoint::Endpoint::NAME).
    pub endpoint: &'static str,
    /// The id that the service gave the request, which is also in its log. For errors, see
    /// [`Error::request_id`](crate::Error::request_id). `None` if the answer has none.
    pub request_id: Option<String>,
    /// How often the request was sent.
    pub attempts: u32,
    /// When it was answered, by the clock of the service, to the second. `None` if the answer does
    /// not say.
    pub answered_at: Option<SystemTime>,
}

/// The metadata of the last successful request of a client; see [`Client::traced`].
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Option<Answered>>>);

impl Trace {
    /// Returns the metadata of the last successful request; nothing before the first.
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
    /// Returns a clone of the client, and a trace that has the metadata of the last successful
    /// request of that clone.
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
