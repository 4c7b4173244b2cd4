use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::OutboxError;
use super::record::{DeliveryRecord, RecordHeader};

/// The keys of an outbox. Each delivery is signed with all of them; one signature is enough to
/// believe it, so a key can be replaced while another stays. Without keys, every delivery is
/// believed.
#[derive(Clone, Default)]
pub(super) struct Keys(Vec<Hmac<Sha256>>);

impl Keys {
    pub(super) fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let key = |secret: SecretString| {
            let mut digest = Sha256::new();
            digest.update(b"outbox of svc: signed deliveries\0");
            digest.update(secret.expose_secret());
            // A shorter key is padded with zeros.
            let mut key = [0; 64];
            key[..32].copy_from_slice(&digest.finalize());
            Hmac::new(&key.into())
        };
        Self(secrets.into_iter().map(key).collect())
    }

    pub(super) fn sign(&self, record: &mut DeliveryRecord) -> Result<(), OutboxError> {
        record.header.signatures.clear();
        let bytes = record.encode()?;
        let signature = |key: &Hmac<Sha256>| {
            let digest = key.clone().chain_update(&bytes).finalize().into_bytes();
            let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
            digits.collect()
        };
        record.header.signatures = self.0.iter().map(signature).collect();
        Ok(())
    }

    /// Returns whether a record was put with one of the keys.
    pub(super) fn believe(&self, record: &DeliveryRecord) -> Result<bool, OutboxError> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let header = RecordHeader {
            signatures: Vec::new(),
            ..record.header.clone()
        };
        let signed = header.encode(&record.body)?;
        let is_of = |key: &Hmac<Sha256>, signature: &str| {
            let digest = bytes(signature);
            let key = key.clone().chain_update(&signed);
            digest.is_some_and(|digest| key.verify_slice(&digest).is_ok())
        };
        let signatures = &record.header.signatures;
        Ok(self
            .0
            .iter()
            .any(|key| signatures.iter().any(|signature| is_of(key, signature))))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

/// Returns the bytes that a text writes in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use svc_model::time::Instant;
    use svc_model::version::Version1;

    use super::super::record::DeliveryRoute;
    use super::*;

    fn keys(secrets: &[&str]) -> Keys {
        Keys::new(secrets.iter().map(|secret| SecretString::from(*secret)))
    }

    #[test]
    fn only_an_unchanged_record_of_one_of_the_keys_is_believed() {
        let mut record = DeliveryRecord {
            header: RecordHeader {
                version: Version1,
                route: DeliveryRoute::IngestCi,
                put_at: Instant::parse("2026-07-07T19:57:35.123456Z").unwrap(),
                order: None,
                signatures: Vec::new(),
            },
            body: b"{\"result\":\"failed\"}".to_vec(),
        };
        assert!(keys(&[]).believe(&record).unwrap());
        assert!(!keys(&["token"]).believe(&record).unwrap(), "not signed");
        keys(&["token", "machine"]).sign(&mut record).unwrap();
        let mut record = DeliveryRecord::decode(record.encode().unwrap()).unwrap();
        for (secrets, expected) in [
            (&["token"][..], true),
            (&["machine"], true),
            (&["new token", "machine"], true),
            (&["new token"], false),
            (&[], true),
        ] {
            assert_eq!(keys(secrets).believe(&record).unwrap(), expected);
        }
        let believed = |record: &DeliveryRecord| keys(&["token"]).believe(record).unwrap();
        let signatures = record.header.signatures.clone();
        record.header.signatures = vec!["+1".repeat(32), String::new(), "é".to_owned()];
        assert!(!believed(&record));
        record.header.signatures = signatures;
        record.header.route = DeliveryRoute::IngestGateway;
        assert!(!believed(&record), "for another route");
        record.header.route = DeliveryRoute::IngestCi;
        assert!(believed(&record));
        record.body = b"{\"result\":\"passed\"}".to_vec();
        assert!(!believed(&record), "another result");
    }
}
