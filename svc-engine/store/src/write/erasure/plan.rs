//! Plans an erasure: which facts to erase, and which contents nothing else needs.
//!
//! A plan takes about a dozen bytes of memory for each content of these facts, and some dozens of
//! bytes for each fact.
//!
//! Only calls record which content they use, so a plan reads all calls, without a lock. Calls have
//! a number that grows, and PostgreSQL a BRIN index of it, so later calls are found quickly.

use std::collections::{HashMap, HashSet};

use svc_engine_fact::deadline::Deadline;
use svc_model::facts::FactTable;

use super::halves::{self, SelectedHalves};
use super::select::SelectedFacts;
use super::{ErasedFacts, ErasureForecast, ErasureSubject, claims};
use crate::pack::id_list;
use crate::sql::connection::{Connection, Lookup, Sql};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::write::ledger::Ledger;
use crate::write::transaction::Transaction;

/// The calls after a number, and the contents that they need.
const CALLS_AFTER: &str = "SELECT f.call_number, f.input_contents, f.output_contents
    FROM inference_calls f WHERE f.call_number > $1";
const RAWS_AFTER: &str =
    "SELECT r.call_number, r.contents FROM raw_payloads r WHERE r.call_number > $1";
const CALLS_OF: Lookup<'_> = Lookup {
    select: "SELECT call_number, input_contents, output_contents FROM inference_calls
        WHERE inference_call_id",
    then: "",
};
const RAWS_OF: Lookup<'_> = Lookup {
    select: "SELECT call_number, contents FROM raw_payloads WHERE call_number",
    then: "",
};
const RAW_BYTES: Lookup<'_> = Lookup {
    select: "SELECT CAST(OCTET_LENGTH(contents) + OCTET_LENGTH(skeleton) AS BIGINT)
        FROM raw_payloads WHERE call_number",
    then: "",
};
const SIZES: Lookup<'_> = Lookup {
    select: "SELECT content_id, is_shared, CAST(OCTET_LENGTH(bytes) AS BIGINT) FROM content
        WHERE content_id",
    then: "",
};
/// The last call whose payload is stored. A call gets its number while other writers are locked
/// out, so all later calls have greater numbers.
const LAST: &str = "SELECT COALESCE(MAX(call_number), 0) FROM raw_payloads";
/// How often content has been erased.
pub(crate) const ERASURES: &str = "SELECT COALESCE(MAX(erasures), 0) FROM organizations";
/// Keeps others from writing facts until this transaction ends: a writer of facts first locks the
/// row of its organization. SQLite has only one writer at a time anyway.
const KEEP_OUT: Sql = Sql {
    sqlite: "SELECT 1",
    postgres: "LOCK TABLE organizations IN EXCLUSIVE MODE",
};

/// The facts to erase, and which of their contents nothing else needs.
#[derive(Debug)]
pub struct ErasurePlan {
    pub(crate) selected: SelectedFacts,
    /// The halves of calls to erase.
    pub(crate) halves: SelectedHalves,
    /// How many of the calls that are still to be erased need each content.
    pub(crate) references: HashMap<i64, u32>,
    /// The contents that other calls need.
    pub(crate) needed: HashSet<i64>,
    /// The number of the last call that was looked at.
    pub(crate) seen: i64,
    /// The calls to erase whose numbers are greater than `seen`.
    late: HashSet<i64>,
    /// How often content had been erased when the plan was made, plus the plan's own transactions.
    pub(crate) erasures: i64,
    /// How many reported commits there are to erase.
    pub(crate) claims: u64,
    forecast: ErasureForecast,
}

/// The contents that each call needs, without duplicates.
pub(crate) type ContentNeeds = HashMap<i64, Vec<i64>>;

