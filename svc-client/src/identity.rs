use svc_model::endpoint::{HealthProbe, Me};
use svc_model::identity::{Health, IdentityProbe};
use svc_model::request::NoParameters;

use crate::{Client, Error};

impl Client {
    /// Checks whether the service is running. The token is not sent.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn health(&self) -> Result<Health, Error> {
        self.call::<HealthProbe>(&NoParameters).await
    }

    /// Returns the client and the authority of the token, and the version of the service.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn me(&self) -> Result<IdentityProbe, Error> {
        self.call::<Me>(&NoParameters).await
    }
}
