//! The visible calls of a Session, and the raw payload of one.

use std::collections::HashMap;
use std::sync::Arc;

use svc_model::evidence::{CallSummary, LeftOut, Message};
use svc_model::facts::SessionInferenceCall;
use svc_model::id::{FactId, InferenceCallId, OrgId, SessionId};
use svc_model::json;
use svc_model::time::Instant;
use svc_model::usage::CallUsage;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::id_list::IdList;
use crate::pack::model_call_id::ModelCallId;
use crate::pack::repetition::CallIds;
use crate::pack::skeleton::Pieces;
use crate::pack::{column, id_list, packing};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::calls::{input_unpaired, left_out, shown_source};
use crate::table::sessions::calls_of_session;

/// Selects columns of the visible calls of a Session, in the order in which they were observed.
macro_rules! of_session {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM visible_inference_calls f WHERE ",
            calls_of_session!("$1", "$2"),
            " ORDER BY f.observed_at_us, f.inference_call_id"
        )
    };
}

const SUMMARIES: &str =
    of_session!("f.inference_call_id, f.observed_at_us, f.model_provider, f.model");
const SCALARS: &str = of_session!(
    "f.inference_call_id, f.model_call_id, f.gateway_provider,
        f.model_provider, f.model,
        f.input_tokens, f.output_tokens, f.duration_ms, f.capture_source, f.agent_harness, f.cost_usd_micros,
        f.cache_read_tokens, f.cache_write_tokens, f.cache_write_5m_tokens,
        f.cache_write_1h_tokens, f.reasoning_tokens, f.tier"
);
const CONTENTS: &str = of_session!(
    "f.inference_call_id, f.observed_at_us, f.input_contents,
        f.output_contents"
);
const OUTPUTS: &str = of_session!("f.output_contents");
const FIRST_INPUT: &str = concat!(of_session!("f.input_contents"), " LIMIT 1");
const ONE: &str = "SELECT f.inference_call_id, f.observed_at_us, f.model_provider, f.model,
        f.input_byte_count, f.output_byte_count, f.input_contents, f.output_contents, f.left_out,
        f.capture_source, f.agent_harness, f.cost_usd_micros, f.cache_read_tokens, f.cache_write_tokens,
        f.cache_write_5m_tokens, f.cache_write_1h_tokens, f.reasoning_tokens, f.tier,
        f.response_id, f.request_id, f.is_input_unpaired
    FROM visible_inference_calls f
    WHERE f.inference_call_id = $3 AND f.org_id = $1 AND f.session_id = $2";
/// Sizes in the canonical form, in which an id has 36 bytes: of the rows, and of their parts that
/// are not messages.
const MEASURE: &str = concat!(
    "SELECT COUNT(*), CAST(COALESCE(SUM(metadata), 0) AS BIGINT),
        CAST(COALESCE(SUM(metadata + messages), 0) AS BIGINT),
        CAST(COALESCE(MAX(metadata + messages), 0) AS BIGINT),
        CAST(COALESCE(SUM(parts), 0) AS BIGINT)
    FROM (SELECT 36 + COALESCE(OCTET_LENGTH(f.model_provider), 0)
            + COALESCE(OCTET_LENGTH(f.model), 0) AS metadata,
        f.input_byte_count + f.output_byte_count AS messages,
        f.input_part_count + f.output_part_count AS parts
    FROM visible_inference_calls f WHERE ",
    calls_of_session!("$1", "$2"),
    ") AS measured"
);
const RAW: &str = "SELECT r.codec, r.byte_count, r.skeleton, r.contents, f.session_id,
        f.model_call_id, f.input_contents, f.output_contents
    FROM all_inference_calls f JOIN raw_payloads r ON r.call_number = f.call_number
    WHERE f.org_id = $1 AND f.inference_call_id = $2";

/// The number and size of a Session's visible calls, before any of them is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanMeasure {
    /// The number of calls.
    pub calls: u64,
    /// Canonical bytes of their ids and models.
    pub metadata_bytes: u64,
    /// Canonical bytes of their rows.
    pub row_bytes: u64,
    /// Canonical bytes of the largest row.
    pub row_bytes_max: u64,
    /// The number of parts in their messages.
    pub parts: u64,
}

