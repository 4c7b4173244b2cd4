//! The stored calls that a gateway's call may repeat: what tells a redelivery from a conflict, and
//! whether a redelivery differs.

use std::collections::HashMap;

use svc_engine_fact::InferenceCall;
use svc_model::id::{FactId, OrgId};
use svc_model::ingest::{CallMember, GatewayProvider};
use svc_model::problem::Code;
use svc_model::time::Instant;
use svc_model::usage::CallSource;

use super::content::Encoded;
use super::outcome::{Outcome, Verdict};
use super::redelivery::Difference;
use super::sessions::Numbers;
use crate::pack::content_key::{ContentHash, ContentRef};
use crate::pack::model_call_id::ModelCallId;
use crate::pack::{column, id_list};
use crate::read::contents::{HASHES, hashes};
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};

// The ids tell a redelivery from a conflict. The other columns tell whether a redelivery differs.
// Quarantined calls count too.
pub(crate) const BY_ID: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id, session_id, model,
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number,
        input_contents, output_contents, started_at_us, is_further
        FROM all_inference_calls WHERE inference_call_id",
    then: "",
};
const BY_MODEL_CALL: Lookup<'_> = Lookup {
    select: "SELECT inference_call_id, org_id, gateway_provider, model_call_id, session_id, model,
        input_byte_count, input_part_count, output_byte_count, output_part_count, session_number,
        input_contents, output_contents, started_at_us, is_further
        FROM all_inference_calls WHERE model_call_id IS NOT NULL AND model_call_id",
    then: "",
};

const ERASED: Lookup<'_> = Lookup {
    select: "SELECT fact_id FROM erased_facts WHERE session_id = $1 AND org_id = $2
        AND fact_table = 'inference_calls' AND fact_id",
    then: "",
};

/// Returns whether the content of a call of a Session was erased.
pub(crate) fn is_erased(
    connection: &mut Connection,
    org_id: &str,
    session_id: &str,
    fact_id: FactId,
) -> Result<bool, StoreError> {
    let mut is_erased = false;
    let fixed = [session_id.into(), org_id.into()];
    connection.lookup(&ERASED, &fixed, &[fact_id.into()], |_| {
        is_erased = true;
        Ok(())
    })?;
    Ok(is_erased)
}

/// The ids of a stored call, which tell a redelivery from a conflict, and what a redelivery is
/// compared with.
#[derive(Clone, Debug)]
struct Identity {
    inference_call_id: FactId,
    org_id: String,
    gateway_provider: GatewayProvider,
    model_call_id: Option<String>,
    started_at: Option<i64>,
    is_further: bool,
    /// Absent if the call is of the same transaction, which has not written the Session yet.
    session_id: Option<String>,
    session_number: i64,
    model: Option<String>,
    /// The messages of the input, then of the output.
    contents: [Vec<i64>; 2],
    /// Bytes and parts of the input, then of the output.
    counts: [i64; 4],
}

impl Identity {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            inference_call_id: row.fact_id(0)?,
            org_id: row.text(1)?,
            gateway_provider: column::gateway_provider(row, 2)?,
            model_call_id: ModelCallId::of(row, 3)?,
            session_id: row.optional_text(4)?,
            session_number: row.integer(10)?,
            model: row.optional_text(5)?,
            contents: [
                row.with_blob(11, id_list::read_ids)??,
                row.with_blob(12, id_list::read_ids)??,
            ],
            started_at: row.optional_integer(13)?,
            is_further: row.integer(14)? == 1,
            counts: [
                row.integer(6)?,
                row.integer(7)?,
                row.integer(8)?,
                row.integer(9)?,
            ],
        })
    }

    /// Returns whether a call belongs to the Session of this one.
    fn is_of_session(&self, encoded: &Encoded, numbers: &Numbers) -> bool {
        let session_id = encoded.call.session_id.as_str();
        match &self.session_id {
            Some(known) => known == session_id,
            None => numbers.get(session_id) == Some(self.session_number),
        }
    }

    /// Returns whether the content of the stored call was erased.
    fn is_erased(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        // An erased call has no messages, so others need no look.
        if self.contents.iter().any(|contents| !contents.is_empty()) {
            return Ok(false);
        }
        let Some(session_id) = self.session_id.as_deref() else {
            return Ok(false);
        };
        is_erased(connection, &self.org_id, session_id, self.inference_call_id)
    }

    /// Returns whether a call has the same messages.
    fn has_content_of(
        &self,
        connection: &mut Connection,
        encoded: &Encoded,
    ) -> Result<bool, StoreError> {
        if self.is_erased(connection)? {
            // What a redelivery brings is not stored again, and there is nothing to compare it with.
            return Ok(true);
        }
        let sides = [&encoded.input, &encoded.output];
        let counts = sides.map(|side| [side.byte_count, side.part_count].map(whole));
        if *counts.as_flattened() != self.counts {
            return Ok(false);
        }
        let stored = self.contents.iter().flatten();
        let sent = || sides.into_iter().flat_map(|side| &side.contents);
        let known = |content: &ContentRef| match content {
            ContentRef::Known(id) => Some(*id),
            ContentRef::New(_) => None,
        };
        if stored.clone().copied().map(Some).eq(sent().map(known)) {
            return Ok(true);
        }
        // One content may be stored under several ids.
        let ids = stored.clone().copied().chain(sent().filter_map(known));
        let hashes = hashes(connection, &HASHES, ids)?;
        let sent: Vec<Option<&ContentHash>> = sent()
            .map(|content| match content {
                ContentRef::Known(id) => hashes.get(id),
                ContentRef::New(new) => Some(&new.key.hash),
            })
            .collect();
        Ok(stored.map(|id| hashes.get(id)).eq(sent))
    }
}

