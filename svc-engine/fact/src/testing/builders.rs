//! Facts with sensible defaults, which a test changes where it matters.

use svc_model::evidence::{LeftOut, Message, Part};
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::{CiProvider, CiResult, GatewayProvider};
use svc_model::json::{Json, Object, Text};
use svc_model::repository::{
    Branch, CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName,
    RepositoryProvider,
};
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage, TokenCounts, UsageSource};
use uuid::Uuid;

use crate::{
    CallHalf, CalledTools, CiOutcome, CommitClaim, DeveloperDecision, EditObservation, EditTexts,
    GitCommitId, HalfOutline, HalfSide, InferenceCall, ObservationOrigin, PullRequest,
    PullRequestMerge, PullRequestRevision, Push, RawPayload, RejectedEdit, RepositoryRename,
    RetryLinkage, SessionCommitObservation, UsageReceipt, Workplace,
};

/// Returns the instant this many seconds after 2026-11-01T00:00:00Z.
pub fn at(seconds: i64) -> Instant {
    Instant::from_microseconds(1_793_491_200_000_000 + seconds * 1_000_000).expect("in range")
}

/// Returns the fact id with this number.
pub fn id(number: u128) -> FactId {
    FactId::new(Uuid::from_u128(number))
}

/// Returns a message with one text part.
pub fn text(role: &str, content: &str) -> Message {
    Message {
        role: Text::from(role),
        parts: vec![Part::Text {
            content: Text::from(content),
        }],
        finish_reason: None,
    }
}

/// Returns a call of Session `s`, with one question, one answer, and no ids besides its own.
pub fn call(number: u128) -> CallBuilder {
    CallBuilder(InferenceCall {
        inference_call_id: id(number),
        further_id: Some(id(number + 1_000_000)),
        gateway_provider: GatewayProvider::GatewayA,
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        model_call_id: None,
        started_at: None,
        model_provider: None,
        model: Some("m".to_owned()),
        input_tokens: None,
        output_tokens: None,
        duration_ms: None,
        capture_source: CallSource::Gateway,
        agent: None,
        workplace: Workplace::default(),
        usage: CallUsage::default(),
        response_id: None,
        request_id: None,
        keys: Vec::new(),
        is_input_unpaired: false,
        observed_at: at(i64::try_from(number % 1_000_000).unwrap_or(0)),
        input_messages: vec![text("user", "ask")],
        output_messages: vec![text("assistant", "answer")],
        left_out: LeftOut::default(),
        call_aliases: Vec::new(),
        raw: Json::Object(Object::new()).into(),
    })
}

/// A call that is being built.
#[derive(Clone, Debug)]
pub struct CallBuilder(InferenceCall);

impl CallBuilder {
    /// Sets the Session.
    #[must_use]
    pub fn session(mut self, session_id: &str) -> Self {
        self.0.session_id = SessionId::new(session_id).expect("an id");
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user_id: &str) -> Self {
        self.0.user_id = Some(UserId::new(user_id).expect("an id"));
        self
    }

    /// Sets the model's own id of the call, which becomes an alias too.
    #[must_use]
    pub fn model_call(mut self, model_call_id: &str) -> Self {
        self.0.model_call_id = Some(model_call_id.to_owned());
        self.0.call_aliases.push(model_call_id.to_owned());
        self
    }

    /// Sets when the call started, in seconds.
    #[must_use]
    pub fn started(mut self, seconds: i64) -> Self {
        self.0.started_at = Some(at(seconds));
        self
    }

    /// Sets when the call was observed, in seconds.
    #[must_use]
    pub fn observed(mut self, seconds: i64) -> Self {
        self.0.observed_at = at(seconds);
        self
    }

    /// Sets what was sent to the model.
    #[must_use]
    pub fn input(mut self, messages: Vec<Message>) -> Self {
        self.0.input_messages = messages;
        self
    }

    /// Sets what the model answered.
    #[must_use]
    pub fn output(mut self, messages: Vec<Message>) -> Self {
        self.0.output_messages = messages;
        self
    }

    /// Sets the raw payload.
    #[must_use]
    pub fn raw(mut self, raw: impl Into<RawPayload>) -> Self {
        self.0.raw = raw.into();
        self
    }

    /// Returns the call.
    pub fn build(self) -> InferenceCall {
        self.0
    }
}

