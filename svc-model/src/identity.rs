//! Who asks, and whether the service is there.

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

/// What the presented token is. The token itself is never repeated.
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
    /// The Sessions of a plural grant, sorted; only for a retrieval token. Of a named one they are those
    /// that its grants reach now; absent when these are more than one discovery takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_ids: Option<Vec<SessionId>>,
    /// What was granted, oldest first; only for a named retrieval token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<GrantScope>>,
}

closed_set! {
    /// Whether the service runs.
    pub enum HealthStatus {
        /// It does.
        Ok = "ok",
    }
}

/// The service runs. Storage is not touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Health {
    /// Always `ok`.
    pub status: Open<HealthStatus>,
    /// The version of the service.
    pub version: String,
}
