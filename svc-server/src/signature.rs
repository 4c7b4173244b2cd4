//! Checks whether the forge signed a body with the webhook secret.
//!
//! The code is computed while the body arrives, so a large body delays nobody when it ends. The
//! presented signature is compared with the codes of all secrets in constant time, so response
//! times reveal nothing about a secret.

use axum::http::HeaderMap;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::ExposeSecret;
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

use crate::settings::Settings;

const HEADER: &str = "x-hub-signature-256";
const PREFIX: &[u8] = b"sha256=";
const CODE_BYTES: usize = 32;

/// The webhook secrets, each as a code that is initialised with the key. The secrets themselves are
/// not kept.
pub(crate) struct WebhookKeys(Vec<Hmac<Sha256>>);

impl WebhookKeys {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self::new(
            settings
                .webhook_secrets
                .iter()
                .map(ExposeSecret::expose_secret),
        )
    }

    fn new<'s>(secrets: impl Iterator<Item = &'s str>) -> Self {
        Self(
            secrets
                // In development mode, a secret may be empty. It then signs nothing.
                .filter(|secret| !secret.is_empty())
                .filter_map(|secret| Hmac::new_from_slice(secret.as_bytes()).ok())
                .collect(),
        )
    }

    /// Starts checking a body against the signature in the headers. `None` if there is none, or if
    /// its form is not accepted.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Option<Check> {
        let digits = headers.get(HEADER)?.as_bytes().strip_prefix(PREFIX)?;
        Some(Check {
            presented: code(digits)?,
            computed: self.0.clone(),
        })
    }
}

/// A body that is being checked against its signature.
pub(crate) struct Check {
    presented: [u8; CODE_BYTES],
    computed: Vec<Hmac<Sha256>>,
}

impl Check {
    /// Takes the next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for code in &mut self.computed {
            code.update(bytes);
        }
    }

    /// Returns whether the body is signed with one of the secrets.
    pub(crate) fn holds(self) -> bool {
        let presented = self.presented;
        self.computed
            .into_iter()
            .map(|code| code.finalize().into_bytes().ct_eq(&presented))
            .fold(Choice::from(0), |any, equal| any | equal)
            .into()
    }
}

/// Returns the code that these digits spell. All must be lower-case hexadecimal digits.
fn code(digits: &[u8]) -> Option<[u8; CODE_BYTES]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs: &[[u8; 2]; CODE_BYTES] = digits.as_chunks().0.try_into().ok()?;
    let mut code = [0; CODE_BYTES];
    for (byte, [high, low]) in code.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    (digits.len() == 2 * CODE_BYTES).then_some(code)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// The example in the forge's documentation.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const SIGNATURE: &str =
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn holds(secrets: &[&str], signature: &[u8], parts: &[&[u8]]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(signature).unwrap());
        let keys = WebhookKeys::new(secrets.iter().copied());
        keys.check(&headers).is_some_and(|mut check| {
            for part in parts {
                check.update(part);
            }
            check.holds()
        })
    }

    #[test]
    fn a_signature_is_verified_for_chunks_of_any_size() {
        let signature = SIGNATURE.as_bytes();
        assert!(holds(&[SECRET], signature, &[BODY]));
        assert!(holds(&[SECRET], signature, &[b"", b"Hello", b", World!"]));
        assert!(!holds(&[SECRET], signature, &[b"Hello, World"]));
        assert!(!holds(&[SECRET], signature, &[]));
    }

    #[test]
    fn either_secret_signs_and_an_empty_one_never_does() {
        let signature = SIGNATURE.as_bytes();
        for secrets in [&["other", SECRET][..], &[SECRET, "other"]] {
            assert!(holds(secrets, signature, &[BODY]));
        }
        for secrets in [&[][..], &[""], &["other"], &["it's a secret to everybody"]] {
            assert!(!holds(secrets, signature, &[BODY]), "{secrets:?}");
        }
        // HMAC-SHA256 of nothing, with the empty key.
        let under_nothing =
            b"sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
        assert!(!holds(&[""], under_nothing, &[]));
        assert!(holds(&["\0"], under_nothing, &[]), "it is that code");
    }

    #[test]
    fn the_signature_has_one_form() {
        let digits = &SIGNATURE[PREFIX.len()..];
        for wrong in [
            String::new(),
            digits.to_owned(),
            format!("sha256={}", digits.to_uppercase()),
            format!("SHA256={digits}"),
            format!("sha1={digits}"),
            format!("sha256= {digits}"),
            format!("{SIGNATURE}0"),
            format!("{SIGNATURE}00"),
            SIGNATURE[..SIGNATURE.len() - 1].to_owned(),
            SIGNATURE[..SIGNATURE.len() - 2].to_owned(),
            format!("{SIGNATURE},{SIGNATURE}"),
            SIGNATURE.replace('7', "g"),
            SIGNATURE.replace('7', "\u{e9}"),
        ] {
            assert!(!holds(&[SECRET], wrong.as_bytes(), &[BODY]), "{wrong}");
        }
        assert!(
            WebhookKeys::new([SECRET].into_iter())
                .check(&HeaderMap::new())
                .is_none()
        );
    }
}
