use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[cfg(feature = "schema")]
use super::GatewayPayload;
use crate::closed_set;
use crate::field::{FieldKind, Fields, FromField, Undeclared, Violation, Violations};
use crate::id::{SessionId, UserId};
use crate::json::{Json, NodeBudget, Object, ParseErrorKind, WriteError, in_utf8};
use crate::limit::GATEWAY_BATCH_PAYLOADS_MAX;
use crate::parameter::{Declared, Parameter, ParameterValue, parameters};
use crate::query::{TRUE, Truth, asks};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

closed_set! {
    /// The kind of gateway that a call was copied from.
    pub enum GatewayProvider {
        /// LiteLLM, and programs that send calls of their own. The only kind that the service can
        /// read.
        GatewayA = "gateway_a" | "litellm",
        /// Portkey. Its payloads are refused.
        GatewayB = "gateway_b" | "portkey",
        /// Helicone. Its payloads are refused.
        GatewayC = "gateway_c" | "helicone",
        /// Another gateway. Its payloads are refused.
        Unknown = "unknown",
    }
}

/// The sender's name for a delivery, by which a redelivery is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The id of the delivery: any UUID, chosen by the sender. The id of the fact is derived from
    /// it.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "uuid")))]
    pub id: Uuid,
    /// When the sender observed the call, by its own clock.
    #[cfg_attr(feature = "schema", schemars(schema_with = "observed_at_schema"))]
    pub observed_at: Instant,
}

#[cfg(feature = "schema")]
fn observed_at_schema(generator: &mut SchemaGenerator) -> Schema {
    let unix = "Unix seconds; over 20,000,000,000, milliseconds.";
    json_schema!({ "anyOf": [
        generator.subschema_for::<Instant>(),
        { "type": "number", "minimum": 0, "description": unix },
        { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$", "description": unix },
    ] })
}

/// One call of a model, as its gateway describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GatewayIngestRequest {
    /// The kind of gateway.
    pub provider: GatewayProvider,
    /// The Session of the call. Without it, the Session is taken from the payload; if that has none
    /// either, the call is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The user of the call. Without it, the user is taken from the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The gateway's own description of the call. Any content is accepted; `GatewayPayload`
    /// describes what is read.
    #[cfg_attr(feature = "schema", schemars(schema_with = "payload_schema"))]
    pub payload: Json,
    /// The sender's name for this delivery. Without it, the id is taken from the payload; if that
    /// has none either, a call that is sent again may be stored again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Whether the receipt names in what the stored call differs from this one. This is the query
    /// parameter `compare`, not a member of the body.
    #[serde(skip)]
    pub compare: bool,
}

impl GatewayIngestRequest {
    const COMPARE: Declared<Truth> = asks(
        "compare",
        "`true` names in what the stored call differs if the call was sent before; by default `false`.",
    );
}

#[cfg(feature = "schema")]
fn payload_schema(generator: &mut SchemaGenerator) -> Schema {
    let read = generator.subschema_for::<GatewayPayload>();
    json_schema!({ "anyOf": [read, { "type": "object" }] })
}

struct UuidField(Uuid);

impl FromField for UuidField {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let Json::String(text) = value else {
            return Err(Violation::new(FieldKind::UuidType, "must be a UUID"));
        };
        text.as_str()
            .and_then(|text| Uuid::try_parse(text).ok())
            .map(Self)
            .ok_or(Violation::new(FieldKind::UuidParsing, "must be a UUID"))
    }
}

impl Capture {
    fn read(fields: &Fields<'_>, violations: &mut Violations) -> Option<Self> {
        let value = fields.get("capture").filter(|value| !value.is_null())?;
        let Some(object) = value.as_object() else {
            violations.push(
                Violation::new(FieldKind::ModelAttributesType, "must be a JSON object")
                    .at(fields.loc("capture")),
            );
            return None;
        };
        let capture = Fields::new(object, fields.loc("capture"));
        let id = capture.required::<UuidField>("id", violations);
        let observed_at = capture.required("observed_at", violations);
        capture.deny_undeclared(&["id", "observed_at"], Undeclared::ByName, violations);
        Some(Self {
            id: id?.0,
            observed_at: observed_at?,
        })
    }
}

impl Request for GatewayIngestRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::COMPARE,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut body = incoming.object()?;
        let mut violations = Violations::default();
        let fields = Fields::new(&body, vec!["body".into()]);
        let provider = fields.required("provider", &mut violations);
        let session_id = fields.nullable("session_id", &mut violations);
        let user_id = fields.nullable("user_id", &mut violations);
        match fields.get("payload") {
            Some(Json::Object(_)) => {}
            Some(_) => violations.push(
                Violation::new(FieldKind::DictType, "must be a JSON object")
                    .at(fields.loc("payload")),
            ),
            None => violations.push(
                Violation::new(FieldKind::Missing, "field required").at(fields.loc("payload")),
            ),
        }
        let capture = Capture::read(&fields, &mut violations);
        fields.deny_undeclared(
            &["provider", "session_id", "user_id", "payload", "capture"],
            Undeclared::ByName,
            &mut violations,
        );
        let payload = body.remove("payload");
        let compare = Self::COMPARE.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                provider: provider?,
                session_id,
                user_id,
                payload: payload?,
                capture,
                compare: compare.is_some_and(Truth::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Outgoing::body(self)?;
        Ok(Self::COMPARE.write_any(outgoing, self.compare.then_some(&TRUE)))
    }
}

