//! Selects the facts of an erasure, and knows where each kind keeps captured content.

use std::collections::{BTreeMap, HashMap};

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId, UserId};

use super::ErasureSubject;
use crate::pack::packing;
use crate::read::snapshot::Snapshot;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Table;
use crate::table::session_claims::ClaimKind;
use crate::table::{kind, session_claims, sessions};

/// What replaces an erased text, and an erased `raw`.
const TEXT: &[u8] = b"\"\"";
const RAW: &[u8] = b"null";

/// Returns the tables whose facts hold captured content of a Session in their own rows.
fn others() -> impl Iterator<Item = (FactTable, &'static Table)> {
    kind::with_content()
        .filter(|kind| *kind != FactTable::InferenceCalls)
        .map(|kind| (kind, kind::table(kind)))
}

fn selection(table: &Table) -> String {
    let bytes = table.content.iter();
    let bytes = bytes.map(|column| format!("OCTET_LENGTH(f.{column})"));
    format!(
        "f.{id}, f.session_id, f.user_id, CAST({bytes} AS BIGINT) FROM {name} f",
        id = table.id(),
        bytes = bytes.collect::<Vec<_>>().join(" + "),
        name = table.name,
    )
}

/// Returns the statement that empties facts, up to their ids, and its first values.
pub(crate) fn emptying(table: &Table) -> (String, Vec<Value<'static>>) {
    let cells = (1..).zip(table.content);
    let cells = cells.map(|(place, column)| format!("{column} = ${place}"));
    let cells = cells.collect::<Vec<_>>().join(", ");
    let text = format!("UPDATE {} SET {cells} WHERE {}", table.name, table.id());
    let values = table.content.iter();
    let values = values.map(|column| Value::OwnBlob(erased_cell(column)));
    (text, values.collect())
}

/// Returns the bytes of a column after its content was erased.
pub(crate) fn erased_cell(column: &str) -> Vec<u8> {
    packing::cell(if column == "raw" { RAW } else { TEXT }.to_vec())
}

/// An Inference call whose content is to be erased.
#[derive(Clone, Debug)]
pub(crate) struct ErasedCall {
    pub(crate) number: i64,
    pub(crate) id: FactId,
    /// The index of its Session in [`SelectedFacts::sessions`].
    pub(crate) session: u32,
}

/// Another fact whose content is to be erased.
#[derive(Clone, Debug)]
pub(crate) struct OtherFact {
    pub(crate) kind: FactTable,
    pub(crate) id: FactId,
    pub(crate) session: u32,
    pub(crate) bytes: u64,
}

/// The facts of an erasure, in the order in which they were selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct SelectedFacts {
    /// The Sessions, each once.
    pub(crate) sessions: Vec<String>,
    places: HashMap<String, u32>,
    pub(crate) calls: Vec<ErasedCall>,
    pub(crate) others: Vec<OtherFact>,
}

impl SelectedFacts {
    fn session(&mut self, session_id: String) -> u32 {
        if let Some(place) = self.places.get(&session_id) {
            return *place;
        }
        let place = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        self.sessions.push(session_id.clone());
        self.places.insert(session_id, place);
        place
    }

    /// Adds the call in a row of [`CALLS`].
    fn add_call(&mut self, row: &Row<'_>) -> Result<(), StoreError> {
        let call = ErasedCall {
            id: row.fact_id(0)?,
            session: self.session(row.text(1)?),
            number: row.integer(3)?,
        };
        self.calls.push(call);
        Ok(())
    }

    /// Adds the fact in a row of [`selection`].
    fn add_other(&mut self, kind: FactTable, row: &Row<'_>) -> Result<(), StoreError> {
        let other = OtherFact {
            kind,
            id: row.fact_id(0)?,
            session: self.session(row.text(1)?),
            bytes: row.count(3)?,
        };
        self.others.push(other);
        Ok(())
    }

    /// Returns the Session at an index.
    pub(crate) fn session_at(&self, place: u32) -> &str {
        self.sessions
            .get(place as usize)
            .map_or("", |session_id| session_id)
    }
}

const CALLS: &str = "f.inference_call_id, f.session_id, f.user_id, f.call_number
    FROM all_inference_calls f";
/// The condition for facts that are looked up by id.
const OF_ORGANIZATION: &str = "WHERE COALESCE(f.org_id, '') = $1";
const OLDER: &str = "WHERE f.org_id = $1 AND f.captured_at_us < $2";
/// The Sessions in which some fact names a user.
const NAMED: &str = "SELECT s.session_id FROM session_claims c
    JOIN sessions s ON s.session_number = c.session_number
    WHERE c.value = $1 AND c.kind = $3 AND c.org_id = $2
    ORDER BY c.captured_at_us, c.session_number";
/// The claims that facts make about a Session.
const CLAIMS: &str = "SELECT claims FROM sessions WHERE session_id = $2 AND org_id = $1";

/// Returns the statement that selects facts whose content is not erased yet.
fn unerased(
    every_row: &str,
    selection: &str,
    condition: &str,
    kind: FactTable,
    id: &str,
) -> String {
    format!(
        "SELECT {every_row}{selection} {condition} AND NOT EXISTS (SELECT 1 FROM erased_facts e
            WHERE e.session_id = f.session_id AND e.org_id = f.org_id
                AND e.fact_table = '{kind}' AND e.fact_id = f.{id})"
    )
}

