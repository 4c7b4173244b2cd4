//! Which contents are known to be stored.
//!
//! The writer remembers all contents of a Session that continues, with its mark, instead of an
//! index of digests: an index would take every insertion to another page, a fifth of what a call of
//! a new Session writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::sessions;
use crate::pack::content_key::{ByHash, ContentHash, ContentKey, SessionKey};

/// The maximum shared contents to remember, about 100 bytes each.
const SHARED_MAX: usize = 50_000;
/// The maximum contents of single Sessions to remember, about 60 bytes each.
const OF_SESSIONS_MAX: u64 = 300_000;
/// What a Session weighs besides its contents, which weigh 1 each.
const SESSION_WEIGHT: u64 = 4;
/// An estimate of how many Sessions are remembered.
const SESSIONS_EXPECTED: usize = 10_000;

/// The contents that are known to be stored. A Session's contents are remembered and forgotten
/// together: what a remembered Session lacks counts as not stored.
#[derive(Debug)]
pub(crate) struct KnownContents {
    shared: Cache<ContentHash, i64>,
    sessions: Cache<SessionKey, Weighed, ByWeight>,
    /// How often everything was forgotten.
    generation: AtomicU64,
}

/// A Session's contents, with their weight when they were last put into the cache.
#[derive(Clone, Debug)]
struct Weighed {
    weight: u64,
    contents: KnownSession,
}

#[derive(Clone, Debug)]
struct ByWeight;

impl Weighter<SessionKey, Weighed> for ByWeight {
    fn weight(&self, _: &SessionKey, session: &Weighed) -> u64 {
        session.weight
    }
}

/// The contents of a remembered Session.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownSession(Arc<RwLock<SessionContents>>);

#[derive(Debug, Default)]
struct SessionContents {
    /// The Session's mark when these contents were up to date.
    mark: i64,
    ids: ByHash<ContentHash, i64>,
}

impl KnownSession {
    /// Returns the id of a content.
    pub(crate) fn get(&self, hash: &ContentHash) -> Option<i64> {
        self.read().ids.get(hash).copied()
    }

    fn read(&self) -> RwLockReadGuard<'_, SessionContents> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SessionContents> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for KnownContents {
    fn default() -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(SESSIONS_EXPECTED)
            .weight_capacity(OF_SESSIONS_MAX)
            // Each shard has only its part of the capacity, but one must hold a Session of any
            // length.
            .shards(1)
            .build()
            .expect("both capacities are given");
        Self {
            shared: Cache::new(SHARED_MAX),
            sessions: Cache::with_options(
                options,
                ByWeight,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            generation: AtomicU64::default(),
        }
    }
}

impl KnownContents {
    /// Returns the id of a shared content.
    pub(crate) fn shared(&self, hash: &ContentHash) -> Option<i64> {
        self.shared.get(hash)
    }

    /// Returns a Session's contents, if they are remembered.
    pub(crate) fn session(&self, session: &SessionKey) -> Option<KnownSession> {
        self.sessions.get(session).map(|weighed| weighed.contents)
    }

    /// Returns the id of a content.
    pub(crate) fn get(&self, key: &ContentKey) -> Option<i64> {
        match &key.session {
            None => self.shared(&key.hash),
            Some(session) => self.session(session)?.get(&key.hash),
        }
    }

    /// Returns the mark of a remembered Session when its contents were up to date.
    pub(crate) fn mark(&self, session: &SessionKey) -> Option<i64> {
        self.session(session).map(|contents| contents.read().mark)
    }

    /// Remembers a shared content that a committed transaction stored.
    pub(crate) fn remember_shared(&self, hash: ContentHash, content_id: i64) {
        self.shared.insert(hash, content_id);
    }

    /// Remembers contents of a Session, and the mark that it has after the committed transaction
    /// that stored them. They are added to the remembered ones. If there are none, because they
    /// were forgotten, they are remembered only if `are_all`: the Session has no others.
    pub(crate) fn remember(
        &self,
        session: SessionKey,
        mark: i64,
        contents: impl IntoIterator<Item = (ContentHash, i64)>,
        are_all: bool,
    ) {
        let known = match self.session(&session) {
            Some(known) => known,
            None if are_all => KnownSession::default(),
            None => return,
        };
        let weight = {
            let mut known = known.write();
            known.mark = mark;
            known.ids.extend(contents);
            known.ids.len() as u64 + SESSION_WEIGHT
        };
        let contents = known;
        self.sessions.insert(session, Weighed { weight, contents });
    }

    /// Notes that a committed transaction changed a Session's mark by a step, and added no content.
    pub(crate) fn touched(&self, session: &SessionKey, step: i64) {
        if let Some(known) = self.session(session) {
            let mut known = known.write();
            known.mark = sessions::next_mark(Some(known.mark), step);
        }
    }

    /// Forgets everything, because the database was set back, or what was last committed is
    /// unknown.
    pub(crate) fn forget(&self) {
        self.shared.clear();
        self.sessions.clear();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns how often everything was forgotten.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionKey = [1; 16];

    fn hash(number: u8) -> ContentHash {
        [number; 20]
    }

    #[test]
    fn a_partial_read_extends_only_a_session_that_is_already_remembered() {
        let known = KnownContents::default();
        known.remember(SESSION, 1, [(hash(1), 1)], false);
        assert!(known.session(&SESSION).is_none());
        known.remember(SESSION, 1, [(hash(1), 1)], true);
        known.remember(SESSION, 2, [(hash(2), 2)], false);
        let session = known.session(&SESSION).unwrap();
        assert_eq!(
            [1, 2].map(|number| session.get(&hash(number))),
            [Some(1), Some(2)]
        );
        known.touched(&SESSION, 7);
        let mark = sessions::next_mark(Some(2), 7);
        assert_eq!(known.mark(&SESSION), Some(mark));
        known.forget();
        assert_eq!((known.mark(&SESSION), known.generation()), (None, 1));
    }

    #[test]
    fn sessions_are_forgotten_when_there_is_no_room_for_their_contents() {
        let known = KnownContents::default();
        let contents = || {
            (0..20_000_u32).map(|number| {
                let mut hash = ContentHash::default();
                hash[..4].copy_from_slice(&number.to_be_bytes());
                (hash, i64::from(number))
            })
        };
        let sessions = || (0..40).map(|number| [number; 16]);
        for session in sessions() {
            known.remember(session, 1, contents(), true);
        }
        let remembered: Vec<SessionKey> = sessions()
            .filter(|session| known.session(session).is_some())
            .collect();
        assert!((1..=14).contains(&remembered.len()), "{}", remembered.len());
        for session in remembered {
            let session = known.session(&session).unwrap();
            assert!(contents().all(|(hash, id)| session.get(&hash) == Some(id)));
        }
    }
}
