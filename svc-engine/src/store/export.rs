//! Every visible fact of a kind, some at a time, in the order of their ids.

use svc_model::evidence::LeftOut;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::time::Instant;

use super::column::Columns;
use super::error::corrupt;
use super::table::Record;
use super::value::{Row, Value};
use super::{Snapshot, StoreError, calls, id_list};
use crate::fact::{
    CiOutcome, DeveloperDecision, EditObservation, PullRequestMerge, PullRequestRevision, Push,
    RejectedEdit, RepositoryRename, RetryLinkage, SessionCommitObservation,
};

/// A fact of any kind.
#[derive(Clone, Debug)]
pub enum StoredFact {
    /// A model call.
    InferenceCall(Box<StoredCall>),
    /// An accepted or rejected proposal.
    DeveloperDecision(Box<DeveloperDecision>),
    /// The result of a CI run.
    CiOutcome(Box<CiOutcome>),
    /// A push.
    Push(Box<Push>),
    /// A merged pull request.
    PullRequestMerge(Box<PullRequestMerge>),
    /// A state of a pull request.
    PullRequestRevision(Box<PullRequestRevision>),
    /// What became of an edit.
    EditObservation(Box<EditObservation>),
    /// A refused edit.
    RejectedEdit(Box<RejectedEdit>),
    /// A refused edit and the accepted one.
    RetryLinkage(Box<RetryLinkage>),
    /// A commit that a note ties to a Session.
    SessionCommitObservation(Box<SessionCommitObservation>),
    /// Another name of a repository.
    RepositoryRename(Box<RepositoryRename>),
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
    /// When it was observed.
    pub observed_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
    /// Canonical bytes of its input.
    pub input_bytes: u64,
    /// Canonical bytes of its output.
    pub output_bytes: u64,
    /// What the capture left out of them.
    pub left_out: LeftOut,
    /// The contents of its input messages, in order.
    pub input: Vec<i64>,
    /// The contents of its output messages, in order.
    pub output: Vec<i64>,
}

const CALLS: &str = "SELECT f.inference_call_id, f.session_id, f.user_id, f.gateway_provider,
        f.model_call_id, f.model_provider, f.model, f.input_tokens, f.output_tokens, f.duration_ms,
        f.observed_at_us, f.captured_at_us, f.input_byte_count, f.output_byte_count, f.left_out,
        f.input_contents, f.output_contents
    FROM visible_inference_calls f WHERE COALESCE(f.org_id, '') = $1";

/// Which facts, after the selection of the visible facts of an organization. The moment is an
/// expression, so that ids are what is searched by.
fn further(id: &str) -> String {
    format!(
        " AND f.{id} > $2 AND f.captured_at_us + 0 >= $3 AND f.captured_at_us + 0 < $4 \
        ORDER BY f.{id} LIMIT $5"
    )
}

impl Snapshot<'_> {
    /// Returns the next visible facts of a kind that were captured from a moment on and before
    /// another, where these are given, in the order of their ids, behind one of them.
    pub fn facts_after(
        &mut self,
        kind: FactTable,
        after: Option<FactId>,
        captured: (Option<Instant>, Option<Instant>),
        rows_max: usize,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let page = (after, captured, rows_max);
        match kind {
            FactTable::InferenceCalls => self.calls_after(page),
            FactTable::DeveloperDecisions => self.after(page, StoredFact::DeveloperDecision),
            FactTable::CiOutcomes => self.after(page, StoredFact::CiOutcome),
            FactTable::Pushes => self.after(page, StoredFact::Push),
            FactTable::PullRequestMerges => self.after(page, StoredFact::PullRequestMerge),
            FactTable::PullRequestRevisions => self.after(page, StoredFact::PullRequestRevision),
            FactTable::EditObservations => self.after(page, StoredFact::EditObservation),
            FactTable::RejectedEdits => self.after(page, StoredFact::RejectedEdit),
            FactTable::RetryLinkages => self.after(page, StoredFact::RetryLinkage),
            FactTable::SessionCommitObservations => {
                self.after(page, StoredFact::SessionCommitObservation)
            }
            FactTable::RepositoryRenames => self.after(page, StoredFact::RepositoryRename),
        }
    }

    fn after<F: Record>(
        &mut self,
        page: Page,
        kind: fn(Box<F>) -> StoredFact,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let table = F::TABLE;
        let sql = [table.select, &further(table.id())].concat();
        self.page(&sql, page, |row| {
            let fact = F::read(&mut Columns::of(row, table.name, table.members))?;
            Ok(kind(Box::new(fact)))
        })
    }

    fn calls_after(&mut self, page: Page) -> Result<Vec<StoredFact>, StoreError> {
        let sql = [CALLS, &further("inference_call_id")].concat();
        self.page(&sql, page, |row| {
            Ok(StoredFact::InferenceCall(Box::new(stored_call(row)?)))
        })
    }

    fn page(
        &mut self,
        sql: &str,
        (after, (from, to), rows_max): Page,
        read: impl FnMut(&Row<'_>) -> Result<StoredFact, StoreError>,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let keys = [
            self.org_id.as_str().into(),
            Value::Text(&after),
            from.map_or(i64::MIN, Instant::microseconds).into(),
            to.map_or(i64::MAX, Instant::microseconds).into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        self.connection()?.all(sql, &keys, read)
    }
}

/// Behind which fact, from when until when, and how many.
type Page = (Option<FactId>, (Option<Instant>, Option<Instant>), usize);

fn stored_call(row: &Row<'_>) -> Result<StoredCall, StoreError> {
    let member = |what| corrupt("inference_calls", what);
    let moment = |place| Instant::from_microseconds(row.integer(place)?).ok_or(member("a time"));
    let user_id = row.optional_text(2)?.map(|text| UserId::new(&text));
    Ok(StoredCall {
        inference_call_id: FactId::parse(&row.text(0)?).ok_or(member("its id"))?,
        session_id: SessionId::new(&row.text(1)?).map_err(|_| member("its Session"))?,
        user_id: user_id.transpose().map_err(|_| member("its user"))?,
        gateway_provider: GatewayProvider::from_wire(&row.text(3)?).ok_or(member("its gateway"))?,
        model_call_id: row.optional_text(4)?,
        model_provider: row.optional_text(5)?,
        model: row.optional_text(6)?,
        input_tokens: row.optional_integer(7)?,
        output_tokens: row.optional_integer(8)?,
        duration_ms: row.optional_integer(9)?,
        observed_at: moment(10)?,
        captured_at: moment(11)?,
        input_bytes: row.count(12)?,
        output_bytes: row.count(13)?,
        left_out: calls::left_out(row.optional_text(14)?)?,
        input: id_list::read_ids(&row.blob(15)?)?,
        output: id_list::read_ids(&row.blob(16)?)?,
    })
}
