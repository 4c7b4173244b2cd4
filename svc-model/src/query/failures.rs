use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::page::{CiCursor, PageLimit};
use super::parameter::{Positive, TRUE, Truth, as_of, asks};
#[cfg(feature = "schema")]
use super::selector::counts_by_decline;
use super::selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
use super::{CiOutcomeRecord, RepositorySelector};
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::id::is_trimmed;
use crate::ingest::CiResult;
use crate::json::{Json, WriteError};
use crate::limit::CI_PAGE_DEFAULT;
use crate::open::Open;
use crate::parameter::{Declared, DefaultValue, Parameter, parameters};
use crate::problem::QueryFault;
use crate::repository::RepositoryDecline;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// Asks for the outcomes of one repository that have one result, latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiFailuresRequest {
    /// The start of the range, included. An outcome belongs to the range by its capture time.
    pub captured_after: Instant,
    /// The end of the range, not included.
    pub captured_before: Instant,
    /// The repository, which must be selected.
    pub repository: RepositorySelector,
    /// The boundary: only facts captured at or before this moment count; by default
    /// `captured_before`.
    pub as_of: Option<Instant>,
    /// The result to list; by default `failed`.
    pub result: CiResult,
    /// The exact name of the workflow, without surrounding white space. Empty for outcomes without
    /// a name; `None` for all.
    pub workflow_name: Option<String>,
    /// The number of the pull request; `None` for all outcomes.
    pub pr_number: Option<i64>,
    /// The maximum number of outcomes on a page: 1 to 100, by default 50. It may change from page
    /// to page.
    pub limit: PageLimit,
    /// The `next_cursor` of the previous page; `None` for the first page.
    pub cursor: Option<CiCursor>,
    /// Whether the first page also has the outcomes that could not be assigned to the repository,
    /// and whether any fact names the repository.
    pub explain: bool,
}

impl CiFailuresRequest {
    /// Returns a request, with `explain` set, for the failed runs of a repository that were
    /// captured in a half-open range.
    pub fn new(
        repository: RepositorySelector,
        captured_after: Instant,
        captured_before: Instant,
    ) -> Self {
        Self {
            captured_after,
            captured_before,
            repository,
            as_of: None,
            result: CiResult::Failed,
            workflow_name: None,
            pr_number: None,
            limit: PageLimit::default(),
            cursor: None,
            explain: true,
        }
    }
}

struct WorkflowName(String);

impl crate::parameter::ParameterValue for WorkflowName {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for WorkflowName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WorkflowName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl FromField for WorkflowName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        let name = value.as_str().ok_or(expected)?;
        Ok(Self(name.trim_matches(is_trimmed).to_owned()))
    }
}

impl CiFailuresRequest {
    const CAPTURED_AFTER: Declared<Instant> =
        Declared::required("captured_after", "The start of the range, by capture time.");
    const CAPTURED_BEFORE: Declared<Instant> = Declared::required(
        "captured_before",
        "The end of the range, by capture time, not included.",
    );
    const AS_OF: Declared<Instant> =
        as_of("Count only facts captured at or before this moment; by default `captured_before`.");
    const RESULT: Declared<CiResult> = Declared::optional(
        "result",
        "One result: `passed`, `failed`, `error`, `timed_out`, `cancelled`, `skipped`, `neutral` or \
         `unknown`; by default `failed`.",
    )
    .or(DefaultValue::Word(CiResult::Failed.as_str()));
    const WORKFLOW_NAME: Declared<WorkflowName> = Declared::optional(
        "workflow_name",
        "The exact name of the workflow; empty for outcomes without one.",
    );
    const PR_NUMBER: Declared<Positive> =
        Declared::optional("pr_number", "The number of the pull request.");
    const LIMIT: Declared<PageLimit> = Declared::optional(
        "limit",
        "The maximum number of outcomes on a page: 1 to 100, by default 50.",
    )
    .or(DefaultValue::Number(CI_PAGE_DEFAULT));
    const CURSOR: Declared<CiCursor> = Declared::optional(
        "cursor",
        "The `next_cursor` of the previous page, with otherwise the same parameters.",
    );
    const EXPLAIN: Declared<Truth> = asks(
        "explain",
        "`true` adds to the first page what could not be assigned to the repository, and whether \
         any fact names it; by default `false`.",
    );
}

