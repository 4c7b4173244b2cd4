use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use svc_model::endpoint::IngestForge;
use svc_model::ingest::{ForgeDelivery, IngestReceipt};
use svc_model::open::Open;
use svc_model::request::Request as _;

use crate::transport::unwritable;
use crate::{Client, Error};

/// The header of the signature, under the name that GitHub uses.
const SIGNATURE: &str = "x-hub-signature-256";

impl Client {
    /// Delivers an event as a forge does: signed with the shared webhook secret, and without a
    /// token. Use it for relays, and for forges that cannot sign.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn ingest_forge(
        &self,
        delivery: &ForgeDelivery,
        webhook_secret: &SecretString,
    ) -> Result<Open<IngestReceipt>, Error> {
        let outgoing = delivery.write();
        let outgoing = outgoing.map_err(|error| unwritable(error).after(0))?;
        let body = outgoing.body.as_deref().unwrap_or_default();
        let signature = signature(webhook_secret, body);
        let outgoing = outgoing.with_header(SIGNATURE, &signature);
        Ok(self.send::<IngestForge>(outgoing).await?.value)
    }
}

fn signature(secret: &SecretString, body: &[u8]) -> String {
    let key = secret.expose_secret().as_bytes();
    let mut code = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    code.update(body);
    let mut signature = "sha256=".to_owned();
    for byte in code.finalize().into_bytes() {
        write!(signature, "{byte:02x}").expect("a string takes any text");
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of GitHub's documentation.
    #[test]
    fn a_body_is_signed_as_github_signs_it() {
        let secret = SecretString::from("It's a Secret to Everybody");
        assert_eq!(
            signature(&secret, b"Hello, World!"),
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }
}
