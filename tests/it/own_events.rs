//! The service understands exactly what a sender says through the client: the same fact.

use proptest::prelude::*;
use svc_engine::capture::otlp::{self, CapturedLogs};
use svc_engine::capture::redaction::Secrets;
use svc_engine::capture::{Receipt, Redaction};
use svc_engine::clock::Ids;
use svc_engine::fact;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, ForeignId, OrgId, SessionId, UserId};
use svc_model::ingest::LogsRequest;
use svc_model::ingest::event::{
    EditObservation, EditText, Event, EventKind, FilePath, RejectedEdit, RetriedTool, RetryLinkage,
    ToolDecision,
};
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::limit::{EDIT_TEXT_BYTES_MAX, IDENTITY_BYTES_MAX, PATH_BYTES_MAX};
use svc_model::request::{Incoming, Request as _};
use svc_model::time::Instant;

/// Text of any characters, including blanks and NUL.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,12}",
        "\\PC{1,6}",
        "[ \t\u{0}\u{1f}\u{3000}a]{1,4}",
        Just("x".repeat(IDENTITY_BYTES_MAX)),
    ]
}

fn session() -> impl Strategy<Value = SessionId> {
    any_text().prop_filter_map("an identity", |text| SessionId::new(&text).ok())
}

fn user() -> impl Strategy<Value = UserId> {
    any_text().prop_filter_map("an identity", |text| UserId::new(&text).ok())
}

fn call() -> impl Strategy<Value = ForeignId> {
    any_text().prop_filter_map("an identity", |text| ForeignId::new(&text).ok())
}

fn path() -> impl Strategy<Value = FilePath> {
    let text = prop_oneof![9 => any_text(), 1 => Just("p".repeat(PATH_BYTES_MAX))];
    text.prop_filter_map("a path", |text| FilePath::new(text).ok())
}

/// Any text at all, in UTF-16 units, as an agent written in JavaScript may have it.
fn edit_text() -> impl Strategy<Value = EditText> {
    let unit = prop_oneof![
        Just(0_u16),
        0x20..0x7f_u16,
        0xd800..0xe000_u16,
        any::<u16>()
    ];
    let short = prop::collection::vec(unit, 0..8).prop_map(|units| {
        let escapes: Vec<_> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let text = format!("\"{}\"", escapes.concat());
        let text = Json::parse(text.as_bytes()).expect("a JSON string");
        EditText::new(text.as_text().expect("a string")).expect("a short text")
    });
    let longest = EditText::new("y".repeat(EDIT_TEXT_BYTES_MAX)).expect("the longest text");
    prop_oneof![30 => short, 1 => Just(longest)]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let tool = || prop::option::of(prop_oneof![Just("Write".to_owned()), any_text()]);
    let decision = (
        call(),
        prop::option::of(path()),
        any::<(bool, bool)>(),
        tool(),
    );
    let decision = decision.prop_map(|(call_id, file_path, (accepted, explicit), tool_name)| {
        EventKind::from(ToolDecision {
            call_id,
            file_path,
            accepted,
            explicit,
            tool_name,
        })
    });
    let counts = any::<(Option<u32>, Option<u32>)>();
    let observation = (call(), path(), edit_text(), edit_text(), counts, tool());
    let observation = observation.prop_map(
        |(call_id, file_path, applied_text, observed_file_text, counts, tool_name)| {
            EventKind::from(EditObservation {
                call_id,
                file_path,
                applied_text,
                observed_file_text,
                external_lines_added: counts.0,
                external_lines_removed: counts.1,
                tool_name,
            })
        },
    );
    let rejection = (call(), path(), edit_text(), tool());
    let rejection = rejection.prop_map(|(call_id, file_path, proposed, tool_name)| {
        EventKind::from(RejectedEdit {
            call_id,
            file_path,
            proposed,
            tool_name,
        })
    });
    let linkage = (
        prop::sample::select(RetriedTool::ALL),
        path(),
        call(),
        call(),
    );
    let linkage = linkage.prop_filter_map("two calls", |(tool, path, rejected, accepted)| {
        let linkage = RetryLinkage::new(tool, &path, rejected, accepted).ok()?;
        Some(EventKind::from(linkage))
    });
    prop_oneof![decision, observation, rejection, linkage]
}

fn event() -> impl Strategy<Value = Event> {
    let last = Instant::parse("2261-12-31T23:59:59.999999Z").expect("an instant");
    let time = prop_oneof![Just(1), Just(last.microseconds()), 1..last.microseconds()];
    let agent = prop::sample::select(AgentHarness::ALL);
    let user = prop::option::of(user());
    (agent, session(), user, time, kind()).prop_map(|(agent, session_id, user_id, time, kind)| {
        let time = Instant::from_microseconds(time).expect("in range");
        Event {
            agent,
            session_id,
            user_id,
            occurred_at: time.try_into().expect("after the beginning"),
            kind,
        }
    })
}

/// Returns what the capture makes of the bytes that the client sends.
fn understood(events: &[Event]) -> CapturedLogs {
    let written = LogsRequest::from(events).write().expect("finite numbers");
    assert!(written.headers.is_empty(), "JSON needs no header");
    let nothing = Object::new();
    let read = LogsRequest::read(&Incoming {
        path: &nothing,
        query: &nothing,
        headers: &nothing,
        body: &written.body.expect("a body"),
        memory: &NodeBudget::unlimited(),
    });
    let receipt = Receipt {
        org_id: &OrgId::new("acme").expect("an organization"),
        received_at: received_at(),
        ids: &Ids::counting(),
        redaction: Redaction::Off,
        secrets: &Secrets::default(),
    };
    let memory = NodeBudget::unlimited();
    otlp::capture(read.expect("an export"), receipt, &memory).expect("JSON")
}

