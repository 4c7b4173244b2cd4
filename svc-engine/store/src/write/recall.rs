//! Finds the stored contents of Sessions that continue.
//!
//! The contents of a Session have no index. They are remembered while the Session continues,
//! together with its mark, which changes with every transaction that stores a fact of the Session.
//! If the row of the Session has another mark, the Session was not remembered or somebody else
//! wrote to it. Then the contents of its latest calls are looked up. A call sends its history
//! again, so these contents recur. If an older one recurs, it is stored once more, under an id of
//! its own.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::id::OrgId;

use super::content::Encoded;
use super::known_contents::KnownContents;
use super::sessions;
use crate::pack::content_key::{ByHash, ContentHash, ContentRef, SessionKey};
use crate::pack::id_list;
use crate::read::contents::hashes;
use crate::read::sessions::marks;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::sessions::calls_of_session;

/// Selects the contents of a Session's latest calls, as many as are examined.
const LATEST: &str = concat!(
    "SELECT f.input_contents, f.output_contents, r.contents
    FROM inference_calls f JOIN raw_payloads r ON r.call_number = f.call_number
    WHERE ",
    calls_of_session!("$1", "$2"),
    " ORDER BY f.observed_at_us DESC LIMIT 32"
);
const OWN_HASHES: Lookup<'_> = Lookup {
    select: "SELECT content_id, digest FROM content WHERE is_shared = 0 AND content_id",
    then: "",
};

/// The Sessions to which the calls of one transaction bring new contents.
#[derive(Debug, Default)]
pub(crate) struct Recalled(ByHash<SessionKey, RecalledSession>);

/// What is known of a Session's contents.
#[derive(Debug)]
struct RecalledSession {
    /// Its mark before the transaction; `None` if it is new.
    mark: Option<i64>,
    /// Its contents; `None` if they are the remembered ones.
    contents: Option<ByHash<ContentHash, i64>>,
}

impl Recalled {
    /// Looks up the contents of each Session to which a call brings new contents, unless they are
    /// remembered.
    pub(crate) fn of(
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
        let marks = marks(connection, org_id, &keys)?;
        let mut recalled = Self::default();
        for (session_id, session) in of_calls {
            let mark = marks.get(session_id).copied();
            let contents = match mark {
                None => Some(ByHash::default()),
                Some(_) if known.mark(&session) == mark => None,
                Some(_) => Some(latest(connection, org_id, session_id)?),
            };
            let session_contents = RecalledSession { mark, contents };
            recalled.0.insert(session, session_contents);
        }
        Ok(recalled)
    }

    /// Returns the id of a stored content that is not among the remembered ones.
    pub(crate) fn get(&self, session: &SessionKey, hash: &ContentHash) -> Option<i64> {
        let contents = self.0.get(session)?.contents.as_ref()?;
        contents.get(hash).copied()
    }

    /// Remembers the contents of the Sessions, and what a committed transaction added to them.
    /// `touched` are the Sessions of all its facts, and `step` is the step of their marks.
    pub(crate) fn remember(
        mut self,
        known: &KnownContents,
        touched: Vec<SessionKey>,
        step: i64,
        mut stored: ByHash<SessionKey, Vec<(ContentHash, i64)>>,
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
) -> Result<ByHash<ContentHash, i64>, StoreError> {
    let mut ids = BTreeSet::new();
    let keys = [org_id.as_str().into(), session_id.into()];
    connection.each(LATEST, &keys, |row| {
        for column in 0..3 {
            ids.extend(row.with_blob(column, id_list::read_ids)??);
        }
        Ok(())
    })?;
    let hashes = hashes(connection, &OWN_HASHES, ids)?;
    Ok(hashes.into_iter().map(|(id, hash)| (hash, id)).collect())
}
