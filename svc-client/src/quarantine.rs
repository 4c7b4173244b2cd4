use svc_model::endpoint::{Quarantine, QuarantineLogPage, Release};
use svc_model::quarantine::{
    QuarantineLog, QuarantineLogEntry, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

use crate::{Client, Error, Pages};

/// Quarantine: hiding facts from every answer and showing them again; requires an operator token.
/// The service logs both with the name of the client.
impl Client {
    /// Quarantines a fact, which hides it from every answer. The request is retried only if the
    /// service has certainly used nothing of it, because each one is logged. If there is no answer, the log
    /// shows whether it was recorded.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn quarantine(
        &self,
        request: &QuarantineRequest,
    ) -> Result<QuarantineReceipt, Error> {
        self.call::<Quarantine>(request).await
    }

    /// Releases a quarantined fact. It is retried as [`Client::quarantine`] is.
    ///
    /// # Errors
    ///
    /// As [`Client::quarantine`].
    pub async fn release(&self, request: &QuarantineRequest) -> Result<QuarantineReceipt, Error> {
        self.call::<Release>(request).await
    }

    /// Returns one page of what was quarantined and released: the latest rows, oldest first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn quarantine_log(
        &self,
        request: QuarantineLogRequest,
    ) -> Result<QuarantineLog, Error> {
        self.call::<QuarantineLogPage>(&request).await
    }

    /// Returns a stream of what was quarantined and released, latest first, which reads page after
    /// page. Rows recorded in the meantime do not appear.
    ///
    /// ```no_run
    /// # async fn log(client: svc_client::Client) -> Result<(), svc_client::Error> {
    /// let mut log = client.quarantine_entries();
    /// while let Some(entry) = log.next().await {
    ///     let entry = entry?;
    ///     println!("{} {} by {}", entry.action, entry.fact_id, entry.client_id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn quarantine_entries(&self) -> Pages<QuarantineLogEntry> {
        let client = self.clone();
        Pages::of(QuarantineLogRequest::default(), move |request| {
            let client = client.clone();
            async move {
                let page = client.quarantine_log(request).await?;
                let next = page.next_before.map(|before| QuarantineLogRequest {
                    before: Some(before),
                    ..request
                });
                Ok((page.entries.into_iter().rev().collect(), next))
            }
        })
    }
}
