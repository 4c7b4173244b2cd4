//! Carries out an erasure, some facts at a time.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant as Moment};

use svc_engine_fact::deadline::Deadline;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId, SessionId, UserId};

use super::halves;
use super::log::COLUMNS;
use super::plan::{ERASURES, ErasurePlan, needs_of};
use super::select::{ErasedCall, OtherFact, SelectedFacts, emptying};
use super::{ErasedContent, ErasureOrder, ErasureSubject, claims};
use crate::pack::id_list::write_ids;
use crate::sql::connection::{Connection, Insert, Lookup};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
use crate::table::kind;
use crate::write::ledger::Ledger;
use crate::write::transaction::{self, Moments, Transaction};

/// Maximum number of facts in a transaction.
const FACTS_AT_ONCE: usize = 256;
/// How often a transaction is tried while the database is busy.
const ATTEMPTS_MAX: usize = 5;
/// Minimum pause between two transactions, so that others can write.
const PAUSE: Duration = Duration::from_millis(50);

const COUNT_ERASURE: &str = "UPDATE organizations SET erasures = erasures + 1";

const SIZES: Lookup<'_> = Lookup {
    select: "SELECT call_number, input_byte_count + output_byte_count FROM inference_calls
        WHERE inference_call_id",
    then: "",
};
/// Empties calls: both lists of messages become empty lists.
const EMPTY_CALLS: Lookup<'_> = Lookup {
    select: "UPDATE inference_calls SET input_contents = $1, output_contents = $1,
            input_byte_count = 2, input_part_count = 0, output_byte_count = 2,
            output_part_count = 0, cwd = NULL, git_branch = NULL, subagent = NULL
        WHERE inference_call_id",
    then: "",
};
const DELETE_RAWS: Lookup<'_> = Lookup {
    select: "DELETE FROM raw_payloads WHERE call_number",
    then: " RETURNING CAST(OCTET_LENGTH(contents) + OCTET_LENGTH(skeleton) AS BIGINT)",
};
const DELETE_CONTENTS: Lookup<'_> = Lookup {
    select: "DELETE FROM content WHERE content_id",
    then: " RETURNING CAST(OCTET_LENGTH(bytes) AS BIGINT)",
};
const MARK: Insert = Insert {
    into: "INSERT INTO erased_facts (org_id, session_id, fact_table, fact_id, byte_count,
        erased_at_us, erasure_revision)",
    columns: 7,
    then: "",
    returning: "erasure_revision, fact_id",
    unique: 3,
    is_row_number: true,
};

/// The facts of one transaction.
enum Batch<'p> {
    /// No fact: what clients reported of commits.
    Claims,
    Calls(&'p [ErasedCall]),
    Others(&'p [OtherFact]),
}

fn batches<'p>(
    calls: &'p [ErasedCall],
    others: &'p [OtherFact],
) -> impl Iterator<Item = Batch<'p>> {
    let calls = calls.chunks(FACTS_AT_ONCE).map(Batch::Calls);
    calls.chain(others.chunks(FACTS_AT_ONCE).map(Batch::Others))
}

/// A fact to mark: its kind, its id, the index of its Session, and how many bytes it had.
type FactMark = (FactTable, FactId, u32, u64);

