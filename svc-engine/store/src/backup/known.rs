//! What a verification has read so far.

use std::collections::{BTreeMap, HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use svc_model::facts::FactTable;
use svc_model::id::FactId;

use super::super::session_claims::{self, ClaimKind};
use super::erasure_laws::Marks;
use super::finding::{Damage, Findings};

/// Identifies a row that others refer to.
pub(super) type Key = u128;

pub(super) fn key(parts: &[&str]) -> Key {
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

/// Identifies what facts say of a Session: its number, and the kind and the value.
pub(super) type SessionClaimKey = (i64, Key);

/// What is known of a call.
pub(super) struct KnownCall {
    pub(super) id: FactId,
    pub(super) number: i64,
    pub(super) messages: u32,
    pub(super) aliases: u32,
    pub(super) aliases_found: u32,
    /// Whether the model's id is among the aliases. It has no row of its own.
    pub(super) has_own: bool,
    pub(super) has_raw: bool,
    /// Its content was erased.
    pub(super) is_erased: bool,
}

/// Counts the facts of one kind in an organization.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) total: u64,
    pub(super) quarantined: u64,
}

#[derive(Default)]
pub(super) struct OrganizationCounts {
    pub(super) facts: [Counted; FactTable::ALL.len()],
    pub(super) sessions: u64,
    pub(super) quarantined_ahead: u64,
    /// The last moment at which a fact was captured, and one such fact.
    pub(super) last: Option<(i64, String)>,
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct Known {
    pub(super) organizations: BTreeMap<String, OrganizationCounts>,
    /// The latest log row about each fact.
    pub(super) quarantine: HashMap<Key, Word>,
    pub(super) epochs: HashSet<i64>,
    /// The ids and sizes of contents, in order.
    pub(super) contents: Vec<(i64, u32)>,
    /// The number of each Session.
    pub(super) sessions: HashMap<Key, i64>,
    /// The organization of each Session, by the Session's number.
    pub(super) organizations_of_sessions: HashMap<i64, Key>,
    /// What facts say of repositories.
    pub(super) claims: HashSet<Key>,
    /// What facts say of Sessions, by number.
    pub(super) session_claims: HashSet<SessionClaimKey>,
    /// The same in the rows of Sessions.
    pub(super) claims_in_rows: HashSet<SessionClaimKey>,
    /// The calls, in the order of their ids.
    pub(super) calls: Vec<KnownCall>,
    pub(super) pushes: HashSet<Key>,
    pub(super) marks: Marks,
    /// The tables with rows that cannot be read.
    pub(super) lost: BTreeMap<String, Lost>,
}

/// The rows of a table that cannot be read.
#[derive(Default)]
pub(super) struct Lost {
    /// The first column of each row, if that can be read.
    ids: HashSet<String>,
    /// Whether there are rows whose first column cannot be read either.
    has_unnamed: bool,
}

pub(super) struct Word {
    pub(super) org_id: String,
    pub(super) is_quarantined: bool,
    pub(super) is_met: bool,
}

impl Known {
    /// Notes a row that cannot be read, with its first column if that can be read.
    pub(super) fn lose(&mut self, table: &str, id: Option<&str>) {
        let lost = self.lost.entry(table.to_owned()).or_default();
        match id {
            Some(id) => drop(lost.ids.insert(id.to_owned())),
            None => lost.has_unnamed = true,
        }
    }

    /// Returns whether a missing row may be one that cannot be read. `id` is the first column of
    /// the missing row; without it, any unreadable row counts.
    pub(super) fn may_be_lost(&self, table: &str, id: Option<&str>) -> bool {
        self.lost.get(table).is_some_and(|lost| {
            lost.has_unnamed || id.map_or(!lost.ids.is_empty(), |id| lost.ids.contains(id))
        })
    }

    /// Returns whether a missing row may be one that cannot be read. If so, counts it as undecided.
    /// `of` is the table that refers to it.
    pub(super) fn cannot_tell(
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
    pub(super) fn may_make_up(&self, table: &str, kept: u64, is: u64) -> bool {
        self.lost.get(table).is_some_and(|lost| {
            is < kept && (lost.has_unnamed || kept - is <= lost.ids.len() as u64)
        })
    }

    /// Counts a fact.
    pub(super) fn fact(
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
    pub(super) fn content(
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
    pub(super) fn side(
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
    pub(super) fn session(
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
    pub(super) fn session_number(
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
    pub(super) fn claim(
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
