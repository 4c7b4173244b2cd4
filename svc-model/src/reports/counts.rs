use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::open::{Open, Vocabulary};

/// Counts by the values of a closed set. A value with a count of 0 is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<K>(BTreeMap<Open<K>, u64>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> Counts<K> {
    /// Adds `count` to the count of `key`.
    pub fn add(&mut self, key: K, count: u64) {
        if count > 0 {
            *self.0.entry(key.into()).or_default() += count;
        }
    }

    /// Returns the count of `key`; 0 if it is absent.
    pub fn get(&self, key: K) -> u64 {
        self.0.get(&key.into()).copied().unwrap_or(0)
    }

    /// Returns the sum of all counts. It means something only if all of them have the same unit.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns every value that this version knows, with its count, in the order of the set.
    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        self.iter_open()
            .filter_map(|(key, count)| Some((*key.known()?, count)))
    }

    /// Returns every value with its count: known values in the order of the set, then unknown ones.
    pub fn iter_open(&self) -> impl Iterator<Item = (&Open<K>, u64)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }
}

impl<K: Copy + Ord> FromIterator<(K, u64)> for Counts<K> {
    fn from_iter<I: IntoIterator<Item = (K, u64)>>(counts: I) -> Self {
        let mut all = Self::default();
        for (key, count) in counts {
            all.add(key, count);
        }
        all
    }
}

impl<K: Vocabulary> Serialize for Counts<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Members are written in the order of their names, not in that of the set.
        let texts: BTreeMap<&str, u64> = self
            .0
            .iter()
            .map(|(key, count)| (key.as_str(), *count))
            .collect();
        let mut map = serializer.serialize_map(Some(texts.len()))?;
        for (key, count) in texts {
            map.serialize_entry(key, &count)?;
        }
        map.end()
    }
}

impl<'de, K: Ord + Vocabulary + DeserializeOwned> Deserialize<'de> for Counts<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}

#[cfg(feature = "schema")]
impl<K: JsonSchema> JsonSchema for Counts<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("CountsBy{}", K::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    #[cfg(feature = "schema")]
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": generator.subschema_for::<K>(),
            "additionalProperties": { "type": "integer", "minimum": 1 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::AgentHarness;

    #[test]
    fn counts_are_sorted_as_text_without_zeros() {
        let counts: Counts<AgentHarness> = [
            (AgentHarness::Pi, 1),
            (AgentHarness::Copilot, 2),
            (AgentHarness::Codex, 3),
            (AgentHarness::Cursor, 0),
        ]
        .into_iter()
        .collect();
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"{"codex":3,"copilot":2,"pi":1}"#);
        assert_eq!(
            serde_json::from_str::<Counts<AgentHarness>>(&text).unwrap(),
            counts
        );
        assert_eq!((counts.total(), counts.get(AgentHarness::Cursor)), (6, 0));
    }
}
