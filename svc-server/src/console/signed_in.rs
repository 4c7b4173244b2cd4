//! Who has signed in: random ids, whose digests the server keeps in memory only.
//!
//! A signed cookie would be valid on other servers and after a restart, but could not be revoked
//! without shared state. So a restarted server asks everyone to sign in again, and signing out
//! takes effect at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use svc_engine::clock::Ids;

use crate::auth::Caller;

/// How long a sign-in lasts without activity.
pub(super) const IDLE: Duration = Duration::from_mins(30);
/// The maximum duration of a sign-in.
pub(super) const WHOLE: Duration = Duration::from_hours(12);
/// The maximum number of sign-ins at once. The least recently active one is dropped first.
const SIGNED_IN_MAX: usize = 64;

/// All sign-ins at this server.
#[derive(Default)]
pub(super) struct SignedIn(Mutex<BTreeMap<[u8; 32], BrowserSession>>);

struct BrowserSession {
    caller: Caller,
    began: Instant,
    last: Instant,
}

impl BrowserSession {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.last) >= IDLE || now.duration_since(self.began) >= WHOLE
    }
}

impl SignedIn {
    /// Signs somebody in, and returns the id that the browser keeps.
    pub(super) fn begin(&self, caller: Caller, now: Instant) -> String {
        let ids = Ids::random();
        // Two random UUIDs: 244 random bits.
        let id = format!("{}{}", ids.fresh().simple(), ids.fresh().simple());
        let mut all = self.all(now);
        if all.len() >= SIGNED_IN_MAX {
            let longest = all.iter().min_by_key(|(_, entry)| entry.last);
            if let Some(key) = longest.map(|(key, _)| *key) {
                all.remove(&key);
            }
        }
        let entry = BrowserSession {
            caller,
            began: now,
            last: now,
        };
        all.insert(digest(&id), entry);
        id
    }

    /// Returns the caller that has signed in with one of these ids, and records that the caller is
    /// active.
    pub(super) fn find(&self, ids: &[&str], now: Instant) -> Option<Caller> {
        let mut all = self.all(now);
        let key = ids
            .iter()
            .map(|id| digest(id))
            .find(|key| all.contains_key(key))?;
        let entry = all.get_mut(&key)?;
        entry.last = now;
        Some(entry.caller.clone())
    }

    /// Signs out these ids.
    pub(super) fn end(&self, ids: &[&str], now: Instant) {
        let mut all = self.all(now);
        for id in ids {
            all.remove(&digest(id));
        }
    }

    /// Signs out everyone, and returns how many there were.
    pub(super) fn end_all(&self, now: Instant) -> usize {
        std::mem::take(&mut *self.all(now)).len()
    }

    /// Returns the sign-ins that have not expired.
    fn all(&self, now: Instant) -> MutexGuard<'_, BTreeMap<[u8; 32], BrowserSession>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, entry| !entry.is_over(now));
        all
    }
}

fn digest(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use svc_model::identity::Authority;

    use super::*;
    use crate::auth::Rights;

    fn caller() -> Caller {
        Caller {
            authority: Authority::Operator,
            client_id: "operator".to_owned(),
            rights: Rights::Configured,
        }
    }

    #[test]
    fn a_browser_is_signed_out_when_idle_and_after_the_maximum_time() {
        let all = SignedIn::default();
        let start = Instant::now();
        let id = all.begin(caller(), start);
        assert_eq!(all.find(&["x", &id], start), Some(caller()));
        let mut at = start;
        while at + IDLE / 2 < start + WHOLE {
            at += IDLE / 2;
            assert!(all.find(&[&id], at).is_some());
        }
        assert_eq!(all.find(&[&id], start + WHOLE), None);
        let id = all.begin(caller(), at);
        assert_eq!(all.find(&[&id], at + IDLE), None);
    }

    #[test]
    fn signing_out_ends_one_session_or_all_of_them() {
        let all = SignedIn::default();
        let now = Instant::now();
        let [one, two, three] = [0; 3].map(|_| all.begin(caller(), now));
        all.end(&[&one], now);
        assert!(all.find(&[&one], now).is_none());
        assert!(all.find(&[&two], now).is_some());
        assert_eq!(all.end_all(now), 2);
        assert!(all.find(&[&two, &three], now).is_none());
    }

    #[test]
    fn sign_ins_are_bounded_and_their_ids_are_stored_only_as_digests() {
        let all = SignedIn::default();
        let start = Instant::now();
        let first = all.begin(caller(), start);
        let second = all.begin(caller(), start + Duration::from_secs(1));
        for _ in 2..=SIGNED_IN_MAX {
            all.begin(caller(), start + Duration::from_secs(2));
        }
        let now = start + Duration::from_secs(2);
        assert!(all.find(&[&first], now).is_none());
        assert!(all.find(&[&second], now).is_some());
        let kept = all.all(now);
        assert_eq!(kept.len(), SIGNED_IN_MAX);
        assert!(kept.keys().all(|key| key.as_slice() != second.as_bytes()));
    }
}
