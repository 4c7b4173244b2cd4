//! All visible facts of a kind: first their ids, then groups of facts. If each page continued after
//! the last id, PostgreSQL would check all remaining facts for each.

use svc_engine_fact::Workplace;
use svc_model::evidence::LeftOut;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;
use svc_model::usage::{CallSource, CallUsage};

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::model_call_id::ModelCallId;
use crate::pack::{column, id_list};
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::kind::kinds;
use crate::table::record::Record;
use crate::table::{calls, kind};

/// Declares a fact of any kind, and how it is read.
macro_rules! stored {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        /// A fact of any kind.
        #[derive(Clone, Debug)]
        pub enum StoredFact {
            /// A model call.
            InferenceCall(Box<StoredCall>),
            $($(#[$doc])* $kind(Box<$fact>),)+
        }

        impl StoredFact {
            /// Returns the id of the fact.
            pub fn id(&self) -> FactId {
                match self {
                    Self::InferenceCall(call) => call.inference_call_id,
                    $(Self::$kind(fact) => fact.id(),)+
                }
            }

            /// Returns the Session of a fact that may contain captured content.
            pub fn session(&self) -> Option<&SessionId> {
                match self {
                    Self::InferenceCall(call) => Some(&call.session_id),
                    $(Self::$kind(fact) => session_of_content(&**fact),)+
                }
            }
        }

        impl Snapshot<'_> {
            /// Returns the visible facts of a kind with these ids, ordered by id.
            pub fn facts_of(
                &mut self,
                kind: FactTable,
                ids: &[FactId],
            ) -> Result<Vec<StoredFact>, StoreError> {
                match kind {
                    FactTable::InferenceCalls => self.calls_of(ids),
                    $(FactTable::$table => self.of(ids, StoredFact::$kind),)+
                }
            }
        }
    };
}
kinds!(stored);

fn session_of_content<F: Record>(fact: &F) -> Option<&SessionId> {
    fact.session_id().filter(|_| !F::TABLE.content.is_empty())
}

/// A model call without its messages.
#[derive(Clone, Debug)]
pub struct StoredCall {
    /// The id of the fact.
    pub inference_call_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user.
    pub user_id: Option<UserId>,
    /// The kind of gateway.
    pub gateway_provider: GatewayProvider,
    /// The model's own id of the call.
    pub model_call_id: Option<String>,
    /// The provider of the model.
    pub model_provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of the prompt.
    pub input_tokens: Option<i64>,
    /// Tokens of the answer.
    pub output_tokens: Option<i64>,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// Where it was captured, unless a gateway sent it.
    pub capture_source: Option<CallSource>,
    /// The agent that made it, if its source says so.
    pub agent: Option<String>,
    /// Where the agent worked.
    pub workplace: Workplace,
    /// Its cost and the kinds of its tokens.
    pub usage: CallUsage,
    /// The provider's id of the response.
    pub response_id: Option<String>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// When it was observed.
    pub observed_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
    /// Canonical bytes of its input.
    pub input_bytes: u64,
    /// Canonical bytes of its output.
    pub output_bytes: u64,
    /// What capture left out of the two.
    pub left_out: LeftOut,
    /// `true` if its input never arrived.
    pub input_unpaired: Option<bool>,
    /// The content ids of its input messages, in order.
    pub input: Vec<i64>,
    /// The content ids of its output messages, in order.
    pub output: Vec<i64>,
}

const CALLS: &str = "SELECT f.inference_call_id, f.session_id, f.user_id, f.gateway_provider,
        f.model_call_id, f.model_provider, f.model, f.input_tokens, f.output_tokens, f.duration_ms,
        f.observed_at_us, f.captured_at_us, f.input_byte_count, f.output_byte_count, f.left_out,
        f.input_contents, f.output_contents, f.capture_source, f.agent_harness, f.cost_usd_micros,
        f.cache_read_tokens, f.cache_write_tokens, f.cache_write_5m_tokens,
        f.cache_write_1h_tokens, f.reasoning_tokens, f.tier,
        f.response_id, f.request_id, f.cwd, f.git_branch, f.subagent, f.is_input_unpaired
    FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1";

