use super::{EditObservation, Event, EventKind, RejectedEdit, RetryLinkage, ToolDecision};
use crate::ingest::{LogEvent, LogsRequest};
use crate::json::{Json, Object, Text};

/// Returns an OTLP/JSON export of these events, in this order.
///
/// The user is an attribute of the resource, so adjacent events of one user share a resource.
impl From<&[Event]> for LogsRequest {
    fn from(events: &[Event]) -> Self {
        let resources = events
            .chunk_by(|a, b| a.user_id == b.user_id)
            .map(resource)
            .collect::<Vec<_>>();
        Self::Json(object([("resourceLogs", resources.into())]))
    }
}

impl From<&Event> for LogsRequest {
    fn from(event: &Event) -> Self {
        std::slice::from_ref(event).into()
    }
}

/// Returns the resource logs of events that all have the same user, or none.
fn resource(events: &[Event]) -> Json {
    let mut attributes = Attributes::default();
    if let Some(user) = events.first().and_then(|event| event.user_id.as_ref()) {
        attributes.text("user.id", user.as_str());
    }
    let records = events.iter().map(record).collect::<Vec<_>>();
    let scope = object([("logRecords", records.into())]);
    object([
        ("resource", attributes.into_member().into()),
        ("scopeLogs", vec![scope.into()].into()),
    ])
    .into()
}

fn record(event: &Event) -> Json {
    let mut attributes = Attributes::default();
    attributes.text("agent", event.agent.as_str());
    attributes.text("session.id", event.session_id.as_str());
    let name = match &event.kind {
        EventKind::ToolDecision(decision) => {
            attributes.decision(decision);
            LogEvent::OwnToolDecision
        }
        EventKind::EditObservation(observation) => {
            attributes.observation(observation);
            LogEvent::OwnEditObservation
        }
        EventKind::RejectedEdit(rejection) => {
            attributes.rejection(rejection);
            LogEvent::OwnRejectedEdit
        }
        EventKind::RetryLinkage(linkage) => {
            attributes.linkage(linkage);
            LogEvent::OwnRetryLinkage
        }
    };
    // A 64-bit integer is a decimal string in this encoding.
    let time = event.occurred_at.nanoseconds().to_string();
    let mut record = object([
        ("timeUnixNano", time.into()),
        ("body", value("stringValue", name.as_str())),
    ]);
    record.extend(attributes.into_member());
    record.into()
}

/// An attribute list that is being built.
#[derive(Default)]
struct Attributes(Vec<Json>);

impl Attributes {
    fn decision(&mut self, decision: &ToolDecision) {
        let ToolDecision {
            call_id,
            file_path,
            accepted,
            explicit,
            tool_name,
        } = decision;
        self.text("tool_use_id", call_id.as_str());
        if let Some(path) = file_path {
            self.text("file_path", path.as_str());
        }
        self.text("decision", if *accepted { "accept" } else { "reject" });
        self.push("explicit", value("boolValue", *explicit));
        self.tool_name(tool_name.as_deref());
    }

    fn observation(&mut self, observation: &EditObservation) {
        let EditObservation {
            call_id,
            file_path,
            applied_text,
            observed_file_text,
            external_lines_added,
            external_lines_removed,
            tool_name,
        } = observation;
        self.text("tool_use_id", call_id.as_str());
        self.text("file_path", file_path.as_str());
        self.text("applied_text", applied_text.text());
        self.text("observed_file_text", observed_file_text.text());
        self.count("external_lines_added", *external_lines_added);
        self.count("external_lines_removed", *external_lines_removed);
        self.tool_name(tool_name.as_deref());
    }

    fn rejection(&mut self, rejection: &RejectedEdit) {
        let RejectedEdit {
            call_id,
            file_path,
            proposed,
            tool_name,
        } = rejection;
        self.text("tool_use_id", call_id.as_str());
        self.text("file_path", file_path.as_str());
        self.text("proposed", proposed.text());
        self.tool_name(tool_name.as_deref());
    }

    fn linkage(&mut self, linkage: &RetryLinkage) {
        self.text("tool_name", linkage.tool_name().as_str());
        self.text("file_path", linkage.file_path().as_str());
        self.text("rejected_call_id", linkage.rejected_call_id().as_str());
        self.text("accepted_call_id", linkage.accepted_call_id().as_str());
    }

    fn tool_name(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.text("tool_name", name);
        }
    }

    fn count(&mut self, key: &str, count: Option<u32>) {
        if let Some(count) = count {
            self.push(key, value("intValue", count.to_string()));
        }
    }

    fn text(&mut self, key: &str, text: impl Into<Text>) {
        self.push(key, value("stringValue", text.into()));
    }

    fn push(&mut self, key: &str, value: Json) {
        self.0
            .push(object([("key", key.into()), ("value", value)]).into());
    }

    fn into_member(self) -> Object {
        object([("attributes", self.0.into())])
    }
}

/// Returns a value tagged with its type.
fn value(kind: &str, value: impl Into<Json>) -> Json {
    object([(kind, value.into())]).into()
}

