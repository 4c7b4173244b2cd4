-- Finds what was erased since a revision, for the index of searches.
CREATE INDEX erased_facts_by_revision ON erased_facts ((org_id || ''), erasure_revision);

-- The calls are read in the order in which they were stored, a batch at a time, which needs an index that is
-- sorted.
DROP INDEX inference_calls_by_number;
CREATE INDEX inference_calls_by_number ON inference_calls (call_number);
