use svc_model::identity::{Authority, Health, HealthStatus, IdentityProbe};
use svc_model::problem::Problem;
use svc_model::request::NoParameters;
use svc_model::version::SERVICE_VERSION;

use crate::dispatch::Exchange;
use crate::settings::Grant;

/// The database is not asked: it may come back. A writer that is gone does not, and the service must
/// be started anew.
pub(super) async fn health(exchange: Exchange, _: NoParameters) -> Result<Health, Problem> {
    if !exchange.app.engine.is_writing() {
        return Err(Problem::StoreUnavailable);
    }
    Ok(Health {
        status: HealthStatus::Ok.into(),
        version: SERVICE_VERSION.to_owned(),
    })
}

pub(super) async fn me(exchange: Exchange, _: NoParameters) -> Result<IdentityProbe, Problem> {
    let caller = exchange.caller.ok_or(Problem::Unauthorized)?;
    let (single, plural) = match &exchange.app.grant {
        _ if caller.authority != Authority::Retrieval => (None, None),
        Grant::None => (None, None),
        Grant::Single(session_id) => (Some(session_id.clone()), None),
        Grant::Plural(session_ids) => (None, Some(session_ids.clone())),
    };
    Ok(IdentityProbe {
        org_id: exchange.app.engine.org_id().clone(),
        version: SERVICE_VERSION.to_owned(),
        authority: caller.authority.into(),
        client_id: caller.client_id,
        source_session_id: single,
        source_session_ids: plural,
    })
}
