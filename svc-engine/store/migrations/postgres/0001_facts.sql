-- Facts are rows; message content is content-addressed. The id of a fact is the 16 bytes of its UUID,
-- times are UTC microseconds (_us), booleans are 0 or 1, JSON is compact ASCII text.
--
-- No index of facts begins with the organization. Without statistics, which a new table lacks and
-- SQLite never has, the planner sees no difference between the indexes that match a condition, and
-- might answer a look-up by scanning everything in an organization. The indexes by capture and by
-- observation do cover a whole organization. So they begin with an expression that only the queries
-- for a range or for the latest fact use.

-- Each distinct message of a Session and each large member of a raw payload, stored once. Content that
-- Sessions share is found by its digest. Content of a single Session is found through its calls, so a
-- new Session writes to no index of content.
CREATE TABLE content (
    content_id BIGINT PRIMARY KEY,
    digest BYTEA NOT NULL,
    is_shared BIGINT NOT NULL,
    codec BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    bytes BYTEA NOT NULL
);
CREATE UNIQUE INDEX content_shared_by_digest ON content (digest) WHERE is_shared = 1;

-- One row per organization: when its last fact was captured, and how many facts are stored and how many
-- of them are quarantined. Every transaction that writes facts of an organization locks its row first,
-- so these transactions commit one after the other. A quarantine may precede its fact; such quarantines
-- are counted separately. Deliveries are counted by source and reason in one JSON text, so that counting
-- them needs no further statement. The number of erasures is the same in all rows. A writer that finds a
-- different number than before forgets which contents are stored.
CREATE TABLE organizations (
    org_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    captured_at_us BIGINT NOT NULL DEFAULT 0,
    quarantined_ahead BIGINT NOT NULL DEFAULT 0,
    sessions BIGINT NOT NULL DEFAULT 0,
    captured TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    erasures BIGINT NOT NULL DEFAULT 0,
    inference_calls BIGINT NOT NULL DEFAULT 0,
    inference_calls_quarantined BIGINT NOT NULL DEFAULT 0,
    developer_decisions BIGINT NOT NULL DEFAULT 0,
    developer_decisions_quarantined BIGINT NOT NULL DEFAULT 0,
    ci_outcomes BIGINT NOT NULL DEFAULT 0,
    ci_outcomes_quarantined BIGINT NOT NULL DEFAULT 0,
    pushes BIGINT NOT NULL DEFAULT 0,
    pushes_quarantined BIGINT NOT NULL DEFAULT 0,
    pull_request_merges BIGINT NOT NULL DEFAULT 0,
    pull_request_merges_quarantined BIGINT NOT NULL DEFAULT 0,
    pull_request_revisions BIGINT NOT NULL DEFAULT 0,
    pull_request_revisions_quarantined BIGINT NOT NULL DEFAULT 0,
    edit_observations BIGINT NOT NULL DEFAULT 0,
    edit_observations_quarantined BIGINT NOT NULL DEFAULT 0,
    rejected_edits BIGINT NOT NULL DEFAULT 0,
    rejected_edits_quarantined BIGINT NOT NULL DEFAULT 0,
    retry_linkages BIGINT NOT NULL DEFAULT 0,
    retry_linkages_quarantined BIGINT NOT NULL DEFAULT 0,
    session_commit_observations BIGINT NOT NULL DEFAULT 0,
    session_commit_observations_quarantined BIGINT NOT NULL DEFAULT 0,
    repository_renames BIGINT NOT NULL DEFAULT 0,
    repository_renames_quarantined BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

-- One row per writer, under a unique number: how many transactions it has committed. If a writer finds
-- its row changed, the database was restored to an earlier state.
CREATE TABLE writers (
    epoch BIGINT NOT NULL PRIMARY KEY,
    commits BIGINT NOT NULL
) WITH (fillfactor = 10);

-- The calls of a Session are found by its number. Numbers increase, so the calls of new Sessions are
-- appended to the index, instead of each Session using a page of its own.
--
-- Each fact of a Session changes its mark, and no two states of a Session have the same mark. So anything
-- remembered about a Session can be checked, even after the database was restored to an earlier state.
CREATE TABLE sessions (
    session_number BIGINT PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    user_id_conflict BIGINT NOT NULL,
    first_observed_at_us BIGINT NOT NULL,
    last_observed_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    mark BIGINT NOT NULL,
    claims TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id, org_id);
CREATE INDEX sessions_by_capture ON sessions ((org_id || ''), captured_at_us, session_number);

-- The users, models, harnesses and repositories that facts name for a Session, each once. The table only
-- shows where to look: an answer needs a visible fact. Rows are ordered like the list of Sessions, by when
-- the first fact of a Session was captured, which never changes. `sessions.claims` holds the same values.
-- A kind is a letter: u(ser), m(odel), h(arness) or r(epository).
CREATE TABLE session_claims (
    org_id TEXT COLLATE "C" NOT NULL,
    session_number BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    captured_at_us BIGINT NOT NULL,
    PRIMARY KEY (value, kind, org_id, captured_at_us, session_number)
);

-- A gateway is a letter: a, b, c or u(nknown). The model's id of a call is 16 bytes if it is a UUID.
CREATE TABLE inference_calls (
    call_number BIGINT GENERATED ALWAYS AS IDENTITY,
    inference_call_id BYTEA NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    session_number BIGINT NOT NULL,
    user_id TEXT COLLATE "C",
    gateway_provider TEXT COLLATE "C" NOT NULL,
    model_call_id BYTEA,
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
    left_out TEXT COLLATE "C",
    started_at_us BIGINT,
    is_further BIGINT NOT NULL
);
CREATE UNIQUE INDEX inference_calls_by_id ON inference_calls (inference_call_id);
-- A gateway may report several calls under one id, which started at different times. Only the first
-- that is stored needs no time of its own.
CREATE UNIQUE INDEX inference_calls_by_model_call
    ON inference_calls (model_call_id, org_id, gateway_provider,
        (CASE WHEN is_further = 1 THEN started_at_us ELSE 0 END)) WHERE model_call_id IS NOT NULL;
CREATE INDEX inference_calls_by_session
    ON inference_calls (session_number, observed_at_us);
CREATE INDEX inference_calls_by_observation ON inference_calls ((org_id || ''), observed_at_us);
-- Finds the calls that were stored after a given one. Such an index adds almost nothing to an insertion.
CREATE INDEX inference_calls_by_number ON inference_calls USING brin (call_number);

-- The gateway's own description of each call. It has its own table, so that reading calls does not load it.
CREATE TABLE raw_payloads (
    call_number BIGINT PRIMARY KEY,
    codec BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    contents BYTEA NOT NULL,
    skeleton BYTEA NOT NULL
);

-- The other ids by which a decision may name a call. `model_call_id` has its own index.
CREATE TABLE call_aliases (
    org_id TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    inference_call_id BYTEA NOT NULL,
    ordinal BIGINT NOT NULL,
    PRIMARY KEY (call_id, org_id, inference_call_id)
);

CREATE TABLE developer_decisions (
    decision_id BYTEA NOT NULL PRIMARY KEY,
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
    raw BYTEA NOT NULL,
    identity BYTEA NOT NULL
);
-- A path may be too long for an index, so the members that distinguish decisions are hashed.
CREATE UNIQUE INDEX developer_decisions_by_session
    ON developer_decisions (session_id, org_id, occurred_at_us, identity);

CREATE TABLE edit_observations (
    observation_id BYTEA NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    applied_text BYTEA NOT NULL,
    observed_file_text BYTEA NOT NULL,
    external_lines_added BIGINT,
    external_lines_removed BIGINT,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw BYTEA NOT NULL
);
CREATE UNIQUE INDEX edit_observations_by_session
    ON edit_observations (session_id, org_id, agent_harness, call_id);

CREATE TABLE rejected_edits (
    rejection_id BYTEA NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    proposed BYTEA NOT NULL,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw BYTEA NOT NULL
);
CREATE UNIQUE INDEX rejected_edits_by_session
    ON rejected_edits (session_id, org_id, agent_harness, call_id);

CREATE TABLE retry_linkages (
    retry_linkage_id BYTEA NOT NULL PRIMARY KEY,
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
    raw BYTEA NOT NULL,
    identity BYTEA NOT NULL
);
CREATE UNIQUE INDEX retry_linkages_by_session ON retry_linkages (session_id, org_id, identity);

-- Facts of repositories. Without the identity of its repository, a fact is known by the repository's name
-- alone and has another key: the same push with and without an identity is two facts. The indexes by
-- repository order the facts of one name by time, so the latest is found in one step. The index of CI
-- outcomes does so for each result.

CREATE TABLE pushes (
    push_id BYTEA NOT NULL PRIMARY KEY,
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
CREATE UNIQUE INDEX pushes_by_commit
    ON pushes (after_sha, org_id, before_sha, ref, COALESCE(repository_provider, ''),
        COALESCE(repository_host, ''), COALESCE(repository_id, repo));
CREATE INDEX pushes_by_repository
    ON pushes (repository_id, repository_host, repo, org_id, captured_at_us);
CREATE INDEX pushes_by_capture ON pushes ((org_id || ''), captured_at_us);

CREATE TABLE pull_request_revisions (
    revision_id BYTEA NOT NULL PRIMARY KEY,
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
    (repository_id, repository_host, repository_provider, org_id, pr_number, head_sha, base_sha)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX pull_request_revisions_by_name
    ON pull_request_revisions (repo, provider, org_id, pr_number, head_sha, base_sha)
    WHERE repository_id IS NULL;
CREATE INDEX pull_request_revisions_by_repository
    ON pull_request_revisions
    (repository_id, repository_host, repo, org_id, captured_at_us);
CREATE INDEX pull_request_revisions_by_head
    ON pull_request_revisions
    (head_repository_id, head_repository_host, head_repo, org_id, captured_at_us);
CREATE INDEX pull_request_revisions_by_head_sha ON pull_request_revisions (head_sha, org_id);
CREATE INDEX pull_request_revisions_by_capture
    ON pull_request_revisions ((org_id || ''), captured_at_us);

CREATE TABLE pull_request_merges (
    merge_id BYTEA NOT NULL PRIMARY KEY,
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
    ON pull_request_merges (repository_id, repository_host, repository_provider, org_id, pr_number)
    WHERE repository_id IS NOT NULL;
CREATE UNIQUE INDEX pull_request_merges_by_name
    ON pull_request_merges (repo, provider, org_id, pr_number) WHERE repository_id IS NULL;
CREATE INDEX pull_request_merges_by_repository
    ON pull_request_merges
    (repository_id, repository_host, repo, org_id, captured_at_us);
CREATE INDEX pull_request_merges_by_head
    ON pull_request_merges
    (head_repository_id, head_repository_host, head_repo, org_id, captured_at_us);
CREATE INDEX pull_request_merges_by_capture ON pull_request_merges ((org_id || ''), captured_at_us);

CREATE TABLE repository_renames (
    rename_id BYTEA NOT NULL PRIMARY KEY,
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
    ON repository_renames (source_event_id, org_id, repository_provider, repository_host)
    WHERE source_event_id IS NOT NULL;
CREATE INDEX repository_renames_by_old_name
    ON repository_renames
    (repository_id, repository_host, old_repo, org_id, captured_at_us);
CREATE INDEX repository_renames_by_new_name
    ON repository_renames
    (repository_id, repository_host, new_repo, org_id, captured_at_us);
CREATE INDEX repository_renames_by_capture ON repository_renames ((org_id || ''), captured_at_us);

CREATE TABLE session_commit_observations (
    observation_id BYTEA NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    commit_sha TEXT COLLATE "C" NOT NULL,
    source_push_id BYTEA NOT NULL,
    notes_ref TEXT COLLATE "C" NOT NULL,
    captured_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX session_commit_observations_by_commit
    ON session_commit_observations
    (commit_sha, org_id, session_id, COALESCE(repository_provider, ''),
        COALESCE(repository_host, ''), COALESCE(repository_id, repo));
CREATE INDEX session_commit_observations_by_session
    ON session_commit_observations (session_id, org_id, captured_at_us);
CREATE INDEX session_commit_observations_by_repository
    ON session_commit_observations
    (repository_id, repository_host, repo, org_id, captured_at_us);
CREATE INDEX session_commit_observations_by_push
    ON session_commit_observations (source_push_id, org_id);
CREATE INDEX session_commit_observations_by_capture
    ON session_commit_observations ((org_id || ''), captured_at_us);

-- The attempt is 0 if the run has none. A run may have two outcomes: one that a signature proves, and one
-- that a token reported before and that differs.
CREATE TABLE ci_outcomes (
    outcome_id BYTEA NOT NULL PRIMARY KEY,
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
    signed BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    raw BYTEA NOT NULL,
    run_url_hash BYTEA NOT NULL
);
-- Finds a run on all forges at once. An outcome without a repository identity belongs to no forge.
CREATE UNIQUE INDEX ci_outcomes_by_run
    ON ci_outcomes (run_id, org_id, provider, run_attempt, COALESCE(repository_provider, ''),
        COALESCE(repository_host, ''), signed);
-- A URL may be too long for an index, so its hash is indexed.
CREATE INDEX ci_outcomes_by_url ON ci_outcomes (run_url_hash, org_id);
CREATE INDEX ci_outcomes_by_commit ON ci_outcomes (commit_sha, org_id);
CREATE INDEX ci_outcomes_by_repository
    ON ci_outcomes
    (repository_id, repository_host, repo, org_id, result, captured_at_us, outcome_id);
CREATE INDEX ci_outcomes_by_capture ON ci_outcomes ((org_id || ''), captured_at_us);

-- Each name that facts give to a repository identity, once per kind of fact. The table only shows where to
-- look: a claim needs a visible fact, which the index by repository of that kind finds.
CREATE TABLE repository_claims (
    org_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    repository_provider TEXT COLLATE "C" NOT NULL,
    repository_host TEXT COLLATE "C" NOT NULL,
    repository_id TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (name, org_id, repository_provider, repository_host, repository_id, source)
);
CREATE INDEX repository_claims_by_identity
    ON repository_claims (repository_id, repository_host, repository_provider, org_id);

-- Append-only. The latest row about a fact decides whether it is quarantined.
CREATE TABLE quarantine_log (
    quarantine_revision BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    quarantine_id TEXT COLLATE "C" NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL,
    fact_table TEXT COLLATE "C" NOT NULL,
    fact_id BYTEA NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    recorded_at_us BIGINT NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX quarantine_log_by_fact
    ON quarantine_log (org_id, fact_table, fact_id, quarantine_revision);
CREATE INDEX quarantine_log_by_revision ON quarantine_log (org_id, quarantine_revision);

-- What the named retrieval tokens may read. Append-only. A grant is for one Session, or for a rule made of
-- the other columns. A removal names the grant that it ends. Revoking or restoring a token grants nothing.
CREATE TABLE grant_log (
    grant_revision BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    grant_id TEXT COLLATE "C" NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL,
    token TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    removed_grant_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    agent_harness TEXT COLLATE "C",
    repo TEXT COLLATE "C",
    repository_provider TEXT COLLATE "C",
    repository_host TEXT COLLATE "C",
    repository_id TEXT COLLATE "C",
    since_us BIGINT,
    reason TEXT COLLATE "C" NOT NULL,
    recorded_at_us BIGINT NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX grant_log_by_token ON grant_log (token, org_id, grant_revision);
CREATE INDEX grant_log_by_removed ON grant_log (removed_grant_id, org_id);
CREATE INDEX grant_log_by_revision ON grant_log ((org_id || ''), grant_revision);

-- The rows of the log that are in force: grants that were not removed, and revocations that were not
-- reversed. With this table, no query has to read the whole log.
CREATE TABLE grants_in_force (
    token TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    grant_revision BIGINT NOT NULL,
    PRIMARY KEY (token, org_id, grant_revision)
);
CREATE INDEX grants_in_force_by_revision ON grants_in_force ((org_id || ''), grant_revision);

-- Append-only: what was erased, how much, when, why and by whom. An erasure is for a Session, for a user,
-- or for everything captured before a moment; exactly one of these columns is set. A large erasure has
-- several rows with the same id, each with its own counts.
CREATE TABLE erasure_log (
    erasure_revision BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    erasure_id TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    older_than_us BIGINT,
    inference_calls BIGINT NOT NULL,
    developer_decisions BIGINT NOT NULL,
    edit_observations BIGINT NOT NULL,
    rejected_edits BIGINT NOT NULL,
    retry_linkages BIGINT NOT NULL,
    contents BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    recorded_at_us BIGINT NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX erasure_log_by_revision ON erasure_log ((org_id || ''), erasure_revision);

-- The facts whose content was erased, and how many bytes the content had. The facts themselves are kept.
CREATE TABLE erased_facts (
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    fact_table TEXT COLLATE "C" NOT NULL,
    fact_id BYTEA NOT NULL,
    byte_count BIGINT NOT NULL,
    erased_at_us BIGINT NOT NULL,
    erasure_revision BIGINT NOT NULL,
    PRIMARY KEY (session_id, org_id, fact_table, fact_id)
);

-- A fact is visible unless the latest row about it in the log is a quarantine. Reads use these views. A
-- query that uses a table itself includes quarantined facts. A row of a call has only the number of its
-- Session, which is shorter; the view of all calls adds the id.
CREATE VIEW all_inference_calls AS SELECT f.*,
    (SELECT s.session_id FROM sessions s WHERE s.session_number = f.session_number) AS session_id
    FROM inference_calls f;
CREATE VIEW visible_inference_calls AS SELECT f.* FROM all_inference_calls f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'inference_calls' AND q.fact_id = f.inference_call_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_developer_decisions AS SELECT f.* FROM developer_decisions f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'developer_decisions' AND q.fact_id = f.decision_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_edit_observations AS SELECT f.* FROM edit_observations f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'edit_observations' AND q.fact_id = f.observation_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_rejected_edits AS SELECT f.* FROM rejected_edits f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'rejected_edits' AND q.fact_id = f.rejection_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_retry_linkages AS SELECT f.* FROM retry_linkages f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'retry_linkages' AND q.fact_id = f.retry_linkage_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_pushes AS SELECT f.* FROM pushes f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'pushes' AND q.fact_id = f.push_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_pull_request_revisions AS SELECT f.* FROM pull_request_revisions f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'pull_request_revisions' AND q.fact_id = f.revision_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_pull_request_merges AS SELECT f.* FROM pull_request_merges f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'pull_request_merges' AND q.fact_id = f.merge_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_repository_renames AS SELECT f.* FROM repository_renames f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'repository_renames' AND q.fact_id = f.rename_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
CREATE VIEW visible_ci_outcomes AS SELECT f.* FROM ci_outcomes f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'ci_outcomes' AND q.fact_id = f.outcome_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));
-- The visible outcomes, each with the moment from which another answers for its run, and with the outcome that
-- it supersedes. What a signature proves supersedes what a token reported.
CREATE VIEW ci_answers AS SELECT f.*,
    CASE WHEN f.signed = 0 THEN (SELECT s.captured_at_us FROM visible_ci_outcomes s
        WHERE s.run_id = f.run_id AND s.org_id = f.org_id AND s.provider = f.provider
        AND s.run_attempt = f.run_attempt
        AND COALESCE(s.repository_provider, '') = COALESCE(f.repository_provider, '')
        AND COALESCE(s.repository_host, '') = COALESCE(f.repository_host, '')
        AND s.signed = 1) END AS superseded_at_us,
    CASE WHEN f.signed = 1 THEN (SELECT t.outcome_id FROM visible_ci_outcomes t
        WHERE t.run_id = f.run_id AND t.org_id = f.org_id AND t.provider = f.provider
        AND t.run_attempt = f.run_attempt
        AND COALESCE(t.repository_provider, '') = COALESCE(f.repository_provider, '')
        AND COALESCE(t.repository_host, '') = COALESCE(f.repository_host, '')
        AND t.signed = 0) END AS superseded_outcome_id,
    CASE WHEN f.signed = 1 THEN (SELECT t.result FROM visible_ci_outcomes t
        WHERE t.run_id = f.run_id AND t.org_id = f.org_id AND t.provider = f.provider
        AND t.run_attempt = f.run_attempt
        AND COALESCE(t.repository_provider, '') = COALESCE(f.repository_provider, '')
        AND COALESCE(t.repository_host, '') = COALESCE(f.repository_host, '')
        AND t.signed = 0) END AS superseded_result
    FROM visible_ci_outcomes f;
CREATE VIEW visible_session_commit_observations AS SELECT f.* FROM session_commit_observations f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'session_commit_observations' AND q.fact_id = f.observation_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));

-- The mirrors that must be refreshed. These rows are not evidence: they change, and may be lost.
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

-- The pushes that a mirror has not processed yet, with the name and URL of their latest delivery.
CREATE TABLE mirror_deliveries (
    org_id TEXT COLLATE "C" NOT NULL,
    mirror TEXT COLLATE "C" NOT NULL,
    push_id BYTEA NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    clone_url TEXT COLLATE "C" NOT NULL,
    delivered_at_us BIGINT NOT NULL,
    PRIMARY KEY (org_id, mirror, push_id)
);

-- The notes whose commits no branch reaches yet.
CREATE TABLE mirror_deferred_notes (
    org_id TEXT COLLATE "C" NOT NULL,
    mirror TEXT COLLATE "C" NOT NULL,
    notes_ref TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C" NOT NULL,
    deferred_at_us BIGINT NOT NULL,
    PRIMARY KEY (org_id, mirror, notes_ref, commit_sha)
);

-- Captured content is excluded from statistics, because they would store samples of it outside the tables.
ALTER TABLE content ALTER COLUMN bytes SET STATISTICS 0;
ALTER TABLE raw_payloads ALTER COLUMN skeleton SET STATISTICS 0;
ALTER TABLE developer_decisions ALTER COLUMN raw SET STATISTICS 0;
ALTER TABLE edit_observations
    ALTER COLUMN applied_text SET STATISTICS 0,
    ALTER COLUMN observed_file_text SET STATISTICS 0,
    ALTER COLUMN raw SET STATISTICS 0;
ALTER TABLE rejected_edits
    ALTER COLUMN proposed SET STATISTICS 0,
    ALTER COLUMN raw SET STATISTICS 0;
ALTER TABLE retry_linkages ALTER COLUMN raw SET STATISTICS 0;
