use svc_model::endpoint::{Quarantine, QuarantineLogPage, Release};
use svc_model::quarantine::{
    QuarantineLog, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

use crate::{Client, Error};

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
}
