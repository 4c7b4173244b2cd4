-- Finds the pull requests that were merged as a commit.
CREATE INDEX pull_request_merges_by_merge_commit ON pull_request_merges (merge_commit_sha);
