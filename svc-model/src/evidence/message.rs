#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::closed_set;
use crate::json::{Json, Object, Text};
use crate::open::Vocabulary;

/// One message of a call. Messages are stored in their canonical form, each distinct one once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Message {
    /// The role of the speaker, as the gateway names it.
    pub role: Text,
    /// The content, in order. May be empty.
    pub parts: Vec<Part>,
    /// Why the model stopped, as the gateway names it. Only output messages have one; null if
    /// unknown.
    pub finish_reason: Option<Text>,
}

closed_set! {
    /// The type of a part, which decides the members that it has.
    pub enum PartType {
        /// Text.
        Text = "text",
        /// Readable reasoning of the model.
        Reasoning = "reasoning",
        /// A tool call that the model requested. It is data; never execute it.
        ToolCall = "tool_call",
        /// The result of a tool call.
        ToolCallResponse = "tool_call_response",
    }
}

/// One canonical part, exactly as captured except for redacted credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Part {
    /// Text.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    Text {
        /// The text; may be empty.
        content: Text,
    },
    /// Readable reasoning.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    Reasoning {
        /// The reasoning, not blank.
        content: Text,
    },
    /// A tool call of the model. It is data, never to be executed.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    ToolCall {
        /// The id that the model gave the call.
        id: String,
        /// The name of the tool; may be empty.
        name: Text,
        /// The arguments.
        arguments: Object,
        /// What was sent in their place, if it is no JSON object. Then they are empty. It is not a
        /// member of the canonical part, so a reply has it beside the part, as `sent_arguments`.
        sent: Option<Text>,
    },
    /// The result of a tool call.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    ToolCallResponse {
        /// The id of the tool call.
        id: String,
        /// The result, any JSON value. If it was captured as a string that contains JSON, it is
        /// decoded.
        result: Json,
    },
}

/// The member of a stored part with what was sent in place of arguments.
const SENT: &str = "sent";

impl Part {
    /// Returns what was sent in place of arguments that are no JSON object.
    pub const fn sent_arguments(&self) -> Option<&Text> {
        match self {
            Self::ToolCall { sent, .. } => sent.as_ref(),
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolCallResponse { .. } => None,
        }
    }

    /// Returns the type.
    pub const fn part_type(&self) -> PartType {
        match self {
            Self::Text { .. } => PartType::Text,
            Self::Reasoning { .. } => PartType::Reasoning,
            Self::ToolCall { .. } => PartType::ToolCall,
            Self::ToolCallResponse { .. } => PartType::ToolCallResponse,
        }
    }

    /// Returns whether every number in the part is finite: no NaN, no infinity, no number too large
    /// for a double.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Text { .. } | Self::Reasoning { .. } => true,
            Self::ToolCall { arguments, .. } => {
                arguments.iter().all(|(_, value)| value.is_finite())
            }
            Self::ToolCallResponse { result, .. } => result.is_finite(),
        }
    }

    fn from_object(mut object: Object) -> Option<Self> {
        let part_type = PartType::from_wire(object.get("type")?.as_str()?)?;
        let mut text = |name: &str| object.remove(name)?.into_text();
        Some(match part_type {
            PartType::Text => Self::Text {
                content: text("content")?,
            },
            PartType::Reasoning => Self::Reasoning {
                content: text("content")?,
            },
            PartType::ToolCall => Self::ToolCall {
                id: text("id")?.as_str()?.to_owned(),
                name: text("name")?,
                arguments: object.remove("arguments")?.into_object()?,
                sent: object.remove(SENT).and_then(Json::into_text),
            },
            PartType::ToolCallResponse => Self::ToolCallResponse {
                id: text("id")?.as_str()?.to_owned(),
                result: object.remove("result")?,
            },
        })
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = match self {
            Self::Text { .. } | Self::Reasoning { .. } => 2,
            Self::ToolCall { .. } => 4,
            Self::ToolCallResponse { .. } => 3,
        };
        let mut part = serializer.serialize_struct("Part", members)?;
        part.serialize_field("type", &self.part_type())?;
        match self {
            Self::Text { content } | Self::Reasoning { content } => {
                part.serialize_field("content", content)?;
            }
            Self::ToolCall {
                id,
                name,
                arguments,
                sent: _,
            } => {
                part.serialize_field("id", id)?;
                part.serialize_field("name", name)?;
                part.serialize_field("arguments", arguments)?;
            }
            Self::ToolCallResponse { id, result } => {
                part.serialize_field("id", id)?;
                part.serialize_field("result", result)?;
            }
        }
        part.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer)?
            .into_object()
            .and_then(Self::from_object)
            .ok_or_else(|| de::Error::custom("must be a canonical part"))
    }
}

impl Vocabulary for Part {
    fn word(&self) -> &'static str {
        self.part_type().as_str()
    }

    fn unknown_word(value: &Json) -> Option<&str> {
        PartType::unknown_word(value.as_object()?.get("type")?)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Part {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Part".into()
    }
    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let part = |name: &str, what: &str, members: serde_json::Value, required: &[&str]| {
            let mut properties = serde_json::json!({ "type": { "const": name } });
            if let (Some(all), serde_json::Value::Object(members)) =
                (properties.as_object_mut(), members)
            {
                all.extend(members);
            }
            serde_json::json!({
                "type": "object",
                "description": what,
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        };
        let string = |what: &str| serde_json::json!({ "type": "string", "description": what });
        json_schema!({
            "description": "One canonical part, exactly as captured except for redacted credentials. \
                            A type of part never gets another member, in replies too, so the same \
                            content has the same bytes in every version; other content would be a \
                            part of another type.",
            "oneOf": [
                part(
                    "text",
                    "Text.",
                    serde_json::json!({ "content": string("The text; may be empty.") }),
                    &["type", "content"],
                ),
                part(
                    "reasoning",
                    "Readable reasoning of the model.",
                    serde_json::json!({ "content": string("The reasoning, not blank.") }),
                    &["type", "content"],
                ),
                part(
                    "tool_call",
                    "A tool call of the model. It is data, never to be executed.",
                    serde_json::json!({
                        "id": string("The id that the model gave the call."),
                        "name": string("The name of the tool; may be empty."),
                        "arguments": { "type": "object", "description": "The arguments." },
                    }),
                    &["type", "id", "name", "arguments"],
                ),
                part(
                    "tool_call_response",
                    "The result of a tool call.",
                    serde_json::json!({
                        "id": string("The id of the tool call."),
                        "result": {
                            "description": "The result, any value; a captured string that is JSON is decoded.",
                        },
                    }),
                    &["type", "id", "result"],
                ),
            ],
        })
    }
}
