#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::closed_set;
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::json::{Json, Object, WriteError};
use crate::parameter::{Declared, Parameter, ParameterValue};
use crate::request::{Incoming, Outgoing, Refusal, Request};

/// The headers that name the event. The first one that is present counts.
pub const EVENT_HEADERS: [&str; 4] = [
    "x-forge-event",
    "x-github-event",
    "x-forgejo-event",
    "x-gitea-event",
];
/// The headers with the id of the delivery. The first one that is present counts.
pub const DELIVERY_HEADERS: [&str; 4] = [
    "x-forge-delivery",
    "x-github-delivery",
    "x-forgejo-delivery",
    "x-gitea-delivery",
];

/// The violation of a delivery without an event.
pub(crate) const UNNAMED_EVENT: Violation = Violation::new(
    FieldKind::Missing,
    "a header must name the event: X-GitHub-Event, X-Gitea-Event, X-Forgejo-Event or X-Forge-Event",
);

closed_set! {
    /// An event of a forge that is read. Others are skipped.
    pub enum ForgeEvent {
        /// A ref was pushed.
        Push = "push",
        /// A repository was changed. Only renames are stored.
        Repository = "repository",
        /// A run of the forge's own CI was requested, started or completed. Only completed runs are
        /// stored.
        WorkflowRun = "workflow_run",
        /// A pull request was opened, updated, closed or otherwise changed.
        PullRequest = "pull_request",
    }
}

/// One delivery of a forge's webhook. The event decides which members of the payload are read. None
/// is required here, because payloads vary.
#[derive(Clone, Debug, PartialEq)]
pub struct ForgeDelivery {
    /// The event, as the forge names it. It need not be a [`ForgeEvent`].
    pub event: String,
    /// The forge's id of the delivery, unchanged; `None` if it sent none.
    pub delivery_id: Option<String>,
    /// The payload.
    pub payload: Object,
}

/// The text of a header, which may be empty.
pub(crate) struct HeaderText(String);

impl FromField for HeaderText {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        value
            .as_str()
            .map(|text| Self(text.to_owned()))
            .ok_or(expected)
    }
}

impl ParameterValue for HeaderText {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for HeaderText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HeaderText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Returns whether a content type is that of a form, which is the default of GitHub's webhooks.
fn is_form(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type
        .trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The headers in which a forge names its event and its delivery. None of them is required by
/// itself, because each forge has its own.
const HEADERS: &[Parameter] = &[
    event(0, "The event. One of the event headers is required."),
    event(1, "The event, as GitHub names it."),
    event(2, "The event, as Forgejo names it."),
    event(3, "The event, as Gitea names it."),
    delivery(0, "The id of the delivery, which identifies a redelivery."),
    delivery(1, "The id of the delivery, as GitHub gives it."),
    delivery(2, "The id of the delivery, as Forgejo gives it."),
    delivery(3, "The id of the delivery, as Gitea gives it."),
];

const fn event(index: usize, description: &'static str) -> Parameter {
    header(EVENT_HEADERS[index], description)
}

const fn delivery(index: usize, description: &'static str) -> Parameter {
    header(DELIVERY_HEADERS[index], description)
}

const fn header(name: &'static str, description: &'static str) -> Parameter {
    Declared::<HeaderText>::header(name, description).parameter()
}

impl Request for ForgeDelivery {
    const PARAMETERS: &'static [Parameter] = HEADERS;

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let headers = incoming.header_fields();
        let content_type = headers.get("content-type").and_then(Json::as_str);
        let payload = incoming.document().map_err(|refusal| match refusal {
            // JSON is accepted under any content type.
            Refusal::Malformed { .. } if content_type.is_some_and(is_form) => Refusal::Form,
            other => other,
        })?;
        let first = |names: [&str; 4]| {
            let mut given = names.into_iter().filter_map(|name| headers.get(name));
            given.next().and_then(Json::as_str).map(str::to_owned)
        };
        let Some(event) = first(EVENT_HEADERS) else {
            let [name, ..] = EVENT_HEADERS;
            return Err(Refusal::Invalid(Violations::one(
                UNNAMED_EVENT.at(headers.loc(name)),
            )));
        };
        Ok(Self {
            event,
            delivery_id: first(DELIVERY_HEADERS),
            payload,
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let [event, ..] = EVENT_HEADERS;
        let [delivery, ..] = DELIVERY_HEADERS;
        let outgoing = Outgoing::body(&self.payload)?.with_header(event, &self.event);
        Ok(match &self.delivery_id {
            Some(id) => outgoing.with_header(delivery, id),
            None => outgoing,
        })
    }
}

/// The body only: the event and the delivery id are headers.
#[cfg(feature = "schema")]
impl JsonSchema for ForgeDelivery {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ForgeDelivery".into()
    }
    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "The payload of a forge's webhook for the event. Any content is accepted; what cannot be captured is skipped with a reason.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Step;
    use crate::json::NodeBudget;

    fn read(headers: &[(&str, &str)], body: &str) -> Result<ForgeDelivery, Refusal> {
        let headers: Object = headers.iter().copied().collect();
        ForgeDelivery::read(&Incoming {
            path: &Object::new(),
            query: &Object::new(),
            headers: &headers,
            body: body.as_bytes(),
            memory: &NodeBudget::unlimited(),
        })
    }

    #[test]
    fn the_first_forge_header_present_wins() {
        let names: Vec<(&str, &str)> = EVENT_HEADERS
            .into_iter()
            .zip(["a", "b", "c", "d"])
            .chain(DELIVERY_HEADERS.into_iter().zip(["1", "2", "3", "4"]))
            .collect();
        for left_out in 0..4 {
            let given: Vec<_> = [&names[left_out..4], &names[4 + left_out..]].concat();
            let delivery = read(&given, "{}").unwrap();
            assert_eq!(delivery.event, names[left_out].1);
            assert_eq!(
                delivery.delivery_id.as_deref(),
                Some(names[4 + left_out].1),
                "the two are looked for apart"
            );
        }
        let empty = read(&[("x-forge-event", ""), ("x-github-event", "push")], "{}").unwrap();
        assert_eq!((empty.event.as_str(), empty.delivery_id), ("", None));
    }

    #[test]
    fn without_an_event_the_first_header_is_named() {
        let Err(Refusal::Invalid(violations)) = read(&[("x-forge-delivery", "1")], "{}") else {
            panic!("it is refused");
        };
        let [missing] = violations.into_vec().try_into().unwrap();
        assert_eq!(missing.kind, FieldKind::Missing);
        assert_eq!(
            missing.loc,
            [Step::from("header"), Step::from("x-forge-event")]
        );
    }

    #[test]
    fn the_body_is_checked_before_the_headers() {
        for malformed in ["", " ", "{", "payload=%7B%7D", "{} x"] {
            let refusal = read(&[], malformed).unwrap_err();
            assert!(matches!(refusal, Refusal::Malformed { .. }), "{malformed}");
        }
        for other in ["[]", "null", "5", "NaN", "\"{}\""] {
            assert_eq!(read(&[], other), Err(Refusal::NotAnObject), "{other}");
        }
    }

    #[test]
    fn a_delivery_is_written_in_the_form_that_the_service_reads() {
        let headers = [("x-forge-event", "push"), ("x-forge-delivery", "d")];
        let delivery = read(&headers, r#"{"n":1.10,"cut":"\ud83d"}"#).unwrap();
        let written = delivery.write().unwrap();
        let headers: Vec<_> = written
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let body = String::from_utf8(written.body.unwrap()).unwrap();
        assert_eq!(read(&headers, &body), Ok(delivery));
    }
}
