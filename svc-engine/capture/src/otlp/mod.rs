//! Turns what coding agents log over OTLP into decisions, edit observations, rejected edits, retry
//! linkages and usage receipts.
//!
//! Most records of an export are irrelevant, and any member of a record may be absent or of any
//! type. So each record is read separately: one that cannot become a fact is skipped with a closed
//! reason ([`LogSkip`]) and does not affect the others. A record may be several events. A decision
//! may need another record, the result of its tool call, which may be anywhere in the same export.
//!
//! Records are first read in place. Once it is known which facts keep which records, the records
//! are moved into the facts, so a record that only one fact keeps is never copied. The copies of
//! records that several facts share are bounded.
//!
//! | Event | Module |
//! |---|---|
//! | `claude_code.*` | `claude_code` |
//! | `codex.*` | `codex`, `patch` |
//! | Commits that `claude_code.tool_result` names | `commits` |
//! | What clients report of the use of models | `usage` |
//! | Calls of models by OpenTelemetry's conventions | `genai` |
//! | The bodies of requests and responses that Claude Code logs | `bodies` |
//! | `copilot_chat.*` | `copilot` |
//! | `svc.*`: from the service's own shims and hooks, with their attributes | `own` |
//!
//! Spans are read in `spans`, and become inference calls and usage receipts only.
//!
//! The answer is `{}`, whatever was skipped; `GET /v1/capture` shows the operator what was skipped.

mod attribute;
mod bodies;
mod claude_code;
mod codex;
mod commits;
mod copilot;
mod copilot_span;
mod decided;
mod drafts;
mod export;
mod genai;
mod ids;
mod kept;
#[cfg(test)]
mod laws;
mod logged;
mod operation;
mod own;
mod patch;
mod protobuf;
mod raw;
mod report;
mod result;
mod spans;
mod structured;
#[cfg(test)]
mod testing;
mod time;
pub(crate) mod usage;

pub use report::{FactCounts, LogsReport, RecordCounts};
pub use spans::{CapturedTraces, TracesReport, capture_traces};

use svc_engine_fact::{
    CallHalf, CommitClaim, DeveloperDecision, EditObservation, HalfSide, InferenceCall,
    RejectedEdit, RetryLinkage, UsageReceipt,
};
use svc_model::ingest::{LogEvent, LogSkip, LogsRequest};
use svc_model::json::{NodeBudget, OverBudget};
use svc_model::limit::LOG_PATCH_FILES_MAX;

use self::attribute::Attributes;
use self::decided::DecisionDraft;
use self::drafts::Drafts;
use self::export::{Export, LOGS};
use self::genai::logged::GeminiSessions;
use self::logged::{ExportedRecord, RecordKind};
use self::operation::Found;
use super::Receipt;
use super::model_call::ModelCall;
use super::redaction::Redactor;

/// The facts of an export, in the order of its records, and counts of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapturedLogs {
    /// Developer decisions.
    pub decisions: Vec<DeveloperDecision>,
    /// Edit observations.
    pub edit_observations: Vec<EditObservation>,
    /// Rejected edits.
    pub rejected_edits: Vec<RejectedEdit>,
    /// Retry linkages.
    pub retry_linkages: Vec<RetryLinkage>,
    /// Usage receipts.
    pub usage_receipts: Vec<UsageReceipt>,
    /// Inference calls.
    pub calls: Vec<InferenceCall>,
    /// The commits that clients reported. They are not facts.
    pub commit_claims: Vec<CommitClaim>,
    /// Halves of calls, which are no facts.
    pub halves: Vec<CallHalf>,
    /// The counts.
    pub report: LogsReport,
}

/// Why an export is refused. Every JSON object is an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogsError {
    /// The bytes are not an `ExportLogsServiceRequest`, or not an `ExportTraceServiceRequest`.
    #[error("the message is malformed")]
    Malformed,
    /// There are more than [`LOG_RECORDS_MAX`](svc_model::limit::LOG_RECORDS_MAX) records or
    /// [`SPANS_MAX`](svc_model::limit::SPANS_MAX) spans, or their values need more memory than one
    /// request may use.
    #[error("the export holds more than one request may")]
    TooLarge,
}

impl From<OverBudget> for LogsError {
    fn from(OverBudget: OverBudget) -> Self {
        Self::TooLarge
    }
}