/// Returns the identity of a repository on `github.com`.
pub fn repository(number: u32) -> RepositoryIdentity {
    RepositoryIdentity {
        repository_provider: RepositoryProvider::Github,
        repository_host: RepositoryHost::new("github.com").expect("a host"),
        repository_id: RepositoryId::new(&number.to_string()).expect("an id"),
    }
}

/// Returns the passed outcome of run `run` in `own/repo`, without an identity.
pub fn outcome(number: u128, run_id: &str) -> CiOutcome {
    CiOutcome {
        outcome_id: id(number),
        provider: CiProvider::Other,
        run_id: run_id.to_owned(),
        run_attempt: None,
        repo: "own/repo".to_owned(),
        repository: None,
        commit_sha: CommitSha::new(&"c".repeat(40)).expect("a commit"),
        branch: Branch::new("main").expect("a branch"),
        workflow_name: Text::from("CI"),
        workflow_id: None,
        workflow_path: None,
        result: CiResult::Passed,
        run_url: None,
        provider_result: None,
        error_type: None,
        reason: None,
        source_event_type: None,
        source_spec_version: None,
        source_event_id: None,
        pr_number: None,
        signed: false,
        captured_at: at(0),
        raw: Json::Object(Object::new()),
    }
}

/// Returns the commit id that consists of this digit.
pub fn commit(digit: char) -> CommitSha {
    CommitSha::new(&digit.to_string().repeat(40)).expect("a commit")
}

/// Returns the name of a repository.
pub fn name(text: &str) -> RepositoryName {
    RepositoryName::new(text).expect("a name")
}

/// Returns an accepted, explicit decision of Session `s` on `src/a.rs` by Claude Code, without a
/// call.
pub fn decision(number: u128) -> DeveloperDecision {
    DeveloperDecision {
        decision_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        agent_harness: AgentHarness::ClaudeCode,
        file_path: "src/a.rs".to_owned(),
        accepted: true,
        explicit: true,
        interaction_mode: InteractionMode::Agent,
        commit_sha: None,
        call_id: None,
        edit_retention_score: None,
        observation_delay_ms: None,
        occurred_at: at(0),
        captured_at: at(1),
        raw: Json::Object(Object::new()),
    }
}

/// Returns the observation of an edit by a call of Session `s`.
pub fn edit(number: u128, call_id: &str) -> EditObservation {
    EditObservation {
        observation_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        agent_harness: AgentHarness::ClaudeCode,
        call_id: call_id.to_owned(),
        file_path: "src/a.rs".to_owned(),
        texts: EditTexts {
            applied: Text::from("let a = 1;"),
            observed_file: Text::from("let a = 1;\n"),
        },
        external_lines_added: None,
        external_lines_removed: None,
        occurred_at: at(0),
        captured_at: at(1),
        raw: Json::Object(Object::new()),
    }
}

/// Returns the refused edit by a call of Session `s`.
pub fn rejection(number: u128, call_id: &str) -> RejectedEdit {
    RejectedEdit {
        rejection_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        agent_harness: AgentHarness::ClaudeCode,
        call_id: call_id.to_owned(),
        file_path: "src/a.rs".to_owned(),
        proposed: Text::from("let a = 2;"),
        occurred_at: at(0),
        captured_at: at(1),
        raw: Json::Object(Object::new()),
    }
}

/// Returns the linkage between two calls of Session `s`.
pub fn linkage(number: u128, rejected_call_id: &str, accepted_call_id: &str) -> RetryLinkage {
    RetryLinkage {
        retry_linkage_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        agent_harness: AgentHarness::ClaudeCode,
        tool_name: "Edit".to_owned(),
        file_path: "src/a.rs".to_owned(),
        rejected_call_id: rejected_call_id.to_owned(),
        accepted_call_id: accepted_call_id.to_owned(),
        occurred_at: at(0),
        captured_at: at(1),
        raw: Json::Object(Object::new()),
    }
}

/// Returns a push to `main` in `own/repo`, from commit `a` to `b`, without an identity.
pub fn push(number: u128) -> Push {
    Push {
        push_id: id(number),
        provider: RepositoryProvider::Github,
        repo: "own/repo".to_owned(),
        repository: None,
        clone_url: "https://github.com/own/repo.git".to_owned(),
        r#ref: "refs/heads/main".to_owned(),
        before_sha: commit('a'),
        after_sha: commit('b'),
        forced: false,
        captured_at: at(0),
    }
}

