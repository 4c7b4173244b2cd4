//! What a tool asks of the service, whichever way leads there.

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
        /// A request to one of the routes that tools are made of.
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

/// A service that questions are put to, by one caller.
pub trait Service: Send + Sync + 'static {
    /// Says what the caller may do.
    ///
    /// # Errors
    ///
    /// When the service cannot be asked, or does not know the caller.
    fn authority(&self) -> impl Future<Output = Result<Authority, Refusal>> + Send;

    /// Asks, and returns the body of the reply.
    ///
    /// # Errors
    ///
    /// When the service refuses, or cannot be asked.
    fn ask(&self, question: Question) -> impl Future<Output = Result<Bytes, Refusal>> + Send;
}
