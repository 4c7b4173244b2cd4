//! A span with its resource and its scope, borrowed from its export.

use std::collections::HashMap;

use svc_model::ingest::LogSkip;
use svc_model::json::{Json, NodeBudget, Object, Text};
use svc_model::time::Instant;

use super::super::attribute::Attributes;
use super::super::ids::SpanIdentity;
use super::super::operation::Operation;
use super::super::time;

/// How many spans around a span are searched for what it lacks.
const ANCESTORS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct ExportedSpan<'r> {
    pub(super) span: &'r Object,
    pub(super) name: Option<&'r str>,
    pub(super) identity: Option<SpanIdentity>,
    pub(super) attributes: Attributes<'r>,
    /// The attributes of its resource.
    pub(super) resource: &'r Attributes<'r>,
    /// The name of its scope.
    pub(super) scope: Option<&'r Text>,
}

impl<'r> ExportedSpan<'r> {
    pub(super) fn new(
        span: &'r Object,
        resource: &'r Attributes<'r>,
        scope: Option<&'r Text>,
    ) -> Self {
        Self {
            span,
            name: span.get("name").and_then(Json::as_str),
            identity: SpanIdentity::of(span),
            attributes: Attributes::of(span),
            resource,
            scope,
        }
    }

    /// Returns the events with their names.
    pub(super) fn events(&self) -> Vec<(&'r str, Attributes<'r>)> {
        let events = self.span.get("events").and_then(Json::as_array);
        let events = events
            .unwrap_or_default()
            .iter()
            .filter_map(Json::as_object);
        let named = |event: &'r Object| Some((event.get("name")?.as_str()?, Attributes::of(event)));
        events.filter_map(named).collect()
    }

    /// Returns when the span ended.
    pub(super) fn ended_at(&self) -> Result<Instant, LogSkip> {
        time::instant(self.span.get("endTimeUnixNano")).ok_or(LogSkip::MissingEventTime)
    }

    /// Returns how long the span took, in milliseconds.
    pub(super) fn duration_ms(&self) -> Option<i64> {
        let start = time::instant(self.span.get("startTimeUnixNano"))?;
        let end = self.ended_at().ok()?;
        let taken = end.microseconds().checked_sub(start.microseconds())?;
        (taken >= 0).then_some(taken / 1_000)
    }

    pub(super) fn has_failed(&self) -> bool {
        let status = self.span.get("status").and_then(Json::as_object);
        match status.and_then(|status| status.get("code")) {
            Some(Json::Number(code)) => code.as_i64() == Some(2),
            Some(Json::String(name)) => *name == *"STATUS_CODE_ERROR",
            _ => false,
        }
    }
}

/// The places of the spans of an export, by their identities.
pub(super) type Places = HashMap<SpanIdentity, usize>;

/// A span among the others of its export.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanView<'r> {
    pub(super) span: &'r ExportedSpan<'r>,
    pub(super) spans: &'r [ExportedSpan<'r>],
    pub(super) places: &'r Places,
    pub(super) memory: &'r NodeBudget,
}

impl<'r> SpanView<'r> {
    pub(super) fn operation(&self) -> Operation<'r> {
        self.operation_of(self.span)
    }

    /// Returns the operations of the spans that contain this one, from the inside out.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = Operation<'r>> {
        let first = self.parent(self.span);
        std::iter::successors(first, |span| self.parent(span))
            .take(ANCESTORS_MAX)
            .map(|span| self.operation_of(span))
    }

    fn parent(&self, span: &ExportedSpan<'r>) -> Option<&'r ExportedSpan<'r>> {
        let parent = SpanIdentity::of_parent(span.span)?;
        self.spans.get(*self.places.get(&parent)?)
    }

    fn operation_of(&self, span: &'r ExportedSpan<'r>) -> Operation<'r> {
        Operation {
            attributes: &span.attributes,
            resource: span.resource,
            memory: self.memory,
        }
    }
}
