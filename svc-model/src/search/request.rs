use std::collections::BTreeSet;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::query_words;
use crate::closed_set;
use crate::context::MaxBytes;
use crate::field::{
    Fields, FromField, Undeclared, Violation, Violations, scalar_text, whole_number,
};
use crate::id::{SessionId, UserId, identity_string};
use crate::json::{Json, WriteError};
use crate::limit::{QUERY_BYTES_MAX, SEARCH_SESSIONS_DEFAULT, SEARCH_SESSIONS_MAX};
use crate::query::RepositorySelector;
use crate::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::version::Version1;

/// What to search for: at most 2,048 bytes of UTF-8, with at least one word that is no stop word.
/// Nothing in it has a special meaning: quotes and operators separate words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(extend(
    "minLength" = 1,
    "maxLength" = QUERY_BYTES_MAX,
    "examples" = ["why does fetchWithBackoff retry forever"],
)))]
pub struct SearchQuery {
    text: String,
    words: BTreeSet<String>,
}

impl SearchQuery {
    /// Returns the query.
    ///
    /// # Errors
    ///
    /// What is expected, if the text is too long or has no word to search for.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > QUERY_BYTES_MAX {
            return Err("must have at most 2048 bytes of UTF-8");
        }
        let words = query_words(text);
        if words.is_empty() {
            return Err("must hold a word other than a, the, what and the like");
        }
        Ok(Self {
            text: text.to_owned(),
            words,
        })
    }

    /// Returns the text, as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the distinct words that are searched, as [`words`](super::words) cuts them, without
    /// stop words.
    pub const fn words(&self) -> &BTreeSet<String> {
        &self.words
    }
}

impl TryFrom<String> for SearchQuery {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::new(&text)
    }
}

impl From<SearchQuery> for String {
    fn from(query: SearchQuery) -> Self {
        query.text
    }
}

impl FromField for SearchQuery {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Self::new(scalar_text(value)?).map_err(Violation::rule)
    }
}

/// The maximum number of Sessions of an answer: 1 to 20, by default 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "u64", into = "u64")]
#[cfg_attr(feature = "schema", schemars(extend("minimum" = 1, "maximum" = SEARCH_SESSIONS_MAX)))]
pub struct SearchLimit(u64);

impl SearchLimit {
    /// Returns the limit if it is in range.
    pub const fn new(sessions: u64) -> Option<Self> {
        if sessions >= 1 && sessions <= SEARCH_SESSIONS_MAX {
            Some(Self(sessions))
        } else {
            None
        }
    }

    /// Returns the number of Sessions.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Default for SearchLimit {
    fn default() -> Self {
        Self(SEARCH_SESSIONS_DEFAULT)
    }
}

impl TryFrom<u64> for SearchLimit {
    type Error = &'static str;

    fn try_from(sessions: u64) -> Result<Self, &'static str> {
        Self::new(sessions).ok_or("must be from 1 to 20")
    }
}

impl From<SearchLimit> for u64 {
    fn from(limit: SearchLimit) -> Self {
        limit.0
    }
}

impl FromField for SearchLimit {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        whole_number(value, 1..=SEARCH_SESSIONS_MAX, "must be from 1 to 20").map(Self)
    }
}

identity_string! {
    /// A model, an agent or a role, compared exactly: not empty, at most 1,024 bytes.
    #[cfg_attr(feature = "schema", schemars(inline))]
    SearchWord
}
identity_string! {
    /// The path of a file, or its end from any folder on: `svc/pager.rs` stands for
    /// `/home/ann/shop/svc/pager.rs` too. `/` or `\` separate folders. Not empty, at most 1,024
    /// bytes.
    #[cfg_attr(feature = "schema", schemars(inline))]
    FilePath
}

impl FilePath {
    /// Returns the name of the file, without its folders.
    pub fn name(&self) -> &str {
        file_name(&self.0)
    }

    /// Returns whether a path is this one, or ends with it from a folder on.
    pub fn is_end_of(&self, path: &str) -> bool {
        let asked = self.0.trim_start_matches("./").split(SEPARATORS);
        let mut asked: Vec<&str> = asked.filter(|step| !step.is_empty()).collect();
        let mut steps = path.split(SEPARATORS).filter(|step| !step.is_empty()).rev();
        while let Some(step) = asked.pop() {
            if steps.next() != Some(step) {
                return false;
            }
        }
        true
    }
}

/// What separates the folders of a path.
const SEPARATORS: [char; 2] = ['/', '\\'];

