//! Checks what holds in every database of the service: the stored counts match the facts, every
//! content matches its digest, every row can be read, and every row that another refers to exists.
//!
//! Everything is read once, table by table. Each fact and each content takes a few dozen bytes of
//! memory.
//!
//! Each fact is read as queries read it, and everything that storing it would create besides it
//! (its Session, its claims, its hashes) is recomputed and looked up.

use std::collections::HashSet;

use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use svc_model::quarantine::QuarantineAction;

use super::finding::{Damage, Findings};
use super::known::{QuarantineState, key};
use super::scan::{Laws, moment};
use super::{CellKind, erasure_laws};
use crate::pack::column::Columns;
use crate::pack::{content_key, packing};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{self, Value};
use crate::table::kind::kinds;
use crate::table::record::Record;
use crate::table::row::NewRow;
use crate::table::session_claims::ClaimKind;
use crate::table::{kind, session_claims};
use crate::write::traces::Traces;
use crate::write::{quarantine, witness};

macro_rules! laws {
    ($($(#[$doc:meta])* $kind:ident($fact:ty) in $table:ident,)+) => {
        impl Laws<'_, '_, '_> {
            /// Checks the facts of every kind that has one row for each fact.
            fn facts_of_rows(&mut self) -> Result<(), StoreError> {
                $(self.facts::<$fact>(FactTable::$table)?;)+
                Ok(())
            }
        }
    };
}
kinds!(laws);

impl Laws<'_, '_, '_> {
    /// Checks every table.
    pub(crate) fn run(mut self) -> Result<Findings, StoreError> {
        self.quarantine()?;
        self.erasures()?;
        self.grants()?;
        self.price_tables()?;
        self.contents()?;
        self.sessions()?;
        self.calls()?;
        self.raw_payloads()?;
        self.aliases()?;
        self.call_keys()?;
        self.halves()?;
        self.facts_of_rows()?;
        self.commit_claims()?;
        self.organizations()?;
        self.others()?;
        self.erased_facts_are_there();
        self.found.add_undecided();
        Ok(self.found)
    }

    fn quarantine(&mut self) -> Result<(), StoreError> {
        let columns = ["quarantine_id", "org_id", "fact_table", "fact_id", "action"];
        self.scan("quarantine_log", &columns, |row, known, _| {
            let (org_id, table) = (row.text(1)?, row.text(2)?);
            let fact_id = quarantine::read_logged(row, 3)?;
            let action = QuarantineAction::from_wire(&row.text(4)?)
                .ok_or(corrupt("quarantine_log", "action"))?;
            let word = QuarantineState {
                is_quarantined: action == QuarantineAction::Quarantine,
                is_met: false,
                org_id,
            };
            known
                .quarantine
                .insert(key(&[&word.org_id, &table, &fact_id]), word);
            Ok(())
        })
    }

    fn contents(&mut self) -> Result<(), StoreError> {
        self.scan("writers", &["epoch", "commits"], |row, known, _| {
            row.count(1)?;
            known.epochs.insert(row.integer(0)?);
            Ok(())
        })?;
        let columns = ["content_id", "digest", "codec", "byte_count", "bytes"];
        let mut without_writer = HashSet::new();
        self.scan("content", &columns, |row, known, found| {
            let content_id = row.integer(0)?;
            let byte_count = row.count(3)?;
            let size = u32::try_from(byte_count).unwrap_or(u32::MAX);
            known.contents.push((content_id, size));
            let epoch = witness::epoch_of(content_id);
            if !known.epochs.contains(&epoch) && without_writer.insert(epoch) {
                let id = epoch.to_string();
                if !known.cannot_tell("writers", Some(&id), "content", found) {
                    let detail = format!("of content {content_id}");
                    found.add("writers", Some(&id), Damage::WriterAbsent, detail);
                }
            }
            let bytes = row.with_blob(4, |bytes| {
                packing::unpack(row.integer(2)?, byte_count, bytes.to_vec())
            })??;
            if !row.with_blob(1, |digest| content_key::is_of(digest, &bytes))? {
                let id = content_id.to_string();
                found.add("content", Some(&id), Damage::DigestDiffers, "");
            }
            Ok(())
        })?;
        self.known.contents.sort_unstable();
        Ok(())
    }

    fn sessions(&mut self) -> Result<(), StoreError> {
        let columns = [
            "session_id",
            "org_id",
            "first_observed_at_us",
            "last_observed_at_us",
            "captured_at_us",
            "mark",
            "user_id",
            "claims",
            "session_number",
        ];
        self.scan("sessions", &columns, |row, known, _| {
            let (session_id, org_id) = (row.text(0)?, row.text(1)?);
            for place in 2..5 {
                moment(row, place, "sessions")?;
            }
            row.count(5)?;
            row.optional_text(6)?;
            let (session, number) = (key(&[&org_id, &session_id]), row.integer(8)?);
            let claims = row.text(7)?;
            for (kind, value) in session_claims::read(&claims)? {
                let claim = (number, key(&[kind.as_str(), value]));
                known.claims_in_rows.insert(claim);
            }
            known.sessions.insert(session, number);
            let org = key(&[&org_id]);
            known.organizations_of_sessions.insert(number, org);
            known.organizations.entry(org_id).or_default().sessions += 1;
            Ok(())
        })?;
        let columns = [
            "session_number",
            "org_id",
            "kind",
            "value",
            "captured_at_us",
        ];
        self.scan("session_claims", &columns, |row, known, found| {
            let (number, org_id) = (row.integer(0)?, row.text(1)?);
            let kind = row.with_text(2, ClaimKind::of_letter)?;
            let kind = kind.ok_or(corrupt("session_claims", "kind"))?.as_str();
            let value = row.text(3)?;
            moment(row, 4, "session_claims")?;
            let claim = (number, key(&[kind, &value]));
            known.session_claims.insert(claim);
            let table = "session_claims";
            let id = number.to_string();
            let is_of = known.organizations_of_sessions.get(&number);
            if is_of.is_some_and(|organization| *organization != key(&[&org_id])) {
                found.add(table, Some(&id), Damage::SessionAbsent, org_id);
            } else if !known.claims_in_rows.contains(&claim)
                && (is_of.is_some() || !known.cannot_tell("sessions", None, table, found))
            {
                let detail = format!("sessions: {kind} {value}");
                found.add(table, Some(&id), Damage::ClaimAbsent, detail);
            }
            Ok(())
        })?;
        let columns = [
            "name",
            "org_id",
            "repository_provider",
            "repository_host",
            "repository_id",
            "source",
        ];
        self.scan("repository_claims", &columns, |row, known, _| {
            let mut texts = Vec::with_capacity(columns.len());
            for place in 0..columns.len() {
                texts.push(row.text(place)?);
            }
            let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
            known.claims.insert(key(&texts));
            Ok(())
        })
    }

    /// Checks the facts of a kind that has one row for each fact.
    fn facts<F: Record>(&mut self, kind: FactTable) -> Result<(), StoreError> {
        let table = F::TABLE;
        let mut columns = [table.members, table.derived].concat();
        columns.push("org_id");
        let of_org = columns.len() - 1;
        self.scan(table.name, &columns, |row, known, found| {
            let (id, org) = (row.fact_id(0)?.to_string(), row.text(of_org)?);
            let org_id = OrgId::new(&org).map_err(|_| corrupt(table.name, "org_id"))?;
            let captured_at = table
                .members
                .iter()
                .position(|member| *member == "captured_at_us");
            let captured_at = captured_at.map_or(Ok(0), |place| row.integer(place))?;
            known.fact(kind, &org, &id, captured_at);
            if known.marks.meet(&org, kind, &id) {
                erasure_laws::is_empty(row, &columns, table, &id, found)?;
            }
            let fact = F::read(&mut Columns::of(row, table.name, table.members))?;
            let written = NewRow::of(fact, &org_id);
            let derived = written.values.iter().skip(1 + table.members.len());
            for (place, value) in (table.members.len()..).zip(derived) {
                if !row.holds(place, value)? {
                    found.add(table.name, Some(&id), Damage::RowUnreadable, columns[place]);
                }
            }
            match kind {
                FactTable::Pushes => drop(known.pushes.insert(key(&[&org, &id]))),
                FactTable::SessionCommitObservations => {
                    known.observations.insert(key(&[&org, &id]));
                }
                _ => {}
            }
            let push = written.value(table, "source_push_id");
            let push = push.and_then(Value::as_blob).and_then(value::fact_id);
            if let Some(push) = push.map(|id| id.to_string())
                && !known.pushes.contains(&key(&[&org, &push]))
                && !known.cannot_tell("pushes", Some(&push), table.name, found)
            {
                found.add(table.name, Some(&id), Damage::PushAbsent, push);
            }
            let mut traces = Traces::default();
            traces.row(table, &written);
            for (session_id, claims) in traces.sessions.claims() {
                let number = known.session(table.name, &id, &org, session_id, found);
                let Some(number) = number else {
                    continue;
                };
                for (kind, value) in claims {
                    known.claim(table.name, &id, (number, *kind, value), found);
                }
            }
            for [name, provider, host, repository_id, source] in traces.claims.keys() {
                let claim = [name, &*org, provider, host, repository_id, source];
                if !known.claims.contains(&key(&claim))
                    && !known.cannot_tell("repository_claims", Some(name), table.name, found)
                {
                    let detail = format!("repository_claims: {name}");
                    found.add(table.name, Some(&id), Damage::ClaimAbsent, detail);
                }
            }
            Ok(())
        })
    }

    fn organizations(&mut self) -> Result<(), StoreError> {
        for word in self.known.quarantine.values() {
            if word.is_quarantined && !word.is_met {
                let organizations = &mut self.known.organizations;
                let counts = organizations.entry(word.org_id.clone()).or_default();
                counts.quarantined_ahead += 1;
            }
        }
        let mut columns = vec![
            "org_id".to_owned(),
            "captured_at_us".to_owned(),
            "quarantined_ahead".to_owned(),
            "sessions".to_owned(),
        ];
        for kind in FactTable::ALL {
            columns.extend([kind.to_string(), format!("{kind}_quarantined")]);
        }
        let columns: Vec<&str> = columns.iter().map(|column| &**column).collect();
        let mut counted = std::mem::take(&mut self.known.organizations);
        self.scan("organizations", &columns, |row, known, found| {
            let org_id = row.text(0)?;
            let counts = counted.remove(&org_id).unwrap_or_default();
            let mut differs = |what: &str, lost: Option<&str>, kept: u64, is: u64| {
                if kept == is {
                    return;
                }
                if let Some(lost) = lost {
                    found.cannot_tell(lost, "organizations");
                } else {
                    let detail = format!("{what}: {kept} are kept, {is} are there");
                    found.add("organizations", Some(&org_id), Damage::CountDiffers, detail);
                }
            };
            let is_lost = |table: &&str| known.may_be_lost(table, None);
            let log = Some("quarantine_log").filter(is_lost);
            // A fact that cannot be read is not found, so a quarantine of it looks like one ahead
            // of its fact.
            let any = || {
                FactTable::ALL
                    .iter()
                    .map(|kind| kind.as_str())
                    .find(is_lost)
            };
            let ahead = counts.quarantined_ahead;
            differs("quarantined_ahead", log.or_else(any), row.count(2)?, ahead);
            let made_up =
                |table: &'static str, kept, is| known.may_make_up(table, kept, is).then_some(table);
            let sessions = row.count(3)?;
            let lost = made_up("sessions", sessions, counts.sessions);
            differs("sessions", lost, sessions, counts.sessions);
            for (place, kind) in FactTable::ALL.iter().enumerate() {
                let is = counts.facts[*kind as usize];
                let kind = kind.as_str();
                let total = row.count(4 + 2 * place)?;
                differs(kind, made_up(kind, total, is.total), total, is.total);
                let quarantined = row.count(5 + 2 * place)?;
                let lost = log.or_else(|| made_up(kind, quarantined, is.quarantined));
                let what = format!("{kind}_quarantined");
                differs(&what, lost, quarantined, is.quarantined);
            }
            if let Some((last, id)) = counts.last
                && last > row.integer(1)?
            {
                let damage = Damage::CapturedBeyond;
                found.add("organizations", Some(&org_id), damage, id);
            }
            Ok(())
        })?;
        for org_id in counted.keys() {
            let (of, found) = ("sessions and facts", &mut self.found);
            let is_undecided = self
                .known
                .cannot_tell("organizations", Some(org_id), of, found);
            if !is_undecided {
                let detail = "the row is absent";
                found.add("organizations", Some(org_id), Damage::CountDiffers, detail);
            }
        }
        Ok(())
    }

    /// Reads the tables that no other check reads.
    fn others(&mut self) -> Result<(), StoreError> {
        for table in self.source.tables() {
            if self.found.rows.contains_key(&table) {
                continue;
            }
            let columns = self.source.columns(&table);
            let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            self.scan(&table, &names, |row, _, _| {
                for (place, column) in columns.iter().enumerate() {
                    if row.holds(place, &Value::Null)? {
                        continue;
                    }
                    match column.kind {
                        CellKind::Integer => drop(row.integer(place)?),
                        CellKind::Real => drop(row.real(place)?),
                        CellKind::Text => row.with_text(place, |_| ())?,
                        CellKind::Bytes => row.with_blob(place, |_| ())?,
                    }
                }
                Ok(())
            })?;
        }
        debug_assert!(
            kind::tables().all(|table| self.found.rows.contains_key(table.name)),
            "every kind is looked at"
        );
        Ok(())
    }
}
