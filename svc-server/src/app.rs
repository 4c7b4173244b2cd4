//! What every handler shares.

use std::sync::Arc;

use svc_engine::engine::Engine;
use svc_model::id::SessionId;

use crate::auth::Tokens;
use crate::settings::{Grant, Settings};

/// The running service. Cloning gives another handle to it.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) tokens: Tokens,
    pub(crate) grant: Grant,
    pub(crate) sessions: Arc<[SessionId]>,
    pub(crate) docs: bool,
}

impl App {
    pub(crate) fn new(settings: &Settings, engine: Engine) -> Self {
        Self(Arc::new(Inner {
            engine,
            tokens: Tokens::of(settings),
            grant: settings.grant.clone(),
            sessions: settings.grant.sessions().into(),
            docs: settings.docs,
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}
