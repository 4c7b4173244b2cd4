use super::SpendBy;
use crate::field::Violations;
use crate::json::WriteError;
use crate::limit::{SPEND_ITEMS_MAX, SPEND_ROWS_DEFAULT, SPEND_ROWS_MAX};
use crate::parameter::{Declared, DefaultValue, Parameter, parameters};
use crate::query::{FALSE, Truth, row_limit};
use crate::reports::{ReportRequest, ReportScope};
use crate::request::{Incoming, Outgoing, Refusal, Request};

row_limit! {
    /// The maximum number of rows of a spend report: 1 to 1,000, by default 100.
    SpendRowLimit, SPEND_ROWS_DEFAULT, SPEND_ROWS_MAX, "must be from 1 to 1000";
}

/// Asks what the calls of a cohort cost, and what the spend became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendRequest {
    /// The calls to cover, and the boundary.
    pub scope: ReportScope,
    /// What the rows stand for; by default models.
    pub by: SpendBy,
    /// The maximum number of rows: 1 to 1,000, by default 100.
    pub limit: SpendRowLimit,
    /// Whether to say what the spend became. By default true. Without it, a report by model,
    /// Session, user or agent covers up to a million calls and receipts.
    pub outcomes: bool,
}

impl SpendRequest {
    const BY: Declared<SpendBy> = Declared::optional(
        "by",
        "What the rows stand for: `model`, `session`, `repository`, `pull-request`, `commit`, `user` or `agent`; by default `model`.",
    )
    .or(DefaultValue::Word("model"));
    const LIMIT: Declared<SpendRowLimit> = Declared::optional(
        "limit",
        "The maximum number of rows: 1 to 1,000, by default 100. The others are summed up.",
    )
    .or(DefaultValue::Number(SPEND_ROWS_DEFAULT));
    const OUTCOMES: Declared<Truth> = Declared::optional(
        "outcomes",
        "`false` does not say what the spend became; by default `true`.",
    )
    .or(DefaultValue::Truth(true));

    /// Returns the request with the defaults for a cohort.
    pub fn new(scope: ReportScope) -> Self {
        Self {
            scope,
            by: SpendBy::Model,
            limit: SpendRowLimit::default(),
            outcomes: true,
        }
    }

    /// Returns whether the answer depends on the commits that the work reached.
    pub const fn needs_commits(&self) -> bool {
        self.outcomes || self.by.is_of_commits()
    }
}

impl Request for SpendRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        ReportRequest::COHORT_START,
        ReportRequest::COHORT_END,
        ReportRequest::AS_OF,
        Self::BY,
        Self::LIMIT,
        Self::OUTCOMES,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let start = ReportRequest::COHORT_START.read(incoming, v);
        let end = ReportRequest::COHORT_END.read(incoming, v);
        let as_of = ReportRequest::AS_OF.read(incoming, v);
        let by = Self::BY.read(incoming, v);
        let limit = Self::LIMIT.read(incoming, v);
        let outcomes = Self::OUTCOMES.read(incoming, v);
        let (start, end, as_of) = violations.finish(|| Some((start?, end?, as_of?)))?;
        let mut request = Self {
            scope: ReportScope::new(start..end, as_of)?,
            by: by.unwrap_or(SpendBy::Model),
            limit: limit.unwrap_or_default(),
            outcomes: outcomes.is_none_or(Truth::get),
        };
        if !request.needs_commits() {
            request.scope.max_inference_calls = SPEND_ITEMS_MAX;
        }
        Ok(request)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = ReportRequest { scope: self.scope }.write()?;
        outgoing = Self::BY.write(outgoing, &self.by);
        outgoing = Self::LIMIT.write(outgoing, &self.limit);
        let outcomes = (!self.outcomes).then_some(&FALSE);
        Ok(Self::OUTCOMES.write_any(outgoing, outcomes))
    }
}
