//! Where a command works that can work on a store itself, or ask the service of one.

use svc_client::Client;
use svc_engine::store::{self, DatabaseUrl, Ledger, SchemaState, StoreError};
use svc_model::id::OrgId;
use svc_server::{Origin, StoreSettings};

use super::{service, store as settings};
use crate::credentials::Credentials;
use crate::error::CommandError;
use crate::options::{ServiceOptions, StoreOptions};

/// What is worked on when nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// The store of this machine, unless somebody is logged in to a service.
    Store,
    /// The service.
    Service,
}

/// Where a command works.
pub(crate) enum Place {
    /// On a store.
    Store(Opened),
    /// By asking a service.
    Service(Client),
}

/// A store and whose facts are meant.
pub(crate) struct Opened {
    pub(crate) ledger: Ledger,
    pub(crate) org_id: OrgId,
    url: DatabaseUrl,
}

impl Place {
    /// Returns where the options, the environment, the configuration and the last login say, in this
    /// order, that the command works. What a person gives on the command line wins over everything
    /// else.
    pub(crate) fn find(
        service: &ServiceOptions,
        store: &StoreOptions,
        otherwise: Otherwise,
    ) -> Result<Self, CommandError> {
        let is_given = |option: &Option<String>| settings::given(option.as_deref()).is_some();
        match (is_given(&service.url), is_given(&store.database_url)) {
            (true, true) => {
                return Err(CommandError::refused(
                    "invalid_argument",
                    "--url names a service and --database-url a store: give one of them",
                ));
            }
            (true, false) => return Ok(Self::Service(service::client(service)?)),
            (false, true) => return Self::open(settings::settings(store)?),
            (false, false) => {}
        }
        let settings = settings::settings(store)?;
        let asks = match settings.origin {
            Origin::Flag | Origin::Environment => false,
            Origin::File => service::given(service).is_some(),
            Origin::Default => {
                otherwise == Otherwise::Service
                    || service::given(service).is_some()
                    || Credentials::load()?.current().is_some()
            }
        };
        if asks {
            return Ok(Self::Service(service::client(service)?));
        }
        Self::open(settings)
    }

    fn open(settings: StoreSettings) -> Result<Self, CommandError> {
        let state = store::schema_state(&settings.url)?;
        if state == SchemaState::Absent {
            let error = CommandError::from(StoreError::Schema(state));
            return Err(error.hint(format!(
                "the store is {}; the store of another machine is reached by its service: svc login URL",
                settings.url.shown()
            )));
        }
        Ok(Self::Store(Opened {
            ledger: Ledger::open(&settings.url, settings.org_id.clone())?,
            org_id: settings.org_id,
            url: settings.url,
        }))
    }

    /// Returns the place as a person reads it, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Store(opened) => opened.url.shown(),
            Self::Service(client) => client.url().to_owned(),
        }
    }
}

/// Refuses a service of another organization than the one that a person named.
pub(crate) async fn check_organization(
    client: &Client,
    store: &StoreOptions,
) -> Result<(), CommandError> {
    let Some(wanted) = settings::given(store.org_id.as_deref()) else {
        return Ok(());
    };
    let org_id = client.me().await?.org_id;
    if org_id.as_str() == wanted.to_ascii_lowercase() {
        return Ok(());
    }
    Err(CommandError::refused(
        "other_organization",
        format!(
            "the service at {} is that of organization {org_id}",
            client.url()
        ),
    ))
}
