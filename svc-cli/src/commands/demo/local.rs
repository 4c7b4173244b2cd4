//! The service that the demo runs against.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use svc_client::{Client, RetryPolicy};
use svc_engine::clock::{Clock, Ids};
use svc_engine::private;
use svc_engine::store::{JobState, MirrorStatus};
use svc_model::time::Instant;
use svc_server::{Grant, MirrorSettings, Overrides, RunningServer, Settings};

use super::story;
use crate::commands::service;
use crate::error::CommandError;
use crate::options::ServiceOptions;

/// A service, and its handle if the demo started it.
#[derive(Debug)]
pub(super) struct DemoService {
    client: Client,
    embedded: Option<RunningServer>,
    /// The secret that signs webhooks for the service, if this machine knows it.
    webhook_secret: Option<SecretString>,
    own: Option<ServiceData>,
    /// How far the clock of a service that the demo started is set back, in microseconds.
    set_back: Arc<AtomicI64>,
}

/// Where a service that the demo started keeps its data.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ServiceData {
    pub(super) mirrors: PathBuf,
    /// Whether a service on the store finds the mirrors there without a setting.
    #[serde(skip)]
    pub(super) are_mirrors_found: bool,
    /// The store, if it is not the default one.
    pub(super) database_url: Option<String>,
    /// Whether agents may read the demo's Session because of the service's settings alone, without
    /// another token.
    #[serde(skip)]
    pub(super) can_retrieve: bool,
    /// The lines of a shell that generate the secrets that a service would lack.
    #[serde(skip)]
    pub(super) generating: Vec<&'static str>,
    /// The folder for the demo's repository.
    #[serde(skip)]
    pub(super) repositories: PathBuf,
}

impl DemoService {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Returns whether a service that the demo started has read all pushes.
    pub(super) async fn has_read_all_pushes(&self) -> bool {
        let Some(running) = &self.embedded else {
            return false;
        };
        let is_idle = |mirror: &MirrorStatus| mirror.state == JobState::Idle;
        let mirrors = running.mirrors().await;
        mirrors.is_some_and(|mirrors| mirrors.iter().all(is_idle))
    }

    pub(super) fn webhook_secret(&self) -> Option<&SecretString> {
        self.webhook_secret.as_ref()
    }

    pub(super) const fn own(&self) -> Option<&ServiceData> {
        self.own.as_ref()
    }

    /// Sets the clock of a service that the demo started.
    pub(super) fn set_time(&self, at: Instant) {
        let behind = Clock::system().now().microseconds() - at.microseconds();
        self.set_back.store(behind.max(0), Ordering::Relaxed);
    }

    fn of_another(client: Client) -> Self {
        Self {
            set_back: Arc::default(),
            client,
            embedded: None,
            webhook_secret: webhook_secret(),
            own: None,
        }
    }

    /// Stops the service if the demo started it.
    pub(super) async fn leave(self) {
        if let Some(running) = self.embedded {
            running.stop().await;
        }
    }
}

/// Returns the service that the options name, or else the one that is running on this machine, or
/// else one that is started for the demo on the embedded store.
pub(super) async fn place(
    options: &ServiceOptions,
    folder: Option<&Path>,
) -> Result<DemoService, CommandError> {
    if folder.is_none() {
        if service::given(options)?.is_some() {
            return Ok(DemoService::of_another(service::client(options)?));
        }
        if let Some(client) = running().await {
            return Ok(DemoService::of_another(client));
        }
    }
    let mut own = own(folder)?;
    let (settings, can_retrieve) = settings(&own)?;
    own.can_retrieve = can_retrieve;
    let token = settings.operator_token().clone();
    let webhook_secret = settings.webhook_secret().cloned();
    let set_back = Arc::default();
    let running = svc_server::start_by(Clock::set_back(Arc::clone(&set_back)), settings).await?;
    let client = service::connect(format!("http://{}", running.address()), token)?;
    Ok(DemoService {
        client,
        embedded: Some(running),
        webhook_secret,
        own: Some(own),
        set_back,
    })
}

