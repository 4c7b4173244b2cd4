//! Turns the spans of programs that call models into inference calls and usage receipts.
//!
//! A span is read by the first sender that recognises it. Each sender brings its attributes to the
//! form of any model's interface, from which the parts are made in one way. Spans of agents, tools
//! and chains are no calls: what they say of tokens is the sum of the calls inside them.

mod conventions;
mod openinference;
mod span;
#[cfg(test)]
mod tests;
mod vercel;

use std::collections::BTreeMap;

use svc_engine_fact::{InferenceCall, UsageReceipt};
use svc_model::ingest::{LogSkip, TracesRequest};
use svc_model::json::{Json, NodeBudget, Object};
use svc_model::usage::CallSource;

use self::span::{ExportedSpan, Places, SpanView};
use super::attribute::{Attributes, without_account};
use super::export::{Export, TRACES};
use super::logged::{session, user};
use super::operation::{CallReport, Found, Observation, found};
use super::{LogsError, RecordCounts, protobuf, raw};
use crate::Receipt;
use crate::model_call::ModelCall;
use crate::redaction::RedactionCounts;
use svc_messages::{Degradation, MessagesError};

/// A program that reports its calls of models in a way of its own.
struct Sender {
    recognises: fn(&SpanView<'_>) -> bool,
    read: for<'r> fn(&SpanView<'r>) -> Result<CallReport<'r>, LogSkip>,
}

/// The senders, in the order in which they are tried. Those with names of their own come before the
/// conventions, which their spans may follow too.
const SENDERS: [Sender; 7] = [
    Sender {
        recognises: conventions::is_of_copilot,
        read: conventions::copilot,
    },
    Sender {
        recognises: vercel::recognises,
        read: vercel::read,
    },
    Sender {
        recognises: openinference::recognises,
        read: |view| Ok(openinference::read(view)),
    },
    Sender {
        recognises: conventions::is_of_strands,
        read: conventions::strands,
    },
    Sender {
        recognises: conventions::is_of_claude_code,
        read: |_| Err(LogSkip::CoveredByLogs),
    },
    Sender {
        recognises: conventions::is_of_codex,
        read: |_| Err(LogSkip::TurnTotal),
    },
    Sender {
        recognises: conventions::follows,
        read: conventions::convention,
    },
];

/// The facts of an export of spans, in their order, and counts of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapturedTraces {
    /// Inference calls.
    pub calls: Vec<InferenceCall>,
    /// Usage receipts.
    pub usage_receipts: Vec<UsageReceipt>,
    /// The counts.
    pub report: TracesReport,
}

/// The outcome of an export of spans, as counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracesReport {
    /// Its spans.
    pub spans: RecordCounts,
    /// Containers of spans that are not the lists or objects that they should be.
    pub malformed_containers: u64,
    /// Why spans of known senders became no facts.
    pub skipped: BTreeMap<LogSkip, u64>,
    /// What was left out of the calls.
    pub degradation: Degradation,
    /// What was redacted in the facts.
    pub redactions: RedactionCounts,
}

impl TracesReport {
    fn skip(&mut self, reason: LogSkip) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}

/// Turns an export into facts. Its values take their memory from `memory`, unless they are already
/// parsed.
///
/// # Errors
///
/// See [`LogsError`]. A refused export gives no facts.
pub fn capture_traces(
    request: TracesRequest,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<CapturedTraces, LogsError> {
    let request = match request {
        TracesRequest::Json(export) => export,
        TracesRequest::Protobuf(message) => protobuf::decode_traces(&message, memory)?,
    };
    let mut export = Export::of(request, &TRACES)?;
    let mut captured = CapturedTraces::default();
    let report = &mut captured.report;
    report.malformed_containers = export.malformed_containers;
    let spans = &mut report.spans;
    spans.malformed = export.malformed_records;
    spans.received = export.records.len() as u64 + spans.malformed;
    let calls = read(&export, receipt, memory, &mut captured);
    for (place, call) in calls {
        let span = std::mem::take(&mut export.records[place].1);
        keep(call, span, receipt, memory, &mut captured)?;
    }
    if memory.is_exhausted() {
        return Err(LogsError::TooLarge);
    }
    let translated = captured.calls.len() + captured.usage_receipts.len();
    let spans = &mut captured.report.spans;
    spans.translated = translated as u64;
    spans.untranslated = spans.received - spans.malformed - spans.translated;
    Ok(captured)
}

/// Reads the spans, and returns the calls with their places.
fn read(
    export: &Export,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
    captured: &mut CapturedTraces,
) -> Vec<(usize, Box<ModelCall>)> {
    let resources: Vec<Attributes<'_>> = export.resources.iter().map(Attributes::of).collect();
    let spans = export.records.iter().map(|(scope, span)| {
        let scope = &export.scopes[*scope];
        ExportedSpan::new(span, &resources[scope.resource], scope.name.as_ref())
    });
    let spans: Vec<ExportedSpan<'_>> = spans.collect();
    let places = spans.iter().enumerate();
    let places: Places = places
        .filter_map(|(place, span)| Some((span.identity?, place)))
        .collect();
    let mut calls = Vec::new();
    for (place, span) in spans.iter().enumerate() {
        let view = SpanView {
            span,
            spans: &spans,
            places: &places,
            memory,
        };
        match translate(&view, receipt) {
            None => {}
            Some(Err(reason)) => captured.report.skip(reason),
            Some(Ok(found)) => {
                let is_consistent = match found {
                    Found::Call(call, is_consistent) => {
                        calls.push((place, call));
                        is_consistent
                    }
                    Found::Receipt(reported) => {
                        captured.usage_receipts.push(reported.receipt);
                        reported.is_consistent
                    }
                };
                if !is_consistent {
                    captured.report.skip(LogSkip::InconsistentUsage);
                }
            }
        }
    }
    calls
}

/// Turns a span into a fact; `None` if no sender recognises it.
fn translate(view: &SpanView<'_>, receipt: Receipt<'_>) -> Option<Result<Found, LogSkip>> {
    let span = view.span;
    if let Err(reason) = span.attributes.well_formed() {
        return Some(Err(reason));
    }
    let sender = SENDERS.iter().find(|sender| (sender.recognises)(view))?;
    let found = (sender.read)(view).and_then(|report| {
        let observation = Observation {
            source: CallSource::Span,
            session_id: session(report.session)?,
            user_id: match user(span.resource)? {
                Some(user) => Some(user),
                None => user(&span.attributes)?,
            },
            at: span.ended_at()?,
            duration_ms: span.duration_ms(),
            span: span.identity,
            event: None,
            has_failed: span.has_failed(),
        };
        found(report, observation, receipt)
    });
    Some(found)
}

/// Keeps a call with its span.
fn keep(
    mut call: Box<ModelCall>,
    span: Object,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
    captured: &mut CapturedTraces,
) -> Result<(), LogsError> {
    call.raw = raw::payload(Json::Object(without_account(span)));
    match call.capture(receipt, memory) {
        Ok(made) => {
            captured.report.degradation += made.degradation;
            captured.report.redactions += made.redactions;
            captured.calls.push(made.call);
        }
        Err(MessagesError::InvalidIdentity) => captured.report.skip(LogSkip::InvalidFact),
        Err(MessagesError::TooLarge) => return Err(LogsError::TooLarge),
    }
    Ok(())
}
