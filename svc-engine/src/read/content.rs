//! Decoded messages, kept in memory.
//!
//! Stored content never changes, and its id is never reused, even if the database is reset to an
//! earlier state. So a cached message is always valid; each snapshot decides which calls may show
//! it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use svc_engine_derive::score::SearchablePart;
use svc_engine_store::{Snapshot, StoreError, written_message};
use svc_model::evidence::Message;

/// Messages that are read before it is checked whether the deadline has passed.
const CONTENTS_AT_ONCE: usize = 4_096;

/// One distinct message.
#[derive(Debug)]
pub struct MessageContent {
    /// The message.
    pub message: Message,
    /// The bytes of its canonical form.
    pub byte_count: usize,
    searchable: OnceLock<Box<[SearchablePart]>>,
}

impl MessageContent {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        Ok(Self {
            message: written_message(bytes)?,
            byte_count: bytes.len(),
            searchable: OnceLock::new(),
        })
    }

    /// Returns the searchable form of each part.
    pub fn searchable(&self) -> &[SearchablePart] {
        self.searchable
            .get_or_init(|| self.message.parts.iter().map(SearchablePart::of).collect())
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<i64, Arc<MessageContent>> for Weight {
    /// The decoded tree and its tokens take about three times the canonical bytes.
    fn weight(&self, _: &i64, content: &Arc<MessageContent>) -> u64 {
        256 + 3 * content.byte_count as u64
    }
}

/// Decoded messages by content id, bounded in bytes.
pub struct ContentCache(Cache<i64, Arc<MessageContent>, Weight>);

impl fmt::Debug for ContentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentCache")
    }
}

impl ContentCache {
    /// Returns an empty cache of about this many bytes.
    pub fn new(bytes: u64) -> Self {
        let messages = usize::try_from(bytes / 1_024).unwrap_or(usize::MAX).max(16);
        Self(Cache::with_weighter(messages, bytes, Weight))
    }

    /// Returns the messages with these content ids, from memory or from the snapshot.
    ///
    /// # Errors
    ///
    /// If the store does not answer, or content is absent or corrupt.
    pub fn load(
        &self,
        snapshot: &mut Snapshot<'_>,
        content_ids: impl IntoIterator<Item = i64>,
    ) -> Result<HashMap<i64, Arc<MessageContent>>, StoreError> {
        let mut found = HashMap::new();
        let ids: HashSet<i64> = content_ids.into_iter().collect();
        self.each(snapshot, ids, |id, content| {
            found.insert(id, Arc::clone(content));
        })?;
        Ok(found)
    }

    /// Calls `each` with those of these messages that are stored.
    ///
    /// # Errors
    ///
    /// If the store does not answer, or content is corrupt.
    pub(super) fn each_known(
        &self,
        snapshot: &mut Snapshot<'_>,
        ids: HashSet<i64>,
        each: impl FnMut(i64, &Arc<MessageContent>),
    ) -> Result<(), StoreError> {
        self.read(snapshot, ids, each).map(drop)
    }

    /// Calls `each` with one message after another, which need not fit into memory together.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(super) fn each(
        &self,
        snapshot: &mut Snapshot<'_>,
        ids: HashSet<i64>,
        each: impl FnMut(i64, &Arc<MessageContent>),
    ) -> Result<(), StoreError> {
        if self.read(snapshot, ids, each)? > 0 {
            return Err(StoreError::Corrupt {
                table: "content",
                what: "content is missing",
            });
        }
        Ok(())
    }

    /// Calls `each` with the messages that are stored, and returns how many are not.
    fn read(
        &self,
        snapshot: &mut Snapshot<'_>,
        ids: HashSet<i64>,
        mut each: impl FnMut(i64, &Arc<MessageContent>),
    ) -> Result<usize, StoreError> {
        let mut missing = Vec::new();
        for id in ids {
            match self.0.get(&id) {
                Some(content) => each(id, &content),
                None => missing.push(id),
            }
        }
        missing.sort_unstable();
        let mut absent = 0;
        for some in missing.chunks(CONTENTS_AT_ONCE) {
            snapshot.check_deadline()?;
            let mut found = 0;
            snapshot.content(some, |id, bytes| {
                let content = Arc::new(MessageContent::decode(bytes)?);
                each(id, &content);
                self.0.insert(id, content);
                found += 1;
                Ok(())
            })?;
            absent += some.len() - found;
        }
        Ok(absent)
    }
}
