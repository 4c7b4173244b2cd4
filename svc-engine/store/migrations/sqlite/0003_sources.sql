-- What identifies a call, whichever source sent it: the first 16 bytes of the SHA-256 of each key. A key
-- belongs to one call. `primary_key` names the key that the source of the call identifies it by, unless it
-- is this one, which then lists the other keys of the call.
CREATE TABLE call_keys (
    key BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    inference_call_id BLOB NOT NULL,
    primary_key BLOB,
    others BLOB
) WITHOUT ROWID;

-- A call whose request never arrived has no input, and 1 here.
ALTER TABLE inference_calls ADD COLUMN is_input_unpaired BIGINT;

-- The views select the columns that were there when they were made.
DROP VIEW visible_inference_calls;
DROP VIEW all_inference_calls;
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

-- Where a link between a Session and a commit comes from: NULL means from a note. A link from telemetry has
-- an empty `notes_ref`.
ALTER TABLE session_commit_observations ADD COLUMN source TEXT;
DROP VIEW visible_session_commit_observations;
CREATE VIEW visible_session_commit_observations AS SELECT f.* FROM session_commit_observations f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'session_commit_observations' AND q.fact_id = f.observation_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));

-- The commits that clients reported for Sessions. They are not facts: their state changes.
CREATE TABLE session_commit_claims (
    claim_id BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_id TEXT,
    agent_harness TEXT NOT NULL,
    tool_use_id TEXT,
    git_commit_id TEXT NOT NULL,
    repository_provider TEXT,
    repository_host TEXT,
    repository_name TEXT,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    resolved_observation_id BLOB
);
CREATE UNIQUE INDEX session_commit_claims_by_commit
    ON session_commit_claims (session_id, git_commit_id, org_id);
CREATE INDEX session_commit_claims_by_state
    ON session_commit_claims (org_id, state, captured_at_us, claim_id);

-- The bodies of requests and responses that a client logged apart, until it is known which belong together.
-- State 0: open. State 1: a request that has its response, but may still tell others apart; without its
-- body. State 2: only the key is left, by which a redelivery is recognised. The body is a skeleton; what
-- repeats from request to request stands in half_pieces. Nothing here is a fact.
CREATE TABLE call_halves (
    half_key BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    state BIGINT NOT NULL,
    side TEXT NOT NULL,
    occurred_at_us BIGINT NOT NULL,
    sequence BIGINT,
    captured_at_us BIGINT NOT NULL,
    due_at_us BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    query_source TEXT NOT NULL,
    model TEXT,
    prompt_id TEXT,
    user_id TEXT,
    request_id TEXT,
    outline BLOB,
    pieces BLOB,
    body BLOB
);
CREATE INDEX call_halves_by_session ON call_halves (session_id, org_id, state, captured_at_us);
CREATE INDEX call_halves_by_due ON call_halves ((org_id || ''), due_at_us);
CREATE INDEX call_halves_open ON call_halves ((org_id || ''), captured_at_us) WHERE body IS NOT NULL;

-- The messages, system prompts and tools of open halves: each once in a Session.
CREATE TABLE half_pieces (
    piece BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    bytes BLOB NOT NULL
);
CREATE INDEX half_pieces_by_session ON half_pieces (session_id, org_id);

-- How many halves are open, and the canonical bytes of their bodies. There is no row before the first.
CREATE TABLE half_totals (
    org_id TEXT NOT NULL PRIMARY KEY,
    halves BIGINT NOT NULL,
    byte_count BIGINT NOT NULL
);
