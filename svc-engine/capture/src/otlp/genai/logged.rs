//! The event in which a program logs a call of a model.

use std::collections::HashSet;

use svc_engine_fact::gemini_event;
use svc_model::ingest::LogSkip;
use svc_model::json::{NodeBudget, Text};
use svc_model::usage::{CallSource, UsageSource};

use super::super::copilot_span;
use super::super::ids::SpanIdentity;
use super::super::logged::{ExportedRecord, SESSION, session};
use super::super::operation::{Found, Observation, Operation, found};
use super::{Dialect, Dialogue, attributes, is_model_call, report};
use crate::Receipt;

/// The name by which Gemini CLI calls itself.
const GEMINI: &str = "gemini-cli";

/// The Sessions of which an export has records of Gemini CLI.
pub(in crate::otlp) type GeminiSessions<'r> = HashSet<&'r Text>;

/// Returns the Sessions whose records say that Gemini CLI made them.
pub(in crate::otlp) fn gemini_sessions<'r>(logged: &[ExportedRecord<'r>]) -> GeminiSessions<'r> {
    let own = logged
        .iter()
        .filter(|logged| logged.is_named("gemini_cli."));
    own.filter_map(|logged| logged.either(SESSION)).collect()
}

/// Turns the event into a call or into a receipt.
pub(in crate::otlp) fn details(
    logged: &ExportedRecord<'_>,
    gemini: &GeminiSessions<'_>,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<Found, LogSkip> {
    let operation = Operation {
        attributes: logged.attributes.well_formed()?,
        resource: logged.resource,
        memory,
    };
    is_model_call(&operation)?;
    let is_named = operation.resource.text("service.name");
    let is_named = is_named.is_some_and(|name| *name == *GEMINI);
    let is_of_gemini = || logged.either(SESSION).is_some_and(|id| gemini.contains(id));
    if is_named || is_of_gemini() {
        return of_gemini(logged, &operation, receipt);
    }
    let dialogue = attributes(&operation, Dialect::Convention)?.unwrap_or_default();
    let mut report = report(&operation, dialogue);
    if copilot_span::is_of_copilot(operation.attributes) {
        copilot_span::claim(&mut report, copilot_span::session(&operation));
    }
    let observation = Observation {
        source: CallSource::Telemetry,
        session_id: session(report.session)?,
        user_id: logged.user()?,
        at: logged.occurred_or_observed_at()?,
        duration_ms: None,
        span: SpanIdentity::of(logged.record),
        event: None,
        has_failed: false,
    };
    found(report, observation, receipt)
}

/// Gemini CLI identifies a call by the time that it writes on all that it logs of an answer. The
/// span in which it logs is not of one call.
fn of_gemini(
    logged: &ExportedRecord<'_>,
    operation: &Operation<'_>,
    receipt: Receipt<'_>,
) -> Result<Found, LogSkip> {
    let session_id = logged.session()?;
    let at = logged.stamped_or_occurred_at()?;
    let dialogue: Option<Dialogue> = attributes(operation, Dialect::Gemini)?;
    let mut report = report(operation, dialogue.unwrap_or_default());
    report.source = UsageSource::GeminiCli;
    if report.dialogue.output.is_empty() && !report.tokens.0.is_empty() {
        // Its `gemini_cli.api_response` is the receipt.
        return Err(LogSkip::CoveredByLogs);
    }
    let observation = Observation {
        source: CallSource::Telemetry,
        event: Some(gemini_event(&session_id, at)),
        session_id,
        user_id: logged.user()?,
        at,
        duration_ms: None,
        span: None,
        has_failed: false,
    };
    found(report, observation, receipt)
}