closed_set! {
    /// Why a payload of a batch can never be stored as it was sent.
    pub enum RejectedPayload {
        /// The line is not JSON.
        MalformedJson = "malformed_json",
        /// The item is not a JSON object.
        NotAnObject = "not_an_object",
        /// An identity in the payload is too long, or contains NUL or a surrogate.
        InvalidPayload = "invalid_payload",
        /// The ids of the call belong to another stored call: of another Session, or with other
        /// content although it started at the same time.
        InferenceCallIdentityConflict = "inference_call_identity_conflict",
    }
}

/// What a gateway's own webhook logger sends: one payload, a JSON array of payloads, or one payload
/// per line (NDJSON). Sessions, users and times come from the payloads.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayBatchRequest {
    /// The kind of gateway.
    pub provider: GatewayProvider,
    /// The payloads in the order they were sent, or why an item is rejected.
    pub payloads: Vec<Result<Object, RejectedPayload>>,
}

/// The body only: the kind of gateway is in the path.
#[cfg(feature = "schema")]
impl JsonSchema for GatewayBatchRequest {
    fn schema_name() -> Cow<'static, str> {
        "GatewayBatchRequest".into()
    }
    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What a gateway's own webhook logger sends. Sessions, users and times come from the payloads.",
            "anyOf": [
                {
                    "type": "object",
                    "description": "One payload: the gateway's own description of a call. Any content is accepted.",
                },
                {
                    "type": "array",
                    "maxItems": GATEWAY_BATCH_PAYLOADS_MAX,
                    "items": { "description": "A payload." },
                    "description": "Payloads in order. An item that is not an object is counted as rejected.",
                },
            ],
        })
    }
}

fn payload(value: Json) -> Result<Object, RejectedPayload> {
    value.into_object().ok_or(RejectedPayload::NotAnObject)
}

/// Reads one payload per line; nothing if no line is JSON. Stops at the first line over the limit.
///
/// # Errors
///
/// [`Refusal::OverBudget`].
fn lines(
    body: &[u8],
    memory: &NodeBudget,
) -> Result<Option<Vec<Result<Object, RejectedPayload>>>, Refusal> {
    let mut any = false;
    let mut payloads = Vec::new();
    // Only in UTF-8 is a line break a single byte.
    let decoded = in_utf8(body);
    let lines = decoded
        .as_ref()
        .map_or(body, String::as_bytes)
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    for line in lines.take(GATEWAY_BATCH_PAYLOADS_MAX + 1) {
        payloads.push(match Json::parse_within(line, memory) {
            Ok(value) => {
                any = true;
                payload(value)
            }
            Err(error) if error.kind == ParseErrorKind::OverBudget => {
                return Err(Refusal::OverBudget);
            }
            Err(_) => Err(RejectedPayload::MalformedJson),
        });
    }
    Ok(any.then_some(payloads))
}

/// The kind of gateway, as a segment of a path names it.
struct GatewayName(GatewayProvider);

impl FromField for GatewayName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        GatewayProvider::from_field(value).map(Self)
    }
}

impl ParameterValue for GatewayName {
    fn to_parameter(&self) -> String {
        self.0.as_str().to_owned()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for GatewayName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GatewayName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": ["litellm", "portkey", "helicone", "gateway_a", "gateway_b", "gateway_c", "unknown"],
        })
    }
}

impl GatewayBatchRequest {
    const PROVIDER: Declared<GatewayName> = Declared::path(
        "provider",
        "The kind of gateway: a wire value, or litellm for gateway_a.",
    );
}

impl Request for GatewayBatchRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::PROVIDER,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let provider = Self::PROVIDER.read(incoming, &mut violations);
        let payloads = match incoming.json() {
            Ok(Json::Array(items)) => items.into_iter().map(payload).collect(),
            Ok(value @ Json::Object(_)) => vec![payload(value)],
            Ok(_) => {
                violations.push(
                    Violation::new(
                        FieldKind::ModelAttributesType,
                        "must be a JSON object or array",
                    )
                    .at(vec!["body".into()]),
                );
                Vec::new()
            }
            Err(Refusal::Malformed { offset }) => {
                lines(incoming.body, incoming.memory)?.ok_or(Refusal::Malformed { offset })?
            }
            Err(
                other @ (Refusal::Form
                | Refusal::OverBudget
                | Refusal::NotAnObject
                | Refusal::LogsNotAnObject
                | Refusal::Query(_)),
            ) => {
                return Err(other);
            }
            Err(Refusal::Invalid(missing)) => {
                for error in missing.into_vec() {
                    violations.push(error);
                }
                Vec::new()
            }
        };
        if payloads.len() > GATEWAY_BATCH_PAYLOADS_MAX {
            violations.push(
                Violation::new(FieldKind::TooLong, "must have at most 10000 payloads")
                    .at(vec!["body".into()]),
            );
        }
        Ok(violations.finish(|| {
            Some(Self {
                provider: provider?.0,
                payloads,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let payloads: Vec<Cow<'_, Object>> =
            self.payloads.iter().flatten().map(Cow::Borrowed).collect();
        Ok(Self::PROVIDER.write(Outgoing::body(&payloads)?, &GatewayName(self.provider)))
    }
}