/// Returns the contents that calls need, by the number of the call.
pub(crate) fn needs_of(
    connection: &mut Connection,
    calls: &[super::select::ErasedCall],
) -> Result<ContentNeeds, StoreError> {
    let keys: Vec<Value<'_>> = calls.iter().map(|call| call.id.into()).collect();
    let mut needs = ContentNeeds::with_capacity(calls.len());
    connection.lookup(&CALLS_OF, &[], &keys, |row| {
        let mut contents = id_list::read_ids(&row.blob(1)?)?;
        contents.extend(id_list::read_ids(&row.blob(2)?)?);
        needs.insert(row.integer(0)?, contents);
        Ok(())
    })?;
    let keys: Vec<Value<'_>> = calls.iter().map(|call| call.number.into()).collect();
    connection.lookup(&RAWS_OF, &[], &keys, |row| {
        let contents = id_list::read_ids(&row.blob(1)?)?;
        needs.entry(row.integer(0)?).or_default().extend(contents);
        Ok(())
    })?;
    for contents in needs.values_mut() {
        contents.sort_unstable();
        contents.dedup();
    }
    Ok(needs)
}

/// How far a store had come when others were kept from writing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreProgress {
    /// The number of the last call.
    seen: i64,
    /// How often content had been erased.
    erasures: i64,
}

impl StoreProgress {
    /// Reads it. Nobody else may write meanwhile.
    pub(crate) fn read(connection: &mut Connection) -> Result<Self, StoreError> {
        let mut number = |sql| {
            let number = connection.first(sql, &[], |row| row.integer(0))?;
            Ok::<_, StoreError>(number.unwrap_or_default())
        };
        Ok(Self {
            seen: number(LAST)?,
            erasures: number(ERASURES)?,
        })
    }
}

impl Transaction<'_> {
    /// Keeps others from writing facts until the transaction ends.
    pub(crate) fn keep_others_out(&mut self) -> Result<(), StoreError> {
        let text = self.connection.text(KEEP_OUT);
        self.connection.execute(text, &[]).map(drop)
    }
}

/// Maximum number of calls whose contents are read at once.
const CALLS_AT_ONCE: usize = 1_024;

impl ErasurePlan {
    /// Plans to erase the facts that the connection's transaction selected, without a forecast.
    pub(crate) fn new(
        connection: &mut Connection,
        selected: SelectedFacts,
        StoreProgress { seen, erasures }: StoreProgress,
    ) -> Result<Self, StoreError> {
        let mut plan = Self {
            selected,
            halves: SelectedHalves::default(),
            references: HashMap::new(),
            needed: HashSet::new(),
            seen,
            late: HashSet::new(),
            erasures,
            claims: 0,
            forecast: ErasureForecast::default(),
        };
        for calls in plan.selected.calls.chunks(CALLS_AT_ONCE) {
            for contents in needs_of(connection, calls)?.into_values() {
                for content_id in contents {
                    *plan.references.entry(content_id).or_default() += 1;
                }
            }
        }
        let own = plan.selected.calls.iter().map(|call| call.number);
        let own: HashSet<i64> = own.collect();
        plan.look_at_others(connection, 0, &own)?;
        plan.late = own.into_iter().filter(|number| *number > seen).collect();
        Ok(plan)
    }

    /// Notes which contents the calls after a number need, except for the calls in `own`. Returns
    /// the last number.
    fn look_at_others(
        &mut self,
        connection: &mut Connection,
        after: i64,
        own: &HashSet<i64>,
    ) -> Result<i64, StoreError> {
        let Self {
            references, needed, ..
        } = self;
        if references.is_empty() {
            return Ok(after);
        }
        let mut last = after;
        let mut need = |number: i64, list: &[u8]| {
            if !own.contains(&number) {
                let contents = id_list::read_ids(list)?.into_iter();
                needed.extend(contents.filter(|content| references.contains_key(content)));
            }
            Ok::<_, StoreError>(())
        };
        let keys = [Value::Integer(after)];
        connection.each(CALLS_AFTER, &keys, |row| {
            let number = row.integer(0)?;
            last = last.max(number);
            row.with_blob(1, |list| need(number, list))??;
            row.with_blob(2, |list| need(number, list))?
        })?;
        connection.each(RAWS_AFTER, &keys, |row| {
            let number = row.integer(0)?;
            row.with_blob(1, |list| need(number, list))?
        })?;
        Ok(last)
    }

