//! Which service the demo is shown at.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use svc_client::{Client, RetryPolicy};
use svc_server::env;
use svc_server::{Grant, Overrides, Running, Settings};

use super::story;
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;

/// A service, and the one of our own when it is that.
#[derive(Debug)]
pub(super) struct Place {
    client: Client,
    embedded: Option<Running>,
    /// The secret with which its forges sign, when this machine knows it.
    webhook_secret: Option<SecretString>,
    /// The mirrors of a service of our own.
    mirrors: Option<PathBuf>,
}

impl Place {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    pub(super) fn webhook_secret(&self) -> Option<&SecretString> {
        self.webhook_secret.as_ref()
    }

    pub(super) fn mirrors(&self) -> Option<&Path> {
        self.mirrors.as_deref()
    }

    fn of_another(client: Client) -> Self {
        Self {
            client,
            embedded: None,
            webhook_secret: webhook_secret(),
            mirrors: None,
        }
    }

    /// Ends a service of our own.
    pub(super) async fn leave(self) {
        if let Some(running) = self.embedded {
            running.stop().await;
        }
    }
}

/// Returns the service that the options name; else the one that runs on this machine; else one that
/// is started for the demo on the embedded store.
pub(super) async fn place(options: &ServiceOptions) -> Result<Place, CommandError> {
    if service::given(options).is_some() {
        return Ok(Place::of_another(service::client(options)?));
    }
    if let Some(client) = running().await {
        return Ok(Place::of_another(client));
    }
    let (settings, mirrors) = settings()?;
    let token = settings.operator_token().clone();
    let webhook_secret = settings.webhook_secret().cloned();
    let running = svc_server::start(settings).await?;
    let client = service::connect(format!("http://{}", running.address()), token)?;
    Ok(Place {
        client,
        embedded: Some(running),
        webhook_secret,
        mirrors: Some(mirrors),
    })
}

/// Returns the secret with which forges sign, as this process or the embedded default of this machine
/// knows it.
fn webhook_secret() -> Option<SecretString> {
    let given = std::env::var(env::FORGE_WEBHOOK_SECRET).ok();
    let given = given.filter(|secret| !secret.trim().is_empty());
    given
        .map(SecretString::from)
        .or_else(|| Some(svc_server::local_credentials()?.webhook_secret))
}

/// Returns the settings of a service for the demo, and where its mirrors are: those of `svc serve`, on a
/// port of its own, and with mirrors of the repository that the demo makes. When nobody says which
/// Sessions agents may read, they may read the one of the demo.
fn settings() -> Result<(Settings, PathBuf), CommandError> {
    let mirrors = mirrors()?;
    let overrides = Overrides {
        listen: Some("127.0.0.1:0".to_owned()),
        mirror_path: Some(mirrors.display().to_string()),
        mirror_settle_seconds: Some("0".to_owned()),
        dev_mode: Some("true".to_owned()),
        ..Overrides::default()
    };
    let settings = Settings::load(overrides.clone())?;
    if settings.grant != Grant::None || settings.secrets_file.is_none() {
        return Ok((settings, mirrors));
    }
    let retrieval_session_id = Some(story::SESSION.to_owned());
    let settings = Settings::load(Overrides {
        retrieval_session_id,
        ..overrides
    })?;
    Ok((settings, mirrors))
}

/// Returns the folder of mirrors that is set, else the one beside the database.
fn mirrors() -> Result<PathBuf, CommandError> {
    if let Some(path) = std::env::var_os(env::MIRROR_PATH).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let data = svc_server::data_folder().ok_or_else(|| {
        CommandError::refused("no_home", "there is no folder for the mirrors")
            .hint("name one: SVC_MIRROR_PATH")
    })?;
    let mirrors = data.join("mirrors");
    std::fs::create_dir_all(&mirrors)?;
    Ok(mirrors)
}

/// Returns a client of the service of this machine, when one runs.
async fn running() -> Option<Client> {
    let url = svc_server::local_url();
    let once = Client::builder(&*url)
        .retry(RetryPolicy::none())
        .build()
        .ok()?;
    once.health().await.ok()?;
    let options = ServiceOptions { url: Some(url) };
    service::client(&options).ok()
}