/// The stored calls that share an id with the calls of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    by_id: HashMap<FactId, Identity>,
    /// The first call under an id of the model comes first.
    by_model_call: HashMap<(String, GatewayProvider, String), Vec<Identity>>,
}

impl Retained {
    pub(crate) fn find(
        connection: &mut Connection,
        calls: &[&Encoded],
    ) -> Result<Self, StoreError> {
        let mut retained = Self::default();
        let keys: Vec<Value<'_>> = calls
            .iter()
            .map(|encoded| encoded.call.inference_call_id.into())
            .collect();
        let model_calls: Vec<Value<'_>> = calls
            .iter()
            .filter_map(|encoded| encoded.call.model_call_id.as_deref())
            .map(ModelCallId::stored)
            .collect();
        connection.lookup_both(&BY_ID, &keys, &BY_MODEL_CALL, &model_calls, |row| {
            retained.add(Identity::read(row)?);
            Ok(())
        })?;
        Ok(retained)
    }

    fn add(&mut self, identity: Identity) {
        let fact_id = identity.inference_call_id;
        if let Some(model_call_id) = &identity.model_call_id {
            let key = (
                identity.org_id.clone(),
                identity.gateway_provider,
                model_call_id.clone(),
            );
            let sharing = self.by_model_call.entry(key).or_default();
            if sharing.iter().all(|one| one.inference_call_id != fact_id) {
                let place = if identity.is_further {
                    sharing.len()
                } else {
                    0
                };
                sharing.insert(place, identity.clone());
            }
        }
        self.by_id.insert(fact_id, identity);
    }

    /// Returns the stored calls of the model's id of a call.
    fn sharing(&self, org_id: &OrgId, call: &InferenceCall) -> &[Identity] {
        let sharing = call.model_call_id.as_ref().and_then(|model_call_id| {
            self.by_model_call.get(&(
                org_id.as_str().to_owned(),
                call.gateway_provider,
                model_call_id.clone(),
            ))
        });
        sharing.map_or(&[], Vec::as_slice)
    }

    /// Returns the stored call that a call repeats, or else what becomes of the call.
    fn repeated(&self, org_id: &OrgId, call: &InferenceCall) -> Result<&Identity, Verdict> {
        if call.capture_source != CallSource::Gateway {
            // Its keys tell which call it is. Without any, its id is made of all that is known of it.
            let known = self.by_id.get(&call.inference_call_id);
            return known.filter(|_| call.keys.is_empty()).ok_or(Verdict::New);
        }
        let sharing = self.sharing(org_id, call);
        let started_at = call.started_at.map(Instant::microseconds);
        match self.by_id.get(&call.inference_call_id) {
            Some(one)
                if sharing
                    .iter()
                    .all(|other| other.inference_call_id != one.inference_call_id) =>
            {
                let is_same = one.org_id == org_id.as_str()
                    && one.gateway_provider == call.gateway_provider
                    && one.model_call_id == call.model_call_id;
                let code = Code::InferenceCallIdentityConflict;
                let conflict = Verdict::Decided(Outcome::Conflict(code));
                if is_same { Ok(one) } else { Err(conflict) }
            }
            // The sender says so.
            Some(one) if call.further_id.is_none() => Ok(one),
            _ => {
                let exact = sharing.iter().find(|one| one.started_at == started_at);
                let any = || {
                    let either = |one: &&Identity| one.started_at.is_none() || started_at.is_none();
                    sharing.iter().find(either)
                };
                exact.or_else(any).ok_or(if sharing.is_empty() {
                    Verdict::New
                } else {
                    Verdict::Further(call.further_id.unwrap_or(call.inference_call_id))
                })
            }
        }
    }

    /// Returns what becomes of a call, given the stored calls. A redelivery or a conflict that
    /// differs from the stored call is added to the differences. `numbers` are those of the
    /// Sessions that the transaction has found.
    pub(crate) fn verdict(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
        encoded: &Encoded,
        numbers: &Numbers,
        differences: &mut Vec<Difference>,
    ) -> Result<Verdict, StoreError> {
        let call = &encoded.call;
        let (one, verdict) = match self.repeated(org_id, call) {
            Ok(one) => (one, None),
            Err(verdict) => match self.sharing(org_id, call).first() {
                // An id is unique over all Sessions.
                Some(first) if matches!(verdict, Verdict::Further(_)) => (first, Some(verdict)),
                _ => return Ok(verdict),
            },
        };
        let fact_id = one.inference_call_id;
        let is_of_session = one.is_of_session(encoded, numbers);
        if let Some(further) = verdict.filter(|_| is_of_session) {
            return Ok(further);
        }
        let is_of_model = one.model.as_deref() == call.model.as_deref();
        let members: &[CallMember] = match (is_of_model, one.has_content_of(connection, encoded)?) {
            (true, true) => &[],
            (true, false) => &[CallMember::Content],
            (false, true) => &[CallMember::Model],
            (false, false) => &[CallMember::Model, CallMember::Content],
        };
        let session = (!is_of_session).then_some("session_id");
        let names = members.iter().map(|member| member.as_str());
        let columns: Vec<&'static str> = session.into_iter().chain(names).collect();
        if !columns.is_empty() {
            differences.push(Difference::of_call(fact_id, columns));
        }
        Ok(Verdict::Decided(if !is_of_session {
            Outcome::Conflict(Code::InferenceCallIdentityConflict)
        } else if members.is_empty() {
            Outcome::Redelivered(fact_id)
        } else {
            Outcome::Differs(fact_id, members)
        }))
    }
}

pub(crate) fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
