//! Finding the stored contents of Sessions that go on.
//!
//! The contents of a Session have no index. They are remembered while the Session goes on, together
//! with the mark of the Session, which every transaction that stores a fact of it changes. Where the row
//! of the Session has another mark, somebody else wrote to it, or it was not remembered, and the contents of its latest calls are looked up. A call sends its history again, so
//! these are the contents that come again; one that is older is stored once more, under an id of its
//! own, when it does.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use svc_model::id::OrgId;

use super::connection::{Connection, Lookup};
use super::content::{ContentHash, ContentRef, Encoded, SessionKey};
use super::error::corrupt;
use super::known_contents::KnownContents;
use super::sessions::calls_of_session;
use super::value::Value;
use super::{StoreError, id_list, sessions};

/// The latest calls of a Session, as many as are looked at.
const LATEST: &str = concat!(
    "SELECT f.input_contents, f.output_contents, r.contents
    FROM inference_calls f JOIN raw_payloads r ON r.call_number = f.call_number
    WHERE ",
    calls_of_session!("$1", "$2"),
    " ORDER BY f.observed_at_us DESC LIMIT 32"
);
const HASHES: Lookup<'_> = Lookup {
    select: "SELECT content_id, digest FROM content WHERE is_shared = 0 AND content_id",
    then: "",
};

/// The Sessions of one transaction whose contents are told apart.
#[derive(Debug, Default)]
pub(super) struct Recalled(HashMap<SessionKey, RecalledSession>);

/// A Session whose contents are all known.
#[derive(Debug)]
struct RecalledSession {
    /// Its mark before the transaction; nothing if it is new.
    mark: Option<i64>,
    /// Its contents, when they are not the remembered ones.
    contents: Option<HashMap<ContentHash, i64>>,
}

impl Recalled {
    /// Makes sure that all contents of the Sessions are known which calls have new contents of.
    pub(super) fn of(
        connection: &mut Connection,
        org_id: &OrgId,
        calls: &[&Encoded],
        known: &KnownContents,
    ) -> Result<Self, StoreError> {
        let with_new = calls.iter().filter(|call| {
            call.contents().any(|content| match content {
                ContentRef::New(new) => new.key.session.is_some(),
                ContentRef::Known(_) => false,
            })
        });
        let of_calls: BTreeMap<&str, SessionKey> = with_new
            .map(|call| (call.call.session_id.as_str(), call.session))
            .collect();
        let keys: Vec<Value<'_>> = of_calls.keys().copied().map(Value::Text).collect();
        let marks = sessions::marks(connection, org_id, &keys)?;
        let mut recalled = Self::default();
        for (session_id, session) in of_calls {
            let mark = marks.get(session_id).copied();
            let contents = match mark {
                None => Some(HashMap::new()),
                Some(_) if known.mark(&session) == mark => None,
                Some(_) => Some(latest(connection, org_id, session_id)?),
            };
            let session_contents = RecalledSession { mark, contents };
            recalled.0.insert(session, session_contents);
        }
        Ok(recalled)
    }

    /// Returns the id of a stored content that is not among the remembered ones.
    pub(super) fn get(&self, session: &SessionKey, hash: &ContentHash) -> Option<i64> {
        let contents = self.0.get(session)?.contents.as_ref()?;
        contents.get(hash).copied()
    }

    /// Remembers the contents of the Sessions, and what a committed transaction added to them.
    /// `touched` are the Sessions of all of its facts, and `step` is the step of their marks.
    pub(super) fn remember(
        mut self,
        known: &KnownContents,
        touched: Vec<SessionKey>,
        step: i64,
        mut stored: HashMap<SessionKey, Vec<(ContentHash, i64)>>,
    ) {
        for session in touched {
            let Some(recalled) = self.0.remove(&session) else {
                known.touched(&session, step);
                continue;
            };
            let are_all = recalled.contents.is_some();
            let contents = recalled.contents.into_iter().flatten();
            let stored = stored.remove(&session).into_iter().flatten();
            let contents = contents.chain(stored);
            let mark = sessions::next_mark(recalled.mark, step);
            known.remember(session, mark, contents, are_all);
        }
    }
}

/// Returns the contents of the latest calls of a Session.
fn latest(
    connection: &mut Connection,
    org_id: &OrgId,
    session_id: &str,
) -> Result<HashMap<ContentHash, i64>, StoreError> {
    let mut ids = BTreeSet::new();
    let keys = [org_id.as_str().into(), session_id.into()];
    connection.each(LATEST, &keys, |row| {
        for column in 0..3 {
            ids.extend(row.with_blob(column, id_list::read_ids)??);
        }
        Ok(())
    })?;
    let keys: Vec<Value<'_>> = ids.into_iter().map(Value::Integer).collect();
    let mut contents = HashMap::with_capacity(keys.len());
    connection.lookup(&HASHES, &[], &keys, |row| {
        let hash = ContentHash::try_from(row.blob(1)?.as_slice());
        let hash = hash.map_err(|_| corrupt("content", "its digest"))?;
        contents.insert(hash, row.integer(0)?);
        Ok(())
    })?;
    Ok(contents)
}
