//! What visible facts say of Sessions.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::id::{OrgId, SessionId};

use super::snapshot::Snapshot;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;
use crate::table::session_claims::{ClaimKind, OF_SESSIONS, read};

/// Claims of one kind that one statement proves. Their count is rounded up to a power of two.
const PROOFS_MAX: usize = 16;

/// What visible facts say of Sessions, by Session and kind, sorted.
pub type SessionClaims = BTreeMap<(SessionId, ClaimKind), Vec<String>>;

impl Snapshot<'_> {
    /// Returns what visible facts say of Sessions.
    pub fn session_claims(&mut self, sessions: &[SessionId]) -> Result<SessionClaims, StoreError> {
        let org_id = self.org_id;
        let shared = [org_id.as_str().into()];
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        // A look-up may be given the same key twice.
        let mut claims: BTreeMap<ClaimKind, BTreeSet<(String, String)>> = BTreeMap::new();
        self.connection()?
            .lookup(&OF_SESSIONS, &shared, &keys, |row| {
                let (session_id, text) = (row.text(0)?, row.text(1)?);
                for (kind, value) in read(&text)? {
                    let of_kind = claims.entry(kind).or_default();
                    of_kind.insert((session_id.clone(), value.to_owned()));
                }
                Ok(())
            })?;
        let mut proven = SessionClaims::new();
        for (kind, claims) in claims {
            let claims: Vec<(String, String)> = claims.into_iter().collect();
            for some in claims.chunks(PROOFS_MAX) {
                for place in proven_places(self.connection()?, org_id, kind, some)? {
                    let (session_id, value) = &some[place];
                    let session_id = SessionId::new(session_id);
                    let session_id = session_id.map_err(|_| corrupt("sessions", "session_id"))?;
                    let values = proven.entry((session_id, kind)).or_default();
                    values.push(value.clone());
                }
            }
        }
        Ok(proven)
    }
}

/// Returns the indexes of the claims of one kind that a visible fact proves, in order.
fn proven_places(
    connection: &mut Connection,
    org_id: &OrgId,
    kind: ClaimKind,
    claims: &[(String, String)],
) -> Result<BTreeSet<usize>, StoreError> {
    let mut values = vec![org_id.as_str().into()];
    let mut selects = Vec::new();
    // A claim that is asked for twice is found once.
    let asked = (0..claims.len().next_power_of_two()).map(|place| place.min(claims.len() - 1));
    for place in asked {
        let (session_id, value) = &claims[place];
        let number = values.len();
        values.extend([
            session_id.as_str().into(),
            value.as_str().into(),
            Value::Integer(i64::try_from(place).unwrap_or(i64::MAX)),
        ]);
        let [session_id, value, place] = [1, 2, 3].map(|offset| format!("${}", number + offset));
        let proof = kind.proof("$1", &session_id, &value);
        selects.push(format!("SELECT CAST({place} AS BIGINT) WHERE {proof}"));
    }
    let mut places = BTreeSet::new();
    connection.each(&selects.join(" UNION ALL "), &values, |row| {
        let place = usize::try_from(row.integer(0)?).ok();
        places.extend(place.filter(|place| *place < claims.len()));
        Ok(())
    })?;
    Ok(places)
}
