use svc_model::endpoint::{HealthProbe, Me};
use svc_model::identity::{Health, IdentityProbe};
use svc_model::request::NoParameters;

use crate::{Client, Error};

impl Client {
    /// Asks whether the service runs. The token is not sent.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn health(&self) -> Result<Health, Error> {
        self.call::<HealthProbe>(&NoParameters).await
    }

    /// Asks what the token is, and of which version the service is.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn me(&self) -> Result<IdentityProbe, Error> {
        self.call::<Me>(&NoParameters).await
    }
}
