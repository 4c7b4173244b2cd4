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
use svc_model::evidence::Message;
use svc_model::json;

use crate::derive::score::Searchable;
use crate::store::{Snapshot, StoreError};

/// One distinct message.
#[derive(Debug)]
pub struct Content {
    /// The message.
    pub message: Message,
    /// The bytes of its canonical form.
    pub byte_count: usize,
    searchable: OnceLock<Box<[Searchable]>>,
}

impl Content {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let message = json::from_written(bytes).map_err(|_| StoreError::Corrupt {
            table: "content",
            what: "it is not a canonical message",
        })?;
        Ok(Self {
            message,
            byte_count: bytes.len(),
            searchable: OnceLock::new(),
        })
    }

    /// Returns the searchable form of each part.
    pub fn searchable(&self) -> &[Searchable] {
        self.searchable
            .get_or_init(|| self.message.parts.iter().map(Searchable::of).collect())
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<i64, Arc<Content>> for Weight {
    /// The decoded tree and its tokens take about three times the canonical bytes.
    fn weight(&self, _: &i64, content: &Arc<Content>) -> u64 {
        256 + 3 * content.byte_count as u64
    }
}

/// Decoded messages by content id, bounded in bytes.
pub struct ContentCache(Cache<i64, Arc<Content>, Weight>);

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
    ) -> Result<HashMap<i64, Arc<Content>>, StoreError> {
        let mut found = HashMap::new();
        let mut missing = HashSet::new();
        for id in content_ids {
            if found.contains_key(&id) || missing.contains(&id) {
                continue;
            }
            match self.0.get(&id) {
                Some(content) => drop(found.insert(id, content)),
                None => drop(missing.insert(id)),
            }
        }
        let mut missing: Vec<i64> = missing.into_iter().collect();
        missing.sort_unstable();
        let wanted = found.len() + missing.len();
        snapshot.content(&missing, |id, bytes| {
            let content = Arc::new(Content::decode(bytes)?);
            self.0.insert(id, Arc::clone(&content));
            found.insert(id, content);
            Ok(())
        })?;
        if found.len() == wanted {
            Ok(found)
        } else {
            Err(StoreError::Corrupt {
                table: "content",
                what: "content is missing",
            })
        }
    }
}
