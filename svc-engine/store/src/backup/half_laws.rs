//! Checks the halves of calls: their bodies are there, each piece is needed, and the totals match.

use std::collections::{BTreeMap, HashMap};

use svc_engine_fact::HalfState;
use svc_model::json::Json;
use uuid::Uuid;

use super::finding::Damage;
use super::scan::Laws;
use crate::pack::half::{PieceKey, piece_key, piece_keys};
use crate::pack::packing;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;
use crate::table::halves::{half_key, kept};

/// The columns of a half without its body, as [`kept`] reads them, and what follows.
const COLUMNS: [&str; 18] = [
    "half_key",
    "session_id",
    "state",
    "side",
    "occurred_at_us",
    "sequence",
    "captured_at_us",
    "due_at_us",
    "byte_count",
    "query_source",
    "model",
    "prompt_id",
    "user_id",
    "request_id",
    "outline",
    "org_id",
    "pieces",
    "body",
];
/// Only the key is left.
const REMEMBERED: i64 = 2;

impl Laws<'_, '_, '_> {
    pub(crate) fn halves(&mut self) -> Result<(), StoreError> {
        let mut needed = self.half_pieces()?;
        let mut totals: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        self.scan("call_halves", &COLUMNS, |row, known, found| {
            let id = hexadecimal(&half_key(row, 0)?);
            let org_id = row.text(15)?;
            if row.integer(2)? == REMEMBERED {
                return Ok(());
            }
            let half = kept(row)?;
            if half.state != HalfState::Open {
                return Ok(());
            }
            let (count, bytes) = totals.entry(org_id).or_default();
            *count += 1;
            *bytes += half.byte_count;
            let body = row.with_blob(17, packing::of_cell)??;
            Json::parse(&body).map_err(|_| corrupt("call_halves", "body"))?;
            for key in row.with_blob(16, piece_keys)?? {
                if let Some(is_needed) = needed.get_mut(&key) {
                    *is_needed = true;
                } else if !known.cannot_tell("half_pieces", None, "call_halves", found) {
                    let piece = hexadecimal(&key);
                    found.add("call_halves", Some(&id), Damage::ContentAbsent, piece);
                }
            }
            Ok(())
        })?;
        let unneeded = needed.iter().filter(|(_, is_needed)| !**is_needed);
        for (key, _) in unneeded {
            let found = &mut self.found;
            if !self
                .known
                .cannot_tell("call_halves", None, "half_pieces", found)
            {
                let id = hexadecimal(key);
                found.add(
                    "half_pieces",
                    Some(&id),
                    Damage::ContentRemains,
                    "no half needs it",
                );
            }
        }
        self.half_totals(totals)
    }

    /// Reads the pieces, and returns their keys.
    fn half_pieces(&mut self) -> Result<HashMap<PieceKey, bool>, StoreError> {
        let mut pieces = HashMap::new();
        let columns = ["piece", "org_id", "session_id", "bytes"];
        self.scan("half_pieces", &columns, |row, _, found| {
            let key = row.with_blob(0, |key| PieceKey::try_from(key).ok())?;
            let key = key.ok_or(corrupt("half_pieces", "piece"))?;
            pieces.insert(key, false);
            let piece = row.with_blob(3, packing::of_cell)??;
            if piece_key(&row.text(1)?, &row.text(2)?, &piece) != key {
                let id = hexadecimal(&key);
                found.add("half_pieces", Some(&id), Damage::DigestDiffers, "");
            }
            Ok(())
        })?;
        Ok(pieces)
    }

    fn half_totals(&mut self, mut totals: BTreeMap<String, (u64, u64)>) -> Result<(), StoreError> {
        let columns = ["org_id", "halves", "byte_count"];
        self.scan("half_totals", &columns, |row: &Row<'_>, known, found| {
            let org_id = row.text(0)?;
            let counted = totals.remove(&org_id).unwrap_or_default();
            let kept = (row.count(1)?, row.count(2)?);
            if kept != counted && !known.cannot_tell("call_halves", None, "half_totals", found) {
                let detail = format!("{kept:?} are kept, {counted:?} are there");
                found.add("half_totals", Some(&org_id), Damage::CountDiffers, detail);
            }
            Ok(())
        })?;
        for org_id in totals.into_keys() {
            let found = &mut self.found;
            let lost = self
                .known
                .cannot_tell("half_totals", Some(&org_id), "call_halves", found);
            if !lost {
                let detail = "the row is absent";
                found.add("half_totals", Some(&org_id), Damage::CountDiffers, detail);
            }
        }
        Ok(())
    }
}

/// Returns a key as a finding names it.
fn hexadecimal(key: &PieceKey) -> String {
    Uuid::from_bytes(*key).simple().to_string()
}