fn received_at() -> Instant {
    Instant::from_microseconds(7).expect("in range")
}

/// Returns the facts that events stand for, with the ids that the service assigned.
fn meant(events: &[Event], understood: &CapturedLogs) -> CapturedLogs {
    let mut meant = CapturedLogs {
        report: understood.report.clone(),
        ..CapturedLogs::default()
    };
    for event in events {
        match &event.kind {
            EventKind::ToolDecision(decision) => {
                let next = understood.decisions.get(meant.decisions.len());
                let fact = decided(event, decision, next.map(|fact| fact.decision_id));
                meant.decisions.push(fact);
            }
            EventKind::EditObservation(observation) => {
                let next = &understood
                    .edit_observations
                    .get(meant.edit_observations.len());
                let fact = observed(event, observation, next.map(|fact| fact.observation_id));
                meant.edit_observations.push(fact);
            }
            EventKind::RejectedEdit(rejection) => {
                let next = understood.rejected_edits.get(meant.rejected_edits.len());
                let fact = rejected(event, rejection, next.map(|fact| fact.rejection_id));
                meant.rejected_edits.push(fact);
            }
            EventKind::RetryLinkage(linkage) => {
                let next = understood.retry_linkages.get(meant.retry_linkages.len());
                let fact = linked(event, linkage, next.map(|fact| fact.retry_linkage_id));
                meant.retry_linkages.push(fact);
            }
        }
    }
    meant
}

fn id(given: Option<FactId>) -> FactId {
    given.expect("a fact for each event")
}

fn decided(
    event: &Event,
    decision: &ToolDecision,
    given: Option<FactId>,
) -> fact::DeveloperDecision {
    let text = |text: &str| Json::from(text);
    let members = [
        ("agent", Some(text(event.agent.as_str()))),
        ("session.id", Some(text(event.session_id.as_str()))),
        ("tool_use_id", Some(text(decision.call_id.as_str()))),
        (
            "file_path",
            decision.file_path.as_ref().map(|path| text(path.as_str())),
        ),
        (
            "decision",
            Some(text(if decision.accepted {
                "accept"
            } else {
                "reject"
            })),
        ),
        ("explicit", Some(decision.explicit.into())),
        ("tool_name", decision.tool_name.as_deref().map(text)),
    ];
    let members = members
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let attributes = Json::Object(members.collect());
    fact::DeveloperDecision {
        decision_id: id(given),
        session_id: event.session_id.clone(),
        user_id: event.user_id.clone(),
        agent_harness: event.agent,
        file_path: decision
            .file_path
            .as_ref()
            .map_or_else(String::new, FilePath::to_string),
        accepted: decision.accepted,
        explicit: decision.explicit,
        interaction_mode: InteractionMode::Agent,
        commit_sha: None,
        call_id: Some(decision.call_id.to_string()),
        edit_retention_score: None,
        observation_delay_ms: None,
        occurred_at: event.occurred_at.instant(),
        captured_at: received_at(),
        raw: Json::Object([("decision", attributes)].into_iter().collect()),
    }
}

fn observed(
    event: &Event,
    observation: &EditObservation,
    given: Option<FactId>,
) -> fact::EditObservation {
    fact::EditObservation {
        observation_id: id(given),
        session_id: event.session_id.clone(),
        user_id: event.user_id.clone(),
        agent_harness: event.agent,
        call_id: observation.call_id.to_string(),
        file_path: observation.file_path.to_string(),
        texts: fact::EditTexts {
            applied: observation.applied_text.text().clone(),
            observed_file: observation.observed_file_text.text().clone(),
        },
        external_lines_added: observation.external_lines_added.map(i64::from),
        external_lines_removed: observation.external_lines_removed.map(i64::from),
        occurred_at: event.occurred_at.instant(),
        captured_at: received_at(),
        raw: tool(observation.tool_name.as_deref()),
    }
}

fn rejected(event: &Event, rejection: &RejectedEdit, given: Option<FactId>) -> fact::RejectedEdit {
    fact::RejectedEdit {
        rejection_id: id(given),
        session_id: event.session_id.clone(),
        user_id: event.user_id.clone(),
        agent_harness: event.agent,
        call_id: rejection.call_id.to_string(),
        file_path: rejection.file_path.to_string(),
        proposed: rejection.proposed.text().clone(),
        occurred_at: event.occurred_at.instant(),
        captured_at: received_at(),
        raw: tool(rejection.tool_name.as_deref()),
    }
}

fn linked(event: &Event, linkage: &RetryLinkage, given: Option<FactId>) -> fact::RetryLinkage {
    fact::RetryLinkage {
        retry_linkage_id: id(given),
        session_id: event.session_id.clone(),
        user_id: event.user_id.clone(),
        agent_harness: event.agent,
        tool_name: linkage.tool_name().to_string(),
        file_path: linkage.file_path().to_string(),
        rejected_call_id: linkage.rejected_call_id().to_string(),
        accepted_call_id: linkage.accepted_call_id().to_string(),
        occurred_at: event.occurred_at.instant(),
        captured_at: received_at(),
        raw: Json::Object(Object::new()),
    }
}

/// Returns what is kept of an edit besides its texts.
fn tool(name: Option<&str>) -> Json {
    let name = name.map_or(Json::Null, Json::from);
    Json::Object([("tool_name", name)].into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_of_the_builder_is_captured_as_intended(events in prop::collection::vec(event(), 0..6)) {
        let understood = understood(&events);
        prop_assert_eq!(understood.report.records.translated, events.len() as u64);
        prop_assert!(understood.report.skipped.is_empty());
        let meant = meant(&events, &understood);
        prop_assert_eq!(understood, meant);
    }
}