/// The ids and the message contents of one visible call.
#[derive(Clone, Debug)]
pub struct CallContents {
    /// The call.
    pub inference_call_id: InferenceCallId,
    /// When it was observed.
    pub observed_at: Instant,
    /// The contents of its input messages, in order.
    pub input: IdList,
    /// The contents of its output messages, in order.
    pub output: IdList,
}

/// One side of a visible call.
#[derive(Clone, Debug)]
pub struct CallSide {
    /// Canonical bytes of its messages.
    pub byte_count: u64,
    /// The contents of its messages, in order.
    pub contents: Vec<i64>,
}

/// One visible call.
#[derive(Clone, Debug)]
pub struct CallRow {
    /// Its metadata.
    pub summary: CallSummary,
    /// What the model was sent.
    pub input: CallSide,
    /// What the model answered.
    pub output: CallSide,
    /// What capture left out of both sides.
    pub left_out: LeftOut,
    /// `true` if its input never arrived.
    pub input_unpaired: Option<bool>,
}

/// The scalars of a call that the facts route lists.
pub type CallScalars = SessionInferenceCall;

fn instant(row: &Row<'_>, index: usize) -> Result<Instant, StoreError> {
    Instant::from_microseconds(row.integer(index)?).ok_or(corrupt("inference_calls", "a time"))
}

fn summary(row: &Row<'_>) -> Result<CallSummary, StoreError> {
    Ok(CallSummary {
        inference_call_id: row.fact_id(0)?,
        observed_at: instant(row, 1)?,
        model_provider: row.optional_text(2)?,
        model: row.optional_text(3)?,
        content_erased_at: None,
        capture_source: None,
        agent: None,
        usage: CallUsage::default(),
        response_id: None,
        request_id: None,
    })
}

fn keys<'a>(org_id: &'a OrgId, session_id: &'a SessionId) -> [Value<'a>; 2] {
    [org_id.as_str().into(), session_id.as_str().into()]
}

