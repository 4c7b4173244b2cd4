//! Which service the demo is shown at.

use svc_client::{Client, RetryPolicy};
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
}

impl Place {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.embedded.is_some()
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
        return Ok(Place {
            client: service::client(options)?,
            embedded: None,
        });
    }
    if let Some(client) = running().await {
        return Ok(Place {
            client,
            embedded: None,
        });
    }
    let settings = settings()?;
    let token = settings.operator_token().clone();
    let running = svc_server::start(settings).await?;
    let client = service::connect(format!("http://{}", running.address()), token)?;
    Ok(Place {
        client,
        embedded: Some(running),
    })
}

/// Returns the settings of a service for the demo: those of `svc serve`, on a port of its own. When
/// nobody says which Sessions agents may read, they may read the one of the demo.
fn settings() -> Result<Settings, CommandError> {
    let overrides = Overrides {
        listen: Some("127.0.0.1:0".to_owned()),
        ..Overrides::default()
    };
    let settings = Settings::load(overrides.clone())?;
    if settings.grant != Grant::None || settings.secrets_file.is_none() {
        return Ok(settings);
    }
    let retrieval_session_id = Some(story::SESSION.to_owned());
    Ok(Settings::load(Overrides {
        retrieval_session_id,
        ..overrides
    })?)
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
