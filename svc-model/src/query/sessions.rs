#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RepositorySelector;
use super::parameter::{Whole, whole};
use super::selector::SelectorParameters;
use crate::facts::AgentHarness;
use crate::field::{FieldKind, FromField, Violation, Violations};
use crate::id::{SessionId, UserId, identity};
use crate::json::{Json, WriteError};
use crate::limit::{SESSION_PAGE_DEFAULT, SESSION_PAGE_MAX};
use crate::open::Open;
use crate::problem::QueryFault;
use crate::repository::RepositoryName;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// The most Sessions of one page: 1 to 100, by default 50.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPageLimit(u64);

impl SessionPageLimit {
    /// Returns the limit, when it is in range.
    pub const fn new(limit: u64) -> Option<Self> {
        if limit >= 1 && limit <= SESSION_PAGE_MAX {
            Some(Self(limit))
        } else {
            None
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Default for SessionPageLimit {
    fn default() -> Self {
        Self(SESSION_PAGE_DEFAULT)
    }
}

impl FromField for SessionPageLimit {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let kind = match whole(value)? {
            Whole::Number(number) => match u64::try_from(number) {
                Ok(0) | Err(_) => FieldKind::GreaterThanEqual,
                Ok(number) => match Self::new(number) {
                    Some(limit) => return Ok(limit),
                    None => FieldKind::LessThanEqual,
                },
            },
            Whole::Below => FieldKind::GreaterThanEqual,
            Whole::Above => FieldKind::LessThanEqual,
        };
        Err(Violation::new(kind, "must be from 1 to 100"))
    }
}

/// Where a page of Sessions ended: opaque text of the service, good for the same question only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct SessionCursor(String);

impl SessionCursor {
    /// Takes the text of a cursor. Whether it is one is for the service to say.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromField for SessionCursor {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let expected = Violation::new(FieldKind::StringType, "must be a string");
        value.as_str().map(Self::new).ok_or(expected)
    }
}

/// The name of a model, as the gateway gave it: not empty, at most 1,024 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName(String);

impl ModelName {
    /// Returns the name, when it is one.
    pub fn new(text: &str) -> Option<Self> {
        identity(text).ok().map(|text| Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
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

/// Asks for Sessions, the latest first. The order is that in which their first facts were captured,
/// which never changes: a Session that goes on stays where it is.
///
/// Every condition must be met by a visible fact of the Session; the facts may differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsRequest {
    /// The first moment at which the first fact of a Session was captured; without one, all.
    pub captured_after: Option<Instant>,
    /// The moment that is no longer included; without one, all.
    pub captured_before: Option<Instant>,
    /// The user, exactly.
    pub user_id: Option<UserId>,
    /// The model, exactly.
    pub model: Option<ModelName>,
    /// The agent.
    pub agent_harness: Option<AgentHarness>,
    /// The repository of a commit at which the Session was observed.
    pub repository: RepositorySelector,
    /// The most Sessions of a page. It may change from page to page.
    pub limit: SessionPageLimit,
    /// Where the page before this one ended.
    pub cursor: Option<SessionCursor>,
}

impl Request for SessionsRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let fields = incoming.query_fields();
        let mut violations = Violations::default();
        let v = &mut violations;
        let captured_after = fields.present::<Instant>("captured_after", v);
        let captured_before = fields.present::<Instant>("captured_before", v);
        let user_id = fields.present("user_id", v);
        let model = fields.present("model", v);
        let agent_harness = fields.present("agent_harness", v);
        let repository = SelectorParameters::read(&fields, v);
        let limit = fields.present("limit", v);
        let cursor = fields.present("cursor", v);
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
            limit: limit.unwrap_or_default(),
            cursor,
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Outgoing::default();
        let moments = [
            ("captured_after", self.captured_after),
            ("captured_before", self.captured_before),
        ];
        for (name, moment) in moments {
            if let Some(moment) = moment {
                outgoing = outgoing.with_query(name, moment.to_string());
            }
        }
        if let Some(user_id) = &self.user_id {
            outgoing = outgoing.with_query("user_id", user_id.as_str());
        }
        if let Some(model) = &self.model {
            outgoing = outgoing.with_query("model", model.as_str());
        }
        if let Some(agent_harness) = self.agent_harness {
            outgoing = outgoing.with_query("agent_harness", agent_harness.as_str());
        }
        outgoing = self.repository.write(outgoing);
        outgoing = outgoing.with_query("limit", self.limit.get().to_string());
        if let Some(cursor) = &self.cursor {
            outgoing = outgoing.with_query("cursor", cursor.as_str());
        }
        Ok(outgoing)
    }
}

/// A Session in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionSummary {
    /// The Session.
    pub session_id: SessionId,
    /// When the service received its first fact: its place in the list.
    pub captured_at: Instant,
    /// The first moment that a stored fact of it tells of, quarantined ones included.
    pub first_observed_at: Instant,
    /// The last moment that a stored fact of it tells of, quarantined ones included.
    pub last_observed_at: Instant,
    /// The users that its visible facts name, sorted; several when they do not agree.
    pub user_ids: Vec<UserId>,
    /// The models of its visible calls, sorted.
    pub models: Vec<String>,
    /// The agents that its visible decisions and edits come from, sorted.
    pub agent_harnesses: Vec<Open<AgentHarness>>,
    /// The names of the repositories at whose commits it was visibly observed, sorted.
    pub repositories: Vec<RepositoryName>,
    /// Its visible calls; 1,000 stands for that many or more.
    pub inference_calls: u64,
}

/// One page of Sessions, the latest first, by falling moment of their first capture, then by falling
/// id. A Session without a visible fact is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionList {
    /// The Sessions. There may be fewer than the limit, even none, and more on the next page: a page
    /// looks at 1,000 Sessions at most.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page begins; null when this is the last.
    pub next_cursor: Option<SessionCursor>,
}
