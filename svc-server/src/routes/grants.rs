use svc_model::endpoint::{GrantExplain, Grants};
use svc_model::grant::{
    GrantAction, GrantExplanation, GrantExplanationRequest, GrantList, GrantReceipt,
    GrantRemovalRequest, GrantRequest, GrantsRequest, TokenChangeRequest, TokenName,
};
use svc_model::problem::Problem;

use crate::app::App;
use crate::dispatch::Exchange;

/// Returns whether this server has a token with this name.
fn is_configured(app: &App, token: &TokenName) -> bool {
    app.token_names.binary_search(token).is_ok()
}

/// Returns the client under whose name a change is recorded.
fn client(exchange: &Exchange) -> Result<String, Problem> {
    // The routes require the operator, so there is a caller.
    let caller = exchange.caller.as_ref().ok_or(Problem::Unauthorized)?;
    Ok(caller.client_id.clone())
}

/// Logs a change, and adds to the receipt whether this server has the token.
fn recorded(exchange: &Exchange, client: &str, receipt: GrantReceipt) -> GrantReceipt {
    let entry = &receipt.entry;
    tracing::info!(
        client,
        action = %entry.action,
        token = %entry.token,
        grant_id = entry.grant_id,
        grant_revision = entry.grant_revision,
        unchanged = receipt.unchanged,
        "grant.changed"
    );
    GrantReceipt {
        configured: Some(is_configured(&exchange.app, &entry.token)),
        ..receipt
    }
}

pub(super) async fn list(exchange: Exchange, request: GrantsRequest) -> Result<GrantList, Problem> {
    let list = exchange.app.engine.answer::<Grants>(request).await?;
    Ok(GrantList {
        configured_tokens: Some(exchange.app.token_names.clone()),
        ..list
    })
}

pub(super) async fn explain(
    exchange: Exchange,
    request: GrantExplanationRequest,
) -> Result<GrantExplanation, Problem> {
    let configured = Some(is_configured(&exchange.app, &request.token));
    let explanation = exchange.app.engine.answer::<GrantExplain>(request).await?;
    Ok(GrantExplanation {
        configured,
        ..explanation
    })
}

pub(super) async fn add(
    exchange: Exchange,
    request: GrantRequest,
) -> Result<GrantReceipt, Problem> {
    let client = client(&exchange)?;
    let receipt = exchange
        .app
        .engine
        .add_grant(request, client.clone())
        .await?;
    Ok(recorded(&exchange, &client, receipt))
}

pub(super) async fn remove(
    exchange: Exchange,
    request: GrantRemovalRequest,
) -> Result<GrantReceipt, Problem> {
    let client = client(&exchange)?;
    let receipt = exchange
        .app
        .engine
        .remove_grant(request, client.clone())
        .await?;
    Ok(recorded(&exchange, &client, receipt))
}

pub(super) async fn revoke(
    exchange: Exchange,
    request: TokenChangeRequest,
) -> Result<GrantReceipt, Problem> {
    change(exchange, request, GrantAction::Revoke).await
}

pub(super) async fn restore(
    exchange: Exchange,
    request: TokenChangeRequest,
) -> Result<GrantReceipt, Problem> {
    change(exchange, request, GrantAction::Restore).await
}

async fn change(
    exchange: Exchange,
    request: TokenChangeRequest,
    action: GrantAction,
) -> Result<GrantReceipt, Problem> {
    let client = client(&exchange)?;
    let engine = &exchange.app.engine;
    let receipt = engine.change_token(request, action, client.clone()).await?;
    Ok(recorded(&exchange, &client, receipt))
}
