//! Quarantine: facts that are hidden from every answer or shown again, and the append-only log of
//! both.

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::facts::FactTable;
use crate::field::{
    FieldKind, Fields, FromField, Undeclared, Violation, Violations, kept_text, scalar_text,
};
use crate::id::{ForeignId, OrgId};
use crate::json::{Json, WriteError};
use crate::limit::{QUARANTINE_LOG_DEFAULT, QUARANTINE_LOG_MAX, QUARANTINE_REASON_BYTES_MAX};
use crate::open::Open;
use crate::parameter::{Declared, DefaultValue, Parameter, ParameterValue, parameters};
use crate::query::PositiveNumber;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

closed_set! {
    /// What a row of the quarantine log records.
    pub enum QuarantineAction {
        /// The fact was hidden from every answer.
        Quarantine = "quarantine",
        /// The fact was shown again.
        Release = "release",
    }
}

/// The reason of a quarantine, a release or a change of grants: not blank, at most 4,096 bytes of
/// UTF-8, without NUL. It is kept exactly as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(extend("minLength" = 1, "maxLength" = QUARANTINE_REASON_BYTES_MAX, "pattern" = "\\S")))]
pub struct QuarantineReason(String);

impl QuarantineReason {
    /// Returns the reason, or a message that says what is expected.
    ///
    /// # Errors
    ///
    /// If the text is blank, too long, or contains NUL.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let text = kept_text(
            text,
            QUARANTINE_REASON_BYTES_MAX,
            "must have at most 4096 bytes of UTF-8",
        )?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for QuarantineReason {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::new(&text)
    }
}

impl From<QuarantineReason> for String {
    fn from(reason: QuarantineReason) -> Self {
        reason.0
    }
}

impl FromField for QuarantineReason {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Self::new(scalar_text(value)?).map_err(Violation::rule)
    }
}

/// Asks to quarantine or to release one fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QuarantineRequest {
    /// The kind of fact.
    pub table: FactTable,
    /// The id of the fact, or a prefix of at least eight characters that no other fact of the kind
    /// has.
    pub fact_id: ForeignId,
    /// The reason of the change, which is kept in the log.
    pub reason: QuarantineReason,
    /// Whether to append a row even if no fact of the kind has the id. By default, such a request
    /// is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

struct Flag(bool);

impl FromField for Flag {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        match value {
            Json::Bool(flag) => Ok(Self(*flag)),
            _ => Err(Violation::rule("must be true or false")),
        }
    }
}

impl Request for QuarantineRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let table = fields.required("table", &mut violations);
        let fact_id = fields.required("fact_id", &mut violations);
        let reason = fields.required("reason", &mut violations);
        let force = fields.present::<Flag>("force", &mut violations);
        fields.deny_undeclared(
            &["table", "fact_id", "reason", "force"],
            Undeclared::ByParent,
            &mut violations,
        );
        Ok(violations.finish(|| {
            Some(Self {
                table: table?,
                fact_id: fact_id?,
                reason: reason?,
                force: force.is_some_and(|force| force.0),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

/// The recorded quarantine or release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct QuarantineReceipt {
    /// The organization of the fact.
    pub org_id: OrgId,
    /// What was recorded.
    pub action: Open<QuarantineAction>,
    /// The kind of fact.
    pub table: Open<FactTable>,
    /// The id of the fact, in full.
    pub fact_id: String,
    /// Whether such a fact is stored.
    pub target_found: bool,
    /// Whether the fact was already in this state. A row was appended all the same.
    pub unchanged: bool,
    /// The revision of the row that was appended.
    pub quarantine_revision: u64,
}

/// Asks for the latest rows of the quarantine log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineLogRequest {
    /// The maximum number of rows: 1 to 1,000, by default 100.
    pub limit: u64,
    /// Return only rows before this revision.
    pub before: Option<u64>,
}

impl Default for QuarantineLogRequest {
    fn default() -> Self {
        Self {
            limit: QUARANTINE_LOG_DEFAULT,
            before: None,
        }
    }
}

/// The maximum number of rows of a log to return: 1 to 1,000.
pub(crate) struct LogLimit(u64);

impl LogLimit {
    /// Returns the number as a parameter.
    pub(crate) const fn new(limit: u64) -> Self {
        Self(limit)
    }

    /// Returns the number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

impl FromField for LogLimit {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let limit = PositiveNumber::from_field(value)?.get();
        if limit > QUARANTINE_LOG_MAX {
            return Err(Violation::new(
                FieldKind::LessThanEqual,
                "must be at most 1000",
            ));
        }
        Ok(Self(limit))
    }
}

impl ParameterValue for LogLimit {
    fn to_parameter(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for LogLimit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LogLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": QUARANTINE_LOG_MAX })
    }
}

impl QuarantineLogRequest {
    const LIMIT: Declared<LogLimit> = Declared::optional(
        "limit",
        "The maximum number of rows: 1 to 1,000, by default 100. These are the latest rows, oldest first.",
    )
    .or(DefaultValue::Number(QUARANTINE_LOG_DEFAULT));
    const BEFORE: Declared<PositiveNumber> = Declared::optional(
        "before",
        "Only rows before this revision: the `next_before` of the previous reply.",
    );
}

impl Request for QuarantineLogRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::LIMIT, Self::BEFORE,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let limit = Self::LIMIT.read(incoming, &mut violations);
        let limit = limit.map_or(QUARANTINE_LOG_DEFAULT, |limit| limit.0);
        let before = Self::BEFORE.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                limit,
                before: before.map(PositiveNumber::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Self::LIMIT.write(Outgoing::default(), &LogLimit(self.limit));
        let before = self.before.map(PositiveNumber::new);
        Ok(Self::BEFORE.write_any(outgoing, before.as_ref()))
    }
}

/// One row of the quarantine log. A row is never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct QuarantineLogEntry {
    /// The revision of the row. A later row has a greater one.
    pub quarantine_revision: u64,
    /// When the service recorded the row.
    pub recorded_at: Instant,
    /// Who made the change: the client of the token, or `shell` and the name of the system user who
    /// ran a command on the store itself.
    pub client_id: String,
    /// `quarantine` or `release`.
    pub action: String,
    /// The kind of fact.
    pub table: String,
    /// The id of the fact.
    pub fact_id: String,
    /// The reason of the change, exactly as written.
    pub reason: String,
}

/// Rows of the quarantine log, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct QuarantineLog {
    /// The organization.
    pub org_id: OrgId,
    /// The revision of the last row of the log; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// The number of rows in the whole log.
    pub rows: u64,
    /// The requested rows.
    pub entries: Vec<QuarantineLogEntry>,
    /// The `before` of the request for the rows before these; null if there are none.
    pub next_before: Option<u64>,
}
