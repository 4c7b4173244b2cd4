use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::Notify;

use super::admission::Admission;
use super::disk::off_the_runtime;
use super::folder::{DeliveryLookup, Folder};
use super::signing::Keys;
use super::verdict::DeliveryVerdict;
use super::{
    Delivery, DeliveryId, OutboxError, OutboxLimits, OutboxStatus, OutboxView, RefusedDelivery,
};
use crate::{Error, RetryPolicy};

/// A queue on disk; see the [module](super).
///
/// It is cheap to clone; clones share the queue.
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
/// // A model call: it is durable as soon as this returns, with or without the service.
/// let payload = Json::parse(br#"{"litellm_call_id":"c-1","model":"gpt-4o"}"#).unwrap();
/// outbox
///     .put(GatewayIngestRequest {
///         provider: GatewayProvider::GatewayA,
///         session_id: None,
///         user_id: None,
///         payload,
///         capture: None,
///         compare: false,
///     })
///     .await?;
/// assert_eq!(outbox.status()?.waiting, 1);
///
/// // When the service is available, everything that is waiting is sent.
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
    pub(super) shared: Arc<OutboxState>,
    pub(super) pauses: RetryPolicy,
}

/// The state that clones share.
pub(super) struct OutboxState {
    pub(super) folder: Folder,
    pub(super) keys: Keys,
    limits: OutboxLimits,
    admission: Arc<Admission>,
    /// Notifies a sender in this process of new deliveries.
    pub(super) put: Arc<Notify>,
}

impl Outbox {
    /// The default first pause of [`Outbox::run`] while the service is unavailable.
    pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
    /// The default longest pause of [`Outbox::run`], unless the service asks for a longer one.
    pub const LONGEST_PAUSE: Duration = Duration::from_mins(1);
    /// The longest pause that the service can ask for with `Retry-After`. A longer one is shortened
    /// to this.
    pub const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(15);
    /// How long calls wait for the calls that they continue, before they are refused.
    pub const EARLIER_CALLS_PATIENCE: Duration = Duration::from_hours(24);
    /// How long a call of [`Outbox::put`] or [`Outbox::open`] waits for others: other threads of
    /// this program and other programs, together. Each of them needs the outbox only for a moment.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// Opens the outbox in this folder. The folder is created if necessary. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Exposed`] if other users can enter the folder; [`OutboxError::Locked`] if
    /// others keep it locked for [`Outbox::PATIENCE`]; [`OutboxError::Disk`] if the disk fails.
    pub fn open(folder: impl Into<PathBuf>, limits: OutboxLimits) -> Result<Self, OutboxError> {
        Self::open_within(folder, limits, Self::PATIENCE)
    }

    /// Does the same as [`Outbox::open`], for a program that cannot wait long: this and each
    /// [`Outbox::put`] wait for others only as long as `patience` says.
    ///
    /// # Errors
    ///
    /// As [`Outbox::open`].
    pub fn open_within(
        folder: impl Into<PathBuf>,
        limits: OutboxLimits,
        patience: Duration,
    ) -> Result<Self, OutboxError> {
        let shared = OutboxState {
            folder: Folder::open(folder.into())?,
            keys: Keys::default(),
            limits,
            admission: Arc::new(Admission::new(patience)),
            put: Arc::default(),
        };
        shared.admission.clean(&shared.folder)?;
        Ok(Self {
            shared: Arc::new(shared),
            pauses: RetryPolicy::default()
                .retries(u32::MAX)
                .pauses(Self::FIRST_PAUSE, Self::LONGEST_PAUSE),
        })
    }

