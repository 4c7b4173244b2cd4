//! Stored contents, by their ids.

use std::collections::{BTreeSet, HashMap};

use svc_model::evidence::Message;
use svc_model::json;

use super::snapshot::Snapshot;
use crate::pack::content_key::ContentHash;
use crate::pack::packing::unpack;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};

pub(crate) const HASHES: Lookup<'_> = Lookup {
    select: "SELECT content_id, digest FROM content WHERE content_id",
    then: "",
};

const BYTES_BY_ID: Lookup<'_> = Lookup {
    select: "SELECT byte_count FROM content WHERE content_id",
    then: "",
};

const CONTENT_BY_ID: Lookup<'_> = Lookup {
    select: "SELECT content_id, codec, byte_count, bytes FROM content WHERE content_id",
    then: "",
};

const SMALL_BY_ID: Lookup<'_> = Lookup {
    select: "SELECT content_id, codec, byte_count, bytes FROM content
        WHERE byte_count <= $1 AND content_id",
    then: "",
};

/// Returns the hashes of stored contents by their ids, as `lookup` finds them.
pub(crate) fn hashes(
    connection: &mut Connection,
    lookup: &Lookup<'_>,
    content_ids: impl IntoIterator<Item = i64>,
) -> Result<HashMap<i64, ContentHash>, StoreError> {
    let ids: BTreeSet<i64> = content_ids.into_iter().collect();
    let keys: Vec<Value<'_>> = ids.into_iter().map(Value::Integer).collect();
    let mut hashes = HashMap::with_capacity(keys.len());
    connection.lookup(lookup, &[], &keys, |row| {
        let hash = ContentHash::try_from(row.blob(1)?.as_slice());
        let hash = hash.map_err(|_| corrupt("content", "its digest"))?;
        hashes.insert(row.integer(0)?, hash);
        Ok(())
    })?;
    Ok(hashes)
}

/// Calls `each` with the content of a row.
fn unpacked(
    row: &Row<'_>,
    each: &mut impl FnMut(i64, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (codec, byte_count) = (row.integer(1)?, row.count(2)?);
    let bytes = row.with_blob(3, |bytes| unpack(codec, byte_count, bytes))?;
    each(row.integer(0)?, &bytes?)
}

/// Reads the message in a content.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the bytes are not a message in its canonical form.
pub fn written_message(bytes: &[u8]) -> Result<Message, StoreError> {
    json::from_written(bytes).map_err(|_| corrupt("content", "it is not a canonical message"))
}

impl Snapshot<'_> {
    /// Returns the canonical bytes of contents in all.
    pub fn content_bytes(&mut self, content_ids: &[i64]) -> Result<u64, StoreError> {
        let keys: Vec<Value<'_>> = content_ids.iter().copied().map(Value::Integer).collect();
        let mut bytes = 0;
        self.connection()?
            .lookup_many(&BYTES_BY_ID, &[], &keys, |row| {
                bytes += row.count(0)?;
                Ok(())
            })?;
        Ok(bytes)
    }

    /// Calls `each` with the id and the canonical bytes of every content, in any order.
    pub fn content(
        &mut self,
        content_ids: &[i64],
        mut each: impl FnMut(i64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys: Vec<Value<'_>> = content_ids.iter().copied().map(Value::Integer).collect();
        self.connection()?
            .lookup_many(&CONTENT_BY_ID, &[], &keys, |row| unpacked(row, &mut each))
    }

    /// Calls `each` as [`content`](Self::content) does, but not for a content of more bytes than
    /// this.
    pub fn small_content(
        &mut self,
        content_ids: &[i64],
        bytes_max: u64,
        mut each: impl FnMut(i64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys: Vec<Value<'_>> = content_ids.iter().copied().map(Value::Integer).collect();
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        let shared = [Value::Integer(bytes_max)];
        self.connection()?
            .lookup(&SMALL_BY_ID, &shared, &keys, |row| unpacked(row, &mut each))
    }
}