/// Returns the secret that signs webhooks, from this process or from the generated secrets of this
/// machine.
fn webhook_secret() -> Option<SecretString> {
    let given = std::env::var("SVC_FORGE_WEBHOOK_SECRET").ok();
    let given = given.filter(|secret| !secret.trim().is_empty());
    given
        .map(SecretString::from)
        .or_else(|| Some(svc_server::local_credentials()?.webhook_secret))
}

/// Returns the settings of a service for the demo: those of `svc serve`, but on a free port and
/// with mirrors of the demo's repository. Unless configured otherwise, they let agents read the
/// demo's Session; also returns whether they do.
fn settings(own: &ServiceData) -> Result<(Settings, bool), CommandError> {
    let overrides = Overrides {
        listen: Some("127.0.0.1:0".to_owned()),
        database_url: own.database_url.clone(),
        mirror_path: Some(own.mirrors.display().to_string()),
        mirror_settle_seconds: Some("0".to_owned()),
        dev_mode: Some("true".to_owned()),
        ..Overrides::default()
    };
    let mut settings = Settings::load(overrides.clone())?;
    if settings.operator_token().expose_secret().is_empty() {
        // Without SQLite none are generated. These are forgotten with the demo's service.
        let secret = || format!("{}{}", Ids::random().fresh(), Ids::random().fresh());
        let is_signed = settings.webhook_secret().is_some();
        settings = Settings::load(Overrides {
            operator_token: Some(secret()),
            webhook_secret: (!is_signed).then(secret),
            ..overrides.clone()
        })?;
    }
    if settings.grant != Grant::None || settings.secrets_file.is_none() {
        return Ok((settings, false));
    }
    let retrieval_session_id = Some(story::SESSION.to_owned());
    let settings = Settings::load(Overrides {
        retrieval_session_id,
        ..overrides
    })?;
    Ok((settings, true))
}

/// Returns where a service that the demo starts keeps its data: all in one folder, or beside the
/// default store.
fn own(folder: Option<&Path>) -> Result<ServiceData, CommandError> {
    let (root, database_url) = match folder {
        Some(folder) => {
            private::create_folder(folder)?;
            let folder = folder.canonicalize()?;
            let url = format!("sqlite://{}", folder.join("svc.db").display());
            (folder, Some(url))
        }
        None => (data()?, None),
    };
    let configured = MirrorSettings::load(Overrides {
        database_url: database_url.clone(),
        ..Overrides::default()
    })?;
    let beside = svc_server::mirrors_beside(&configured.store.url);
    let configured = configured.mirror.map(|mirror| mirror.path);
    let own = if folder.is_some() {
        &beside
    } else {
        &configured
    };
    let mirrors = own.clone().unwrap_or_else(|| root.join("mirrors"));
    let are_mirrors_found = configured.as_ref() == Some(&mirrors);
    let repositories = root.join("demo");
    for folder in [&root, &mirrors, &repositories] {
        private::create_folder(folder)?;
    }
    Ok(ServiceData {
        mirrors,
        are_mirrors_found,
        database_url,
        can_retrieve: false,
        generating: if folder.is_none() {
            generating()
        } else {
            Vec::new()
        },
        repositories,
    })
}

/// Returns how to generate the secrets that `svc serve` would lack here.
fn generating() -> Vec<&'static str> {
    let served = Settings::load(Overrides::default()).err();
    served.map_or_else(Vec::new, |error| error.generating())
}

/// Returns the user's data folder.
pub(super) fn data() -> Result<PathBuf, CommandError> {
    svc_server::data_folder().ok_or_else(|| {
        CommandError::refused("no_home", "there is no folder for the demo's data")
            .hint("name one: svc demo --folder FOLDER")
    })
}

/// Returns a client for the service of this machine, if it is running.
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
