//! What all handlers share.

use std::sync::Arc;

use svc_engine::engine::Engine;
use svc_model::grant::TokenName;
use svc_model::id::SessionId;
use svc_model::repository::RepositoryHost;

use crate::admission::WORK_BYTES_MAX;
use crate::auth::Tokens;
use crate::console::Console;
use crate::counts::AnswerCounts;
use crate::memory::MemoryBudget;
use crate::reply::REPLIES_BYTES_MAX;
use crate::settings::{Grant, McpSettings, Settings};
use crate::signature::WebhookKeys;

/// The running service. A clone is another handle to it.
#[derive(Clone)]
pub(crate) struct App(Arc<AppState>);

pub(crate) struct AppState {
    pub(crate) engine: Engine,
    pub(crate) tokens: Tokens,
    pub(crate) webhook_keys: WebhookKeys,
    /// The host of the forge, which is recorded on its facts.
    pub(crate) forge_host: RepositoryHost,
    pub(crate) grant: Grant,
    pub(crate) sessions: Arc<[SessionId]>,
    /// The names of the named retrieval tokens, sorted.
    pub(crate) token_names: Vec<TokenName>,
    pub(crate) docs: bool,
    pub(crate) mcp: Option<McpSettings>,
    pub(crate) console: Option<Console>,
    pub(crate) counts: AnswerCounts,
    /// The memory that requests work in.
    pub(crate) work: MemoryBudget,
    /// The memory for large replies while they are sent.
    pub(crate) replies: MemoryBudget,
}

impl App {
    pub(crate) fn new(settings: &Settings, engine: Engine) -> Self {
        Self(Arc::new(AppState {
            counts: AnswerCounts::new(engine.now()),
            engine,
            tokens: Tokens::of(settings),
            webhook_keys: WebhookKeys::of(settings),
            forge_host: settings.forge_host.clone(),
            grant: settings.grant.clone(),
            sessions: settings.grant.sessions().into(),
            token_names: settings.retrieval_tokens.keys().cloned().collect(),
            docs: settings.docs,
            mcp: settings.mcp.clone(),
            console: settings.console.as_ref().map(Console::new),
            work: MemoryBudget::new(WORK_BYTES_MAX),
            replies: MemoryBudget::new(REPLIES_BYTES_MAX),
        }))
    }
}

impl std::ops::Deref for App {
    type Target = AppState;
    fn deref(&self) -> &AppState {
        &self.0
    }
}