fn object<const MEMBERS: usize>(members: [(&str, Json); MEMBERS]) -> Object {
    members.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::AgentHarness;
    use crate::id::{ForeignId, SessionId, UserId};
    use crate::ingest::event::{EditText, FilePath, RetriedTool};
    use crate::time::Instant;

    fn event(kind: impl Into<EventKind>) -> Event {
        let time = Instant::parse("2026-07-07T19:57:35.424Z").unwrap();
        Event {
            agent: AgentHarness::Pi,
            session_id: SessionId::new("s-1").unwrap(),
            user_id: None,
            occurred_at: time.try_into().unwrap(),
            kind: kind.into(),
        }
    }

    fn call(id: &str) -> ForeignId {
        ForeignId::new(id).unwrap()
    }

    fn path(path: &str) -> FilePath {
        FilePath::new(path).unwrap()
    }

    fn decision() -> ToolDecision {
        ToolDecision {
            call_id: call("t1"),
            file_path: None,
            accepted: true,
            explicit: false,
            tool_name: None,
        }
    }

    fn logs(events: &[Event]) -> Object {
        match events.into() {
            LogsRequest::Json(logs) => logs,
            LogsRequest::Protobuf(_) => panic!("it is JSON"),
        }
    }

    fn attributes(event: &Event) -> String {
        let record = record(event).into_object().unwrap();
        written(record.get("attributes").unwrap())
    }

    fn written(json: &Json) -> String {
        String::from_utf8(json.to_canonical()).unwrap()
    }

    #[test]
    fn a_request_is_written_in_the_form_that_the_service_reads() {
        let user = UserId::new("dev").unwrap();
        let event = Event {
            user_id: Some(user),
            ..event(decision())
        };
        assert_eq!(
            written(&logs(&[event]).into()),
            concat!(
                r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"user.id","value":{"stringValue":"dev"}}]},"#,
                r#""scopeLogs":[{"logRecords":[{"timeUnixNano":"1783454255424000000","#,
                r#""body":{"stringValue":"svc.tool_decision"},"attributes":["#,
                r#"{"key":"agent","value":{"stringValue":"pi"}},"#,
                r#"{"key":"session.id","value":{"stringValue":"s-1"}},"#,
                r#"{"key":"tool_use_id","value":{"stringValue":"t1"}},"#,
                r#"{"key":"decision","value":{"stringValue":"accept"}},"#,
                r#"{"key":"explicit","value":{"boolValue":false}}]}]}]}]}"#,
            )
        );
    }

    #[test]
    fn users_have_resources_of_their_own_and_events_keep_their_order() {
        let of = |user: Option<&str>| Event {
            user_id: user.map(|user| UserId::new(user).unwrap()),
            ..event(decision())
        };
        let logs = logs(&[of(None), of(Some("a")), of(Some("a")), of(Some("b"))]);
        let resources = logs.get("resourceLogs").and_then(Json::as_array).unwrap();
        let shape = |resource: &Json| {
            let text = written(resource);
            (
                text.contains("user.id"),
                text.matches("timeUnixNano").count(),
            )
        };
        let shapes: Vec<_> = resources.iter().map(shape).collect();
        assert_eq!(shapes, [(false, 1), (true, 2), (true, 1)]);
    }

    #[test]
    fn every_attribute_has_its_name_and_type() {
        let decision = ToolDecision {
            file_path: Some(path("a.py")),
            accepted: false,
            explicit: true,
            tool_name: Some("Write".to_owned()),
            ..decision()
        };
        let lone = Json::parse(br#""a\u0000\ud800""#).unwrap();
        let observation = EditObservation {
            call_id: call("t1"),
            file_path: path("a.py"),
            applied_text: EditText::new(lone.as_text().unwrap()).unwrap(),
            observed_file_text: EditText::default(),
            external_lines_added: Some(u32::MAX),
            external_lines_removed: Some(0),
            tool_name: None,
        };
        let rejection = RejectedEdit {
            call_id: call("t1"),
            file_path: path("a.py"),
            proposed: EditText::new("p").unwrap(),
            tool_name: Some("Edit".to_owned()),
        };
        let linkage =
            RetryLinkage::new(RetriedTool::Write, &path("a.py"), call("r"), call("a")).unwrap();
        for (event, expected) in [
            (
                event(decision),
                concat!(
                    r#",{"key":"tool_use_id","value":{"stringValue":"t1"}},{"key":"file_path","value":{"stringValue":"a.py"}},"#,
                    r#"{"key":"decision","value":{"stringValue":"reject"}},{"key":"explicit","value":{"boolValue":true}},"#,
                    r#"{"key":"tool_name","value":{"stringValue":"Write"}}]"#,
                ),
            ),
            (
                event(observation),
                concat!(
                    r#",{"key":"tool_use_id","value":{"stringValue":"t1"}},{"key":"file_path","value":{"stringValue":"a.py"}},"#,
                    r#"{"key":"applied_text","value":{"stringValue":"a\u0000\ud800"}},{"key":"observed_file_text","value":{"stringValue":""}},"#,
                    r#"{"key":"external_lines_added","value":{"intValue":"4294967295"}},"#,
                    r#"{"key":"external_lines_removed","value":{"intValue":"0"}}]"#,
                ),
            ),
            (
                event(rejection),
                concat!(
                    r#",{"key":"tool_use_id","value":{"stringValue":"t1"}},{"key":"file_path","value":{"stringValue":"a.py"}},"#,
                    r#"{"key":"proposed","value":{"stringValue":"p"}},{"key":"tool_name","value":{"stringValue":"Edit"}}]"#,
                ),
            ),
            (
                event(linkage),
                concat!(
                    r#",{"key":"tool_name","value":{"stringValue":"Write"}},{"key":"file_path","value":{"stringValue":"a.py"}},"#,
                    r#"{"key":"rejected_call_id","value":{"stringValue":"r"}},{"key":"accepted_call_id","value":{"stringValue":"a"}}]"#,
                ),
            ),
        ] {
            let written = attributes(&event);
            assert!(written.ends_with(expected), "{written}");
        }
    }
}
