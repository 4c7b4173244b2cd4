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
        /// Sending evidence and reading all of it. On context routes, the operator reads only the
        /// Sessions of the configured grant.
        Operator = "operator",
        /// Reading the Sessions of the token's grant.
        Retrieval = "retrieval",
    }
}

/// The client and the authority of the presented token. The token itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct IdentityProbe {
    /// The organization of the deployment.
    pub org_id: OrgId,
    /// The version of the service, as in `/health`.
    pub version: String,
    /// What the token allows.
    pub authority: Open<Authority>,
    /// The name of the client that the token belongs to.
    pub client_id: String,
    /// The Session of the configured grant, if the grant is a single Session. Present only for the
    /// retrieval token of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_id: Option<SessionId>,
    /// The Sessions of the token's grant, sorted: the configured ones if several are configured, or
    /// those that the grants of a named token reach now. Absent for other tokens, and if a named
    /// token reaches more Sessions than one discovery accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_ids: Option<Vec<SessionId>>,
    /// What was granted to the token, oldest first. Present only for a named retrieval token.
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

/// The service is running. It does not say whether the store can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Health {
    /// Always `ok`.
    pub status: Open<HealthStatus>,
    /// The version of the service.
    pub version: String,
}
