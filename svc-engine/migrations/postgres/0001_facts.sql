-- Facts are rows; message content is content-addressed. Times are UTC microseconds (_us), booleans
-- are 0 or 1, JSON is compact ASCII text.

-- Every distinct message, and every large member of a raw payload, once.
CREATE TABLE content (
    content_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest BYTEA NOT NULL UNIQUE,
    codec BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    bytes BYTEA NOT NULL
);

CREATE TABLE sessions (
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    user_id_conflict BIGINT NOT NULL,
    first_observed_at_us BIGINT NOT NULL,
    last_observed_at_us BIGINT NOT NULL,
    PRIMARY KEY (org_id, session_id)
);

CREATE TABLE inference_calls (
    inference_call_id TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    gateway_provider TEXT COLLATE "C" NOT NULL,
    model_call_id TEXT COLLATE "C",
    model_provider TEXT COLLATE "C",
    model TEXT COLLATE "C",
    input_tokens BIGINT,
    output_tokens BIGINT,
    duration_ms BIGINT,
    observed_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    call_alias_count BIGINT NOT NULL,
    input_byte_count BIGINT NOT NULL,
    input_part_count BIGINT NOT NULL,
    output_byte_count BIGINT NOT NULL,
    output_part_count BIGINT NOT NULL,
    input_contents BYTEA NOT NULL,
    output_contents BYTEA NOT NULL,
    raw_codec BIGINT NOT NULL,
    raw_byte_count BIGINT NOT NULL,
    raw_contents BYTEA NOT NULL,
    raw_skeleton BYTEA NOT NULL
);
CREATE UNIQUE INDEX inference_calls_by_id ON inference_calls (inference_call_id);
CREATE UNIQUE INDEX inference_calls_by_model_call
    ON inference_calls (model_call_id, org_id, gateway_provider) WHERE model_call_id IS NOT NULL;
CREATE INDEX inference_calls_by_session
    ON inference_calls (org_id, session_id, observed_at_us, inference_call_id);

-- Under which ids decisions may name a call beside its model_call_id, which has an index of its own.
CREATE TABLE call_aliases (
    org_id TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    inference_call_id TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    PRIMARY KEY (org_id, call_id, inference_call_id)
);