/// Turns an export into facts. Its values take their memory from `memory`, unless they are already
/// parsed.
///
/// # Errors
///
/// See [`LogsError`]. A refused export gives no facts.
pub fn capture(
    request: LogsRequest,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<CapturedLogs, LogsError> {
    let request = match request {
        LogsRequest::Json(export) => export,
        LogsRequest::Protobuf(message) => protobuf::decode(&message, memory)?,
    };
    let export = Export::of(request, &LOGS)?;
    let mut captured = CapturedLogs::default();
    captured.report.records.malformed = export.malformed_records;
    captured.report.malformed_containers = export.malformed_containers;
    let drafts = translate(&export, receipt, memory, &mut captured);
    drafts.keep(export.records, receipt, memory, &mut captured)?;
    if memory.is_exhausted() {
        return Err(LogsError::TooLarge);
    }
    if let Some(redactor) = receipt.redactor() {
        redact(&mut captured, redactor);
    }
    captured.report.facts = FactCounts {
        developer_decisions: captured.decisions.len() as u64,
        edit_observations: captured.edit_observations.len() as u64,
        rejected_edits: captured.rejected_edits.len() as u64,
        retry_linkages: captured.retry_linkages.len() as u64,
        usage_receipts: captured.usage_receipts.len() as u64,
        inference_calls: captured.calls.len() as u64,
    };
    Ok(captured)
}

/// Turns records into facts.
fn translate(
    export: &Export,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
    captured: &mut CapturedLogs,
) -> Drafts {
    let resources: Vec<Attributes<'_>> = export.resources.iter().map(Attributes::of).collect();
    let logged: Vec<ExportedRecord<'_>> = export
        .records
        .iter()
        .enumerate()
        .map(|(place, (scope, record))| {
            let scope = &export.scopes[*scope];
            let resource = &resources[scope.resource];
            ExportedRecord::new(place, record, resource, scope.name.as_ref())
        })
        .collect();
    let mut translator = Translator {
        claude_code: claude_code::Results::new(),
        codex: codex::Results::new(),
        gemini: genai::logged::gemini_sessions(&logged),
        files_left: LOG_PATCH_FILES_MAX,
        receipt,
        memory,
        decided: Vec::new(),
        called: Vec::new(),
        captured,
    };
    let mut events = Vec::new();
    for logged in &logged {
        if logged.is_unknown_own() {
            translator.captured.report.unknown_events += 1;
        }
        for kind in logged.kinds().into_iter().flatten() {
            match kind {
                RecordKind::ClaudeCodeResult => {
                    claude_code::add(&mut translator.claude_code, logged);
                    translator.commit(logged);
                }
                RecordKind::CodexResult => codex::add(&mut translator.codex, logged),
                RecordKind::Event(event) => events.push((event, logged)),
            }
        }
    }
    let mut translated = 0;
    let mut last = None;
    for (event, logged) in events {
        if translator.event(event, logged) && last != Some(logged.place) {
            translated += 1;
            last = Some(logged.place);
        }
    }
    let drafts = Drafts {
        decided: translator.decided,
        called: translator.called,
    };
    let records = &mut captured.report.records;
    let objects = logged.len() as u64;
    records.received = objects + records.malformed;
    records.translated = translated;
    records.untranslated = objects - translated;
    drafts
}

/// Turns events into facts.
struct Translator<'r, 'c> {
    claude_code: claude_code::Results<'r>,
    codex: codex::Results<'r>,
    gemini: GeminiSessions<'r>,
    files_left: usize,
    receipt: Receipt<'c>,
    memory: &'c NodeBudget,
    decided: Vec<DecisionDraft>,
    called: Vec<(usize, Box<ModelCall>)>,
    captured: &'c mut CapturedLogs,
}

impl<'r> Translator<'r, '_> {
    /// Turns one event into facts, and returns whether there were any.
    fn event(&mut self, event: LogEvent, logged: &'r ExportedRecord<'r>) -> bool {
        let before = self.facts();
        if let Err(reason) = self.translate(event, logged) {
            self.captured.report.skip(event, reason, 1);
        }
        self.facts() > before
    }

    fn facts(&self) -> usize {
        self.decided.len()
            + self.called.len()
            + self.captured.edit_observations.len()
            + self.captured.rejected_edits.len()
            + self.captured.retry_linkages.len()
            + self.captured.usage_receipts.len()
            + self.captured.halves.len()
    }

    fn translate(
        &mut self,
        event: LogEvent,
        logged: &'r ExportedRecord<'r>,
    ) -> Result<(), LogSkip> {
        let receipt = self.receipt;
        match event {
            LogEvent::ClaudeCodeToolDecision => {
                let decided = claude_code::decision(logged, &mut self.claude_code, receipt)?;
                self.decided.push(decided);
            }
            LogEvent::CodexToolDecision => {
                let files = &mut self.files_left;
                let found = codex::decisions(logged, &mut self.codex, files, receipt)?;
                for decided in found.decided {
                    match decided {
                        Ok(decided) => self.decided.push(decided),
                        Err(reason) => self.captured.report.skip(event, reason, 1),
                    }
                }
                if found.too_many > 0 {
                    let report = &mut self.captured.report;
                    report.skip(event, LogSkip::TooManyFiles, found.too_many as u64);
                }
            }
            LogEvent::CopilotEditFeedback => self.decided.push(copilot::feedback(logged, receipt)?),
            LogEvent::CopilotInlineDone => {
                self.decided.push(copilot::inline_done(logged, receipt)?);
            }
            LogEvent::CopilotEditSurvival => self.decided.push(copilot::survival(logged, receipt)?),
            LogEvent::OwnToolDecision => self.decided.push(own::decision(logged, receipt)?),
            LogEvent::OwnEditObservation => {
                let observation = own::edit_observation(logged, receipt)?;
                self.captured.edit_observations.push(observation);
            }
            LogEvent::OwnRejectedEdit => {
                let rejected = own::rejected_edit(logged, receipt)?;
                self.captured.rejected_edits.push(rejected);
            }
            LogEvent::OwnRetryLinkage => {
                let linkage = own::retry_linkage(logged, receipt)?;
                self.captured.retry_linkages.push(linkage);
            }
            LogEvent::ClaudeCodeApiRequest => {
                self.usage(event, usage::of_claude_code(logged, receipt)?);
            }
            LogEvent::CodexSseEvent => {
                if let Some(reported) = usage::of_codex(logged, receipt)? {
                    self.usage(event, reported);
                }
            }
            LogEvent::GeminiCliApiResponse => {
                self.usage(event, usage::of_gemini_cli(logged, receipt)?);
            }
            LogEvent::ClaudeCodeApiRequestBody => self.half(logged, HalfSide::Request)?,
            LogEvent::ClaudeCodeApiResponseBody => self.half(logged, HalfSide::Response)?,
            LogEvent::GenAiInference => {
                let found = genai::logged::details(logged, &self.gemini, receipt, self.memory)?;
                self.operation(event, logged.place, found);
            }
            LogEvent::ClaudeCodeToolResult => {}
        }
        Ok(())
    }
}

