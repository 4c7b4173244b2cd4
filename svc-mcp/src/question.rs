//! Questions to the service, independent of the transport.

use bytes::Bytes;
use svc_model::endpoint::{
    AcceptedWorkLifecycleReport, CiRunsQuery, CommitQuery, Discovery, Endpoint, EvidenceInventory,
    EvidenceManifest, EvidenceReading, GrantInventory, GrantManifest, GrantRead,
    ModelOutcomesReport, Selected, SessionQuery,
};
use svc_model::identity::Authority;

use crate::refusal::Refusal;

macro_rules! questions {
    ($($endpoint:ident),+ $(,)?) => {
        /// A request to one of the routes behind the tools.
        #[derive(Clone, Debug)]
        pub enum Question {
            $(
                #[doc = concat!("To [`svc_model::endpoint::", stringify!($endpoint), "`].")]
                $endpoint(<$endpoint as Endpoint>::Request),
            )+
        }
    };
}

questions! {
    Discovery,
    Selected,
    GrantInventory,
    GrantManifest,
    GrantRead,
    EvidenceInventory,
    EvidenceManifest,
    EvidenceReading,
    SessionQuery,
    CommitQuery,
    CiRunsQuery,
    ModelOutcomesReport,
    AcceptedWorkLifecycleReport,
}

/// A service that answers the questions of one caller.
pub trait Service: Send + Sync + 'static {
    /// Returns the caller's authority.
    ///
    /// # Errors
    ///
    /// If the service cannot be reached or does not know the caller.
    fn authority(&self) -> impl Future<Output = Result<Authority, Refusal>> + Send;

    /// Returns whether the caller may search any Session. The operator's token searches only those
    /// in the settings, of which there may be none.
    fn searches(&self) -> impl Future<Output = bool> + Send;

    /// Asks a question and returns the body of the reply.
    ///
    /// # Errors
    ///
    /// If the service refuses or cannot be reached.
    fn ask(&self, question: Question) -> impl Future<Output = Result<Bytes, Refusal>> + Send;
}