impl Ledger {
    /// Erases what is planned, in transactions of bounded size, each with its own row in the log.
    /// `progress` is called with the total after each. If a later transaction fails or the deadline
    /// passes, what is erased by then stays erased.
    ///
    /// # Errors
    ///
    /// [`StoreError::ErasedByAnother`] if there was another erasure since the plan was made. Also
    /// if the schema is not at head, the store cannot be reached, or the deadline passes.
    pub fn erase(
        &self,
        mut plan: ErasurePlan,
        order: &ErasureOrder,
        deadline: &Deadline,
        progress: &mut dyn FnMut(&ErasedContent),
    ) -> Result<ErasedContent, StoreError> {
        let mut erased = ErasedContent::default();
        if plan.is_empty() {
            return Ok(erased);
        }
        let mut connection = self.writing_at_head()?;
        connection.overwrite_what_is_deleted()?;
        if self.erase_halves(&mut connection, &plan, order, &mut erased)? == MayBeFacts::Yes {
            plan = self.plan_erasure(&order.subject, deadline)?;
        }
        let (calls, others) = plan.take();
        let claims = (plan.claims > 0).then_some(Batch::Claims);
        let mut batches = claims
            .into_iter()
            .chain(batches(&calls, &others))
            .peekable();
        while let Some(batch) = batches.next() {
            deadline.check()?;
            let begun = Moment::now();
            let mut attempts = 1;
            let (done, released) = loop {
                let written = transaction::write(
                    &mut connection,
                    &self.org_id,
                    Moments::default(),
                    &transaction::deadline(),
                    |transaction| erase(transaction, &mut plan, &batch, order, None),
                );
                match written.map_err(StoreError::from) {
                    Ok((done, _)) => break done,
                    Err(error)
                        if attempts < ATTEMPTS_MAX && (error.is_busy() || error.is_given_up()) =>
                    {
                        attempts += 1;
                        std::thread::sleep(PAUSE);
                    }
                    Err(error) => return Err(error),
                }
            };
            plan.settle(released);
            erased.add(&done);
            progress(&erased);
            if batches.peek().is_some() {
                // Let waiting senders write.
                std::thread::sleep(begun.elapsed().max(PAUSE));
            }
        }
        Ok(erased)
    }
}

/// Whether planned halves have become facts since the plan was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayBeFacts {
    Yes,
    No,
}

impl Ledger {
    /// Erases the halves of an erasure, before its facts: from then on, none becomes a fact.
    fn erase_halves(
        &self,
        connection: &mut Connection,
        plan: &ErasurePlan,
        order: &ErasureOrder,
        erased: &mut ErasedContent,
    ) -> Result<MayBeFacts, StoreError> {
        if plan.halves.is_empty() {
            return Ok(MayBeFacts::No);
        }
        let work = |transaction: &mut Transaction<'_>| {
            transaction.keep_others_out()?;
            let org_id = transaction.org_id;
            let selected = halves::select(transaction.connection, org_id, &order.subject)?;
            let (halves, stored_bytes) = halves::delete(transaction.connection, org_id, &selected)?;
            let done = ErasedContent {
                halves,
                stored_bytes,
                ..ErasedContent::default()
            };
            if halves > 0 {
                append(transaction, order, &done)?;
            }
            Ok((done, selected))
        };
        let deadline = transaction::deadline();
        let written = transaction::write(
            connection,
            &self.org_id,
            Moments::default(),
            &deadline,
            work,
        );
        let ((done, selected), _) = written.map_err(StoreError::from)?;
        erased.add(&done);
        Ok(if plan.halves.may_be_facts(&selected) {
            MayBeFacts::Yes
        } else {
            MayBeFacts::No
        })
    }
}

/// Erases facts of a plan as a part of the transaction that the connection is in. The log keeps what
/// the order erased before.
pub(crate) fn erase_within(
    connection: &mut Connection,
    org_id: &OrgId,
    plan: &mut ErasurePlan,
    (calls, others): (&[ErasedCall], &[OtherFact]),
    (order, before): (&ErasureOrder, &ErasedContent),
) -> Result<ErasedContent, StoreError> {
    let mut erased = ErasedContent::default();
    for batch in batches(calls, others) {
        let written = transaction::within(connection, org_id, Moments::default(), |transaction| {
            erase(transaction, plan, &batch, order, Some(before))
        });
        let ((done, released), _) = written?;
        plan.settle(released);
        erased.add(&done);
    }
    Ok(erased)
}