    /// Sets the first and the longest pause of [`Outbox::run`] while the service is unavailable.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self {
            pauses: self.pauses.pauses(first, longest),
            ..self
        }
    }

    /// Signs what is put from now on with these secrets, and believes only what one of them has
    /// signed: anything else is set aside as `unsigned` instead of being sent.
    ///
    /// Use it if others can write to the folder, as to the cache of a pipeline, with a secret that
    /// they do not have, such as the token. If one of several secrets is replaced, what the others
    /// have signed is still sent.
    #[must_use]
    pub fn signed(self, secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let shared = OutboxState {
            folder: self.shared.folder.clone(),
            keys: Keys::new(secrets),
            limits: self.shared.limits,
            admission: Arc::clone(&self.shared.admission),
            put: Arc::clone(&self.shared.put),
        };
        Self {
            shared: Arc::new(shared),
            ..self
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.shared.folder.path()
    }

    /// Adds a delivery to the queue. When this returns the id, the delivery survives a crash and a
    /// power failure. If it fails, the delivery is not in the queue.
    ///
    /// If the future is dropped, the delivery may have been added, or may still be added.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Locked`] if others keep the outbox locked for [`Outbox::PATIENCE`]: put the
    /// delivery again. Otherwise [`OutboxError::Full`], [`OutboxError::TooLarge`],
    /// [`OutboxError::Unwritable`] or [`OutboxError::Disk`].
    pub async fn put(&self, delivery: impl Into<Delivery>) -> Result<DeliveryId, OutboxError> {
        let (outbox, delivery) = (self.clone(), delivery.into());
        // Waiting for a thread of the runtime counts too.
        let deadline = self.shared.admission.deadline();
        off_the_runtime(move || outbox.put_until(delivery, deadline)).await
    }

    /// Does the same as [`Outbox::put`], on the caller's thread and without a runtime.
    ///
    /// # Errors
    ///
    /// As [`Outbox::put`].
    pub fn put_blocking(&self, delivery: impl Into<Delivery>) -> Result<DeliveryId, OutboxError> {
        self.put_until(delivery.into(), self.shared.admission.deadline())
    }

    fn put_until(&self, delivery: Delivery, deadline: Instant) -> Result<DeliveryId, OutboxError> {
        let id = DeliveryId::fresh();
        let shared = &*self.shared;
        let mut record = delivery.into_record(id)?;
        shared.keys.sign(&mut record)?;
        let bytes = record.encode()?;
        shared
            .admission
            .admit(&shared.folder, shared.limits, id, length(&bytes), deadline)?
            .finish(&bytes)?;
        shared.put.notify_one();
        Ok(id)
    }

    /// Removes a waiting delivery from the queue, and returns whether it was there. Use it if the
    /// program has sent the delivery itself in the meantime.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn withdraw(&self, id: DeliveryId) -> Result<bool, OutboxError> {
        let folder = &self.shared.folder;
        let name = folder.waiting()?.into_iter().find(|name| name.id == id);
        match name {
            Some(name) => folder.remove(name).map(|()| true),
            None => Ok(false),
        }
    }

    /// Returns the status of the outbox. It reads little more than file names, so it takes only a
    /// moment. To see the status of an outbox without opening it, use [`OutboxView`].
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn status(&self) -> Result<OutboxStatus, OutboxError> {
        OutboxView::new(&self.shared.folder).status()
    }

    /// Returns the deliveries that the service refused, oldest first. Their files stay until
    /// somebody removes them or [`Outbox::restore_refused`] puts them back.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn refused(&self) -> Result<Vec<RefusedDelivery>, OutboxError> {
        OutboxView::new(&self.shared.folder).refused()
    }

    /// Puts all refused deliveries back into their places in the queue, and returns how many there
    /// were. Call it once the cause is fixed.
    ///
    /// # Errors
    ///
    /// If the disk fails.
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

    /// Signs the deliveries that no key of this outbox has [signed](Outbox::signed), puts them back
    /// into their places in the queue, and returns how many there were. Call it once a person has
    /// looked at them: whoever could write to the folder may have made them up.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Locked`] if others keep the outbox locked for [`Outbox::PATIENCE`];
    /// [`OutboxError::Disk`] if the disk fails.
    pub fn restore_unsigned(&self) -> Result<u64, OutboxError> {
        let OutboxState { folder, keys, .. } = &*self.shared;
        let restored = self.shared.admission.alone(folder, || {
            let mut restored = 0;
            for name in folder.refused()? {
                if let DeliveryLookup::Record(mut record) = folder.read_refused(name)?
                    && !keys.believe(&record)?
                {
                    keys.sign(&mut record)?;
                    folder.restore_as(name, &record)?;
                    restored += 1;
                }
            }
            Ok(restored)
        })?;
        self.shared.put.notify_one();
        Ok(restored)
    }

    /// Returns whether a delivery with this answer waits and is sent later, by the
    /// [table of answers](super#answers), for a program that has sent a delivery itself. If not,
    /// the service would always refuse it.
    pub fn waits(error: &Error) -> bool {
        DeliveryVerdict::of(error.kind()) != DeliveryVerdict::Refused
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
