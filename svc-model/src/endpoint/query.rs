use super::{Access, Endpoint, Method, Parameter, Place};
use crate::limit;
use crate::problem::Problem;
use crate::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};

const STATUSES: &[u16] = &[401, 403, 409, 422, 503];

const fn query(name: &'static str, required: bool, description: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Query,
        required,
        description,
    }
}

const REPO: Parameter = query("repo", false, "The name of the repository: owner/name.");
const REPOSITORY_PROVIDER: Parameter = query(
    "repository_provider",
    false,
    "The kind of forge, `github`; the three components of an identity are given together.",
);
const REPOSITORY_HOST: Parameter = query("repository_host", false, "The host of the forge.");
const REPOSITORY_ID: Parameter = query(
    "repository_id",
    false,
    "The forge's id of the repository: decimal text.",
);

/// `GET /query/ci/outcome`.
#[derive(Debug)]
pub enum CiOutcomeQuery {}
impl Endpoint for CiOutcomeQuery {
    const NAME: &'static str = "ciOutcome";
    const SUMMARY: &'static str = "The outcome of one run, and where its commit is investigated.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/outcome";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiOutcomeRequest;
    type Reply = CiOutcomeAnswer;
    const PARAMETERS: &'static [Parameter] = &[
        query(
            "provider",
            true,
            "The CI system: `forge_actions`, `ci_a`, `ci_b`, `ci_c`, `ci_d` or `other`.",
        ),
        query("run_id", true, "The system's id of the run."),
        query(
            "run_attempt",
            false,
            "The attempt, from 1; without one, the run that was stored without an attempt.",
        ),
        query(
            "latest",
            false,
            "`true` asks for the last attempt, that of the greatest number, and lists all attempts; \
             by default `false`.",
        ),
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        query(
            "as_of",
            false,
            "The moment up to which facts count, itself included; by default all of them.",
        ),
    ];
}

/// `GET /query/ci/runs`.
#[derive(Debug)]
pub enum CiRunsQuery {}
impl Endpoint for CiRunsQuery {
    const NAME: &'static str = "ciRuns";
    const SUMMARY: &'static str =
        "The runs that an id or a URL names, and the Sessions that came with their commit.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/runs";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiRunsRequest;
    type Reply = CiRuns;
    const PARAMETERS: &'static [Parameter] = &[
        query(
            "run_id",
            false,
            "The id of the run, or the beginning of those of its jobs, up to a slash. One of \
             `run_id` and `run_url` is given.",
        ),
        query(
            "run_url",
            false,
            "The URL of the run as it was reported; what follows `?` or `#` is not looked at.",
        ),
        query(
            "provider",
            false,
            "The CI system: `forge_actions`, `ci_a`, `ci_b`, `ci_c`, `ci_d` or `other`; by default all.",
        ),
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        query(
            "as_of",
            false,
            "The moment up to which facts count, itself included; by default all of them.",
        ),
    ];
}

/// `GET /query/ci/failures`.
#[derive(Debug)]
pub enum CiFailuresQuery {}
impl Endpoint for CiFailuresQuery {
    const NAME: &'static str = "ciFailures";
    const SUMMARY: &'static str =
        "One page of a repository's outcomes with one result, latest first.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/failures";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiFailuresRequest;
    type Reply = CiFailures;
    const PARAMETERS: &'static [Parameter] = &[
        query("captured_after", true, "The first moment of capture."),
        query(
            "captured_before",
            true,
            "The moment of capture that is no longer included.",
        ),
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        query(
            "as_of",
            false,
            "The moment up to which facts count, itself included; by default `captured_before`.",
        ),
        query(
            "result",
            false,
            "One result: `passed`, `failed`, `error`, `timed_out`, `cancelled`, `skipped`, \
             `neutral` or `unknown`; by default `failed`.",
        ),
        query("workflow_name", false, "The exact name of the workflow."),
        query("pr_number", false, "The number of the pull request."),
        query(
            "limit",
            false,
            "Outcomes of a page: 1 to 100, by default 50.",
        ),
        query(
            "cursor",
            false,
            "The `next_cursor` of the page before, with otherwise the same parameters.",
        ),
        query(
            "explain",
            false,
            "`true` asks the first page to tell what could not be counted to the repository, and \
             whether any fact tells of it; by default `false`.",
        ),
    ];
}

/// `GET /v1/sessions`.
#[derive(Debug)]
pub enum SessionsQuery {}
impl Endpoint for SessionsQuery {
    const NAME: &'static str = "sessions";
    const SUMMARY: &'static str =
        "One page of Sessions, latest first, by time, user, model, agent or repository.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/sessions";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionsRequest;
    type Reply = SessionList;
    const PARAMETERS: &'static [Parameter] = &[
        query(
            "captured_after",
            false,
            "Only Sessions whose first fact was captured at this moment or later.",
        ),
        query(
            "captured_before",
            false,
            "Only Sessions whose first fact was captured before this moment.",
        ),
        query("user_id", false, "Only Sessions of this user, exactly."),
        query(
            "model",
            false,
            "Only Sessions with a call of this model, exactly.",
        ),
        query(
            "agent_harness",
            false,
            "Only Sessions of this agent: `claude-code`, `copilot`, `codex`, `cursor` or `pi`.",
        ),
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        query("limit", false, "Sessions of a page: 1 to 100, by default 50."),
        query(
            "cursor",
            false,
            "The `next_cursor` of the page before, with otherwise the same parameters.",
        ),
    ];
}

/// `GET /query/session/{session_id}`.
#[derive(Debug)]
pub enum SessionQuery {}
impl Endpoint for SessionQuery {
    const NAME: &'static str = "sessionDossier";
    const SUMMARY: &'static str = "Everything that was captured of a Session, as metadata.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/session/{session_id}";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionDossierRequest;
    type Reply = SessionAnswer;
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "session_id",
        place: Place::Path,
        required: true,
        description: "The Session; a slash in it is percent-encoded.",
    }, query(
            "explain",
            false,
            "`true` asks for the files of events, and for the pushes and CI outcomes that came with \
             a commit at which no push left its branch; by default `false`.",
        )];
}

/// `GET /query/commit/{sha}`.
#[derive(Debug)]
pub enum CommitQuery {}
impl Endpoint for CommitQuery {
    const NAME: &'static str = "commitEvidence";
    const SUMMARY: &'static str = "The Sessions, calls and CI outcomes of a commit, by repository.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/commit/{sha}";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CommitRequest;
    type Reply = CommitEvidence;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "sha",
            place: Place::Path,
            required: true,
            description: "The full commit id: 40 or 64 hexadecimal digits.",
        },
        REPO,
        REPOSITORY_PROVIDER,
        REPOSITORY_HOST,
        REPOSITORY_ID,
        query(
            "as_of",
            false,
            "The moment up to which facts count, itself included; by default the present one.",
        ),
        query(
            "explain",
            false,
            "`true` asks for the score and the files of each inferred call, and for why calls were \
             not looked for; by default `false`.",
        ),
    ];
}