/// Logs an erasure whose facts are absent, as a part of the transaction that the connection is in.
pub(crate) fn log_alone(
    connection: &mut Connection,
    org_id: &OrgId,
    order: &ErasureOrder,
    before: &ErasedContent,
) -> Result<(), StoreError> {
    let logged = transaction::within(connection, org_id, Moments::default(), |transaction| {
        append(transaction, order, before)
    });
    logged.map(drop)
}

/// How many of the erased calls needed each content.
type ContentUses = HashMap<i64, u32>;

impl ErasurePlan {
    /// Takes the facts to erase.
    pub(crate) fn take(&mut self) -> (Vec<ErasedCall>, Vec<OtherFact>) {
        let SelectedFacts { calls, others, .. } = &mut self.selected;
        (std::mem::take(calls), std::mem::take(others))
    }

    /// Notes that a transaction of this plan was carried out.
    fn settle(&mut self, released: ContentUses) {
        self.erasures += 1;
        for (content_id, count) in released {
            if let Some(references) = self.references.get_mut(&content_id) {
                *references -= count;
            }
        }
    }
}

fn erase(
    transaction: &mut Transaction<'_>,
    plan: &mut ErasurePlan,
    batch: &Batch<'_>,
    order: &ErasureOrder,
    before: Option<&ErasedContent>,
) -> Result<(ErasedContent, ContentUses), StoreError> {
    transaction.keep_others_out()?;
    let connection = &mut *transaction.connection;
    let erasures = connection.first(ERASURES, &[], |row| row.integer(0))?;
    if erasures.unwrap_or_default() != plan.erasures {
        return Err(StoreError::ErasedByAnother);
    }
    plan.catch_up(connection)?;
    connection.execute(COUNT_ERASURE, &[])?;
    let mut erased = ErasedContent::default();
    let mut released = ContentUses::new();
    let marked = match batch {
        Batch::Claims => {
            claims::erase(connection, transaction.org_id, &order.subject, None)?;
            Vec::new()
        }
        Batch::Calls(calls) => erase_calls(transaction, plan, calls, &mut erased, &mut released)?,
        Batch::Others(others) => erase_others(transaction, others, &mut erased)?,
    };
    for (kind, ..) in &marked {
        erased.facts.count(*kind, 1);
    }
    let revision = append(transaction, order, before.unwrap_or(&erased))?;
    mark(transaction, plan, &marked, order, revision)?;
    Ok((erased, released))
}

/// Empties calls, and deletes the contents that no remaining call needs.
fn erase_calls(
    transaction: &mut Transaction<'_>,
    plan: &ErasurePlan,
    calls: &[ErasedCall],
    erased: &mut ErasedContent,
    released: &mut ContentUses,
) -> Result<Vec<FactMark>, StoreError> {
    let connection = &mut *transaction.connection;
    for contents in needs_of(connection, calls)?.into_values() {
        for content_id in contents {
            *released.entry(content_id).or_default() += 1;
        }
    }
    let ids: Vec<Value<'_>> = calls.iter().map(|call| call.id.into()).collect();
    let mut sizes: HashMap<i64, u64> = HashMap::with_capacity(calls.len());
    connection.lookup(&SIZES, &[], &ids, |row| {
        sizes.insert(row.integer(0)?, row.count(1)?);
        Ok(())
    })?;
    let nothing = [Value::OwnBlob(write_ids([]))];
    connection.lookup(&EMPTY_CALLS, &nothing, &ids, |_| Ok(()))?;
    let numbers: Vec<Value<'_>> = calls.iter().map(|call| call.number.into()).collect();
    connection.lookup(&DELETE_RAWS, &[], &numbers, |row| {
        erased.stored_bytes += row.count(0)?;
        Ok(())
    })?;
    let is_last = |(content_id, count): (&i64, &u32)| {
        let needed = plan.needed.contains(content_id);
        let left = plan.references.get(content_id).copied().unwrap_or_default();
        (!needed && left == *count).then_some(*content_id)
    };
    let mut unneeded: Vec<i64> = released.iter().filter_map(is_last).collect();
    unneeded.sort_unstable();
    let unneeded: Vec<Value<'_>> = unneeded.into_iter().map(Value::Integer).collect();
    connection.lookup(&DELETE_CONTENTS, &[], &unneeded, |row| {
        erased.contents += 1;
        erased.stored_bytes += row.count(0)?;
        Ok(())
    })?;
    Ok(calls
        .iter()
        .map(|call| {
            let bytes = sizes.get(&call.number).copied().unwrap_or_default();
            (FactTable::InferenceCalls, call.id, call.session, bytes)
        })
        .collect())
}

