use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use svc_model::time::Instant;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::disk::{LockedFile, off_the_runtime};
use super::folder::{DeliveryLookup, Folder};
use super::name::Name;
use super::verdict::DeliveryVerdict;
use super::{Outbox, OutboxError, Reason, status};
use crate::{Client, Error, ErrorKind};

/// How often [`Outbox::run`] looks for deliveries of other processes.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The number of consecutive failures that end a pass. A pass goes on after fewer, so that a single
/// delivery that makes the service fail does not block the deliveries behind it.
const FAILURES_IN_A_ROW_MAX: u32 = 3;

/// The result of one pass over the queue.
#[derive(Debug)]
#[non_exhaustive]
pub struct Drained {
    /// The number of deliveries that the service acknowledged: newly stored, already stored, or
    /// skipped with a reason.
    pub acknowledged: u64,
    /// The number of deliveries that were set aside: the service refused them permanently, their
    /// file is damaged, or no key [signed](Outbox::signed) them.
    pub refused: u64,
    /// Why the pass ended.
    pub ending: Ending,
}

/// Why a pass ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ending {
    /// All deliveries that were waiting at the start are done.
    Done,
    /// Some deliveries are still waiting, because the service could not accept them this time.
    Later(Error),
    /// Sending has stopped until a person acts. The deliveries that are left are still waiting.
    Stopped(Error),
}

/// What became of one delivery.
enum SendOutcome {
    Acknowledged,
    Refused,
    Later(Error),
    /// An earlier delivery that it must not overtake still waits.
    Behind,
    Stop(Error),
    /// Its file was removed by somebody else.
    Gone,
}

impl Outbox {
    /// Tries to send each waiting delivery once, in order, and returns the result.
    ///
    /// It has no time limit of its own; a caller that must not wait sets one. Deliveries that are
    /// added in the meantime may be left for the next time. Dropping the future leaves the current
    /// delivery in the queue.
    ///
    /// # Errors
    ///
    /// [`OutboxError::Busy`] if another sender is using the folder; [`OutboxError::Disk`] if the
    /// disk fails. A service that is unavailable, or that refuses, is not an error; see [`Ending`].
    pub async fn drain(&self, client: &Client) -> Result<Drained, OutboxError> {
        let alone = self.try_send_alone().await?.ok_or(OutboxError::Busy)?;
        self.pass(client, &alone).await
    }

