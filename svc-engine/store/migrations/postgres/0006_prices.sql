-- The price tables that an operator loaded. They are not facts. `file` is the file, compressed.
CREATE TABLE price_tables (
    price_table_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    format TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    loaded_at_us BIGINT NOT NULL,
    models BIGINT NOT NULL,
    ignored BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    file BYTEA NOT NULL
);
-- No two tables of an organization are loaded at one moment.
CREATE UNIQUE INDEX price_tables_by_time ON price_tables ((org_id || ''), loaded_at_us);

-- Finds the usage receipts of a time.
CREATE INDEX usage_receipts_by_time ON usage_receipts ((org_id || ''), occurred_at_us);

-- Finds the pull requests that were merged as a commit.
CREATE INDEX pull_request_merges_by_merge_commit ON pull_request_merges (merge_commit_sha);
