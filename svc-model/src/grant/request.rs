#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TokenName;
use crate::facts::AgentHarness;
use crate::field::{FieldKind, Fields, FromField, Undeclared, Violation, Violations};
use crate::id::{ForeignId, SessionId, UserId};
use crate::json::{Object, WriteError};
use crate::limit::GRANT_LOG_DEFAULT;
use crate::parameter::{Declared, DefaultValue, Parameter, parameters};
use crate::quarantine::{LogLimit, QuarantineReason};
use crate::query::{PositiveNumber, TRUE, Truth, asks};
use crate::repository::{RepositoryIdentity, RepositoryName};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// Asks to grant a token one Session, or by a rule every Session that the rule reaches. A request
/// has either `session_id`, or at least one of the other members except `token` and `reason`. A
/// rule reaches a Session whose visible facts match all of its members and name no other user,
/// agent or repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// The name of the token.
    pub token: TokenName,
    /// The Session. It need not exist yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The only user that facts of the Session may name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The only agent that decisions and edits of the Session may come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_harness: Option<AgentHarness>,
    /// The name of the only repository at whose commits the Session may have been observed. The
    /// name is looked up once: the grant is for the repository that has the name now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepositoryName>,
    /// The identity of that repository. With `repo`, the repository must have had that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryIdentity>,
    /// The earliest capture time of the first fact of the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// The reason of the change, which is kept in the log.
    pub reason: QuarantineReason,
}

/// The members of the identity of a repository.
const IDENTITY: [&str; 3] = ["repository_provider", "repository_host", "repository_id"];

/// Reads the identity of a repository from the member `repository`.
fn identity(fields: &Fields<'_>, violations: &mut Violations) -> Option<RepositoryIdentity> {
    let name = "repository";
    let value = fields.get(name)?;
    let Some(object) = value.as_object() else {
        violations.push(
            Violation::new(FieldKind::ModelAttributesType, "must be a JSON object")
                .at(fields.loc(name)),
        );
        return None;
    };
    let members = Fields::new(object, fields.loc(name));
    members.deny_undeclared(&IDENTITY, Undeclared::ByParent, violations);
    let identity = RepositoryIdentity::read(&members, violations);
    if IDENTITY.iter().all(|name| object.get(name).is_none()) {
        let rule = Violation::rule("repository identity requires all three components");
        violations.push(rule.at(members.place()));
    }
    identity
}

impl GrantRequest {
    /// Returns whether the request has either a Session or a rule, and not both.
    pub fn is_one(&self) -> bool {
        let is_rule = self.user_id.is_some()
            || self.agent_harness.is_some()
            || self.repo.is_some()
            || self.repository.is_some()
            || self.since.is_some();
        self.session_id.is_some() != is_rule
    }
}

impl Request for GrantRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let v = &mut violations;
        let token = fields.required("token", v);
        let session_id = fields.present("session_id", v);
        let user_id = fields.present("user_id", v);
        let agent_harness = fields.present("agent_harness", v);
        let repo = fields.present("repo", v);
        let repository = identity(&fields, v);
        let since = fields.present("since", v);
        let reason = fields.required("reason", v);
        let declared = [
            "token",
            "session_id",
            "user_id",
            "agent_harness",
            "repo",
            "repository",
            "since",
            "reason",
        ];
        fields.deny_undeclared(&declared, Undeclared::ByParent, v);
        let request = violations.finish(|| {
            Some(Self {
                token: token?,
                session_id,
                user_id,
                agent_harness,
                repo,
                repository,
                since,
                reason: reason?,
            })
        })?;
        if !request.is_one() {
            let rule = Violation::rule("must name a Session, or a rule, and not both");
            return Err(Violations::one(rule.at(fields.place())).into());
        }
        Ok(request)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// Reads the two members of a request that has no others.
