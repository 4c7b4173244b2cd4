use svc_model::endpoint::{Quarantine, QuarantineLogPage, Release};
use svc_model::quarantine::{
    QuarantineLog, QuarantineLogEntry, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

use crate::{Client, Error, Pages};

/// Quarantine hides facts from every answer, and release shows them again. Both require an operator
/// token, and the service logs them with the name of the client.
impl Client {
    /// Quarantines a fact, which hides it from every answer. Because each request is logged, it is
    /// retried only if the service has certainly used nothing of it. If there is no answer, the log
    /// shows whether the request was recorded.
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

    /// Releases a quarantined fact. The request is retried under the same condition as
    /// [`Client::quarantine`].
    ///
    /// # Errors
    ///
    /// As [`Client::quarantine`].
    pub async fn release(&self, request: &QuarantineRequest) -> Result<QuarantineReceipt, Error> {
        self.call::<Release>(request).await
    }

    /// Returns one page of what was quarantined and released: the latest rows, the oldest of them
    /// first.
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
    /// page. Rows that are recorded in the meantime do not appear.
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