impl Snapshot<'_> {
    /// Returns the number and size of the visible calls of a Session.
    pub fn call_measure(&mut self, session_id: &SessionId) -> Result<ScanMeasure, StoreError> {
        let keys = keys(self.org_id, session_id);
        Ok(self
            .connection()?
            .first(MEASURE, &keys, |row| {
                Ok(ScanMeasure {
                    calls: row.count(0)?,
                    metadata_bytes: row.count(1)?,
                    row_bytes: row.count(2)?,
                    row_bytes_max: row.count(3)?,
                    parts: row.count(4)?,
                })
            })?
            .unwrap_or_default())
    }

    /// Returns the visible calls of a Session by observation time, then id.
    pub fn call_summaries(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallSummary>, StoreError> {
        let keys = keys(self.org_id, session_id);
        self.connection()?.all(SUMMARIES, &keys, summary)
    }

    /// Returns the scalars of the visible calls of a Session, in the same order.
    pub fn call_scalars(&mut self, session_id: &SessionId) -> Result<Vec<CallScalars>, StoreError> {
        let keys = keys(self.org_id, session_id);
        self.connection()?.all(SCALARS, &keys, |row| {
            let mut usage = Columns::of(row, "inference_calls", &[]).behind(8);
            Ok(CallScalars {
                inference_call_id: row.fact_id(0)?,
                model_call_id: ModelCallId::of(row, 1)?,
                gateway_provider: column::gateway_provider(row, 2)?.into(),
                model_provider: row.optional_text(3)?,
                model: row.optional_text(4)?,
                input_tokens: row.optional_integer(5)?,
                output_tokens: row.optional_integer(6)?,
                duration_ms: row.optional_integer(7)?,
                capture_source: shown_source(usage.next()?).map(Into::into),
                agent: usage.next()?,
                usage: usage.next()?,
            })
        })
    }

    /// Returns the contents of the visible calls of a Session, in the same order.
    pub fn call_contents(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<CallContents>, StoreError> {
        let keys = keys(self.org_id, session_id);
        self.connection()?.all(CONTENTS, &keys, |row| {
            Ok(CallContents {
                inference_call_id: row.fact_id(0)?.into(),
                observed_at: instant(row, 1)?,
                input: row.with_blob(2, IdList::read)??,
                output: row.with_blob(3, IdList::read)??,
            })
        })
    }

    /// Returns the input contents of the first visible call of a Session, in order; none if there
    /// is no such call, or its content was erased.
    pub fn first_input(&mut self, session_id: &SessionId) -> Result<Option<IdList>, StoreError> {
        let keys = keys(self.org_id, session_id);
        self.connection()?
            .first(FIRST_INPUT, &keys, |row| row.with_blob(0, IdList::read)?)
    }

    /// Returns the output contents of the visible calls of a Session, in the same order.
    pub fn call_outputs(&mut self, session_id: &SessionId) -> Result<Vec<Vec<i64>>, StoreError> {
        let keys = keys(self.org_id, session_id);
        self.connection()?
            .all(OUTPUTS, &keys, |row| id_list::read_ids(&row.blob(0)?))
    }

    /// Returns a call if it belongs to this Session and is visible. The answer is the same for a
    /// call that is absent, quarantined, or of another organization or Session.
    pub fn call(
        &mut self,
        session_id: &SessionId,
        inference_call_id: &InferenceCallId,
    ) -> Result<Option<CallRow>, StoreError> {
        let Some(fact_id) = FactId::parse(inference_call_id.as_str()) else {
            return Ok(None);
        };
        let [org, session] = keys(self.org_id, session_id);
        self.connection()?
            .first(ONE, &[org, session, fact_id.into()], |row| {
                let mut source = Columns::of(row, "inference_calls", &[]).behind(9);
                let summary = CallSummary {
                    capture_source: shown_source(source.next()?).map(Into::into),
                    agent: source.next()?,
                    usage: source.next()?,
                    response_id: source.next()?,
                    request_id: source.next()?,
                    ..summary(row)?
                };
                Ok(CallRow {
                    summary,
                    input: CallSide {
                        byte_count: row.count(4)?,
                        contents: id_list::read_ids(&row.blob(6)?)?,
                    },
                    output: CallSide {
                        byte_count: row.count(5)?,
                        contents: id_list::read_ids(&row.blob(7)?)?,
                    },
                    left_out: left_out(row.optional_text(8)?)?,
                    input_unpaired: input_unpaired(row, 20)?,
                })
            })
    }

    /// Returns the raw payload of a call as it was captured, with credentials redacted. No route
    /// returns it.
    pub fn call_raw(&mut self, inference_call_id: FactId) -> Result<Option<Vec<u8>>, StoreError> {
        let keys = [self.org_id.as_str().into(), inference_call_id.into()];
        let Some(row) = self.connection()?.first(RAW, &keys, |row| {
            Ok(RawRow {
                skeleton: packing::unpack(row.integer(0)?, row.count(1)?, row.blob(2)?)?,
                contents: id_list::read_ids(&row.blob(3)?)?,
                session_id: row.text(4)?,
                model_call_id: ModelCallId::of(row, 5)?,
                input: id_list::read_ids(&row.blob(6)?)?,
                output: id_list::read_ids(&row.blob(7)?)?,
            })
        })?
        else {
            return Ok(None);
        };
        let mut ids = [&row.contents[..], &row.input, &row.output].concat();
        ids.sort_unstable();
        ids.dedup();
        let mut found = HashMap::new();
        self.content(&ids, |id, bytes| {
            found.insert(id, Arc::new(bytes.to_vec()));
            Ok(())
        })?;
        row.join(&found)
            .ok_or(corrupt("raw_payloads", "its skeleton"))
            .map(Some)
    }
}

/// What a raw payload is joined from.
struct RawRow {
    skeleton: Vec<u8>,
    contents: Vec<i64>,
    session_id: String,
    model_call_id: Option<String>,
    input: Vec<i64>,
    output: Vec<i64>,
}

impl RawRow {
    fn join(&self, found: &HashMap<i64, Arc<Vec<u8>>>) -> Option<Vec<u8>> {
        let messages = |ids: &[i64]| {
            ids.iter()
                .map(|id| json::from_written(found.get(id)?).ok())
                .collect::<Option<Vec<Message>>>()
        };
        let contents: Option<Vec<_>> = self
            .contents
            .iter()
            .map(|id| found.get(id).cloned())
            .collect();
        Pieces {
            contents: contents?,
            ids: CallIds {
                session_id: &self.session_id,
                model_call_id: self.model_call_id.as_deref(),
            },
            input: &messages(&self.input)?,
            output: &messages(&self.output)?,
        }
        .join(&self.skeleton)
    }
}
