//! One operation of a program, as a log record or a span reports it, and what becomes of it: an
//! inference call if it has content, else a usage receipt.

use svc_engine_fact::{CallKey, CallKeyKind, Workplace};
use svc_model::id::{SessionId, UserId};
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, NodeBudget, Object, Text};
use svc_model::time::Instant;
use svc_model::usage::{CallSource, TokenCounts, UsageSource};

use super::attribute::Attributes;
use super::ids::SpanIdentity;
use super::structured::decoded;
use super::usage::{self, CallIds, Reported};
use crate::Receipt;
use crate::model_call::ModelCall;

/// The attributes of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'r> {
    pub(super) attributes: &'r Attributes<'r>,
    pub(super) resource: &'r Attributes<'r>,
    pub(super) memory: &'r NodeBudget,
}

impl<'r> Operation<'r> {
    pub(super) fn text(&self, name: &str) -> Option<&'r Text> {
        self.attributes.text(name)
    }

    pub(super) fn str(&self, name: &str) -> Option<&'r str> {
        self.text(name)?.as_str()
    }

    /// Returns the text under the first of these names that has one, from the operation or else
    /// from its resource.
    pub(super) fn either(&self, names: &[&str]) -> Option<&'r Text> {
        names.iter().find_map(|name| {
            let own = self.attributes.text(name);
            own.or_else(|| self.resource.text(name))
        })
    }

    /// Returns the identity under the first of these names that has one.
    pub(super) fn identity(&self, names: &[&str]) -> Option<String> {
        names
            .iter()
            .find_map(|name| usage::identity(self.attributes, name))
    }

    /// Returns the count under the first of these names that has one.
    pub(super) fn amount(&self, names: &[&str]) -> Option<i64> {
        let amount = |name: &&str| self.attributes.get(name)?.amount();
        names.iter().find_map(amount)
    }

    /// Returns the value under a name, which is structured or JSON text.
    pub(super) fn value(&self, name: &str) -> Result<Option<Json>, LogSkip> {
        match self.attributes.get(name) {
            Some(value) => decoded(value, self.memory),
            None => Ok(None),
        }
    }

    /// Returns the list under a name.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<Json>>, LogSkip> {
        match self.value(name)? {
            Some(Json::Array(items)) => Ok(Some(items)),
            Some(_) => Err(LogSkip::MalformedMessages),
            None => Ok(None),
        }
    }

    /// Returns the texts of a list of words, such as the reasons why answers ended.
    pub(super) fn words(&self, name: &str) -> Vec<Option<Text>> {
        let list = self.list(name).ok().flatten().unwrap_or_default();
        list.into_iter().map(Json::into_text).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.get(name).is_some()
    }
}

/// The messages of a call, in a form that the messages of any model's interface have.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    pub(super) input: Vec<Json>,
    /// Each with its finish reason.
    pub(super) output: Vec<(Object, Option<Text>)>,
    /// The parts that the client cut.
    pub(super) truncated: u64,
}

/// What a sender says of one call of a model, in one form for all senders.
#[derive(Debug)]
pub(super) struct CallReport<'r> {
    pub(super) source: UsageSource,
    pub(super) session: Option<&'r Text>,
    pub(super) ids: CallIds,
    pub(super) model: Option<String>,
    pub(super) model_provider: Option<String>,
    /// The tokens, and whether the sender's numbers agree.
    pub(super) tokens: (TokenCounts, bool),
    pub(super) tier: Option<String>,
    pub(super) dialogue: Dialogue,
}

/// When and where an operation was observed.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) source: CallSource,
    pub(super) session_id: SessionId,
    pub(super) user_id: Option<UserId>,
    pub(super) at: Instant,
    pub(super) duration_ms: Option<i64>,
    pub(super) span: Option<SpanIdentity>,
    /// What identifies the call by the client's own event.
    pub(super) event: Option<CallKey>,
    pub(super) has_failed: bool,
}

/// What an operation became.
#[derive(Debug)]
pub(super) enum Found {
    /// A call, and whether its numbers agree.
    Call(Box<ModelCall>, bool),
    Receipt(Box<Reported>),
}

/// Makes the fact of a call.
pub(super) fn found(
    report: CallReport<'_>,
    observation: Observation,
    receipt: Receipt<'_>,
) -> Result<Found, LogSkip> {
    let dialogue = &report.dialogue;
    if !dialogue.output.is_empty() {
        return Ok(call(report, observation));
    }
    if observation.has_failed {
        return Err(LogSkip::AttemptWithoutResponse);
    }
    let (tokens, is_consistent) = report.tokens;
    if !tokens.is_empty() || !is_consistent {
        return used(report, observation, receipt)
            .map(|reported| Found::Receipt(Box::new(reported)));
    }
    Err(if dialogue.input.is_empty() {
        LogSkip::EmptyUsage
    } else {
        LogSkip::RequestOnly
    })
}

fn call(report: CallReport<'_>, observation: Observation) -> Found {
    let (tokens, is_consistent) = report.tokens;
    let keys = keys(&report.ids, &observation);
    let call = ModelCall {
        source: observation.source,
        session_id: observation.session_id,
        user_id: observation.user_id,
        keys,
        model: report.model,
        model_provider: report.model_provider,
        tokens,
        cost_usd_micros: None,
        tier: report.tier,
        duration_ms: observation.duration_ms,
        observed_at: observation.at,
        input: report.dialogue.input,
        output: report.dialogue.output,
        raw: Json::Null.into(),
        is_verbatim: false,
        agent: None,
        workplace: Workplace::default(),
        is_input_unpaired: false,
        truncated: report.dialogue.truncated,
    };
    Found::Call(Box::new(call), is_consistent)
}

/// Returns what identifies a call, first what its source identifies it by.
fn keys(ids: &CallIds, observation: &Observation) -> Vec<CallKey> {
    let ids = [
        (CallKeyKind::Response, &ids.response),
        (CallKeyKind::Request, &ids.request),
    ];
    let ids = ids
        .into_iter()
        .filter_map(|(kind, id)| Some(CallKey::new(kind, id.clone()?)));
    let span = observation.span.map(SpanIdentity::key);
    ids.chain(span).chain(observation.event.clone()).collect()
}

fn used(
    report: CallReport<'_>,
    observation: Observation,
    receipt: Receipt<'_>,
) -> Result<Reported, LogSkip> {
    let (tokens, is_consistent) = report.tokens;
    let Observation { session_id, at, .. } = observation;
    let mut made = usage::blank(report.source, session_id, at, receipt);
    made.user_id = observation.user_id;
    made.model = report.model;
    made.model_provider = report.model_provider;
    made.tier = report.tier;
    made.duration_ms = observation.duration_ms;
    // The context in which an event was logged may be that of several calls.
    if let Some(span) = observation
        .span
        .filter(|_| observation.source == CallSource::Span)
    {
        made.trace_id = Some(span.trace_id());
        made.span_id = Some(span.span_id());
    }
    usage::finish(made, report.ids, tokens, is_consistent, receipt)
}
