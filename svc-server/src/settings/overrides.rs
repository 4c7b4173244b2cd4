//! Settings that a caller provides.

use crate::env;
use crate::source::{Source, Strictness};

/// Settings that a caller provides. They override the environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The address that the server listens on.
    pub listen: Option<String>,
    /// The database.
    pub database_url: Option<String>,
    /// The organization.
    pub org_id: Option<String>,
    /// The only Session of the grant.
    pub retrieval_session_id: Option<String>,
    /// The folder of the mirrors.
    pub mirror_path: Option<String>,
    /// The seconds between a push and the fetch of its repository.
    pub mirror_settle_seconds: Option<String>,
    /// The operator's token.
    pub operator_token: Option<String>,
    /// The secret that signs the forge's webhooks.
    pub webhook_secret: Option<String>,
    /// Whether mirrors may also be fetched from this machine.
    pub dev_mode: Option<String>,
}

impl Overrides {
    /// Returns the settings of this process, overridden by these.
    pub(super) fn source(self, strictness: Strictness, mistakes: &mut Vec<String>) -> Source {
        let flags = [
            (env::LISTEN.name, self.listen),
            (env::DATABASE_URL.name, self.database_url),
            (env::ORG_ID.name, self.org_id),
            (env::RETRIEVAL_SESSION_ID.name, self.retrieval_session_id),
            (env::MIRROR_PATH.name, self.mirror_path),
            (env::MIRROR_SETTLE_SECONDS.name, self.mirror_settle_seconds),
            (env::OPERATOR_TOKEN.name, self.operator_token),
            (env::FORGE_WEBHOOK_SECRET.name, self.webhook_secret),
            (env::DEV_MODE.name, self.dev_mode),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        Source::process(flags, strictness, mistakes)
    }
}