/// Which facts of a Session are selected.
#[derive(Clone, Copy)]
enum UserFilter<'u> {
    Everybody,
    /// The facts that name this user or no user.
    UserOrNobody(&'u str),
    /// The facts that name this user.
    User(&'u str),
}

impl UserFilter<'_> {
    fn holds(self, named: Option<&str>) -> bool {
        match (self, named) {
            (Self::Everybody, _) | (Self::UserOrNobody(_), None) => true,
            (Self::UserOrNobody(user) | Self::User(user), Some(named)) => user == named,
            (Self::User(_), None) => false,
        }
    }
}

impl Snapshot<'_> {
    /// Returns the facts of an erasure, quarantined ones included.
    pub(crate) fn selected_for_erasure(
        &mut self,
        subject: &ErasureSubject,
    ) -> Result<SelectedFacts, StoreError> {
        let mut selected = SelectedFacts::default();
        match subject {
            ErasureSubject::Session(session_id) => {
                self.select_of_session(session_id.as_str(), UserFilter::Everybody, &mut selected)?;
            }
            ErasureSubject::User(user_id) => {
                for session_id in self.sessions_that_name(user_id)? {
                    let of = if self.names_nobody_else(&session_id, user_id)? {
                        UserFilter::UserOrNobody(user_id.as_str())
                    } else {
                        UserFilter::User(user_id.as_str())
                    };
                    self.select_of_session(&session_id, of, &mut selected)?;
                }
            }
            ErasureSubject::OlderThan(moment) => {
                let key = Value::Integer(moment.microseconds());
                let every_row = "/* every row */ ";
                let older = |_: &str| OLDER.to_owned();
                self.select(older, &key, every_row, UserFilter::Everybody, &mut selected)?;
            }
        }
        Ok(selected)
    }

    fn select_of_session(
        &mut self,
        session_id: &str,
        of: UserFilter<'_>,
        selected: &mut SelectedFacts,
    ) -> Result<(), StoreError> {
        let condition = |table: &str| format!("WHERE {}", sessions::of_session(table, "$1", "$2"));
        self.select(condition, &Value::Text(session_id), "", of, selected)
    }

    fn select(
        &mut self,
        condition: impl Fn(&str) -> String,
        key: &Value<'_>,
        every_row: &str,
        of: UserFilter<'_>,
        selected: &mut SelectedFacts,
    ) -> Result<(), StoreError> {
        let keys = [self.org_id.as_str().into(), key.clone()];
        let is_meant =
            |row: &Row<'_>| Ok::<_, StoreError>(of.holds(row.optional_text(2)?.as_deref()));
        let calls = FactTable::InferenceCalls;
        let of_calls = condition(calls.as_str());
        let text = unerased(every_row, CALLS, &of_calls, calls, kind::table(calls).id());
        self.connection()?.each(&text, &keys, |row| {
            if is_meant(row)? {
                selected.add_call(row)?;
            }
            Ok(())
        })?;
        for (kind, table) in others() {
            let (selection, condition) = (selection(table), condition(table.name));
            let text = unerased(every_row, &selection, &condition, kind, table.id());
            self.connection()?.each(&text, &keys, |row| {
                if is_meant(row)? {
                    selected.add_other(kind, row)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn sessions_that_name(&mut self, user_id: &UserId) -> Result<Vec<String>, StoreError> {
        let keys = [
            Value::Text(user_id.as_str()),
            self.org_id.as_str().into(),
            ClaimKind::User.letter().into(),
        ];
        self.connection()?.all(NAMED, &keys, |row| row.text(0))
    }

    /// Returns whether no fact of a Session names another user.
    fn names_nobody_else(
        &mut self,
        session_id: &str,
        user_id: &UserId,
    ) -> Result<bool, StoreError> {
        let keys = [self.org_id.as_str().into(), Value::Text(session_id)];
        let claims = self.connection()?.first(CLAIMS, &keys, |row| row.text(0))?;
        let claims = claims.unwrap_or_default();
        let claims = session_claims::read(&claims)?;
        let mut users = claims.iter().filter(|(kind, _)| *kind == ClaimKind::User);
        Ok(users.all(|(_, user)| *user == user_id.as_str()))
    }
}

/// Returns the given facts that are stored and whose content is not erased.
pub(crate) fn unerased_of<T>(
    connection: &mut Connection,
    org_id: &OrgId,
    facts: &BTreeMap<(FactTable, FactId), T>,
) -> Result<SelectedFacts, StoreError> {
    let mut selected = SelectedFacts::default();
    let shared = [org_id.as_str().into()];
    let ids = |wanted: FactTable| {
        let of_kind = facts.keys().filter(move |(kind, _)| *kind == wanted);
        let ids = of_kind.map(|(_, id)| Value::from(*id));
        ids.collect::<Vec<Value<'_>>>()
    };
    let calls = FactTable::InferenceCalls;
    let id = kind::table(calls).id();
    let text = unerased("", CALLS, OF_ORGANIZATION, calls, id) + &format!(" AND f.{id}");
    let lookup = Lookup {
        select: &text,
        then: "",
    };
    connection.lookup(&lookup, &shared, &ids(calls), |row| selected.add_call(row))?;
    for (kind, table) in others() {
        let id = table.id();
        let text =
            unerased("", &selection(table), OF_ORGANIZATION, kind, id) + &format!(" AND f.{id}");
        let lookup = Lookup {
            select: &text,
            then: "",
        };
        connection.lookup(&lookup, &shared, &ids(kind), |row| {
            selected.add_other(kind, row)
        })?;
    }
    Ok(selected)
}