/// Returns the name of the file at a path.
pub fn file_name(path: &str) -> &str {
    let mut steps = path.rsplit(SEPARATORS);
    steps.find(|step| !step.is_empty()).unwrap_or_default()
}

closed_set! {
    /// What kind of part is searched.
    pub enum SearchKind {
        /// Texts.
        Text = "text",
        /// Tool calls.
        ToolCall = "tool_call",
        /// Results of tool calls.
        ToolResult = "tool_result",
        /// Reasoning, which is searched only if it is asked for.
        Reasoning = "reasoning",
    }
}

/// A repository: its name, or its identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum SearchRepository {
    /// The name: `owner/name`.
    Named(RepositoryName),
    /// The identity.
    Identified(RepositoryIdentity),
}

impl SearchRepository {
    /// Returns the selector of the repository.
    pub fn selector(&self) -> RepositorySelector {
        match self {
            Self::Named(repo) => RepositorySelector::named(repo.clone()),
            Self::Identified(identity) => RepositorySelector::identified(identity.clone()),
        }
    }
}

/// Which Sessions and parts are searched. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SearchFilters {
    /// Only this Session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only Sessions that were observed at a commit of this repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<SearchRepository>,
    /// Only Sessions that were observed at this commit, in any repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitSha>,
    /// Only Sessions that worked on this file: a decision, an edit or a tool call names it, or a
    /// commit at which the Session was observed changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePath>,
    /// Only Sessions of this user. Only operators may ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Only parts of calls of this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SearchWord>,
    /// Only parts of calls of this agent, or of Sessions whose decisions name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<SearchWord>,
    /// Only parts of calls observed at this moment or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// Only parts of calls observed before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// Only parts of messages with this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<SearchWord>,
    /// Only parts of this kind. By default, all but reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SearchKind>,
}

impl SearchFilters {
    /// Returns whether there is no condition.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn read(fields: &Fields<'_>, violations: &mut Violations) -> Self {
        let repository = match fields.get("repository") {
            None | Some(Json::Null) => None,
            Some(Json::Object(_)) => fields
                .nullable_object("repository", violations)
                .and_then(|fields| identified(&fields, violations)),
            Some(_) => fields
                .nullable("repository", violations)
                .map(SearchRepository::Named),
        };
        let filters = Self {
            session_id: fields.nullable("session_id", violations),
            repository,
            commit: fields.nullable("commit", violations),
            file: fields.nullable("file", violations),
            user: fields.nullable("user", violations),
            model: fields.nullable("model", violations),
            agent: fields.nullable("agent", violations),
            since: fields.nullable("since", violations),
            until: fields.nullable("until", violations),
            role: fields.nullable("role", violations),
            kind: fields.nullable("kind", violations),
        };
        if let (Some(since), Some(until)) = (filters.since, filters.until)
            && until < since
        {
            violations.push(Violation::rule("must not be before since").at(fields.loc("until")));
        }
        fields.deny_undeclared(
            &[
                "session_id",
                "repository",
                "commit",
                "file",
                "user",
                "model",
                "agent",
                "since",
                "until",
                "role",
                "kind",
            ],
            Undeclared::ByParent,
            violations,
        );
        filters
    }
}

fn identified(fields: &Fields<'_>, violations: &mut Violations) -> Option<SearchRepository> {
    let provider = fields.required("repository_provider", violations);
    let host = fields.required("repository_host", violations);
    let id = fields.required("repository_id", violations);
    fields.deny_undeclared(
        &["repository_provider", "repository_host", "repository_id"],
        Undeclared::ByParent,
        violations,
    );
    Some(SearchRepository::Identified(RepositoryIdentity {
        repository_provider: provider?,
        repository_host: host?,
        repository_id: id?,
    }))
}

/// Asks for the Sessions whose parts match a query best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// What to search for. Its words are alternatives, and rare words count for more.
    pub query: SearchQuery,
    /// The maximum size of the whole reply in bytes: 4,096 to 65,536, by default 16,384.
    #[serde(default)]
    pub max_bytes: MaxBytes,
    /// The maximum number of Sessions: 1 to 20, by default 8.
    #[serde(default)]
    pub limit: SearchLimit,
    /// Which Sessions and parts are searched; by default all that the caller may read.
    #[serde(default, skip_serializing_if = "SearchFilters::is_empty")]
    pub filters: SearchFilters,
}

