-- Finds what was erased since a revision, for the index of searches.
CREATE INDEX erased_facts_by_revision ON erased_facts ((org_id || ''), erasure_revision);
