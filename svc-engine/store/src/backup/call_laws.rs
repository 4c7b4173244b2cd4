//! Checks Inference calls: their messages, raw payloads and aliases exist and fit.

use svc_model::evidence::LeftOut;
use svc_model::facts::FactTable;
use svc_model::json;

use super::finding::{Damage, Findings, error_text};
use super::known::KnownCall;
use super::scan::{Laws, moment};
use crate::pack::call_key::{self, KeyHash};
use crate::pack::model_call_id::ModelCallId;
use crate::pack::{column, id_list, packing, skeleton};
use crate::sql::error::{StoreError, corrupt};
use crate::table::session_claims::ClaimKind;

impl Laws<'_, '_, '_> {
    pub(crate) fn calls(&mut self) -> Result<(), StoreError> {
        let table = FactTable::InferenceCalls.as_str();
        let columns = [
            "inference_call_id",
            "org_id",
            "session_number",
            "captured_at_us",
            "call_number",
            "user_id",
            "model",
            "model_call_id",
            "call_alias_count",
            "input_byte_count",
            "output_byte_count",
            "input_contents",
            "output_contents",
            "gateway_provider",
            "observed_at_us",
            "left_out",
            "input_part_count",
            "output_part_count",
            "model_provider",
            "input_tokens",
            "output_tokens",
            "duration_ms",
            "started_at_us",
            "is_further",
            "agent_harness",
        ];
        self.scan(table, &columns, |row, known, found| {
            let fact_id = row.fact_id(0)?;
            let id = fact_id.to_string();
            let (org_id, session_number) = (row.text(1)?, row.integer(2)?);
            known.fact(FactTable::InferenceCalls, &org_id, &id, row.integer(3)?);
            let input = id_list::read_ids(&row.blob(11)?)?;
            known.side(&id, &input, row.count(9)?, found);
            let output = id_list::read_ids(&row.blob(12)?)?;
            known.side(&id, &output, row.count(10)?, found);
            let is_erased = known.marks.meet(&org_id, FactTable::InferenceCalls, &id);
            if is_erased && !(input.is_empty() && output.is_empty()) {
                found.add(table, Some(&id), Damage::ContentRemains, "messages");
            }
            known.calls.push(KnownCall {
                id: fact_id,
                number: row.integer(4)?,
                messages: u32::try_from(input.len()).unwrap_or(u32::MAX),
                aliases: u32::try_from(row.count(8)?).unwrap_or(u32::MAX),
                aliases_found: 0,
                has_own: ModelCallId::of(row, 7)?.is_some(),
                has_raw: false,
                is_erased,
            });
            let [user_id, model, agent] = [5, 6, 24].map(|place| row.optional_text(place));
            let claims = [
                (ClaimKind::User, user_id?),
                (ClaimKind::Model, model?),
                (ClaimKind::Harness, agent?),
            ];
            let is_read = known.session_number(table, &id, &org_id, session_number, found);
            for (kind, value) in claims {
                if let Some(value) = value.as_deref()
                    && is_read
                {
                    known.claim(table, &id, (session_number, kind, value), found);
                }
            }
            moment(row, 3, "inference_calls")?;
            moment(row, 14, "inference_calls")?;
            column::gateway_provider(row, 13)?;
            if let Some(left_out) = row.optional_text(15)? {
                json::from_slice::<LeftOut>(left_out.as_bytes())
                    .map_err(|_| corrupt("inference_calls", "left_out"))?;
            }
            row.count(16)?;
            row.count(17)?;
            row.optional_text(18)?;
            for place in 19..23 {
                row.optional_integer(place)?;
            }
            row.integer(23)?;
            Ok(())
        })
    }

    pub(crate) fn raw_payloads(&mut self) -> Result<(), StoreError> {
        let mut numbers: Vec<(i64, usize)> = (self.known.calls.iter().enumerate())
            .map(|(place, call)| (call.number, place))
            .collect();
        numbers.sort_unstable();
        let columns = ["call_number", "codec", "byte_count", "contents", "skeleton"];
        self.scan("raw_payloads", &columns, |row, known, found| {
            let number = row.integer(0)?;
            let place = numbers.binary_search_by_key(&number, |(number, _)| *number);
            let Ok(place) = place.map(|place| numbers[place].1) else {
                let id = number.to_string();
                // Unreadable calls are known by id, not by number.
                if !known.cannot_tell("inference_calls", None, "raw_payloads", found) {
                    found.add("raw_payloads", Some(&id), Damage::CallAbsent, "");
                }
                return Ok(());
            };
            let call = &mut known.calls[place];
            call.has_raw = true;
            let (id, messages) = (call.id.to_string(), call.messages as usize);
            if call.is_erased {
                found.add("raw_payloads", Some(&id), Damage::ContentRemains, "");
            }
            let unreadable = |error: StoreError, found: &mut Findings| {
                let damage = Damage::RowUnreadable;
                found.add("raw_payloads", Some(&id), damage, error_text(&error));
            };
            let contents = match id_list::read_ids(&row.blob(3)?) {
                Ok(contents) => contents,
                Err(error) => {
                    unreadable(error, found);
                    return Ok(());
                }
            };
            for content_id in &contents {
                known.content("raw_payloads", &id, *content_id, found);
            }
            let skeleton = packing::unpack(row.integer(1)?, row.count(2)?, row.blob(4)?);
            match skeleton {
                Err(error) => unreadable(error, found),
                Ok(bytes) if !skeleton::has_its_pieces(&bytes, contents.len(), messages) => {
                    unreadable(corrupt("raw_payloads", "its skeleton"), found);
                }
                Ok(_) => {}
            }
            Ok(())
        })?;
        for call in &self.known.calls {
            if call.has_raw || call.is_erased {
                continue;
            }
            let number = call.number.to_string();
            let id = call.id.to_string();
            let of = FactTable::InferenceCalls.as_str();
            let found = &mut self.found;
            let is_undecided = [("raw_payloads", &number), ("erased_facts", &id)]
                .iter()
                .any(|(table, id)| self.known.cannot_tell(table, Some(id), of, found));
            if !is_undecided {
                let damage = Damage::RawPayloadAbsent;
                self.found.add("raw_payloads", Some(&id), damage, "");
            }
        }
        Ok(())
    }

    pub(crate) fn call_keys(&mut self) -> Result<(), StoreError> {
        let columns = ["inference_call_id", "kind", "key", "primary_key", "others"];
        self.scan("call_keys", &columns, |row, known, found| {
            let fact_id = row.fact_id(0)?;
            let id = fact_id.to_string();
            let is_key = |bytes: &[u8]| KeyHash::try_from(bytes).is_ok();
            let kind = call_key::kind_of_letter(&row.text(1)?);
            let primary = row.optional_blob(3)?;
            let others = row.optional_blob(4)?.unwrap_or_default();
            let is_readable = kind.is_some()
                && is_key(&row.blob(2)?)
                && primary.is_none_or(|key| is_key(&key))
                && call_key::read_list(&others).is_some();
            if !is_readable {
                return Err(corrupt("call_keys", "a key"));
            }
            let is_known = known.calls.binary_search_by_key(&fact_id, |call| call.id);
            if is_known.is_err()
                && !known.cannot_tell("inference_calls", Some(&id), "call_keys", found)
            {
                found.add("call_keys", Some(&id), Damage::CallAbsent, "");
            }
            Ok(())
        })
    }

    pub(crate) fn aliases(&mut self) -> Result<(), StoreError> {
        let columns = ["inference_call_id", "org_id", "call_id", "ordinal"];
        self.scan("call_aliases", &columns, |row, known, found| {
            let fact_id = row.fact_id(0)?;
            let id = fact_id.to_string();
            row.text(1)?;
            row.text(2)?;
            row.count(3)?;
            match known.calls.binary_search_by_key(&fact_id, |call| call.id) {
                Ok(place) => known.calls[place].aliases_found += 1,
                Err(_)
                    if known.cannot_tell("inference_calls", Some(&id), "call_aliases", found) => {}
                Err(_) => found.add("call_aliases", Some(&id), Damage::CallAbsent, ""),
            }
            Ok(())
        })?;
        for call in &self.known.calls {
            let least = call.aliases.saturating_sub(u32::from(call.has_own));
            if !(least..=call.aliases).contains(&call.aliases_found) {
                let detail = format!("{} of {}", call.aliases_found, call.aliases);
                let (id, damage) = (call.id.to_string(), Damage::AliasAbsent);
                let of = FactTable::InferenceCalls.as_str();
                let found = &mut self.found;
                let is_undecided = call.aliases_found < least
                    && self.known.cannot_tell("call_aliases", Some(&id), of, found);
                if !is_undecided {
                    found.add("call_aliases", Some(&id), damage, detail);
                }
            }
        }
        Ok(())
    }
}
