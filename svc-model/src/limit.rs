//! Every limit of the service, each with the routes that it applies to.
//!
//! Byte limits on stored evidence apply to the canonical form (compact ASCII JSON), not to the
//! database's representation, so every backend refuses at the same size.

#[cfg(test)]
mod reference;

/// Declares limits, each with its sentence in docs/reference/limits.md.
macro_rules! limits {
    ($($(#[doc = $what:literal])+ pub const $name:ident: $type:ty = $value:expr;)+) => {
        $($(#[doc = $what])+ pub const $name: $type = $value;)+

        /// Returns every limit: its name, its value, and what it bounds.
        #[cfg(test)]
        fn all() -> Vec<(&'static str, String, &'static str)> {
            vec![$((stringify!($name), $name.to_string(), concat!($($what),+))),+]
        }
    };
}

limits! {
/// Bytes of a request body, on every route without a smaller cap. A larger body is 413.
pub const BODY_BYTES_MAX: usize = 25 * 1024 * 1024;
/// Bytes of the body of an evidence read request.
pub const EVIDENCE_READ_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the body of a context request, and of a change of quarantine or grants.
pub const CONTEXT_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bytes of memory that the values of one request may take: its parsed body, the JSON documents
/// inside its strings, and the messages made from it. More is 413. An ordinary body of 25 MiB takes
/// a quarter to a half of this.
pub const REQUEST_MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Violations that one 422 lists.
pub const VIOLATIONS_MAX: usize = 1_000;

/// UTF-8 bytes of an identity string: a Session, user, call, run, branch or repository name.
pub const IDENTITY_BYTES_MAX: usize = 1_024;
/// UTF-8 bytes of a path.
pub const PATH_BYTES_MAX: usize = 4_096;
/// Characters of an undeclared member's name that a 422 may repeat; for a longer name, it gives the
/// parent.
pub const UNDECLARED_NAME_CHARACTERS_MAX: usize = 64;
/// Characters (code points) of a CI reason.
pub const CI_REASON_CHARACTERS_MAX: usize = 4_096;
/// UTF-8 bytes of a text in an own event (`POST /v1/logs`): an edit or a whole file.
pub const EDIT_TEXT_BYTES_MAX: usize = 262_144;
/// Payloads in one batch of `POST /ingest/gateway/{provider}`.
pub const GATEWAY_BATCH_PAYLOADS_MAX: usize = 10_000;
/// Calls in one request of `POST /ingest/calls`.
pub const SENT_CALLS_MAX: usize = 1_000;
/// Messages of a call in such a request, input and output together.
pub const SENT_CALL_MESSAGES_MAX: usize = 10_000;
/// Parts of all messages in such a request.
pub const SENT_PARTS_MAX: usize = 100_000;
/// Messages of the input of a call that continues another call.
pub const COMPOSED_INPUT_MESSAGES_MAX: usize = 100_000;
/// Canonical bytes of the input of a call that continues another call.
pub const COMPOSED_INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Characters of a word that an agent says of itself or of a call: its version, a service tier, why
/// it stopped.
pub const AGENT_WORD_CHARACTERS_MAX: usize = 64;

/// Log records of one log request. More is 413.
pub const LOG_RECORDS_MAX: usize = 100_000;
/// Spans of one trace request. More is 413.
pub const SPANS_MAX: usize = 100_000;
/// Files that the patches of one log request may name beyond one per decision; each becomes a fact.
pub const LOG_PATCH_FILES_MAX: usize = 10_000;
/// Canonical bytes of log records that one log request may copy into more than one fact. Beyond
/// that, only one of the facts keeps the record.
pub const LOG_COPIED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Canonical bytes of the bodies of a Session (`POST /v1/logs`) that wait for their request or
/// response. Beyond that, the oldest wait no longer.
pub const SESSION_HALVES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bodies of a Session that wait in this way, whatever their size.
pub const SESSION_HALVES_MAX: usize = 1_024;
/// The same as [`SESSION_HALVES_BYTES_MAX`] for an organization.
pub const HALVES_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Commits that clients reported, in an organization, that no mirror has yet. Beyond that, the oldest
/// expire.
pub const OPEN_COMMIT_CLAIMS_MAX: i64 = 100_000;
/// Days after which a reported commit expires that no mirror has.
pub const COMMIT_CLAIM_DAYS_MAX: i64 = 30;

/// Sessions that a dossier names of those that its Session continues, and of those that continue it.
pub const SHOWN_CONTINUATIONS_MAX: i64 = 100;

/// References in one evidence read.
pub const EVIDENCE_REFERENCES_MAX: usize = 32;
/// Visible inference calls of an inventory, and of a context scan by default.
pub const EVIDENCE_CALLS_MAX: u64 = 1_000;
/// Canonical bytes of the columns that an inventory, a manifest or an evidence read selects; also
/// of one row, and of the metadata, in a context scan.
pub const EVIDENCE_SOURCE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes of the reply of an inventory, a manifest or an evidence read.
pub const EVIDENCE_REPLY_BYTES_MAX: usize = 1024 * 1024;

/// UTF-8 bytes of a context query.
pub const QUERY_BYTES_MAX: usize = 2_048;
/// The smallest `max_bytes` of a context request.
pub const CONTEXT_REPLY_BYTES_LOW: u64 = 4_096;
/// The largest `max_bytes` of a context request.
pub const CONTEXT_REPLY_BYTES_HIGH: u64 = 65_536;
/// The default `max_bytes` of a context request.
pub const CONTEXT_REPLY_BYTES_DEFAULT: u64 = 16_384;
/// Bytes of a context reply without its items; deducted from `max_bytes` before items are chosen.
pub const CONTEXT_ENVELOPE_BYTES_MAX: usize = 2_048;
/// Items of a context reply, and candidates of a discovery reply.
pub const CONTEXT_ITEMS_MAX: usize = 8;
/// Canonical bytes of all rows that a context scan selects, by default.
pub const CONTEXT_SOURCE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Parts of a context scan, by default.
pub const CONTEXT_PARTS_MAX: u64 = 16_384;
/// Bytes of candidate state of a context scan, by default.
pub const CONTEXT_STATE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes that one candidate group or found Session adds to the state of a context scan in addition
/// to its texts.
pub const CONTEXT_STATE_OVERHEAD_BYTES: u64 = 512;
/// Visible calls of a context scan for named tokens, operators and tools, by default.
pub const DISTINCT_CALLS_MAX: u64 = 100_000;
/// Parts of the distinct messages of a context scan for named tokens, operators and tools, by
/// default.
pub const DISTINCT_PARTS_MAX: u64 = 1_000_000;
/// Canonical bytes of the distinct messages of a context scan for named tokens, operators and tools,
/// by default.
pub const DISTINCT_SOURCE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Sessions that a discovery for named tokens, operators and tools searches: the latest ones.
pub const DISCOVERY_SESSIONS_MAX: usize = 1_000;
/// Bytes of the body of a search.
pub const SEARCH_BODY_BYTES_MAX: usize = 16 * 1024;
/// Sessions of the answer to a search.
pub const SEARCH_SESSIONS_MAX: u64 = 20;
/// Sessions of the answer to a search, by default.
pub const SEARCH_SESSIONS_DEFAULT: u64 = 8;
/// Parts of one Session in the answer to a search.
pub const SEARCH_SESSION_PARTS_MAX: usize = 3;
/// Distinct words of a search, the rarest ones.
pub const SEARCH_WORDS_MAX: usize = 64;
/// Characters of a word that is searched. The rest of a longer word is not.
pub const SEARCH_WORD_CHARACTERS_MAX: usize = 64;
/// Characters of a passage, the unit that a search ranks.
pub const SEARCH_PASSAGE_CHARACTERS_MAX: usize = 2_000;
/// Passages that a search scores.
pub const SEARCH_CANDIDATES_MAX: usize = 20_000;
/// Parts that a search checks and reads in the store.
pub const SEARCH_CHECKED_PARTS_MAX: usize = 400;
/// Characters of one part that are searched. The rest of a longer part is not.
pub const SEARCH_PART_CHARACTERS_MAX: usize = 4_000_000;
/// Canonical bytes of a part that the answer to a search has whole.
pub const SEARCH_WHOLE_PART_BYTES_MAX: usize = 2_000;

/// Sessions of a plural grant.
pub const GRANT_SESSIONS_MAX: usize = 32;
/// UTF-8 bytes of the setting that lists the Sessions of a plural grant.
pub const GRANT_BYTES_MAX: usize = 16 * 1024;

/// Grants that one named retrieval token may have in force.
pub const TOKEN_GRANTS_MAX: usize = 32;
/// Sessions that one rule of a grant examines, reached or not: the latest ones.
pub const GRANT_RULE_ROWS_MAX: u64 = 1_000;
/// Characters of the name of a retrieval token.
pub const TOKEN_NAME_CHARACTERS_MAX: usize = 64;
/// The default number of rows on a page of grants.
pub const GRANT_LOG_DEFAULT: u64 = 100;

/// Visible calls of `GET /v1/facts/session/{session_id}/inference-calls`.
pub const RECONCILIATION_CALLS_MAX: u64 = 1_000;
/// Visible calls of the compatibility evidence of a Session.
pub const COMPATIBILITY_CALLS_MAX: u64 = 50;
/// Visible decisions, and separately visible edit observations, of the compatibility evidence of a
/// Session.
pub const COMPATIBILITY_DECISIONS_MAX: u64 = 1_000;

/// Outcomes of one page of `GET /query/ci/failures`.
pub const CI_PAGE_MAX: u64 = 100;
/// The default number of outcomes on a page of `GET /query/ci/failures`.
pub const CI_PAGE_DEFAULT: u64 = 50;
/// Runs in one answer about an id or a URL.
pub const CI_RUNS_MAX: usize = 100;
/// Outcomes that are examined for one answer about an id or a URL; each attempt of a run counts.
pub const CI_RUN_OUTCOMES_MAX: u64 = 1_000;
/// Commits, and separately their Sessions, that were delivered with a run's commit.
pub const CI_DELIVERY_MAX: u64 = 500;
/// Sessions of one page of `GET /v1/sessions`.
pub const SESSION_PAGE_MAX: u64 = 100;
/// The default number of Sessions on a page of `GET /v1/sessions`.
pub const SESSION_PAGE_DEFAULT: u64 = 50;
/// Sessions of one overview.
pub const OVERVIEW_SESSIONS_MAX: u64 = 1_000;
/// The default number of Sessions of an overview.
pub const OVERVIEW_SESSIONS_DEFAULT: u64 = 20;
/// Rows of each kind that an overview says need a look.
pub const OVERVIEW_ATTENTION_MAX: usize = 100;
/// Sessions that are examined for one page of `GET /v1/sessions`, matching or not.
pub const SESSION_PAGE_ROWS_MAX: u64 = 1_000;
/// Visible calls of a Session that `GET /v1/sessions` counts; a Session with more shows this
/// number.
pub const SESSION_CALLS_COUNTED_MAX: u64 = 1_000;
/// Visible events of a Session's dossier, over all kinds.
pub const DOSSIER_EVENTS_MAX: u64 = 500;
/// Visible commit observations of a Session's dossier.
pub const DOSSIER_OBSERVATIONS_MAX: u64 = 500;
/// Commits of a Session's dossier, and separately their pushes and CI outcomes.
pub const DOSSIER_DELIVERIES_MAX: usize = 500;
/// Visible observations of Sessions at one commit, over all repositories.
pub const COMMIT_OBSERVATIONS_MAX: u64 = 50_000;
/// Visible pushes that left a branch at one commit, over all repositories.
pub const COMMIT_PUSHES_MAX: usize = 50_000;
/// Commits of one pull request that an answer about a commit is linked to.
pub const PULL_REQUEST_COMMITS_MAX: usize = 1_000;
/// Commits that an answer about a commit is linked to, over all pull requests and messages.
pub const LINKED_COMMITS_MAX: usize = 2_000;
/// Links between a commit and another one that an answer follows in turn.
pub const COMMIT_LINK_DEPTH_MAX: usize = 4;
/// Bytes of the reply of an investigation query.
pub const QUERY_REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Distinct repository names, each with an identity, that one CI, Session or commit query may have
/// to resolve.
pub const REPOSITORY_CLAIMS_MAX: usize = 50_000;

/// Rows of one page of the quarantine log.
pub const QUARANTINE_LOG_MAX: u64 = 1_000;
/// The default number of rows on a page of the quarantine log.
pub const QUARANTINE_LOG_DEFAULT: u64 = 100;
/// Bytes of the reason of a quarantine or a grant change over HTTP.
pub const QUARANTINE_REASON_BYTES_MAX: usize = 4_096;
/// The minimum number of characters of a prefix that stands for a fact's id.
pub const FACT_ID_BEGINNING_MIN: usize = 8;

/// Days of the cohort of a report.
pub const REPORT_COHORT_DAYS_MAX: i64 = 31;
/// Inference calls of the cohort of a report.
pub const REPORT_CALLS_MAX: u64 = 50_000;
/// Calls and groups of receipts of the cohort of a spend report that does not say what they became.
pub const SPEND_ITEMS_MAX: u64 = 1_000_000;
/// Usage receipts of the cohort of a spend report.
pub const SPEND_RECEIPTS_MAX: usize = 1_000_000;
/// Rows of a spend report.
pub const SPEND_ROWS_MAX: u64 = 1_000;
/// Rows of a spend report whose request does not say how many.
pub const SPEND_ROWS_DEFAULT: u64 = 100;
/// Facts of each other kind that relate to the cohort of a report.
pub const REPORT_FACTS_MAX: usize = 50_000;
/// Distinct ids of calls that the decisions of a report may name.
pub const REPORT_CALL_IDS_MAX: usize = 30_000;
/// Canonical bytes of the answers of all calls that a report compares with commits.
pub const REPORT_ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Canonical bytes of the answer of one call that a report compares with commits.
pub const REPORT_CALL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the reply of a report.
pub const REPORT_REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Models with a price of one price table. A file with more is 413.
pub const PRICE_MODELS_MAX: usize = 50_000;
/// Price tables that are kept. No further one can be loaded.
pub const PRICE_TABLES_MAX: u64 = 1_000;
/// Price tables of the answer to `GET /v1/prices`, the newest ones.
pub const PRICE_TABLES_SHOWN_MAX: u64 = 100;
/// UTF-8 bytes of the name of a price table.
pub const PRICE_TABLE_NAME_BYTES_MAX: usize = 256;

/// The minimum number of characters of a configured secret.
pub const SECRET_CHARACTERS_MIN: usize = 24;
/// Seconds after which a read is stopped.
pub const READ_DEADLINE_SECONDS: u64 = 30;
/// The default number of reads that may run at once; one more waits for its turn.
pub const READ_SLOTS_DEFAULT: usize = 2;
/// Seconds that a read waits for its turn before it is answered with 503, unless `Prefer: wait=0`
/// asks for less.
pub const READ_WAIT_SECONDS: u64 = 2;

/// Mirrors that one server refreshes concurrently.
pub const MIRROR_WORKERS: usize = 2;
/// Seconds that the refresh of a mirror may take.
pub const MIRROR_DEADLINE_SECONDS: u64 = 120;
/// Seconds from a push until its repository is fetched.
pub const MIRROR_SETTLE_SECONDS: u64 = 1;
/// Bytes that are kept free on the disk of the mirrors.
pub const MIRROR_RESERVE_BYTES: u64 = 1024 * 1024 * 1024;
}
