-- What clients report of the use of models: one row per call of a model, without what was said.
ALTER TABLE organizations ADD COLUMN usage_receipts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organizations ADD COLUMN usage_receipts_quarantined BIGINT NOT NULL DEFAULT 0;

CREATE TABLE usage_receipts (
    usage_receipt_id BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    user_id TEXT,
    source TEXT NOT NULL,
    agent TEXT,
    query_source TEXT,
    model TEXT,
    model_provider TEXT,
    request_id TEXT,
    response_id TEXT,
    client_request_id TEXT,
    input_tokens_uncached BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    cache_write_5m_tokens BIGINT,
    cache_write_1h_tokens BIGINT,
    output_tokens BIGINT,
    reasoning_tokens BIGINT,
    cost_usd_micros BIGINT,
    duration_ms BIGINT,
    tier TEXT,
    occurred_at_us BIGINT NOT NULL,
    captured_at_us BIGINT NOT NULL,
    trace_id TEXT,
    span_id TEXT,
    sequence BIGINT
);
CREATE INDEX usage_receipts_by_session ON usage_receipts (session_id, org_id, occurred_at_us);

CREATE VIEW visible_usage_receipts AS SELECT f.* FROM usage_receipts f WHERE NOT EXISTS (
    SELECT 1 FROM quarantine_log q
    WHERE q.org_id = f.org_id AND q.fact_table = 'usage_receipts' AND q.fact_id = f.usage_receipt_id
        AND q.action = 'quarantine' AND NOT EXISTS (
            SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision));

-- Where a call was captured is a letter: g(ateway), t(elemetry), s(pan), transc(r)ipt or sd(k). Calls without
-- one were stored before anything else captured calls, and before their usage was read.
ALTER TABLE inference_calls ADD COLUMN capture_source TEXT;
ALTER TABLE inference_calls ADD COLUMN cost_usd_micros BIGINT;
ALTER TABLE inference_calls ADD COLUMN cache_read_tokens BIGINT;
ALTER TABLE inference_calls ADD COLUMN cache_write_tokens BIGINT;
ALTER TABLE inference_calls ADD COLUMN cache_write_5m_tokens BIGINT;
ALTER TABLE inference_calls ADD COLUMN cache_write_1h_tokens BIGINT;
ALTER TABLE inference_calls ADD COLUMN reasoning_tokens BIGINT;
ALTER TABLE inference_calls ADD COLUMN tier TEXT;
ALTER TABLE inference_calls ADD COLUMN response_id TEXT;
ALTER TABLE inference_calls ADD COLUMN request_id TEXT;

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
