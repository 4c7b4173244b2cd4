//! What a verification has read so far.

use std::collections::{BTreeMap, HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use svc_model::facts::FactTable;
use svc_model::id::FactId;

use super::finding::{Damage, Findings};
use crate::table::session_claims::{self, ClaimKind};

/// Identifies a row that others refer to.
pub(crate) type RowKey = u128;

pub(crate) fn key(parts: &[&str]) -> RowKey {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut first = [0; 16];
    first.copy_from_slice(&digest[..16]);
    u128::from_be_bytes(first)
}

/// The marks of erased content that were read so far.
#[derive(Default)]
pub(crate) struct ErasureMarks {
    /// The kind and id of each marked fact, and whether the fact was found.
    pub(crate) facts: HashMap<RowKey, (FactTable, String, bool)>,
}

impl ErasureMarks {
    /// Returns whether the content of a fact was erased. Notes that the fact was found.
    pub(crate) fn meet(&mut self, org_id: &str, kind: FactTable, fact_id: &str) -> bool {
        if self.facts.is_empty() {
            return false;
        }
        let mark = self.facts.get_mut(&key(&[org_id, kind.as_str(), fact_id]));
        mark.map(|(_, _, is_met)| *is_met = true).is_some()
    }
}

/// Identifies what facts say of a Session: its number, and the kind and the value.
pub(crate) type SessionClaimKey = (i64, RowKey);

/// What is known of a call.
pub(crate) struct KnownCall {
    pub(crate) id: FactId,
    pub(crate) number: i64,
    pub(crate) messages: u32,
    pub(crate) aliases: u32,
    pub(crate) aliases_found: u32,
    /// Whether the model's id is among the aliases. It has no row of its own.
    pub(crate) has_own: bool,
    pub(crate) has_raw: bool,
    /// Its content was erased.
    pub(crate) is_erased: bool,
}

/// Counts the facts of one kind in an organization.
#[derive(Clone, Copy, Default)]
pub(crate) struct FactTotals {
    pub(crate) total: u64,
    pub(crate) quarantined: u64,
}

#[derive(Default)]
pub(crate) struct OrganizationCounts {
    pub(crate) facts: [FactTotals; FactTable::ALL.len()],
    pub(crate) sessions: u64,
    pub(crate) quarantined_ahead: u64,
    /// The last moment at which a fact was captured, and one such fact.
    pub(crate) last: Option<(i64, String)>,
}

/// What has been read so far.
#[derive(Default)]
pub(crate) struct KnownRows {
    pub(crate) organizations: BTreeMap<String, OrganizationCounts>,
    /// The latest log row about each fact.
    pub(crate) quarantine: HashMap<RowKey, QuarantineState>,
    pub(crate) epochs: HashSet<i64>,
    /// The ids and sizes of contents, in order.
    pub(crate) contents: Vec<(i64, u32)>,
    /// The number of each Session.
    pub(crate) sessions: HashMap<RowKey, i64>,
    /// The organization of each Session, by the Session's number.
    pub(crate) organizations_of_sessions: HashMap<i64, RowKey>,
    /// What facts say of repositories.
    pub(crate) claims: HashSet<RowKey>,
    /// What facts say of Sessions, by number.
    pub(crate) session_claims: HashSet<SessionClaimKey>,
    /// The same in the rows of Sessions.
    pub(crate) claims_in_rows: HashSet<SessionClaimKey>,
    /// The calls, in the order of their ids.
    pub(crate) calls: Vec<KnownCall>,
    pub(crate) pushes: HashSet<RowKey>,
    pub(crate) observations: HashSet<RowKey>,
    pub(crate) marks: ErasureMarks,
    /// The tables with rows that cannot be read.
    pub(crate) lost: BTreeMap<String, LostRows>,
}

/// The rows of a table that cannot be read.
#[derive(Default)]
pub(crate) struct LostRows {
    /// The first column of each row, if that can be read.
    ids: HashSet<String>,
    /// Whether there are rows whose first column cannot be read either.
    has_unnamed: bool,
}

pub(crate) struct QuarantineState {
    pub(crate) org_id: String,
    pub(crate) is_quarantined: bool,
    pub(crate) is_met: bool,
}

impl KnownRows {
    /// Notes a row that cannot be read, with its first column if that can be read.
    pub(crate) fn lose(&mut self, table: &str, id: Option<&str>) {
        let lost = self.lost.entry(table.to_owned()).or_default();
        match id {
            Some(id) => drop(lost.ids.insert(id.to_owned())),
            None => lost.has_unnamed = true,
        }
    }

    /// Returns whether a missing row may be one that cannot be read. `id` is the first column of
    /// the missing row; without it, any unreadable row counts.
    pub(crate) fn may_be_lost(&self, table: &str, id: Option<&str>) -> bool {
        self.lost.get(table).is_some_and(|lost| {
            lost.has_unnamed || id.map_or(!lost.ids.is_empty(), |id| lost.ids.contains(id))
        })
    }

    /// Returns whether a missing row may be one that cannot be read. If so, counts it as undecided.
    /// `of` is the table that refers to it.
    pub(crate) fn cannot_tell(
        &self,
        table: &str,
        id: Option<&str>,
        of: &str,
        found: &mut Findings,
    ) -> bool {
        let may_be_lost = self.may_be_lost(table, id);
        if may_be_lost {
            found.cannot_tell(table, of);
        }
        may_be_lost
    }

    /// Returns whether rows that cannot be read may explain why the stored count differs from the
    /// number of rows.
    pub(crate) fn may_make_up(&self, table: &str, kept: u64, is: u64) -> bool {
        self.lost.get(table).is_some_and(|lost| {
            is < kept && (lost.has_unnamed || kept - is <= lost.ids.len() as u64)
        })
    }

    /// Counts a fact.
    pub(crate) fn fact(
        &mut self,
        kind: FactTable,
        org_id: &str,
        fact_id: &str,
        captured_at_us: i64,
    ) {
        let counts = match self.organizations.get_mut(org_id) {
            Some(counts) => counts,
            None => self.organizations.entry(org_id.to_owned()).or_default(),
        };
        let counted = &mut counts.facts[kind as usize];
        counted.total += 1;
        if !self.quarantine.is_empty()
            && let Some(word) = self
                .quarantine
                .get_mut(&key(&[org_id, kind.as_str(), fact_id]))
        {
            word.is_met = true;
            counted.quarantined += u64::from(word.is_quarantined);
        }
        if counts
            .last
            .as_ref()
            .is_none_or(|(last, _)| captured_at_us > *last)
        {
            counts.last = Some((captured_at_us, fact_id.to_owned()));
        }
    }

    /// Returns the size of a content. If the content is missing, adds a finding and returns
    /// nothing.
    pub(crate) fn content(
        &self,
        table: &str,
        fact_id: &str,
        content_id: i64,
        found: &mut Findings,
    ) -> Option<u64> {
        let place = self
            .contents
            .binary_search_by_key(&content_id, |content| content.0);
        if let Ok(place) = place {
            return Some(u64::from(self.contents[place].1));
        }
        if !self.cannot_tell("content", Some(&content_id.to_string()), table, found) {
            let detail = format!("content {content_id}");
            found.add(table, Some(fact_id), Damage::ContentAbsent, detail);
        }
        None
    }

    /// Checks the size of one side of a call: brackets, commas and messages.
    pub(crate) fn side(
        &self,
        call_id: &str,
        contents: &[i64],
        byte_count: u64,
        found: &mut Findings,
    ) {
        let table = FactTable::InferenceCalls.as_str();
        let mut sum = Some(2 + contents.len().saturating_sub(1) as u64);
        for content_id in contents {
            let size = self.content(table, call_id, *content_id, found);
            sum = sum.and_then(|sum| Some(sum + size?));
        }
        if sum.is_some_and(|sum| sum != byte_count) {
            found.add(table, Some(call_id), Damage::SizeDiffers, "");
        }
    }

    /// Checks that the Session of a fact is there, and returns its number.
    pub(crate) fn session(
        &self,
        table: &str,
        fact_id: &str,
        org_id: &str,
        session_id: &str,
        found: &mut Findings,
    ) -> Option<i64> {
        let number = self.sessions.get(&key(&[org_id, session_id])).copied();
        if number.is_none() && !self.cannot_tell("sessions", Some(session_id), table, found) {
            found.add(table, Some(fact_id), Damage::SessionAbsent, session_id);
        }
        number
    }

    /// Checks that the Session of a call is there, and that it is one of the organization. Returns
    /// whether its row was read.
    pub(crate) fn session_number(
        &self,
        table: &str,
        fact_id: &str,
        org_id: &str,
        number: i64,
        found: &mut Findings,
    ) -> bool {
        let is_of = self.organizations_of_sessions.get(&number);
        // An unreadable Session is known by its id, not by its number.
        if is_of != Some(&key(&[org_id]))
            && (is_of.is_some() || !self.cannot_tell("sessions", None, table, found))
        {
            let detail = format!("number {number}");
            found.add(table, Some(fact_id), Damage::SessionAbsent, detail);
        }
        is_of.is_some()
    }

    /// Checks that what a fact says of its Session is kept, in both places.
    pub(crate) fn claim(
        &self,
        table: &str,
        fact_id: &str,
        (number, kind, value): (i64, ClaimKind, &str),
        found: &mut Findings,
    ) {
        if !session_claims::is_kept(value) {
            return;
        }
        let claim = (number, key(&[kind.as_str(), value]));
        let places = [
            ("session_claims", &self.session_claims),
            ("sessions", &self.claims_in_rows),
        ];
        let absent = places
            .into_iter()
            .filter(|(_, claims)| !claims.contains(&claim));
        let id = number.to_string();
        // The rows of Sessions are known by their ids. This one was read.
        let (lost, absent): (Vec<&str>, Vec<&str>) = absent
            .map(|(place, _)| place)
            .partition(|place| *place == "session_claims" && self.may_be_lost(place, Some(&id)));
        if absent.is_empty() {
            for place in lost {
                found.cannot_tell(place, table);
            }
        } else {
            let detail = format!("session_claims: {} {value}", kind.as_str());
            found.add(table, Some(fact_id), Damage::ClaimAbsent, detail);
        }
    }
}
