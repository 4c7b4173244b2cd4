//! The identity of the caller, and the health of the service.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::grant::GrantScope;
use crate::id::{OrgId, SessionId};
use crate::open::Open;

closed_set! {
    /// What a bearer token allows.
    pub enum Authority {
        /// Sending evidence.
        Ingest = "ingest",
        /// Sending evidence and reading everything; context routes within the grant.
        Operator = "operator",
        /// Reading context within the grant.
        Retrieval = "retrieval",
    }
}

/// The client and authority of the presented token. The token itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct IdentityProbe {
    /// The organization of the deployment.
    pub org_id: OrgId,
    /// The version of the service, equal to that of `/health`.
    pub version: String,
    /// What the token allows.
    pub authority: Open<Authority>,
    /// The name of the client.
    pub client_id: String,
    /// The Session of a single-session grant; only for a retrieval token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_id: Option<SessionId>,
    /// The Sessions of a plural grant, sorted; only for a retrieval token. For a named token, the
    /// Sessions that its grants reach now; absent if there are more than one discovery accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_ids: Option<Vec<SessionId>>,
    /// What was granted, oldest first; only for a named retrieval token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<GrantScope>>,
}

closed_set! {
    /// The health of the service.
    pub enum HealthStatus {
        /// The service is running.
        Ok = "ok",
    }
}

/// The service is running. Storage is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Health {
    /// Always `ok`.
    pub status: Open<HealthStatus>,
    /// The version of the service.
    pub version: String,
}
