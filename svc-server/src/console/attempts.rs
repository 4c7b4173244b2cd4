//! The limit on failed sign-in attempts.
//!
//! Behind a proxy, all requests come from one address, so strangers share their attempts. A browser
//! that has signed in before is recognised by a signed cookie and has attempts of its own, so
//! strangers cannot lock it out. Only the number of attempts is kept.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use svc_engine::clock::Ids;

use super::text::hexadecimal;

/// The number of wrong tokens in a row before attempts are limited.
const TRIES: u32 = 10;
/// The time until another attempt is allowed.
const PAUSE: Duration = Duration::from_secs(6);

/// The browser that is used to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Browser {
    /// A browser that has signed in before.
    Known,
    /// Any other browser.
    Strange,
}

/// The remaining attempts.
#[derive(Default)]
pub(super) struct Attempts {
    known: Tries,
    strange: Tries,
}

impl Attempts {
    /// Takes an attempt, or returns the time until the next one.
    pub(super) fn take(&self, browser: Browser, now: Instant) -> Result<(), Duration> {
        self.of(browser).take(now)
    }

    /// Gives an attempt back, because the token was correct.
    pub(super) fn give_back(&self, browser: Browser) {
        self.of(browser).give_back();
    }

    const fn of(&self, browser: Browser) -> &Tries {
        match browser {
            Browser::Known => &self.known,
            Browser::Strange => &self.strange,
        }
    }
}

/// The time at which all attempts are available again. Each attempt postpones it by a pause.
#[derive(Default)]
struct Tries(Mutex<Option<Instant>>);

impl Tries {
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut full = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = full.map_or(now, |full| full.max(now)) + PAUSE;
        let early = (after - now).saturating_sub(PAUSE * TRIES);
        if !early.is_zero() {
            return Err(early);
        }
        *full = Some(after);
        Ok(())
    }

    fn give_back(&self) {
        let mut full = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *full = full.and_then(|full| full.checked_sub(PAUSE));
    }
}

/// Recognises browsers that have signed in before by a random id with a signature. It grants no
/// authority.
pub(super) struct KnownBrowsers(Hmac<Sha256>);

impl KnownBrowsers {
    pub(super) fn new(operator_token: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(b"svc console: known browsers\0");
        digest.update(operator_token);
        // A shorter key is padded with zeros.
        let mut key = [0; 64];
        key[..32].copy_from_slice(&digest.finalize());
        Self(Hmac::new(&key.into()))
    }

    /// Returns a cookie for a new browser.
    pub(super) fn fresh(&self) -> String {
        let id = Ids::random().fresh().simple().to_string();
        let mut signed = self.0.clone();
        signed.update(id.as_bytes());
        let signature = hexadecimal(&signed.finalize().into_bytes());
        format!("{id}.{signature}")
    }

    /// Returns whether the cookies belong to a known browser.
    pub(super) fn recognise(&self, cookies: &[&str]) -> Browser {
        if cookies.iter().any(|cookie| self.is_signed(cookie)) {
            Browser::Known
        } else {
            Browser::Strange
        }
    }

    fn is_signed(&self, cookie: &str) -> bool {
        let Some((id, signature)) = cookie.split_once('.') else {
            return false;
        };
        let pairs = signature.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = pairs
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let mut signed = self.0.clone();
        signed.update(id.as_bytes());
        bytes.is_some_and(|bytes| signed.verify_slice(&bytes).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_run_out_and_come_back_one_by_one() {
        let attempts = Attempts::default();
        let now = Instant::now();
        for _ in 0..TRIES {
            attempts.take(Browser::Strange, now).unwrap();
        }
        assert_eq!(attempts.take(Browser::Strange, now), Err(PAUSE));
        assert!(attempts.take(Browser::Known, now).is_ok(), "its own");
        assert!(attempts.take(Browser::Strange, now + PAUSE / 2).is_err());
        assert!(attempts.take(Browser::Strange, now + PAUSE).is_ok());
        assert!(attempts.take(Browser::Strange, now + PAUSE).is_err());
        attempts.give_back(Browser::Strange);
        assert!(attempts.take(Browser::Strange, now + PAUSE).is_ok());
    }

    #[test]
    fn only_a_signed_cookie_identifies_a_browser() {
        let known = KnownBrowsers::new(b"operator");
        let cookie = known.fresh();
        assert_eq!(known.recognise(&["x", &cookie]), Browser::Known);
        assert_ne!(cookie, known.fresh());
        let (id, signature) = cookie.split_once('.').unwrap();
        for wrong in [
            "",
            ".",
            id,
            &format!("{id}."),
            &format!("x{cookie}"),
            &format!("{id}.{}", &signature[2..]),
            &format!("{id}.+1{}", &signature[2..]),
        ] {
            assert_eq!(known.recognise(&[wrong]), Browser::Strange, "{wrong}");
        }
        let other = KnownBrowsers::new(b"another");
        assert_eq!(other.recognise(&[&cookie]), Browser::Strange);
    }
}