/// Restricts the selected visible facts to a range of capture. No index has these expressions.
const CAPTURED: &str = " AND f.captured_at_us + 0 >= $2 AND f.captured_at_us + 0 < $3";

impl Snapshot<'_> {
    /// Returns the ids of the visible facts of a kind, in order. If given, only facts captured at
    /// or after the first time and before the second count.
    pub fn visible_ids(
        &mut self,
        kind: FactTable,
        (from, to): (Option<Instant>, Option<Instant>),
    ) -> Result<Vec<FactId>, StoreError> {
        let table = kind::table(kind);
        let (name, id) = (table.name, table.id());
        let sql = format!(
            "SELECT /* every row */ f.{id} FROM visible_{name} f \
            WHERE COALESCE(f.org_id, '') = $1{CAPTURED} ORDER BY f.{id}"
        );
        let keys = [
            self.org_id.as_str().into(),
            from.map_or(i64::MIN, Instant::microseconds).into(),
            to.map_or(i64::MAX, Instant::microseconds).into(),
        ];
        self.connection()?.all(&sql, &keys, |row| row.fact_id(0))
    }

    fn of<F: Record>(
        &mut self,
        ids: &[FactId],
        kind: fn(Box<F>) -> StoredFact,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let table = F::TABLE;
        let select = format!("{} AND f.{}", table.select, table.id());
        self.found(&select, ids, |row| {
            let fact = F::read(&mut Columns::of(row, table.name, table.members))?;
            Ok(kind(Box::new(fact)))
        })
    }

    fn calls_of(&mut self, ids: &[FactId]) -> Result<Vec<StoredFact>, StoreError> {
        let select = format!("{CALLS} AND f.inference_call_id");
        self.found(&select, ids, |row| {
            Ok(StoredFact::InferenceCall(Box::new(stored_call(row)?)))
        })
    }

    fn found(
        &mut self,
        select: &str,
        ids: &[FactId],
        read: impl Fn(&Row<'_>) -> Result<StoredFact, StoreError>,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = ids.iter().copied().map(Value::from).collect();
        let mut facts = Vec::with_capacity(ids.len());
        let lookup = Lookup { select, then: "" };
        self.connection()?.lookup(&lookup, &shared, &keys, |row| {
            facts.push(read(row)?);
            Ok(())
        })?;
        facts.sort_by_key(StoredFact::id);
        Ok(facts)
    }
}

fn stored_call(row: &Row<'_>) -> Result<StoredCall, StoreError> {
    let member = |what| corrupt("inference_calls", what);
    let moment = |place| Instant::from_microseconds(row.integer(place)?).ok_or(member("a time"));
    let user_id = row.optional_text(2)?.map(|text| UserId::new(&text));
    let mut usage = Columns::of(row, "inference_calls", &[]).behind(17);
    Ok(StoredCall {
        inference_call_id: row.fact_id(0)?,
        session_id: SessionId::new(&row.text(1)?).map_err(|_| member("its Session"))?,
        user_id: user_id.transpose().map_err(|_| member("its user"))?,
        gateway_provider: column::gateway_provider(row, 3)?,
        model_call_id: ModelCallId::of(row, 4)?,
        model_provider: row.optional_text(5)?,
        model: row.optional_text(6)?,
        input_tokens: row.optional_integer(7)?,
        output_tokens: row.optional_integer(8)?,
        duration_ms: row.optional_integer(9)?,
        capture_source: calls::shown_source(usage.next()?),
        agent: usage.next()?,
        usage: usage.next()?,
        response_id: usage.next()?,
        request_id: usage.next()?,
        workplace: Workplace {
            cwd: usage.next()?,
            git_branch: usage.next()?,
            subagent: usage.next()?,
        },
        observed_at: moment(10)?,
        captured_at: moment(11)?,
        input_bytes: row.count(12)?,
        output_bytes: row.count(13)?,
        left_out: calls::left_out(row.optional_text(14)?)?,
        input_unpaired: calls::input_unpaired(row, 31)?,
        input: id_list::read_ids(&row.blob(15)?)?,
        output: id_list::read_ids(&row.blob(16)?)?,
    })
}
