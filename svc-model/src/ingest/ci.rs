#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::{FieldKind, Fields, FromField, Undeclared, Violation, Violations};
use crate::id::{ForeignId, RunId, identity_text, is_trimmed};
use crate::json::{Json, Text, WriteError};
use crate::limit::{CI_REASON_CHARACTERS_MAX, PATH_BYTES_MAX};
use crate::parameter::{Declared, Parameter, parameters};
use crate::query::{TRUE, Truth, asks};
use crate::repository::{
    Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName,
    RepositoryProvider,
};
use crate::request::{Incoming, Outgoing, Refusal, Request};

closed_set! {
    /// The CI system that ran a check, as the sender declares it.
    pub enum CiProvider {
        /// The forge's own CI: GitHub Actions and its relatives.
        ForgeActions = "forge_actions" | "github_actions" | "github-actions",
        /// Jenkins.
        CiA = "ci_a" | "jenkins",
        /// GitLab CI.
        CiB = "ci_b" | "gitlab" | "gitlab_ci" | "gitlab-ci",
        /// CircleCI.
        CiC = "ci_c" | "circleci",
        /// Buildkite.
        CiD = "ci_d" | "buildkite",
        /// Another system.
        Other = "other",
    }
}

closed_set! {
    /// The normalised result of a run. Only `passed` and `failed` are verdicts.
    pub enum CiResult {
        /// The run passed.
        Passed = "passed" | "success",
        /// The run failed.
        Failed = "failed" | "failure" | "unstable",
        /// The run could not be carried out.
        Error = "error" | "unauthorized",
        /// The run exceeded its time limit.
        TimedOut = "timed_out",
        /// The run was cancelled.
        Cancelled = "cancelled" | "canceled" | "aborted",
        /// The run was not started.
        Skipped = "skipped" | "not_built" | "not_run",
        /// The run ended, neither as a success nor as a failure.
        Neutral = "neutral" | "manual",
        /// The CI system reported another result.
        Unknown = "unknown" | "action_required" | "stale" | "startup_failure",
    }
}

/// The outcome of one run of a CI system, as metadata: no logs. The first outcome that is stored
/// for an attempt of a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(transform = whole_identity))]
#[serde(deny_unknown_fields)]
pub struct VendorCIRequest {
    /// The CI system.
    pub provider: CiProvider,
    /// The CI system's id of the run.
    pub run_id: RunId,
    /// The number of the attempt, from 1. Without one, the outcome is stored under no attempt,
    /// which is distinct from every numbered attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub run_attempt: Option<i64>,
    /// The name of the repository, as the sender knows it.
    pub repo: RepositoryName,
    /// The kind of forge. The three members of the identity must be given together or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_provider: Option<RepositoryProvider>,
    /// The host of the forge. Given together with the two other members of the identity, or not at
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_host: Option<RepositoryHost>,
    /// The id that the forge gave the repository. Given together with the two other members of the
    /// identity, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_id: Option<RepositoryId>,
    /// The full id of the commit that was checked.
    pub commit_sha: CommitSha,
    /// The branch that was checked. May be empty.
    pub branch: Branch,
    /// The name of the workflow; by default empty. Surrounding white space is trimmed.
    #[serde(default)]
    pub workflow_name: Text,
    /// The CI system's id of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<ForeignId>,
    /// The path of the workflow's definition: at most 4,096 bytes of UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = PATH_BYTES_MAX)))]
    pub workflow_path: Option<String>,
    /// The normalised result.
    pub result: CiResult,
    /// The URL of the run's page: any text that is not blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<Text>,
    /// The CI system's own word for the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_result: Option<Text>,
    /// The kind of failure, in the sender's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Text>,
    /// Free text about the failure: at most 4,096 code points. Credentials in it are redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = CI_REASON_CHARACTERS_MAX)))]
    pub reason: Option<Text>,
    /// The type of the event that reported this outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_event_type: Option<Text>,
    /// The version of the specification of that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_spec_version: Option<Text>,
    /// The id of that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_event_id: Option<ForeignId>,
    /// Whether the receipt includes the stored result of the run if it differs from this one. This
    /// is the query parameter `compare`, not a member of the body.
    #[serde(skip)]
    pub compare: bool,
}

/// Declares that each member of an identity requires the other two. Null counts as absent.
#[cfg(feature = "schema")]
fn whole_identity(schema: &mut schemars::Schema) {
    let names = ["repository_provider", "repository_host", "repository_id"];
    let is_given = |name: &str| serde_json::json!({ "properties": { name: { "type": "string" } }, "required": [name] });
    schema.insert(
        "if".into(),
        serde_json::json!({ "anyOf": names.map(is_given) }),
    );
    schema.insert(
        "then".into(),
        serde_json::json!({ "allOf": names.map(is_given) }),
    );
}

impl VendorCIRequest {
    /// Returns an outcome with the required members. The other members are public fields and can be
    /// set.
    pub fn new(
        provider: CiProvider,
        run_id: RunId,
        repo: RepositoryName,
        commit_sha: CommitSha,
        branch: Branch,
        result: CiResult,
    ) -> Self {
        Self {
            provider,
            run_id,
            run_attempt: None,
            repo,
            repository_provider: None,
            repository_host: None,
            repository_id: None,
            commit_sha,
            branch,
            workflow_name: Text::from(""),
            workflow_id: None,
            workflow_path: None,
            result,
            run_url: None,
            provider_result: None,
            error_type: None,
            reason: None,
            source_event_type: None,
            source_spec_version: None,
            source_event_id: None,
            compare: false,
        }
    }
}

impl VendorCIRequest {
    const COMPARE: Declared<Truth> = asks(
        "compare",
        "`true` includes the stored result of the run if it differs; by default `false`.",
    );
}