/// Returns pull request 7 of `own/repo` from `fork/repo`, both without an identity.
pub fn pull_request() -> PullRequest {
    PullRequest {
        provider: RepositoryProvider::Github,
        repo: "own/repo".to_owned(),
        repository: None,
        pr_number: 7,
        head_repo: Some("fork/repo".to_owned()),
        head_repository: None,
        head_ref: Branch::new("feature").expect("a branch"),
        head_sha: commit('b'),
        base_ref: Branch::new("main").expect("a branch"),
        base_sha: commit('a'),
    }
}

/// Returns the opening of that pull request.
pub fn revision(number: u128) -> PullRequestRevision {
    PullRequestRevision {
        revision_id: id(number),
        pull_request: pull_request(),
        previous_head_sha: None,
        source_event_id: None,
        captured_at: at(0),
    }
}

/// Returns the merge of that pull request.
pub fn merge(number: u128) -> PullRequestMerge {
    PullRequestMerge {
        merge_id: id(number),
        pull_request: pull_request(),
        merge_commit_sha: commit('c'),
        merged_at: at(0),
        source_event_id: None,
        captured_at: at(0),
    }
}

/// Returns the renaming of a repository from `own/old` to `own/new`.
pub fn rename(number: u128, repository: RepositoryIdentity) -> RepositoryRename {
    RepositoryRename {
        rename_id: id(number),
        repository,
        old_repo: name("own/old"),
        new_repo: name("own/new"),
        source_event_id: None,
        occurred_at: None,
        captured_at: at(0),
    }
}

/// Returns the observation of Session `s` at commit `b` in `own/repo`, without an identity.
pub fn observation(number: u128, source_push_id: FactId) -> SessionCommitObservation {
    SessionCommitObservation {
        observation_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        repo: name("own/repo"),
        repository: None,
        commit_sha: commit('b'),
        source_push_id,
        origin: ObservationOrigin::Note("refs/notes/svc".to_owned()),
        captured_at: at(1),
    }
}

/// Returns the claim that Session `s` made this commit.
pub fn commit_claim(number: u128, git_commit_id: &str) -> CommitClaim {
    CommitClaim {
        claim_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        agent_harness: AgentHarness::ClaudeCode,
        tool_use_id: None,
        git_commit_id: GitCommitId::new(git_commit_id).expect("an id"),
        repository: None,
        occurred_at: at(0),
        captured_at: at(1),
    }
}

/// Returns a usage receipt of Session `s`, without ids.
pub fn usage(number: u128) -> UsageReceipt {
    UsageReceipt {
        usage_receipt_id: id(number),
        session_id: SessionId::new("s").expect("an id"),
        user_id: None,
        source: UsageSource::ClaudeCode,
        agent: None,
        query_source: None,
        model: Some("m".to_owned()),
        model_provider: None,
        request_id: None,
        response_id: None,
        client_request_id: None,
        tokens: TokenCounts {
            input_tokens_uncached: Some(3),
            output_tokens: Some(5),
            ..TokenCounts::default()
        },
        cost_usd_micros: Some(7),
        duration_ms: None,
        tier: None,
        occurred_at: at(i64::try_from(number % 1_000_000).unwrap_or(0)),
        captured_at: at(i64::try_from(number % 1_000_000).unwrap_or(0)),
        trace_id: None,
        span_id: None,
        sequence: None,
    }
}

/// Returns a half of a call, which names a tool call.
pub fn call_half(number: u8, session_id: &str, side: HalfSide, body: Object) -> CallHalf {
    let outline = HalfOutline {
        key: [number; 16],
        side,
        session_id: SessionId::new(session_id).expect("a Session id"),
        query_source: "Explore".to_owned(),
        model: Some("m".to_owned()),
        prompt_id: None,
        user_id: UserId::new("dev").ok(),
        occurred_at: at(i64::from(number)),
        sequence: Some(7),
        request_id: (side == HalfSide::Response).then(|| "req_1".to_owned()),
        captured_at: at(100 + i64::from(number)),
        messages: [1; 16],
        input: [2; 16],
        called_tools: vec![CalledTools {
            before: [3; 16],
            ids: vec!["toolu_1".to_owned()],
        }],
    };
    CallHalf { outline, body }
}