    /// Sends waiting and new deliveries until `shutdown` is ready.
    ///
    /// While the service is unavailable, the pause between attempts doubles up to
    /// [`Outbox::LONGEST_PAUSE`], unless other [pauses](Outbox::pauses) are set. Up to half of each
    /// pause is left out at random. If the service asks for a longer pause (`Retry-After` in
    /// seconds), that one is taken, up to [`Outbox::LONGEST_RETRY_AFTER`]. While another process is
    /// sending, this one waits until it can take over.
    ///
    /// ```no_run
    /// # async fn serve(outbox: svc_client::Outbox, client: svc_client::Client) {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let sender = tokio::spawn(async move {
    ///     let stopped = async { drop(stopped.await) };
    ///     outbox.run(&client, stopped).await
    /// });
    /// // ... the program adds deliveries, and finally:
    /// drop(stop);
    /// let ended = sender.await;
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutboxError::Stopped`] if a person must act; [`OutboxError::Disk`] if the disk fails.
    pub async fn run(
        &self,
        client: &Client,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), OutboxError> {
        let shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            () = shutdown => Ok(()),
            Err(error) = self.run_until_failure(client) => Err(error),
        }
    }

    async fn run_until_failure(
        &self,
        client: &Client,
    ) -> Result<std::convert::Infallible, OutboxError> {
        let alone = loop {
            match self.try_send_alone().await? {
                Some(alone) => break alone,
                None => sleep(LOOK_AGAIN).await,
            }
        };
        let mut failures = 0;
        loop {
            let drained = self.pass(client, &alone).await?;
            if drained.progressed() {
                failures = 0;
            }
            match drained.ending {
                Ending::Done if drained.progressed() => {}
                Ending::Done => self.wait_for_more().await,
                Ending::Later(error) => {
                    failures += 1;
                    sleep(self.pause(failures, error.retry_after())).await;
                }
                Ending::Stopped(error) => return Err(OutboxError::Stopped(error)),
            }
        }
    }

    /// Returns the pause after this many failures in a row. It is limited, because a wrong
    /// `Retry-After` must not stop the deliveries for days.
    fn pause(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let asked = asked.map(|asked| asked.min(Self::LONGEST_RETRY_AFTER));
        self.pauses
            .pause(failures, asked)
            .unwrap_or(Self::LONGEST_PAUSE)
    }

    async fn wait_for_more(&self) {
        tokio::select! {
            () = self.shared.put.notified() => {}
            () = sleep(LOOK_AGAIN) => {}
        }
    }

    async fn try_send_alone(&self) -> Result<Option<LockedFile>, OutboxError> {
        self.on_folder(Folder::try_send_alone).await
    }

    /// Sends the waiting deliveries. The lock ensures that no other sender does so at the same
    /// time.
    async fn pass(&self, client: &Client, _alone: &LockedFile) -> Result<Drained, OutboxError> {
        let mut drained = Drained {
            acknowledged: 0,
            refused: 0,
            ending: Ending::Done,
        };
        let mut failures_in_a_row = 0;
        let mut held = BTreeSet::new();
        for name in self.on_folder(Folder::waiting).await? {
            match self.deliver(client, name, &mut held).await? {
                SendOutcome::Gone | SendOutcome::Behind => {}
                SendOutcome::Acknowledged => {
                    drained.acknowledged += 1;
                    failures_in_a_row = 0;
                }
                SendOutcome::Refused => {
                    drained.refused += 1;
                    failures_in_a_row = 0;
                }
                SendOutcome::Later(error) => {
                    // A service that misses calls is there.
                    if *error.kind() != ErrorKind::EarlierCallsMissing {
                        failures_in_a_row += 1;
                    }
                    let away = is_away(&error) || failures_in_a_row == FAILURES_IN_A_ROW_MAX;
                    drained.ending = Ending::Later(error);
                    if away {
                        break;
                    }
                }
                SendOutcome::Stop(error) => {
                    drained.ending = Ending::Stopped(error);
                    break;
                }
            }
        }
        Ok(drained)
    }

    /// Sends a delivery, unless its order is held.
    async fn deliver(
        &self,
        client: &Client,
        name: Name,
        held: &mut BTreeSet<String>,
    ) -> Result<SendOutcome, OutboxError> {
        if !held.is_empty() {
            let header = self.on_folder(move |folder| Ok(folder.header(name)));
            let order = header.await?.and_then(|header| header.order);
            if order.is_some_and(|order| held.contains(&order)) {
                return Ok(SendOutcome::Behind);
            }
        }
        let record = match self.on_folder(move |folder| folder.read(name)).await? {
            DeliveryLookup::Record(record) => record,
            DeliveryLookup::Nothing => return Ok(SendOutcome::Gone),
            DeliveryLookup::Damaged => {
                warn!(delivery = %name.id, "outbox.file_damaged");
                self.set_aside(name, Reason::damaged()).await?;
                return Ok(SendOutcome::Refused);
            }
        };
        if !self.shared.keys.believe(&record)? {
            warn!(delivery = %name.id, "outbox.delivery_unsigned");
            self.set_aside(name, Reason::unsigned()).await?;
            return Ok(SendOutcome::Refused);
        }
        let (order, put_at) = (record.header.order.clone(), record.header.put_at);
        let Err(error) = record.send(client).await else {
            self.on_folder(move |folder| {
                folder.remove(name)?;
                folder.go_on()
            })
            .await?;
            return Ok(SendOutcome::Acknowledged);
        };
        let code = error.kind().code();
        let verdict = match DeliveryVerdict::of(error.kind()) {
            DeliveryVerdict::Later if is_hopeless(&error, put_at) => DeliveryVerdict::Refused,
            verdict => verdict,
        };
        match verdict {
            DeliveryVerdict::Later => {
                held.extend(order);
                debug!(delivery = %name.id, code, "outbox.delivery_waits");
                Ok(SendOutcome::Later(error))
            }
            DeliveryVerdict::Refused => {
                warn!(delivery = %name.id, code, "outbox.delivery_refused");
                self.set_aside(name, Reason::of(&error)).await?;
                Ok(SendOutcome::Refused)
            }
            DeliveryVerdict::Stop => {
                warn!(delivery = %name.id, code, "outbox.sending_stopped");
                let reason = Reason::of(&error);
                self.on_folder(move |folder| folder.stop(&reason)).await?;
                Ok(SendOutcome::Stop(error))
            }
        }
    }

    async fn set_aside(&self, name: Name, reason: Reason) -> Result<(), OutboxError> {
        self.on_folder(move |folder| folder.set_aside(name, &reason))
            .await
    }

    async fn on_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, OutboxError> + Send + 'static,
    ) -> Result<T, OutboxError> {
        let folder = self.shared.folder.clone();
        off_the_runtime(move || work(&folder)).await
    }
}

impl Drained {
    fn progressed(&self) -> bool {
        self.acknowledged + self.refused > 0
    }
}

/// Returns whether calls have waited too long for those that they continue.
fn is_hopeless(error: &Error, put_at: Instant) -> bool {
    *error.kind() == ErrorKind::EarlierCallsMissing
        && status::age(put_at) >= Outbox::EARLIER_CALLS_PATIENCE
}

/// Returns whether the next delivery would fail in the same way, because the service cannot be
/// reached or limits the rate.
fn is_away(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Connect | ErrorKind::Unavailable { status: 429 }
    ) || error.retry_after().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutboxLimits;

    #[test]
    fn the_pause_requested_by_the_service_is_at_most_a_quarter_of_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path().join("outbox"), OutboxLimits::default()).unwrap();
        let longest = Duration::from_mins(15);
        for (asked, pause) in [
            (Duration::from_mins(2), Duration::from_mins(2)),
            (longest, longest),
            (Duration::from_hours(24), longest),
            (Duration::MAX, longest),
        ] {
            assert_eq!(outbox.pause(1, Some(asked)), pause, "{asked:?}");
        }
        assert!(outbox.pause(1, None) <= Outbox::FIRST_PAUSE);
        assert!(outbox.pause(u32::MAX, None) <= Outbox::LONGEST_PAUSE);
    }
}
