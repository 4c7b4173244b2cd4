#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::RepositorySelector;
use super::page::{SessionCursor, SessionPageLimit};
use super::parameter::{TRUE, Truth, asks};
use super::selector::{
    REPO, REPOSITORY_HOST, REPOSITORY_ID, REPOSITORY_PROVIDER, SelectorParameters,
};
use crate::facts::AgentHarness;
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::id::{SessionId, UserId, identity};
use crate::json::{Json, WriteError};
#[cfg(feature = "schema")]
use crate::limit::IDENTITY_BYTES_MAX;
use crate::limit::SESSION_PAGE_DEFAULT;
use crate::open::Open;
use crate::parameter::{Declared, DefaultValue, Parameter, parameters};
use crate::problem::QueryFault;
use crate::repository::{CommitSha, RepositoryName};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::search::FilePath;
use crate::spend::SessionSpend;
use crate::time::Instant;

/// The name of a model, as the gateway reports it: not empty, at most 1,024 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName(String);

impl ModelName {
    /// Returns the name if it is valid.
    pub fn new(text: &str) -> Option<Self> {
        identity(text).ok().map(|text| Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl crate::parameter::ParameterValue for ModelName {
    fn to_parameter(&self) -> String {
        self.0.clone()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for ModelName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": IDENTITY_BYTES_MAX })
    }
}

impl FromField for ModelName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        let name = identity(value.as_str().ok_or(expected)?);
        name.map(|name| Self(name.to_owned()))
            .map_err(|error| Violation::rule(error.message()))
    }
}

/// Asks for Sessions, latest first. They are ordered by when their first fact was captured, which
/// never changes: new activity does not move a Session in the list.
///
/// Each condition must be met by some visible fact of the Session, but not necessarily by the same
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsRequest {
    /// The earliest capture time of the first fact of a Session; by default unlimited.
    pub captured_after: Option<Instant>,
    /// The end of that range, not included; by default unlimited.
    pub captured_before: Option<Instant>,
    /// The user, compared exactly.
    pub user_id: Option<UserId>,
    /// The model of a call, compared exactly.
    pub model: Option<ModelName>,
    /// The agent of a decision or an edit.
    pub agent_harness: Option<AgentHarness>,
    /// The repository of a commit at which the Session was observed.
    pub repository: RepositorySelector,
    /// A commit at which the Session was observed, in any repository.
    pub commit: Option<CommitSha>,
    /// A file that the Session worked on, as [`SearchFilters::file`](crate::search::SearchFilters).
    pub file: Option<FilePath>,
    /// The maximum number of Sessions on a page: 1 to 100, by default 50. It may change from page
    /// to page.
    pub limit: SessionPageLimit,
    /// The `next_cursor` of the previous page; `None` for the first page.
    pub cursor: Option<SessionCursor>,
    /// Whether to say what each Session cost. By default false.
    pub spend: bool,
    /// Whether to give each Session a title. By default false.
    pub titles: bool,
}

impl SessionsRequest {
    const CAPTURED_AFTER: Declared<Instant> = Declared::optional(
        "captured_after",
        "Only Sessions whose first fact was captured at or after this moment.",
    );
    const CAPTURED_BEFORE: Declared<Instant> = Declared::optional(
        "captured_before",
        "Only Sessions whose first fact was captured before this moment.",
    );
    const USER_ID: Declared<UserId> =
        Declared::optional("user_id", "Only Sessions of this user, exactly.");
    const MODEL: Declared<ModelName> =
        Declared::optional("model", "Only Sessions with a call of this model, exactly.");
    const AGENT_HARNESS: Declared<AgentHarness> = Declared::optional(
        "agent_harness",
        "Only Sessions of this agent: `claude-code`, `copilot`, `codex`, `cursor` or `pi`.",
    );
    const COMMIT: Declared<CommitSha> = Declared::optional(
        "commit",
        "Only Sessions that were observed at this commit, in any repository.",
    );
    const FILE: Declared<FilePath> = Declared::optional(
        "file",
        "Only Sessions that worked on the file with this path, or with this end of a path.",
    );
    const LIMIT: Declared<SessionPageLimit> = Declared::optional(
        "limit",
        "The maximum number of Sessions on a page: 1 to 100, by default 50.",
    )
    .or(DefaultValue::Number(SESSION_PAGE_DEFAULT));
    const CURSOR: Declared<SessionCursor> = Declared::optional(
        "cursor",
        "The `next_cursor` of the previous page, with otherwise the same parameters.",
    );
    const SPEND: Declared<Truth> = asks(
        "spend",
        "`true` says what each Session of the page cost, at list price; by default `false`.",
    );
    const TITLES: Declared<Truth> = asks(
        "titles",
        "`true` gives each Session of the page a title, the beginning of what its user asked first; by default `false`.",
    );
}

impl Request for SessionsRequest {
    const PARAMETERS: &'static [Parameter] = parameters![
        Self::CAPTURED_AFTER,
        Self::CAPTURED_BEFORE,
        Self::USER_ID,
        Self::MODEL,
        Self::AGENT_HARNESS,
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        Self::COMMIT,
        Self::FILE,
        Self::LIMIT,
        Self::CURSOR,
        Self::SPEND,
        Self::TITLES,
    ];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let captured_after = Self::CAPTURED_AFTER.read(incoming, v);
        let captured_before = Self::CAPTURED_BEFORE.read(incoming, v);
        let user_id = Self::USER_ID.read(incoming, v);
        let model = Self::MODEL.read(incoming, v);
        let agent_harness = Self::AGENT_HARNESS.read(incoming, v);
        let repository = SelectorParameters::read(incoming, v);
        let commit = Self::COMMIT.read(incoming, v);
        let file = Self::FILE.read(incoming, v);
        let limit = Self::LIMIT.read(incoming, v);
        let cursor = Self::CURSOR.read(incoming, v);
        let spend = Self::SPEND.read(incoming, v);
        let titles = Self::TITLES.read(incoming, v);
        violations.finish(|| Some(()))?;
        if let (Some(after), Some(before)) = (captured_after, captured_before)
            && after >= before
        {
            return Err(QueryFault::ReversedBounds.into());
        }
        Ok(Self {
            captured_after,
            captured_before,
            user_id,
            model,
            agent_harness,
            repository: repository.complete()?,
            commit,
            file,
            limit: limit.unwrap_or_default(),
            cursor,
            spend: spend.is_some_and(Truth::get),
            titles: titles.is_some_and(Truth::get),
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Outgoing::default();
        outgoing = Self::CAPTURED_AFTER.write_any(outgoing, self.captured_after.as_ref());
        outgoing = Self::CAPTURED_BEFORE.write_any(outgoing, self.captured_before.as_ref());
        outgoing = Self::USER_ID.write_any(outgoing, self.user_id.as_ref());
        outgoing = Self::MODEL.write_any(outgoing, self.model.as_ref());
        outgoing = Self::AGENT_HARNESS.write_any(outgoing, self.agent_harness.as_ref());
        outgoing = self.repository.write(outgoing);
        outgoing = Self::COMMIT.write_any(outgoing, self.commit.as_ref());
        outgoing = Self::FILE.write_any(outgoing, self.file.as_ref());
        outgoing = Self::LIMIT.write(outgoing, &self.limit);
        outgoing = Self::CURSOR.write_any(outgoing, self.cursor.as_ref());
        outgoing = Self::SPEND.write_any(outgoing, self.spend.then_some(&TRUE));
        Ok(Self::TITLES.write_any(outgoing, self.titles.then_some(&TRUE)))
    }
}

/// One Session of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionSummary {
    /// The id of the Session.
    pub session_id: SessionId,
    /// When the service received the first fact of the Session. This is its position in the list.
    pub captured_at: Instant,
    /// The earliest time of its facts, including quarantined ones.
    pub first_observed_at: Instant,
    /// The latest time of its facts, including quarantined ones.
    pub last_observed_at: Instant,
    /// The users that its visible facts name, sorted. Several if they disagree.
    pub user_ids: Vec<UserId>,
    /// The models of its visible calls, sorted.
    pub models: Vec<String>,
    /// The agents that its visible decisions and edits come from, sorted.
    pub agent_harnesses: Vec<Open<AgentHarness>>,
    /// The names of the repositories with a visible observation of the Session at a commit, sorted.
    pub repositories: Vec<RepositoryName>,
    /// The number of its visible calls. 1,000 stands for 1,000 or more.
    pub inference_calls: u64,
    /// What it cost. Present only if the request has `spend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<SessionSpend>,
    /// The beginning of what its user asked first, at most 80 characters and an ellipsis. Present
    /// only if the request has `titles`, and absent if its first visible call has no such text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// One page of Sessions: those whose first fact was captured last come first; if two were captured
/// at the same time, the greater id comes first. A Session without a visible fact is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionList {
    /// The Sessions. There may be fewer than the limit, even none, although there are more on the
    /// next page, because a page examines at most 1,000 Sessions.
    pub sessions: Vec<SessionSummary>,
    /// The cursor of the next page; null if this is the last page.
    pub next_cursor: Option<SessionCursor>,
}