impl SearchRequest {
    /// Asks for a query, with the defaults for everything else.
    pub fn new(query: SearchQuery) -> Self {
        Self {
            schema_version: Version1,
            query,
            max_bytes: MaxBytes::default(),
            limit: SearchLimit::default(),
            filters: SearchFilters::default(),
        }
    }
}

impl Request for SearchRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object()?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let schema_version = fields.required("schema_version", &mut violations);
        let query = fields.required("query", &mut violations);
        let max_bytes = fields.present("max_bytes", &mut violations);
        let limit = fields.present("limit", &mut violations);
        let filters = fields
            .nullable_object("filters", &mut violations)
            .map(|filters| SearchFilters::read(&filters, &mut violations));
        fields.deny_undeclared(
            &["schema_version", "query", "max_bytes", "limit", "filters"],
            Undeclared::ByParent,
            &mut violations,
        );
        Ok(violations.finish(|| {
            Some(Self {
                schema_version: schema_version?,
                query: query?,
                max_bytes: max_bytes.unwrap_or_default(),
                limit: limit.unwrap_or_default(),
                filters: filters.unwrap_or_default(),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Outgoing::body(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{NodeBudget, Object};

    fn read(body: &str) -> Result<SearchRequest, Refusal> {
        let none = Object::new();
        SearchRequest::read(&Incoming {
            path: &none,
            query: &none,
            headers: &none,
            body: body.as_bytes(),
            memory: &NodeBudget::new(1 << 20),
        })
    }

    fn places(body: &str) -> Vec<String> {
        let Err(Refusal::Invalid(violations)) = read(body) else {
            panic!("{body} is valid");
        };
        let errors = violations.into_vec().into_iter();
        errors
            .map(|error| {
                let steps = error.loc.iter().map(|step| match step {
                    crate::field::Step::Name(name) => name.to_string(),
                    crate::field::Step::Index(index) => index.to_string(),
                });
                steps.collect::<Vec<_>>().join(".")
            })
            .collect()
    }

    #[test]
    fn every_wrong_member_is_named() {
        let wrong = r#"{"schema_version":2,"query":"the","max_bytes":1,"limit":0,"filters":{
            "session_id":"","repository":"shop","commit":"12","file":" ","user":5,"model":"",
            "agent":null,"since":"2026-01-02","until":"x","role":"","kind":"tool","more":1},"x":1}"#;
        let expected = [
            "body.schema_version",
            "body.query",
            "body.max_bytes",
            "body.limit",
            "body.filters.repository",
            "body.filters.session_id",
            "body.filters.commit",
            "body.filters.file",
            "body.filters.user",
            "body.filters.model",
            "body.filters.since",
            "body.filters.until",
            "body.filters.role",
            "body.filters.kind",
            "body.filters",
            "body",
        ];
        assert_eq!(places(wrong), expected);
        let reversed = r#"{"schema_version":1,"query":"x","filters":{
            "since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}}"#;
        assert_eq!(places(reversed), ["body.filters.until"]);
        let identity = r#"{"schema_version":1,"query":"x","filters":{"repository":{"x":1}}}"#;
        assert_eq!(places(identity).len(), 4);
    }

    #[test]
    fn a_request_reads_back_as_it_is_written() {
        let body = r#"{"schema_version":1,"query":"retry","max_bytes":4096,"limit":20,"filters":{
            "repository":{"repository_provider":"github","repository_host":"github.com","repository_id":"5"},
            "file":"svc/pager.rs","kind":"tool_result","since":"2026-01-02T00:00:00Z"}}"#;
        let request = read(body).unwrap();
        let Outgoing { body, .. } = request.write().unwrap();
        let written = String::from_utf8(body.unwrap()).unwrap();
        assert_eq!(read(&written).unwrap(), request);
        let least = read(r#"{"schema_version":1,"query":"retry","filters":null}"#).unwrap();
        assert_eq!(
            least,
            SearchRequest::new(SearchQuery::new("retry").unwrap())
        );
    }

    #[test]
    fn a_file_is_named_by_the_end_of_its_path() {
        let file = FilePath::new("svc/pager.rs").unwrap();
        assert_eq!(file.name(), "pager.rs");
        for path in [
            "svc/pager.rs",
            "/home/ann/svc/pager.rs",
            r"C:\x\svc\pager.rs",
            "./svc/pager.rs",
        ] {
            assert!(file.is_end_of(path), "{path}");
        }
        for path in [
            "pager.rs",
            "xsvc/pager.rs",
            "svc/pager.rs.old",
            "svc/pager.rs/x",
            "",
        ] {
            assert!(!file.is_end_of(path), "{path}");
        }
    }
}
