//! A reply within a larger JSON value.

use serde::{Serialize, Serializer};
use svc_client::RawReply;
use svc_model::json::{Json, RawJson};

/// A reply that is passed on as it came.
#[derive(Debug)]
pub(crate) struct Exact<T> {
    pub(crate) value: T,
    raw: RawJson,
}

impl<T> Serialize for Exact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<T> From<RawReply<T>> for Exact<T> {
    fn from(reply: RawReply<T>) -> Self {
        let value = Json::parse(&reply.bytes).unwrap_or_default();
        Self {
            value: reply.value,
            raw: RawJson::from(&value),
        }
    }
}
