//! The shell's outboxes, one per service, which keep deliveries while the service is unavailable.

use std::path::PathBuf;
use std::time::Duration;

use fs_err as fs;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use svc_client::outbox::{Delivery, DeliveryId, Drained, OutboxView};
use svc_client::{Client, Outbox, OutboxError, OutboxLimits};

use super::service;
use crate::credentials::{Role, is_absent, normalised};
use crate::error::{CommandError, chain};
use crate::options::ServiceOptions;

/// The variable that sets the folder of the outboxes.
const FOLDER: &str = "SVC_OUTBOX";

/// Returns the folder that holds the outboxes.
pub(crate) fn folder() -> Result<PathBuf, CommandError> {
    if let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    let folder = svc_server::data_folder().map(|folder| folder.join("outbox"));
    folder.ok_or_else(|| {
        CommandError::refused(
            "no_home",
            "neither SVC_OUTBOX nor HOME is set, so there is no folder to keep it in",
        )
    })
}

/// Returns the folder of the outbox of a service.
fn place(url: &str) -> Result<PathBuf, CommandError> {
    // A URL is not a valid file name.
    let name = utf8_percent_encode(url, NON_ALPHANUMERIC).to_string();
    Ok(folder()?.join(name))
}

/// Returns the URLs of the services that have an outbox, in order.
fn urls() -> Result<Vec<String>, CommandError> {
    let entries = match fs::read_dir(folder()?) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut urls = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let url = name.to_str().map(percent_decode_str);
        let url = url.and_then(|url| url.decode_utf8().ok());
        urls.extend(url.filter(|url| url.contains("://")).map(String::from));
    }
    urls.sort_unstable();
    Ok(urls)
}

/// Something that belongs to a service, given with the service's URL, or why it is not available.
pub(crate) type OfService<T> = (String, Result<T, CommandError>);

/// Returns a view of each service's outbox.
pub(crate) fn views() -> Result<Vec<OfService<OutboxView>>, CommandError> {
    let view = |url: String| {
        let view = place(&url).and_then(|place| Ok(OutboxView::of(place)?));
        (url, view)
    };
    Ok(urls()?.into_iter().map(view).collect())
}

/// The key of this machine's user, with which deliveries are signed beside the token, so that those
/// of a machine that stays outlast a token.
mod machine {
    use std::io;
    use std::os::unix::fs::MetadataExt as _;

    use svc_engine::clock::Ids;
    use svc_engine::private;

    use super::{SecretString, fs};

    /// Returns the key, and creates it if there is none. It is not in the folder of the outboxes,
    /// because others may write to that one.
    pub(super) fn key() -> io::Result<SecretString> {
        let folder = svc_server::config_folder().ok_or(io::ErrorKind::NotFound)?;
        let file = folder.join("outbox.key");
        if !fs::exists(&file)? {
            private::create_folder(&folder)?;
            let [one, two] = [0; 2].map(|_| Ids::random().fresh());
            let aside = folder.join(format!("outbox.{}.tmp", one.simple()));
            private::write_new(
                &aside,
                format!("{}{}\n", one.simple(), two.simple()).as_bytes(),
            )?;
            // Another process may have created it meanwhile. The first one stands.
            let linked = fs::hard_link(&aside, &file);
            fs::remove_file(&aside)?;
            linked.or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
        }
        if fs::metadata(&file)?.mode() & 0o077 != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(fs::read_to_string(&file)?.trim_end().into())
    }
}

/// The outbox of one service.
pub(crate) struct ServiceOutbox {
    pub(crate) url: String,
    pub(crate) outbox: Outbox,
    /// Whether this is the selected service. The token in the environment is used for no other.
    is_meant: bool,
}

impl ServiceOutbox {
    /// Opens the outbox of the selected service.
    pub(crate) fn of(options: &ServiceOptions) -> Result<Self, CommandError> {
        Self::open(meant(options)?, true, Outbox::PATIENCE)
    }

    /// Opens the outbox of the selected service, and waits for other programs at most this long,
    /// also when something is put into it.
    pub(crate) fn within(
        options: &ServiceOptions,
        patience: Duration,
    ) -> Result<Self, CommandError> {
        Self::open(meant(options)?, true, patience)
    }

    fn open(url: String, is_meant: bool, patience: Duration) -> Result<Self, CommandError> {
        let outbox = Outbox::open_within(place(&url)?, OutboxLimits::default(), patience)?;
        // A token or a key that cannot be read must not keep a delivery from being kept.
        let token = service::token(&url, is_meant, Role::Capture).unwrap_or_default();
        let secrets = token.into_iter().chain(machine::key().ok());
        // A delivery to one service is none to another.
        let of_service =
            |secret: SecretString| SecretString::from(format!("{url}\n{}", secret.expose_secret()));
        let outbox = outbox.signed(secrets.map(of_service));
        Ok(Self {
            url,
            outbox,
            is_meant,
        })
    }

    /// Returns the outbox of each service.
    pub(crate) fn all() -> Result<Vec<OfService<Self>>, CommandError> {
        let meant = meant(&ServiceOptions::default())?;
        let open = |url: String| {
            let is_meant = url == meant;
            (url.clone(), Self::open(url, is_meant, Outbox::PATIENCE))
        };
        Ok(urls()?.into_iter().map(open).collect())
    }

    /// Returns a client that delivers to the service.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let options = ServiceOptions {
            url: Some(self.url.clone()),
        };
        if self.is_meant {
            service::client_for(&options, Role::Capture)
        } else {
            service::stored_client(&self.url, Role::Capture)
        }
    }

    /// Keeps a delivery until the service has acknowledged it.
    pub(crate) fn keep(&self, delivery: impl Into<Delivery>) -> Result<DeliveryId, CommandError> {
        Ok(self.outbox.put_blocking(delivery)?)
    }

    /// Removes a delivery that was sent directly or must not be sent. If this fails, the delivery
    /// is repeated, which the service recognises.
    pub(crate) fn withdraw(&self, id: Option<DeliveryId>) {
        if let Some(id) = id {
            drop(self.outbox.withdraw(id));
        }
    }

    /// Sends what is waiting, within a time limit. Does nothing if another process is sending.
    pub(crate) async fn drain_within(
        &self,
        client: &Client,
        patience: Duration,
    ) -> Result<Option<Drained>, CommandError> {
        match tokio::time::timeout(patience, self.outbox.drain(client)).await {
            Err(_) | Ok(Err(OutboxError::Busy)) => Ok(None),
            Ok(drained) => Ok(Some(drained?)),
        }
    }
}

/// Returns the URL of the selected service.
fn meant(options: &ServiceOptions) -> Result<String, CommandError> {
    let url = service::anonymous(options)?.url().to_owned();
    Ok(normalised(&url).unwrap_or(url))
}

impl From<OutboxError> for CommandError {
    fn from(error: OutboxError) -> Self {
        let refused = |code| Self::refused(code, chain(&error));
        match error {
            OutboxError::Locked => refused("outbox_locked"),
            OutboxError::Full { .. } => refused("outbox_full")
                .hint("to send what is waiting: svc outbox drain")
                .hint("to see what was refused, and where it is: svc outbox status"),
            _ => refused("outbox"),
        }
    }
}