impl Request for CiFailuresRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::CAPTURED_AFTER,
        Self::CAPTURED_BEFORE,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::AS_OF,
        Self::RESULT,
        Self::WORKFLOW_NAME,
        Self::PR_NUMBER,
        Self::LIMIT,
        Self::CURSOR,
        Self::EXPLAIN,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let captured_after = Self::CAPTURED_AFTER.read(incoming, v);
        let captured_before = Self::CAPTURED_BEFORE.read(incoming, v);
        let repository = SelectorParameters::read(incoming, v);
        let as_of = Self::AS_OF.read(incoming, v);
        let result = Self::RESULT.read(incoming, v);
        let workflow_name = Self::WORKFLOW_NAME.read(incoming, v);
        let pr_number = Self::PR_NUMBER.read(incoming, v);
        let limit = Self::LIMIT.read(incoming, v);
        let cursor = Self::CURSOR.read(incoming, v);
        let explain = Self::EXPLAIN.read(incoming, v);
        let (captured_after, captured_before) =
            violations.finish(|| Some((captured_after?, captured_before?)))?;
        if captured_after >= captured_before {
            return Err(QueryFault::ReversedBounds.into());
        }
        let repository = repository.complete()?;
        if repository.is_empty() {
            return Err(QueryFault::MissingSelector.into());
        }
        Ok(Self {
            captured_after,
            captured_before,
            repository,
            as_of,
            result: result.unwrap_or(CiResult::Failed),
            workflow_name: workflow_name.map(|name| name.0),
            pr_number: pr_number.map(|number| number.0),
            limit: limit.unwrap_or_default(),
            cursor,
            explain: explain.is_some_and(Truth::get),
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Outgoing::default();
        outgoing = Self::CAPTURED_AFTER.write(outgoing, &self.captured_after);
        outgoing = Self::CAPTURED_BEFORE.write(outgoing, &self.captured_before);
        outgoing = self.repository.write(outgoing);
        outgoing = Self::AS_OF.write_any(outgoing, self.as_of.as_ref());
        outgoing = Self::RESULT.write(outgoing, &self.result);
        let workflow_name = self.workflow_name.clone().map(WorkflowName);
        outgoing = Self::WORKFLOW_NAME.write_any(outgoing, workflow_name.as_ref());
        outgoing = Self::PR_NUMBER.write_any(outgoing, self.pr_number.map(Positive).as_ref());
        outgoing = Self::LIMIT.write(outgoing, &self.limit);
        outgoing = Self::CURSOR.write_any(outgoing, self.cursor.as_ref());
        Ok(Self::EXPLAIN.write_any(outgoing, self.explain.then_some(&TRUE)))
    }
}

/// One page of outcomes, the latest capture first; if two were captured at the same time, the
/// greater id comes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiFailures {
    /// The requested result.
    pub result: Open<CiResult>,
    /// The outcomes.
    pub outcomes: Vec<CiOutcomeRecord>,
    /// The cursor of the next page; null if this is the last page.
    pub next_cursor: Option<CiCursor>,
    /// Whether some fact names the repository, although it has no matching outcome. Present, and
    /// then true, only on a first page without outcomes, and only if the request has `explain`.
    /// Absent on such a page, it means that no visible fact names the repository.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repository_known: bool,
    /// The number of matching outcomes that have a name of the repository but cannot be assigned to
    /// it, by reason. Present only on the first page, if there are any and the request has
    /// `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_decline"))]
    pub repository_skipped: Option<BTreeMap<Open<RepositoryDecline>, u64>>,
    /// The latest of these outcomes, at most one page of them. Present only on the first page, if
    /// there are any and the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved_ci_outcomes: Option<Vec<CiOutcomeRecord>>,
}
