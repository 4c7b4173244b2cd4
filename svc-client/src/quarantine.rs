use svc_model::endpoint::{Quarantine, QuarantineLogPage, Release};
use svc_model::quarantine::{
    QuarantineLog, QuarantineLogEntry, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

use crate::{Client, Error, Pages};

/// Taking facts out of every answer and showing them again, for an operator token. The service keeps
/// a log of both, with the name of the client.
impl Client {
    /// Takes a fact out of every answer. It is not sent again when the service gives no answer: the
    /// log says whether it was recorded.
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

    /// Shows a quarantined fact again.
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

    /// Returns what was quarantined and released, latest first, page after page as it is asked for.
    /// What is recorded meanwhile does not appear.
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