impl Translator<'_, '_> {
    /// Adds what an operation became.
    fn operation(&mut self, event: LogEvent, place: usize, found: Found) {
        match found {
            Found::Receipt(reported) => self.usage(event, *reported),
            Found::Call(call, is_consistent) => {
                if !is_consistent {
                    let report = &mut self.captured.report;
                    report.skip(event, LogSkip::InconsistentUsage, 1);
                }
                self.called.push((place, call));
            }
        }
    }

    /// Adds the commit that the result of a tool call names, if it names one.
    fn commit(&mut self, result: &ExportedRecord<'_>) {
        match commits::claim(result, self.receipt) {
            Ok(claim) => self.captured.commit_claims.extend(claim),
            Err(reason) => {
                let report = &mut self.captured.report;
                report.skip(LogEvent::ClaudeCodeToolResult, reason, 1);
            }
        }
    }

    /// Adds a half of a call.
    fn half(&mut self, logged: &ExportedRecord<'_>, side: HalfSide) -> Result<(), LogSkip> {
        let (half, redactions) = bodies::half(logged, side, self.receipt, self.memory)?;
        self.captured.halves.push(half);
        self.captured.report.redactions += redactions;
        Ok(())
    }

    /// Adds a usage receipt.
    fn usage(&mut self, event: LogEvent, reported: usage::Reported) {
        if !reported.is_consistent {
            let report = &mut self.captured.report;
            report.skip(event, LogSkip::InconsistentUsage, 1);
        }
        self.captured.usage_receipts.push(reported.receipt);
    }
}