    /// Looks at the calls that were stored since the last look. Nobody else may write meanwhile.
    pub(crate) fn catch_up(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        let late = std::mem::take(&mut self.late);
        let seen = self.look_at_others(connection, self.seen, &late);
        self.late = late;
        self.seen = seen?;
        Ok(())
    }

    /// Returns whether there is nothing to erase.
    pub fn is_empty(&self) -> bool {
        self.selected.calls.is_empty()
            && self.selected.others.is_empty()
            && self.halves.is_empty()
            && self.claims == 0
    }

    fn facts(&self) -> ErasedFacts {
        let mut facts = ErasedFacts::default();
        facts.count(FactTable::InferenceCalls, self.selected.calls.len() as u64);
        for other in &self.selected.others {
            facts.count(other.kind, 1);
        }
        facts
    }

    /// Returns what the erasure would delete, and what it would leave.
    pub const fn forecast(&self) -> &ErasureForecast {
        &self.forecast
    }

    fn foresee(&self, connection: &mut Connection) -> Result<ErasureForecast, StoreError> {
        let mut forecast = ErasureForecast {
            sessions: self.selected.sessions.len() as u64,
            facts: self.facts(),
            halves: self.halves.len(),
            stored_bytes: self.selected.others.iter().map(|other| other.bytes).sum(),
            ..ErasureForecast::default()
        };
        let mut contents: Vec<i64> = self.references.keys().copied().collect();
        contents.sort_unstable();
        let keys: Vec<Value<'_>> = contents.into_iter().map(Value::Integer).collect();
        connection.lookup(&SIZES, &[], &keys, |row| {
            if !self.needed.contains(&row.integer(0)?) {
                forecast.contents += 1;
                forecast.stored_bytes += row.count(2)?;
            } else if row.integer(1)? == 1 {
                forecast.shared_by_all += 1;
            } else {
                forecast.shared_in_session += 1;
            }
            Ok(())
        })?;
        let numbers = self.selected.calls.iter().map(|call| call.number);
        let keys: Vec<Value<'_>> = numbers.map(Value::Integer).collect();
        connection.lookup(&RAW_BYTES, &[], &keys, |row| {
            forecast.stored_bytes += row.count(0)?;
            Ok(())
        })?;
        Ok(forecast)
    }
}

impl Ledger {
    /// Returns what an erasure would delete, and changes nothing.
    ///
    /// # Errors
    ///
    /// If the store does not answer before the deadline. Every call of the database is read.
    pub fn forecast_erasure(
        &self,
        subject: &ErasureSubject,
        deadline: &Deadline,
    ) -> Result<ErasureForecast, StoreError> {
        let mut snapshot = self.snapshot_until(deadline)?;
        let selected = snapshot.selected_for_erasure(subject)?;
        let connection = snapshot.connection()?;
        let mut plan = ErasurePlan::new(connection, selected, StoreProgress::default())?;
        plan.halves = halves::select(connection, &self.org_id, subject)?;
        plan.foresee(connection)
    }

    /// Plans an erasure for [`Ledger::erase`].
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the store does not answer before the deadline.
    pub fn plan_erasure(
        &self,
        subject: &ErasureSubject,
        deadline: &Deadline,
    ) -> Result<ErasurePlan, StoreError> {
        // Calls that are committed after this transaction have greater numbers than the last call.
        let reached = self.write(|transaction| {
            transaction.keep_others_out()?;
            StoreProgress::read(transaction.connection)
        })?;
        let mut snapshot = self.snapshot_until(deadline)?;
        let selected = snapshot.selected_for_erasure(subject)?;
        let connection = snapshot.connection()?;
        let mut plan = ErasurePlan::new(connection, selected, reached)?;
        plan.claims = claims::count(connection, &self.org_id, subject)?;
        plan.halves = halves::select(connection, &self.org_id, subject)?;
        plan.forecast = plan.foresee(connection)?;
        Ok(plan)
    }
}
