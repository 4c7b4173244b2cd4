//! Routes that one read of the engine answers, each within what its caller may read.

use std::sync::Arc;

use svc_engine::read::{Answer, Reach};
use svc_model::context::{ContextResult, ContextRetrievalRequest, ContextSelectedRequest};
use svc_model::endpoint::{Access, Selected};
use svc_model::id::SessionId;
use svc_model::identity::Authority;
use svc_model::problem::Problem;

use crate::app::App;
use crate::auth::Rights;
use crate::dispatch::Exchange;
use crate::settings::Grant;

/// Answers a request of any route that one read answers.
pub(super) async fn answer<E: Answer>(
    exchange: Exchange,
    request: E::Request,
) -> Result<E::Reply, Problem> {
    let reach = match E::ACCESS {
        Access::Context(_) | Access::Search => {
            let reach = reach_of::<E>(&exchange)?;
            match E::session(&request) {
                Some(session_id) => among(&exchange.app, reach, session_id).await?,
                None => reach,
            }
        }
        _ => Reach::All,
    };
    read::<E>(exchange, reach, request).await
}

async fn read<E: Answer>(
    exchange: Exchange,
    reach: Reach,
    request: E::Request,
) -> Result<E::Reply, Problem> {
    let engine = exchange.engine();
    let answer = engine.answer_within::<E>(reach, exchange.repeats(), request);
    answer.await.map_err(Problem::from)
}

/// Answers a request about the one configured Session.
pub(super) async fn retrieve(
    exchange: Exchange,
    request: ContextRetrievalRequest,
) -> Result<ContextResult, Problem> {
    let Grant::Single(session_id) = &exchange.app.grant else {
        return Err(Problem::RetrievalDisabled);
    };
    let request = ContextSelectedRequest {
        schema_version: request.schema_version,
        query: request.query,
        session_id: session_id.clone(),
        max_bytes: request.max_bytes,
    };
    // The Session is the configured one, so nothing is checked before the read.
    let reach = reach_of::<Selected>(&exchange)?;
    read::<Selected>(exchange, reach, request).await
}

/// Returns what the caller may read.
fn reach_of<E: Answer>(exchange: &Exchange) -> Result<Reach, Problem> {
    // Every context route requires a token.
    let caller = exchange.caller.as_ref().ok_or(Problem::Unauthorized)?;
    match &caller.rights {
        _ if E::ACCESS == Access::Search && caller.authority == Authority::Operator => {
            Ok(Reach::All)
        }
        Rights::Configured => Ok(Reach::Configured(Arc::clone(&exchange.app.sessions))),
        Rights::Granted(grants) => Ok(Reach::Granted(Arc::clone(grants))),
        Rights::Named(_) => Err(Problem::Unauthorized),
    }
}

/// Returns what the caller may read, provided that it may include the Session. If the token alone
/// decides, the caller is refused before the question takes a slot, so it does not learn whether
/// the Session exists.
async fn among(app: &App, reach: Reach, session_id: &SessionId) -> Result<Reach, Problem> {
    let is_possible = match &reach {
        Reach::All => true,
        Reach::Configured(sessions) => sessions.contains(session_id),
        Reach::Granted(grants) if grants.may_reach(session_id) => true,
        // It may have been granted since the token was checked.
        Reach::Granted(grants) => {
            let token = grants.token().clone();
            let latest = app.engine.token_grants(token).await?;
            latest.may_reach(session_id)
        }
    };
    if is_possible {
        Ok(reach)
    } else {
        Err(Problem::OutsideGrant)
    }
}