const DECLARED: [&str; 20] = [
    "provider",
    "run_id",
    "run_attempt",
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "commit_sha",
    "branch",
    "workflow_name",
    "workflow_id",
    "workflow_path",
    "result",
    "run_url",
    "provider_result",
    "error_type",
    "reason",
    "source_event_type",
    "source_spec_version",
    "source_event_id",
];

fn text(value: &Json) -> Result<&Text, Violation> {
    value
        .as_text()
        .ok_or(Violation::new(FieldKind::StringType, "must be a string"))
}

struct Attempt(i64);
impl FromField for Attempt {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let Json::Number(number) = value else {
            return Err(Violation::new(FieldKind::IntType, "must be an integer"));
        };
        if !number.is_integer() {
            return Err(Violation::new(FieldKind::IntType, "must be an integer"));
        }
        match number.as_i64() {
            Some(attempt) if attempt >= 1 => Ok(Self(attempt)),
            None if !number.as_str().starts_with('-') => Err(Violation::new(
                FieldKind::LessThanEqual,
                "must be at most 2^63-1",
            )),
            _ => Err(Violation::new(
                FieldKind::GreaterThanEqual,
                "must be at least 1",
            )),
        }
    }
}

/// Any text, trimmed, not blank.
struct NonBlankText(Text);
impl FromField for NonBlankText {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let trimmed = text(value)?.trimmed();
        if trimmed.is_empty() {
            return Err(Violation::rule("must not be blank"));
        }
        Ok(Self(trimmed))
    }
}

struct WorkflowName(Text);
impl FromField for WorkflowName {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Ok(Self(text(value)?.trimmed()))
    }
}

struct WorkflowPath(Option<String>);
impl FromField for WorkflowPath {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let path = text(value)?.as_str().filter(|path| !path.contains('\0'));
        let Some(path) = path.map(|path| path.trim_matches(is_trimmed)) else {
            return Err(Violation::rule("must hold no NUL and no surrogate"));
        };
        if path.len() > PATH_BYTES_MAX {
            return Err(Violation::rule("must have at most 4096 bytes of UTF-8"));
        }
        Ok(Self((!path.is_empty()).then(|| path.to_owned())))
    }
}

struct Reason(Text);
impl FromField for Reason {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let reason = text(value)?;
        let characters = reason
            .as_bytes()
            .iter()
            .filter(|byte| **byte & 0xc0 != 0x80)
            .count();
        if characters > CI_REASON_CHARACTERS_MAX {
            return Err(Violation::rule("must have at most 4096 characters"));
        }
        Ok(Self(reason.clone()))
    }
}

struct Repository(RepositoryName);
impl FromField for Repository {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        identity_text(text(value)?).map_err(|error| Violation::rule(error.message()))?;
        RepositoryName::from_field(value).map(Self)
    }
}

impl Request for VendorCIRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::COMPARE,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let body = incoming.object().map_err(Refusal::malformed_as_violation)?;
        let fields = Fields::new(&body, vec!["body".into()]);
        let mut violations = Violations::default();
        let v = &mut violations;
        let provider = fields.required("provider", v);
        let run_id = fields.required("run_id", v);
        let run_attempt = fields.nullable::<Attempt>("run_attempt", v);
        let repo = fields.required::<Repository>("repo", v);
        let identity = RepositoryIdentity::read(&fields, v);
        let commit_sha = fields.required("commit_sha", v);
        let branch = fields.required("branch", v);
        let workflow_name = fields.present::<WorkflowName>("workflow_name", v);
        let workflow_id = fields.nullable("workflow_id", v);
        let workflow_path = fields.nullable::<WorkflowPath>("workflow_path", v);
        let result = fields.required("result", v);
        let mut content = |name| {
            fields
                .nullable::<NonBlankText>(name, v)
                .map(|content| content.0)
        };
        let run_url = content("run_url");
        let provider_result = content("provider_result");
        let error_type = content("error_type");
        let source_event_type = content("source_event_type");
        let source_spec_version = content("source_spec_version");
        let reason = fields.nullable::<Reason>("reason", v);
        let source_event_id = fields.nullable("source_event_id", v);
        fields.deny_undeclared(&DECLARED, Undeclared::ByName, v);
        let compare = Self::COMPARE.read(incoming, v);
        let (repository_provider, repository_host, repository_id) = identity
            .map(|identity| {
                (
                    identity.repository_provider,
                    identity.repository_host,
                    identity.repository_id,
                )
            })
            .map_or((None, None, None), |(a, b, c)| (Some(a), Some(b), Some(c)));
        Ok(violations.finish(|| {
            Some(Self {
                provider: provider?,
                run_id: run_id?,
                run_attempt: run_attempt.map(|attempt| attempt.0),
                repo: repo?.0,
                repository_provider,
                repository_host,
                repository_id,
                commit_sha: commit_sha?,
                branch: branch?,
                workflow_name: workflow_name.map(|name| name.0).unwrap_or_default(),
                workflow_id,
                workflow_path: workflow_path.and_then(|path| path.0),
                result: result?,
                run_url,
                provider_result,
                error_type,
                reason: reason.map(|reason| reason.0),
                source_event_type,
                source_spec_version,
                source_event_id,
                compare: compare.is_some_and(Truth::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Outgoing::body(self)?;
        Ok(Self::COMPARE.write_any(outgoing, self.compare.then_some(&TRUE)))
    }
}

impl VendorCIRequest {
    /// Returns the identity of the repository, if the sender gave one.
    pub fn repository_identity(&self) -> Option<RepositoryIdentity> {
        Some(RepositoryIdentity {
            repository_provider: self.repository_provider?,
            repository_host: self.repository_host.clone()?,
            repository_id: self.repository_id.clone()?,
        })
    }
}
