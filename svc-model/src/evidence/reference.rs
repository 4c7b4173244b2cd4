#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::{FieldKind, Fields, FromField, Undeclared, Violation, Violations};
use crate::id::InferenceCallId;
use crate::json::Json;
use crate::open::Open;

closed_set! {
    /// The side of a call: what was sent, or what was answered.
    pub enum Side {
        /// What was sent to the model.
        Input = "input",
        /// What the model answered.
        Output = "output",
    }
}

/// The reference of one part: a call, a side of the call, a message of that side, and a part of
/// that message.
///
/// A reference is stable, because facts are immutable. Quarantine hides the part, and release shows
/// it again under the same reference. The same content under two references counts twice.
///
/// References are closed: they never get another member, in replies too, so that each can be sent back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields))]
pub struct Reference {
    /// The id of the call.
    pub inference_call_id: InferenceCallId,
    /// The side of the call.
    pub side: Open<Side>,
    /// The index of the message on that side, from 0.
    pub message_index: u64,
    /// The index of the part in that message, from 0.
    pub part_index: u64,
}

/// An index of a list: a JSON integer from 0 on.
struct ListIndex {
    /// The index, or `u64::MAX` for one that is too large for any list.
    value: u64,
    /// The spelling of an index that is too large.
    beyond: Beyond,
}

/// The spelling of an index that is too large for any list. An integer has only one spelling, so
/// two such indices are equal if their spellings are.
type Beyond = Option<Box<str>>;

impl From<u64> for ListIndex {
    fn from(value: u64) -> Self {
        Self {
            value,
            beyond: None,
        }
    }
}

impl FromField for ListIndex {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let Json::Number(number) = value else {
            return Err(Violation::new(FieldKind::IntType, "must be an integer"));
        };
        if !number.is_integer() {
            return Err(Violation::new(FieldKind::IntType, "must be an integer"));
        }
        match number.as_u64() {
            Some(index) => Ok(index.into()),
            None if number.as_str() == "-0" => Ok(0.into()),
            None if number.as_str().starts_with('-') => Err(Violation::new(
                FieldKind::GreaterThanEqual,
                "must be at least 0",
            )),
            None => Ok(Self {
                value: u64::MAX,
                beyond: Some(number.as_str().into()),
            }),
        }
    }
}

impl Reference {
    /// Reads a reference, and the spellings of its indices that are too large, which distinguish
    /// references that are otherwise equal.
    pub(super) fn read(
        fields: &Fields<'_>,
        violations: &mut Violations,
    ) -> Option<(Self, [Beyond; 2])> {
        let inference_call_id = fields.required("inference_call_id", violations);
        let side = fields.required::<Side>("side", violations);
        let message_index = fields.required::<ListIndex>("message_index", violations);
        let part_index = fields.required::<ListIndex>("part_index", violations);
        fields.deny_undeclared(
            &["inference_call_id", "side", "message_index", "part_index"],
            Undeclared::ByParent,
            violations,
        );
        let (message_index, part_index) = (message_index?, part_index?);
        let reference = Self {
            inference_call_id: inference_call_id?,
            side: Open::Known(side?),
            message_index: message_index.value,
            part_index: part_index.value,
        };
        Some((reference, [message_index.beyond, part_index.beyond]))
    }
}
