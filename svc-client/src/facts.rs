use svc_model::capture::CaptureCounts;
use svc_model::endpoint::{Capture, Compatibility, Facts, SessionCalls, SessionFacts};
use svc_model::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use svc_model::id::SessionId;
use svc_model::request::NoParameters;

use crate::{Client, Error};

impl Client {
    /// Counts the facts of the organization.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn facts(&self) -> Result<FactsCounts, Error> {
        self.call::<Facts>(&NoParameters).await
    }

    /// Counts what was captured, skipped and rejected, by source and reason, and the answers of one
    /// server since it started.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn capture_counts(&self) -> Result<CaptureCounts, Error> {
        self.call::<Capture>(&NoParameters).await
    }

    /// Counts the facts of one Session.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn session_facts(&self, session_id: &SessionId) -> Result<SessionFactsCounts, Error> {
        self.call::<SessionFacts>(&named(session_id)).await
    }

    /// Lists the visible calls of one Session, without content.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn session_inference_calls(
        &self,
        session_id: &SessionId,
    ) -> Result<SessionInferenceCalls, Error> {
        self.call::<SessionCalls>(&named(session_id)).await
    }

    /// Returns what an agent harness can compare with its own records of a Session.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn compatibility_evidence(
        &self,
        session_id: &SessionId,
    ) -> Result<CompatibilityEvidence, Error> {
        self.call::<Compatibility>(&named(session_id)).await
    }
}

fn named(session_id: &SessionId) -> SessionRequest {
    SessionRequest {
        session_id: session_id.clone(),
    }
}
