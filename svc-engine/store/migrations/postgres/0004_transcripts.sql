-- The agent or program that made a call, as calls say that no gateway and no telemetry sent; and where it
-- worked, which an erasure deletes.
ALTER TABLE inference_calls ADD COLUMN agent_harness TEXT COLLATE "C";
ALTER TABLE inference_calls ADD COLUMN cwd TEXT COLLATE "C";
ALTER TABLE inference_calls ADD COLUMN git_branch TEXT COLLATE "C";
ALTER TABLE inference_calls ADD COLUMN subagent TEXT COLLATE "C";

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

-- The Sessions that continue another one: their agent copied its calls, or said so. The call is the last
-- one that both have, if it is known. Nothing here is a fact.
CREATE TABLE session_continuations (
    org_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    continues_session_id TEXT COLLATE "C" NOT NULL,
    inference_call_id BYTEA,
    captured_at_us BIGINT NOT NULL,
    PRIMARY KEY (session_id, continues_session_id, org_id)
);
CREATE INDEX session_continuations_by_continued
    ON session_continuations (continues_session_id, org_id, session_id);
