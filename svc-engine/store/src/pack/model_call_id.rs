//! The stored form of the model's id of a call, which is in the row of the call and in an index.
//!
//! Gateways make UUIDs, whose 16 bytes take less than half of their text.

use std::borrow::Cow;

use uuid::Uuid;

use super::column::{Column, Columns};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};

/// The bytes of a UUID.
const UUID_BYTES: usize = 16;
/// Precedes an id that has as many bytes as a UUID. No text begins with this byte.
const TEXT: u8 = 0xff;

/// The model's id of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelCallId(pub(crate) String);

impl ModelCallId {
    /// Returns the stored form of an id.
    pub(crate) fn stored(id: &str) -> Value<'_> {
        match stored(id) {
            Cow::Borrowed(bytes) => Value::Blob(bytes),
            Cow::Owned(bytes) => Value::OwnBlob(bytes),
        }
    }

    /// Reads a column, which is NULL for a call without such an id.
    pub(crate) fn of(row: &Row<'_>, index: usize) -> Result<Option<String>, StoreError> {
        if row.holds(index, &Value::Null)? {
            return Ok(None);
        }
        let id = row.with_blob(index, id)?;
        id.ok_or(corrupt("inference_calls", "model_call_id"))
            .map(Some)
    }
}

impl Column for ModelCallId {
    fn write(self, row: &mut Vec<Value<'static>>) {
        row.push(Value::OwnBlob(stored(&self.0).into_owned()));
    }

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        columns.bytes(|bytes| Ok(id(bytes).map(Self)))
    }
}

fn stored(id: &str) -> Cow<'_, [u8]> {
    let uuid = Uuid::try_parse(id).ok();
    // Any other spelling of a UUID is another id.
    let mut spelling = Uuid::encode_buffer();
    if let Some(uuid) = uuid.filter(|uuid| *uuid.hyphenated().encode_lower(&mut spelling) == *id) {
        return Cow::Owned(uuid.as_bytes().to_vec());
    }
    if id.len() == UUID_BYTES {
        return Cow::Owned([&[TEXT], id.as_bytes()].concat());
    }
    Cow::Borrowed(id.as_bytes())
}

fn id(bytes: &[u8]) -> Option<String> {
    if bytes.len() == UUID_BYTES {
        return Some(Uuid::from_slice(bytes).ok()?.to_string());
    }
    let text = match bytes.split_first() {
        Some((&TEXT, text)) if text.len() == UUID_BYTES => text,
        _ => bytes,
    };
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_id_is_read_back_and_no_two_have_one_form() {
        let ids = [
            "96919255-9778-4c3e-ae25-b5e9ab7aa467",
            "96919255-9778-4C3E-AE25-B5E9AB7AA467",
            "9691925597784c3eae25b5e9ab7aa467",
            "{96919255-9778-4c3e-ae25-b5e9ab7aa467}",
            "urn:uuid:96919255-9778-4c3e-ae25-b5e9ab7aa467",
            "chatcmpl-96919255-9778-4c3e-ae25-b5e9ab7aa467",
            "sixteen bytes ok",
            "seventeen bytes..",
            "acht Zeichen öäü",
            "msg_01",
            "\u{0}",
            "",
        ];
        for text in ids {
            assert_eq!(id(&stored(text)).as_deref(), Some(text));
        }
        let forms: BTreeSet<_> = ids.iter().map(|id| stored(id).into_owned()).collect();
        assert_eq!(forms.len(), ids.len());
        assert_eq!(stored(ids[0]).len(), UUID_BYTES);
    }

    #[test]
    fn bytes_that_are_no_id_are_damage() {
        assert_eq!(id(&[0xff; 5]), None);
        assert_eq!(id(&[&[0xff], &[0xff; 16][..]].concat()), None);
    }
}