/// Redacts the kept records and the texts of edits.
fn redact(captured: &mut CapturedLogs, mut redactor: Redactor) {
    for decision in &mut captured.decisions {
        redactor.json(&mut decision.raw);
    }
    for observation in &mut captured.edit_observations {
        redactor.text(&mut observation.texts.applied);
        redactor.text(&mut observation.texts.observed_file);
        redactor.json(&mut observation.raw);
    }
    for rejected in &mut captured.rejected_edits {
        redactor.text(&mut rejected.proposed);
        redactor.json(&mut rejected.raw);
    }
    for receipt in &mut captured.usage_receipts {
        let words = [&mut receipt.agent, &mut receipt.query_source];
        words
            .into_iter()
            .flatten()
            .for_each(|word| redactor.string(word));
    }
    captured.report.redactions += redactor.counts();
}

#[cfg(test)]
mod tests {
    use svc_model::json::{Json, Object};
    use svc_model::limit::LOG_COPIED_BYTES_MAX;

    use super::testing::{
        captured, captured_as, captured_records, event, export, json, object, record, written,
    };
    use super::*;
    use crate::Redaction;
    use crate::redaction::{MARKER, Secrets};

    const OWN: &str = r#"{"agent":"pi","session.id":"s-1","tool_use_id":"t1","file_path":"a.py",
        "decision":"accept","explicit":true}"#;

    #[test]
    fn a_bare_name_counts_only_in_the_scope_of_its_vendor() {
        let usage = r#"{"session.id":"s","event.name":"api_request","input_tokens":1}"#;
        for (scope, receipts) in [
            (r#"{"name":"com.anthropic.claude_code.events"}"#, 1),
            (r#"{"name":"com.example.events"}"#, 0),
            (r#"{"name":5}"#, 0),
            ("null", 0),
        ] {
            let record = written(&event("", usage));
            let text = format!(
                r#"{{"resourceLogs":[{{"scopeLogs":[{{"scope":{scope},"logRecords":[{record}]}}]}}]}}"#
            );
            let captured = captured(object(&text));
            assert_eq!(captured.usage_receipts.len(), receipts, "{scope}");
        }
    }

    /// What Claude Code sends for an edit that a person allowed.
    const EXAMPLE: &str = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"user.id","value":{"stringValue":"dev"}}]},
        "scopeLogs":[{"logRecords":[
         {"timeUnixNano":"1783454255424000000","body":{"stringValue":"claude_code.tool_decision"},"attributes":[
          {"key":"session.id","value":{"stringValue":"s-1"}},{"key":"decision","value":{"stringValue":"accept"}},
          {"key":"source","value":{"stringValue":"user_temporary"}},{"key":"tool_name","value":{"stringValue":"Edit"}},
          {"key":"tool_use_id","value":{"stringValue":"tu1"}}]},
         {"timeUnixNano":"1783454255424000000","body":{"stringValue":"claude_code.tool_result"},"attributes":[
          {"key":"tool_use_id","value":{"stringValue":"tu1"}},{"key":"tool_input","value":{"stringValue":"{\"file_path\":\"/w/a.py\"}"}}]}]}]}]}"#;

    #[test]
    fn an_allowed_edit_of_claude_code() {
        let captured = captured(object(EXAMPLE));
        let [decision] = captured.decisions.as_slice() else {
            panic!("{:?}", captured.report);
        };
        assert_eq!(decision.session_id.as_str(), "s-1");
        assert_eq!(decision.user_id.as_ref().unwrap().as_str(), "dev");
        assert_eq!(decision.file_path, "/w/a.py");
        assert_eq!(decision.call_id.as_deref(), Some("tu1"));
        assert!(decision.accepted && decision.explicit);
        assert_eq!(
            decision.occurred_at.to_string(),
            "2026-07-07T19:57:35.424000Z"
        );
        assert_eq!(decision.decision_id.uuid().as_u128(), 1);
        let records = &object(EXAMPLE);
        let records = records.get("resourceLogs").unwrap().as_array().unwrap()[0].clone();
        let records = records
            .as_object()
            .unwrap()
            .get("scopeLogs")
            .unwrap()
            .as_array()
            .unwrap()[0]
            .clone();
        let records = records
            .as_object()
            .unwrap()
            .get("logRecords")
            .unwrap()
            .as_array()
            .unwrap();
        let raw = [
            ("decision", records[0].clone()),
            ("result", records[1].clone()),
        ];
        assert_eq!(decision.raw, Object::from_iter(raw).into());
        let counts = RecordCounts {
            received: 2,
            translated: 1,
            untranslated: 1,
            malformed: 0,
        };
        assert_eq!(captured.report.records, counts);
        assert_eq!(captured.report.facts.developer_decisions, 1);
        assert!(captured.report.skipped.is_empty());
    }

    #[test]
    fn an_export_without_usable_records_yields_no_facts() {
        for text in [
            "{}",
            r#"{"resourceLogs":[]}"#,
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"some.other.event"}},{}]}]}]}"#,
        ] {
            let captured = captured(object(text));
            assert!(captured.decisions.is_empty());
            assert_eq!(captured.report.facts, FactCounts::default());
            assert_eq!(
                captured.report.records.received,
                captured.report.records.untranslated
            );
            assert!(captured.report.skipped.is_empty());
        }
    }

    #[test]
    fn an_event_name_is_recognised_in_each_place_and_only_if_complete() {
        let named = |place: &str, name: &str| -> Json {
            let mut record = record(OWN);
            match place {
                "body" => drop(record.insert("body", Object::from_iter([("stringValue", name)]))),
                "bare" => drop(record.insert("body", name)),
                "eventName" => drop(record.insert("eventName", name)),
                attribute => {
                    let attribute = Object::from_iter([("key", attribute), ("value", name)]);
                    let Some(Json::Array(list)) = record.get_mut("attributes") else {
                        panic!("a list");
                    };
                    list.push(attribute.into());
                }
            }
            record.into()
        };
        for place in ["body", "bare", "eventName", "event.name"] {
            let decisions = |name| captured_records([named(place, name)]).decisions.len();
            assert_eq!(decisions("svc.tool_decision"), 1, "{place}");
            for other in [
                "tool_decision",
                "svc.tool_decision ",
                "Svc.tool_decision",
                "",
            ] {
                assert_eq!(decisions(other), 0, "{place} {other}");
            }
        }
        assert!(
            captured_records([named("service.name", "svc.tool_decision")])
                .decisions
                .is_empty()
        );
        let mut thrice = named("body", "svc.tool_decision").into_object().unwrap();
        thrice.insert("eventName", "svc.tool_decision");
        assert_eq!(captured_records([thrice.into()]).decisions.len(), 1);
    }

    #[test]
    fn a_record_may_name_two_events() {
        let mut both = record(
            r#"{"agent":"pi","session.id":"s","tool_use_id":"t","file_path":"a","decision":"accept",
                "explicit":true,"proposed":"P","event.name":"svc.rejected_edit"}"#,
        );
        both.insert("body", "svc.tool_decision");
        let captured = captured_records([both.into()]);
        assert_eq!(
            (captured.decisions.len(), captured.rejected_edits.len()),
            (1, 1)
        );
        assert_eq!(captured.report.records.translated, 1);
    }

    #[test]
    fn a_malformed_record_does_not_affect_its_siblings() {
        let good = event("svc.tool_decision", OWN);
        let wrong = [
            json("5"),
            json("null"),
            json(r#"{"body":{"stringValue":"svc.tool_decision"},"attributes":7}"#),
            event("svc.tool_decision", r#"{"session.id":"\ud800"}"#),
            event("codex.tool_decision", "{}"),
        ];
        for at in 0..=wrong.len() {
            let mut records = wrong.to_vec();
            records.insert(at, good.clone());
            let captured = captured_records(records);
            assert_eq!(captured.decisions.len(), 1, "{at}");
            let counts = RecordCounts {
                received: 6,
                translated: 1,
                untranslated: 3,
                malformed: 2,
            };
            assert_eq!(captured.report.records, counts);
            let skipped: Vec<_> = captured.report.skipped_by_reason().into_iter().collect();
            assert_eq!(
                skipped,
                [
                    (LogSkip::MalformedAttributes, 1),
                    (LogSkip::InvalidFact, 1),
                    (LogSkip::NotAnEditTool, 1)
                ]
            );
        }
    }

    #[test]
    fn stored_values_are_redacted_and_identities_are_not() {
        const KEY: &str = "sk-abcdefghijklmnopqrst";
        let members = |more: &str| {
            format!(
                r#"{{"agent":"pi","session.id":"{KEY}","tool_use_id":"{KEY}","file_path":"{KEY}",
                    "tool_name":"{KEY}",{more}}}"#
            )
        };
        let records = || {
            [
                event(
                    "svc.tool_decision",
                    &members(r#""decision":"accept","explicit":true,"api_key":"x""#),
                ),
                event(
                    "svc.edit_observation",
                    &members(&format!(
                        r#""applied_text":"a {KEY}","observed_file_text":"b {KEY}""#
                    )),
                ),
                event(
                    "svc.rejected_edit",
                    &members(&format!(r#""proposed":"c {KEY}""#)),
                ),
            ]
        };
        let redacted = captured_records(records());
        let decision = &redacted.decisions[0];
        assert_eq!(decision.session_id.as_str(), KEY);
        assert_eq!(decision.file_path, KEY);
        assert_eq!(decision.call_id.as_deref(), Some(KEY));
        let kept = written(&decision.raw);
        assert!(
            !kept.contains(KEY) && kept.contains(&format!(r#""api_key":"{MARKER}""#)),
            "{kept}"
        );
        let observation = &redacted.edit_observations[0];
        assert_eq!(observation.file_path, KEY);
        assert_eq!(observation.texts.applied, *format!("a {MARKER}"));
        assert_eq!(observation.texts.observed_file, *format!("b {MARKER}"));
        assert_eq!(
            observation.raw,
            json(&format!(r#"{{"tool_name":"{MARKER}"}}"#))
        );
        assert_eq!(redacted.rejected_edits[0].proposed, *format!("c {MARKER}"));
        assert_eq!(redacted.report.redactions.structured_credential, 1);
        assert_eq!(redacted.report.redactions.provider_key, 9);

        let request = LogsRequest::Json(export("{}", records()));
        let kept = captured_as(request, Redaction::Off);
        assert_eq!(kept.rejected_edits[0].proposed, *format!("c {KEY}"));
        assert!(kept.report.redactions.is_empty());
    }

    #[test]
    fn a_result_shared_by_many_decisions_is_copied_a_bounded_number_of_times() {
        let decided =
            r#"{"session.id":"s","tool_name":"Edit","decision":"accept","tool_use_id":"t"}"#;
        let input = "x".repeat(LOG_COPIED_BYTES_MAX / 4);
        let result = format!(r#"{{"tool_use_id":"t","tool_input":"{input}"}}"#);
        let records = std::iter::once(event("claude_code.tool_result", &result))
            .chain(std::iter::repeat_with(|| event("claude_code.tool_decision", decided)).take(10));
        let captured = captured_records(records);
        let with_result: Vec<bool> = captured
            .decisions
            .iter()
            .map(|decision| {
                !decision
                    .raw
                    .as_object()
                    .unwrap()
                    .get("result")
                    .unwrap()
                    .is_null()
            })
            .collect();
        // Three copies fit, besides the original, which the last decision gets.
        let expected = [
            true, true, true, false, false, false, false, false, false, true,
        ];
        assert_eq!(with_result, expected);
        assert!(
            captured
                .decisions
                .iter()
                .all(|decision| written(&decision.raw).contains("accept"))
        );
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let receipt = Receipt {
            org_id: &svc_model::id::OrgId::new("acme").unwrap(),
            received_at: svc_model::time::Instant::from_microseconds(1).unwrap(),
            ids: &svc_engine_fact::clock::Ids::counting(),
            redaction: Redaction::On,
            secrets: &Secrets::default(),
        };
        for message in [
            &b"\x0a"[..],
            b"{}",
            b"\x1f\x8b\x08",
            b"\x0a\x02\x0a\x05",
            &[0xff; 20],
        ] {
            let request = LogsRequest::Protobuf(message.to_vec());
            assert_eq!(
                capture(request, receipt, &NodeBudget::unlimited()),
                Err(LogsError::Malformed),
                "{message:?}"
            );
        }
        let nothing = LogsRequest::Protobuf(Vec::new());
        let captured = capture(nothing, receipt, &NodeBudget::unlimited());
        assert_eq!(captured, Ok(CapturedLogs::default()));
    }
}
