use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use svc_model::time::Instant;
use tokio::sync::Notify;

use super::admission::{Admission, Held};
use super::disk::off_the_runtime;
use super::folder::Folder;
use super::{Delivery, DeliveryId, OutboxError, OutboxLimits, OutboxStatus, RefusedDelivery};
use crate::RetryPolicy;

/// A queue on disk: see the [module](super).
///
/// It is cheap to clone; clones are the same queue.
///
/// ```
/// # use svc_client::model::{ingest::{GatewayIngestRequest, GatewayProvider}, json::Json};
/// # use svc_client::testing::{Answer, FakeServer};
/// # use svc_client::{Outbox, OutboxError};
/// # let server = FakeServer::start([Answer::stored()]);
/// # let client = server.client();
/// # let folder = std::env::temp_dir().join(format!("svc-outbox-{}", std::process::id()));
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let outbox = Outbox::open(&folder, Default::default())?;
///
/// // A model call: it is safe as soon as this returns, with or without the service.
/// let payload = Json::parse(br#"{"litellm_call_id":"c-1","model":"gpt-4o"}"#).unwrap();
/// outbox
///     .put(GatewayIngestRequest {
///         provider: GatewayProvider::GatewayA,
///         session_id: None,
///         user_id: None,
///         payload,
///         capture: None,
///     })
///     .await?;
/// assert_eq!(outbox.status()?.waiting, 1);
///
/// // When the service is there, everything that waits is sent.
/// let drained = outbox.drain(&client).await?;
/// assert_eq!(drained.acknowledged, 1);
/// assert_eq!(outbox.status()?.waiting, 0);
/// # Ok::<(), OutboxError>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Outbox {
    pub(super) shared: Arc<Shared>,
    pub(super) pauses: RetryPolicy,
}

/// What clones have in common.
pub(super) struct Shared {
    pub(super) folder: Folder,
    limits: OutboxLimits,
    admission: Admission,
    /// Tells a sender of this process that something was put.
    pub(super) put: Notify,
}

impl Outbox {
    /// The first pause of [`Outbox::run`] while the service is away.
    pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
    /// Its longest pause, unless the service asks for a longer one.
    pub const LONGEST_PAUSE: Duration = Duration::from_mins(1);

    /// Opens the outbox in this folder, which is made when it is not there. Nothing is sent.
    ///
    /// # Errors
    ///
    /// When others may enter the folder, or the disk fails.
    pub fn open(folder: impl Into<PathBuf>, limits: OutboxLimits) -> Result<Self, OutboxError> {
        let shared = Shared {
            folder: Folder::open(folder.into())?,
            limits,
            admission: Admission::default(),
            put: Notify::new(),
        };
        shared.admission.clean(&shared.folder)?;
        Ok(Self {
            shared: Arc::new(shared),
            pauses: RetryPolicy::default()
                .retries(u32::MAX)
                .pauses(Self::FIRST_PAUSE, Self::LONGEST_PAUSE),
        })
    }

    /// Sets the first and the longest pause of [`Outbox::run`] while the service is away.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self {
            pauses: self.pauses.pauses(first, longest),
            ..self
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.shared.folder.path()
    }

    /// Puts a delivery into the queue. When this returns, the delivery outlives a crash and a power
    /// cut; when it fails, the delivery is not in the queue.
    ///
    /// A future that is dropped may have put the delivery, or may still do so.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Full`], [`OutboxError::TooLarge`], [`OutboxError::Unwritable`], or the disk
    /// fails.
    pub async fn put(&self, delivery: impl Into<Delivery>) -> Result<DeliveryId, OutboxError> {
        let (outbox, delivery) = (self.clone(), delivery.into());
        off_the_runtime(move || outbox.put_blocking(delivery)).await
    }

    /// As [`Outbox::put`], on the thread of the caller, which needs no runtime.
    ///
    /// # Errors
    ///
    /// As [`Outbox::put`].
    pub fn put_blocking(&self, delivery: impl Into<Delivery>) -> Result<DeliveryId, OutboxError> {
        let id = DeliveryId::fresh();
        let bytes = delivery.into().into_record(id)?.encode()?;
        let shared = &*self.shared;
        shared
            .admission
            .admit(&shared.folder, shared.limits, id, length(&bytes))?
            .finish(&bytes)?;
        shared.put.notify_one();
        Ok(id)
    }

    /// Takes a delivery that waits back out of the queue, and returns whether it was there: for a
    /// program that has delivered it by itself meanwhile.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn withdraw(&self, id: DeliveryId) -> Result<bool, OutboxError> {
        let folder = &self.shared.folder;
        let name = folder.waiting()?.into_iter().find(|name| name.id == id);
        match name {
            Some(name) => folder.remove(name).map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns what the outbox holds. It reads the names of the files, for a moment.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn status(&self) -> Result<OutboxStatus, OutboxError> {
        let folder = &self.shared.folder;
        let names = folder.waiting()?;
        let waiting = Held::of(&names);
        let refused = Held::of(&folder.refused()?);
        let oldest = names.first().and_then(|name| folder.header(*name));
        Ok(OutboxStatus {
            waiting: waiting.deliveries,
            waiting_bytes: waiting.bytes,
            oldest_age: oldest.map(|header| age(header.put_at)),
            refused: refused.deliveries,
            refused_bytes: refused.bytes,
            stopped: folder.stopped(),
        })
    }

    /// Returns what the service refused, the oldest first. The files stay until somebody removes
    /// them.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn refused(&self) -> Result<Vec<RefusedDelivery>, OutboxError> {
        let folder = &self.shared.folder;
        let names = folder.refused()?;
        Ok(names
            .into_iter()
            .map(|name| folder.refused_delivery(name))
            .collect())
    }

    /// Puts what the service refused back into the queue, each at its old place, and returns how many
    /// there were: for after a person has removed the cause.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn restore_refused(&self) -> Result<u64, OutboxError> {
        let folder = &self.shared.folder;
        let mut restored = 0;
        for name in folder.refused()? {
            folder.restore(name)?;
            restored += 1;
        }
        self.shared.put.notify_one();
        Ok(restored)
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("folder", &self.folder())
            .field("limits", &self.shared.limits)
            .field("pauses", &self.pauses)
            .finish_non_exhaustive()
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Returns how long ago something was; nothing is in the future.
fn age(instant: Instant) -> Duration {
    let since = u64::try_from(instant.microseconds()).unwrap_or(0);
    SystemTime::now()
        .duration_since(UNIX_EPOCH + Duration::from_micros(since))
        .unwrap_or_default()
}
