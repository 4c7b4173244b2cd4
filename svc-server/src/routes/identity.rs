use std::sync::Arc;

use svc_model::identity::{Authority, Health, HealthStatus, IdentityProbe};
use svc_model::problem::Problem;
use svc_model::request::NoParameters;
use svc_model::version::SERVICE_VERSION;

use crate::auth::Rights;
use crate::dispatch::Exchange;
use crate::settings::Grant;

/// Does not query the database, which may come back. A writer that is gone does not come back, so
/// then the service must be restarted.
pub(super) async fn health(exchange: Exchange, _: NoParameters) -> Result<Health, Problem> {
    if !exchange.app.engine.is_writing() {
        tracing::warn!("store.writer_gone");
        return Err(Problem::StoreUnavailable);
    }
    Ok(Health {
        status: HealthStatus::Ok.into(),
        version: SERVICE_VERSION.to_owned(),
    })
}

pub(super) async fn me(exchange: Exchange, _: NoParameters) -> Result<IdentityProbe, Problem> {
    let caller = exchange.caller.ok_or(Problem::Unauthorized)?;
    let engine = &exchange.app.engine;
    let (single, plural) = match (&caller.rights, &exchange.app.grant) {
        _ if caller.authority != Authority::Retrieval => (None, None),
        (Rights::Granted(grants), _) => {
            let sessions = engine.granted_sessions(Arc::clone(grants)).await?;
            (None, sessions)
        }
        (_, Grant::None) => (None, None),
        (_, Grant::Single(session_id)) => (Some(session_id.clone()), None),
        (_, Grant::Plural(session_ids)) => (None, Some(session_ids.clone())),
    };
    let grants = match &caller.rights {
        Rights::Granted(grants) => Some(grants.scopes()),
        Rights::Configured | Rights::Named(_) => None,
    };
    Ok(IdentityProbe {
        org_id: engine.org_id().clone(),
        version: SERVICE_VERSION.to_owned(),
        authority: caller.authority.into(),
        client_id: caller.client_id,
        source_session_id: single,
        source_session_ids: plural,
        grants,
    })
}