fn two<A: FromField, B: FromField>(
    body: &Object,
    names: [&'static str; 2],
) -> Result<(A, B), Refusal> {
    let fields = Fields::new(body, vec!["body".into()]);
    let mut violations = Violations::default();
    let first = fields.required(names[0], &mut violations);
    let second = fields.required(names[1], &mut violations);
    fields.deny_undeclared(&names, Undeclared::ByParent, &mut violations);
    Ok(violations.finish(|| Some((first?, second?)))?)
}

/// Asks to remove a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantRemovalRequest {
    /// The id of the grant, or a prefix of at least eight characters that no other grant has.
    pub grant_id: ForeignId,
    /// The reason of the change, which is kept in the log.
    pub reason: QuarantineReason,
}

impl Request for GrantRemovalRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let (grant_id, reason) = two(&incoming.object()?, ["grant_id", "reason"])?;
        Ok(Self { grant_id, reason })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// Asks to revoke or to restore a token as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenChangeRequest {
    /// The name of the token.
    pub token: TokenName,
    /// The reason of the change, which is kept in the log.
    pub reason: QuarantineReason,
}

impl Request for TokenChangeRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let (token, reason) = two(&incoming.object()?, ["token", "reason"])?;
        Ok(Self { token, reason })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// Asks for grants: those in force, or the whole log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantsRequest {
    /// The token whose rows to return; by default all tokens.
    pub token: Option<TokenName>,
    /// Whether to return every row of the log, rather than only what is in force.
    pub history: bool,
    /// The maximum number of rows: 1 to 1,000, by default 100. The latest rows are returned.
    pub limit: u64,
    /// Return only rows before this revision.
    pub before: Option<u64>,
}

impl Default for GrantsRequest {
    fn default() -> Self {
        Self {
            token: None,
            history: false,
            limit: GRANT_LOG_DEFAULT,
            before: None,
        }
    }
}

impl GrantsRequest {
    const TOKEN: Declared<TokenName> =
        Declared::optional("token", "Only the grants of this token.");
    const HISTORY: Declared<Truth> = asks(
        "history",
        "`true` returns every row of the log, rather than only what is in force.",
    );
    const LIMIT: Declared<LogLimit> = Declared::optional(
        "limit",
        "The maximum number of rows: 1 to 1,000, by default 100. These are the latest rows, oldest first.",
    )
    .or(DefaultValue::Number(GRANT_LOG_DEFAULT));
    const BEFORE: Declared<PositiveNumber> = Declared::optional(
        "before",
        "Only rows before this revision: the `next_before` of the previous reply.",
    );
}

impl Request for GrantsRequest {
    const PARAMETERS: &'static [Parameter] =
        parameters![Self::TOKEN, Self::HISTORY, Self::LIMIT, Self::BEFORE];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let token = Self::TOKEN.read(incoming, &mut violations);
        let history = Self::HISTORY.read(incoming, &mut violations);
        let limit = Self::LIMIT.read(incoming, &mut violations);
        let before = Self::BEFORE.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                token,
                history: history.is_some_and(Truth::get),
                limit: limit.map_or(GRANT_LOG_DEFAULT, LogLimit::get),
                before: before.map(PositiveNumber::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let mut outgoing = Self::TOKEN.write_any(Outgoing::default(), self.token.as_ref());
        outgoing = Self::HISTORY.write_any(outgoing, self.history.then_some(&TRUE));
        outgoing = Self::LIMIT.write(outgoing, &LogLimit::new(self.limit));
        let before = self.before.map(PositiveNumber::new);
        Ok(Self::BEFORE.write_any(outgoing, before.as_ref()))
    }
}

/// Asks which grants of a token reach a Session, and why others do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantExplanationRequest {
    /// The name of the token.
    pub token: TokenName,
    /// The id of the Session.
    pub session_id: SessionId,
}

impl GrantExplanationRequest {
    const TOKEN: Declared<TokenName> = Declared::required("token", "The name of the token.");
    const SESSION: Declared<SessionId> = Declared::required("session_id", "The Session.");
}

impl Request for GrantExplanationRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::TOKEN, Self::SESSION];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let token = Self::TOKEN.read(incoming, &mut violations);
        let session_id = Self::SESSION.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                token: token?,
                session_id: session_id?,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Self::TOKEN.write(Outgoing::default(), &self.token);
        Ok(Self::SESSION.write(outgoing, &self.session_id))
    }
}