CREATE TABLE developer_decisions (
    decision_id TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    accepted BIGINT NOT NULL,
    explicit BIGINT NOT NULL,
    interaction_mode TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C",
    call_id TEXT COLLATE "C",
    edit_retention_score DOUBLE PRECISION,
    observation_delay_ms BIGINT,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    identity BYTEA NOT NULL,
    raw TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX developer_decisions_by_id ON developer_decisions (decision_id);
-- A path may be longer than what an index takes: what tells decisions of one moment apart is a hash.
CREATE UNIQUE INDEX developer_decisions_by_session
    ON developer_decisions (org_id, session_id, occurred_at_us, identity);

CREATE TABLE edit_observations (
    observation_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    applied_text TEXT COLLATE "C" NOT NULL,
    observed_file_text TEXT COLLATE "C" NOT NULL,
    external_lines_added BIGINT,
    external_lines_removed BIGINT,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw TEXT COLLATE "C" NOT NULL,
    UNIQUE (org_id, agent_harness, session_id, call_id)
);
CREATE INDEX edit_observations_by_session
    ON edit_observations (org_id, session_id, occurred_at_us, observation_id);

CREATE TABLE rejected_edits (
    rejection_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    proposed TEXT COLLATE "C" NOT NULL,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw TEXT COLLATE "C" NOT NULL,
    UNIQUE (org_id, agent_harness, session_id, call_id)
);
CREATE INDEX rejected_edits_by_session
    ON rejected_edits (org_id, session_id, occurred_at_us, rejection_id);

CREATE TABLE retry_linkages (
    retry_linkage_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    tool_name TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    rejected_call_id TEXT COLLATE "C" NOT NULL,
    accepted_call_id TEXT COLLATE "C" NOT NULL,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw TEXT COLLATE "C" NOT NULL,
    UNIQUE (org_id, agent_harness, session_id, tool_name, file_path, rejected_call_id, accepted_call_id)
);
CREATE INDEX retry_linkages_by_session
    ON retry_linkages (org_id, session_id, occurred_at_us, retry_linkage_id);

CREATE TABLE pushes (
    push_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    clone_url TEXT COLLATE "C" NOT NULL,
    ref TEXT COLLATE "C" NOT NULL,
    before_sha TEXT COLLATE "C" NOT NULL,
    after_sha TEXT COLLATE "C" NOT NULL,
    forced BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX pushes_by_identity
    ON pushes (org_id, repository_provider, repository_host, repository_id, ref, before_sha, after_sha)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX pushes_by_name
    ON pushes (org_id, repo, ref, before_sha, after_sha) WHERE repository_id IS NULL;

CREATE TABLE pull_request_revisions (
    revision_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    pr_number BIGINT NOT NULL,
    head_repo TEXT COLLATE "C",
    head_repository_provider TEXT COLLATE "C",
    head_repository_host TEXT COLLATE "C",
    head_repository_id TEXT COLLATE "C",
    head_ref TEXT COLLATE "C" NOT NULL,
    head_sha TEXT COLLATE "C" NOT NULL,
    base_ref TEXT COLLATE "C" NOT NULL,
    base_sha TEXT COLLATE "C" NOT NULL,
    previous_head_sha TEXT COLLATE "C",
    source_event_id TEXT COLLATE "C",
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX pull_request_revisions_by_identity
    ON pull_request_revisions
    (org_id, repository_provider, repository_host, repository_id, pr_number, head_sha, base_sha)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX pull_request_revisions_by_name
    ON pull_request_revisions (org_id, provider, repo, pr_number, head_sha, base_sha)
    WHERE repository_id IS NULL;

CREATE TABLE pull_request_merges (
    merge_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    pr_number BIGINT NOT NULL,
    head_repo TEXT COLLATE "C",
    head_repository_provider TEXT COLLATE "C",
    head_repository_host TEXT COLLATE "C",
    head_repository_id TEXT COLLATE "C",
    head_ref TEXT COLLATE "C" NOT NULL,
    head_sha TEXT COLLATE "C" NOT NULL,
    base_ref TEXT COLLATE "C" NOT NULL,
    base_sha TEXT COLLATE "C" NOT NULL,
    merge_commit_sha TEXT COLLATE "C" NOT NULL,
    merged_at_us BIGINT NOT NULL,
    source_event_id TEXT COLLATE "C",
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX pull_request_merges_by_identity
    ON pull_request_merges (org_id, repository_provider, repository_host, repository_id, pr_number)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX pull_request_merges_by_name
    ON pull_request_merges (org_id, provider, repo, pr_number) WHERE repository_id IS NULL;

CREATE TABLE repository_renames (
    rename_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C" NOT NULL,
    repository_host TEXT COLLATE "C" NOT NULL,
    repository_id TEXT COLLATE "C" NOT NULL,
    old_repo TEXT COLLATE "C" NOT NULL,
    new_repo TEXT COLLATE "C" NOT NULL,
    source_event_id TEXT COLLATE "C",
    occurred_at_us BIGINT,
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX repository_renames_by_event
    ON repository_renames (org_id, repository_provider, repository_host, source_event_id)
    WHERE source_event_id IS NOT NULL;

CREATE TABLE session_commit_observations (
    observation_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    commit_sha TEXT COLLATE "C" NOT NULL,
    source_push_id TEXT COLLATE "C" NOT NULL,
    notes_ref TEXT COLLATE "C" NOT NULL,
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX session_commit_observations_by_identity
    ON session_commit_observations
    (org_id, repository_provider, repository_host, repository_id, commit_sha, session_id)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX session_commit_observations_by_name
    ON session_commit_observations (org_id, repo, commit_sha, session_id)
    WHERE repository_id IS NULL;

CREATE TABLE ci_outcomes (
    outcome_id TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    run_attempt BIGINT NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    commit_sha TEXT COLLATE "C" NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    workflow_name TEXT COLLATE "C" NOT NULL,
    workflow_id TEXT COLLATE "C",
    workflow_path TEXT COLLATE "C",
    result TEXT COLLATE "C" NOT NULL,
    run_url TEXT COLLATE "C",
    provider_result TEXT COLLATE "C",
    error_type TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    source_event_type TEXT COLLATE "C",
    source_spec_version TEXT COLLATE "C",
    source_event_id TEXT COLLATE "C",
    pr_number BIGINT,
    captured_at_us BIGINT NOT NULL,
    raw TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX ci_outcomes_by_id ON ci_outcomes (outcome_id);
CREATE UNIQUE INDEX ci_outcomes_by_identity
    ON ci_outcomes
    (org_id, repository_provider, repository_host, provider, run_id, run_attempt)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX ci_outcomes_by_name
    ON ci_outcomes (org_id, provider, run_id, run_attempt)
    WHERE repository_id IS NULL;

-- Append-only. The latest row of a fact decides whether it is quarantined.
CREATE TABLE quarantine_log (
    quarantine_revision BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    quarantine_id TEXT COLLATE "C" NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL,
    fact_table TEXT COLLATE "C" NOT NULL,
    fact_id TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    recorded_at_us BIGINT NOT NULL
);
CREATE INDEX quarantine_log_by_fact
    ON quarantine_log (org_id, fact_table, fact_id, quarantine_revision);
CREATE INDEX quarantine_log_by_revision ON quarantine_log (org_id, quarantine_revision);

-- Which mirrors are to be refreshed. No facts: the rows change, and none is kept for its own sake.
CREATE TABLE mirror_jobs (
    org_id TEXT COLLATE "C" NOT NULL,
    mirror TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    due_at_us BIGINT,
    attempts BIGINT NOT NULL,
    holder TEXT COLLATE "C",
    lease_until_us BIGINT,
    started_at_us BIGINT,
    last_success_at_us BIGINT,
    last_failure_at_us BIGINT,
    last_failure TEXT COLLATE "C",
    notes TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, mirror)
);
CREATE INDEX mirror_jobs_by_due ON mirror_jobs (org_id, due_at_us);

-- The pushes that a mirror has not looked at, with where they were last said to come from.
CREATE TABLE mirror_deliveries (
    org_id TEXT COLLATE "C" NOT NULL,
    mirror TEXT COLLATE "C" NOT NULL,
    push_id TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    clone_url TEXT COLLATE "C" NOT NULL,
    delivered_at_us BIGINT NOT NULL,
    PRIMARY KEY (org_id, mirror, push_id)
);

-- The notes whose commits no branch has reached yet.
CREATE TABLE mirror_deferred_notes (
    org_id TEXT COLLATE "C" NOT NULL,
    mirror TEXT COLLATE "C" NOT NULL,
    notes_ref TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C" NOT NULL,
    deferred_at_us BIGINT NOT NULL,
    PRIMARY KEY (org_id, mirror, notes_ref, commit_sha)
);