/// Empties facts of other kinds.
fn erase_others(
    transaction: &mut Transaction<'_>,
    others: &[OtherFact],
    erased: &mut ErasedContent,
) -> Result<Vec<FactMark>, StoreError> {
    let mut of_kind: BTreeMap<FactTable, Vec<Value<'static>>> = BTreeMap::new();
    for other in others {
        of_kind.entry(other.kind).or_default().push(other.id.into());
        erased.stored_bytes += other.bytes;
    }
    for (kind, ids) in &of_kind {
        let (text, values) = emptying(kind::table(*kind));
        let lookup = Lookup {
            select: &text,
            then: "",
        };
        let connection = &mut *transaction.connection;
        connection.lookup(&lookup, &values, ids, |_| Ok(()))?;
    }
    let marked = |other: &OtherFact| (other.kind, other.id, other.session, other.bytes);
    Ok(others.iter().map(marked).collect())
}

/// Appends the row of the log, and returns its revision.
fn append(
    transaction: &mut Transaction<'_>,
    order: &ErasureOrder,
    erased: &ErasedContent,
) -> Result<u64, StoreError> {
    let (session_id, user_id, older_than) = match &order.subject {
        ErasureSubject::Session(session_id) => (Some(session_id), None, None),
        ErasureSubject::User(user_id) => (None, Some(user_id), None),
        ErasureSubject::OlderThan(moment) => (None, None, Some(*moment)),
    };
    let number = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let mut values = vec![
        transaction.org_id.as_str().into(),
        Value::OwnText(order.erasure_id.to_string()),
        session_id.map(SessionId::as_str).into(),
        user_id.map(UserId::as_str).into(),
        older_than.into(),
    ];
    values.extend(erased.facts.iter().map(|(_, count)| number(count)));
    values.extend([
        number(erased.contents),
        number(erased.stored_bytes),
        Value::Text(&order.reason),
        order.recorded_at.into(),
        Value::Text(&order.client_id),
    ]);
    let places = (1..=values.len()).map(|place| format!("${place}"));
    // The log gives the revision itself.
    let text = format!(
        "INSERT INTO erasure_log (org_id, {}) VALUES ({}) RETURNING erasure_revision",
        COLUMNS[1..].join(", "),
        places.collect::<Vec<_>>().join(", ")
    );
    let connection = &mut *transaction.connection;
    let revision = connection.first(&text, &values, |row| row.count(0))?;
    revision.ok_or(corrupt("erasure_log", "no revision was given"))
}

fn mark(
    transaction: &mut Transaction<'_>,
    plan: &ErasurePlan,
    marked: &[FactMark],
    order: &ErasureOrder,
    revision: u64,
) -> Result<(), StoreError> {
    let number = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let mut values = Vec::with_capacity(marked.len() * MARK.columns);
    for (kind, id, session, bytes) in marked {
        values.extend([
            Value::Text(transaction.org_id.as_str()),
            Value::Text(plan.selected.session_at(*session)),
            Value::Text(kind.as_str()),
            (*id).into(),
            number(*bytes),
            order.recorded_at.into(),
            number(revision),
        ]);
    }
    let rows = values.chunks_exact(MARK.columns);
    transaction.connection.put(&MARK, rows).map(drop)
}
