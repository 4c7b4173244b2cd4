//! The end of a page of Sessions, as text that only this service can create: a position and the
//! digest of the query, sealed as in [`super::cursor`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use svc_engine_store::ListedSession;
use svc_model::id::{OrgId, SessionId, UserId};
use svc_model::problem::QueryFault;
use svc_model::query::{ModelName, SessionCursor, SessionsRequest};
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::search::FilePath;
use svc_model::time::Instant;

use super::cursor::{CODE_BYTES, CursorKey, SCOPE_BYTES};

/// The layout version, the first byte of every cursor; cursors of other lists have another.
const VERSION: u8 = 2;

/// A place in the list of Sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionPosition {
    pub(super) captured_at: Instant,
    pub(super) session_id: SessionId,
}

impl SessionPosition {
    pub(super) fn of(listed: &ListedSession) -> Self {
        Self {
            captured_at: listed.captured_at,
            session_id: listed.session_id.clone(),
        }
    }
}

/// The query that a cursor belongs to. The size of a page is not part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionsScope<'a> {
    pub(super) org_id: &'a OrgId,
    pub(super) quarantine_revision: u64,
    pub(super) request: &'a SessionsRequest,
}

impl SessionsScope<'_> {
    /// Returns a digest of the query. The encoding is unambiguous.
    fn digest(&self) -> [u8; SCOPE_BYTES] {
        let mut hash = Sha256::new();
        // An absent value differs from an empty text.
        let mut add = |member: Option<&[u8]>| match member {
            None => hash.update([0]),
            Some(member) => {
                hash.update([1]);
                hash.update((member.len() as u64).to_be_bytes());
                hash.update(member);
            }
        };
        let request = self.request;
        add(Some(self.org_id.as_str().as_bytes()));
        add(Some(&self.quarantine_revision.to_be_bytes()));
        for moment in [request.captured_after, request.captured_before] {
            let moment = moment.map(|moment| moment.microseconds().to_be_bytes());
            add(moment.as_ref().map(<[u8; 8]>::as_slice));
        }
        let identity = request.repository.identity.as_ref();
        let texts = [
            request.user_id.as_ref().map(UserId::as_str),
            request.model.as_ref().map(ModelName::as_str),
            request
                .agent_harness
                .as_ref()
                .map(|agent_harness| agent_harness.as_str()),
            request.repository.repo.as_ref().map(RepositoryName::as_str),
            identity.map(|identity| identity.repository_provider.as_str()),
            identity.map(|identity| identity.repository_host.as_str()),
            identity.map(|identity| identity.repository_id.as_str()),
            request.commit.as_ref().map(CommitSha::as_str),
            request.file.as_ref().map(FilePath::as_str),
        ];
        for text in texts {
            add(text.map(str::as_bytes));
        }
        let mut digest = [0; SCOPE_BYTES];
        digest.copy_from_slice(&hash.finalize()[..SCOPE_BYTES]);
        digest
    }

    /// Returns the cursor of a position.
    pub(super) fn cursor(&self, key: &CursorKey, position: &SessionPosition) -> SessionCursor {
        let mut bytes = vec![VERSION];
        bytes.extend(self.digest());
        bytes.extend(position.captured_at.microseconds().to_be_bytes());
        bytes.extend(position.session_id.as_str().as_bytes());
        key.seal(&mut bytes);
        SessionCursor::new(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns the position of a cursor.
    ///
    /// # Errors
    ///
    /// [`QueryFault::InvalidSessionCursor`] if this service did not create it, and
    /// [`QueryFault::SessionCursorMismatch`] if it belongs to another query.
    pub(super) fn position(
        &self,
        key: &CursorKey,
        cursor: &SessionCursor,
    ) -> Result<SessionPosition, QueryFault> {
        let (scope, position) = open(key, cursor).ok_or(QueryFault::InvalidSessionCursor)?;
        if scope == self.digest() {
            Ok(position)
        } else {
            Err(QueryFault::SessionCursorMismatch)
        }
    }
}

/// Returns the query digest and the position of a cursor that was created with this key.
fn open(key: &CursorKey, cursor: &SessionCursor) -> Option<([u8; SCOPE_BYTES], SessionPosition)> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.as_str()).ok()?;
    let signed = key.opened(&bytes, bytes.len().checked_sub(CODE_BYTES)?)?;
    let (version, rest) = signed.split_first()?;
    let (scope, rest) = rest.split_first_chunk()?;
    let (captured_at, session_id) = rest.split_first_chunk()?;
    let position = SessionPosition {
        captured_at: Instant::from_microseconds(i64::from_be_bytes(*captured_at))?,
        session_id: SessionId::new(std::str::from_utf8(session_id).ok()?).ok()?,
    };
    (*version == VERSION).then_some((*scope, position))
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, repository};
    use svc_model::facts::AgentHarness;
    use svc_model::query::{RepositorySelector, SessionPageLimit};

    use super::*;

    fn key() -> CursorKey {
        CursorKey::derive(b"operator-operator-operator")
    }

    fn position() -> SessionPosition {
        SessionPosition {
            captured_at: at(5),
            session_id: SessionId::new("a/b é").unwrap(),
        }
    }

    fn with<T>(request: &SessionsRequest, ask: impl FnOnce(SessionsScope<'_>) -> T) -> T {
        ask(SessionsScope {
            org_id: &OrgId::new("acme").unwrap(),
            quarantine_revision: 3,
            request,
        })
    }

    fn cursor(request: &SessionsRequest) -> SessionCursor {
        with(request, |scope| scope.cursor(&key(), &position()))
    }

    #[test]
    fn a_cursor_returns_its_position_for_the_same_question() {
        let cursor = cursor(&SessionsRequest::default());
        let other_limit = SessionsRequest {
            limit: SessionPageLimit::new(1).unwrap(),
            cursor: Some(cursor.clone()),
            ..SessionsRequest::default()
        };
        let found = with(&other_limit, |scope| scope.position(&key(), &cursor));
        assert_eq!(found, Ok(position()));
    }

    #[test]
    fn a_cursor_belongs_to_one_question() {
        let first = cursor(&SessionsRequest::default());
        let request = |change: fn(&mut SessionsRequest)| {
            let mut request = SessionsRequest::default();
            change(&mut request);
            request
        };
        let mut seen = vec![first.clone()];
        for other in [
            request(|request| request.captured_after = Some(at(1))),
            request(|request| request.captured_before = Some(at(1))),
            request(|request| request.user_id = UserId::new("x").ok()),
            request(|request| request.model = ModelName::new("x")),
            request(|request| request.agent_harness = Some(AgentHarness::Pi)),
            request(|request| {
                request.repository = RepositorySelector::named(RepositoryName::new("a/b").unwrap());
            }),
            request(|request| request.repository = RepositorySelector::identified(repository(7))),
        ] {
            let found = with(&other, |scope| scope.position(&key(), &first));
            assert_eq!(found, Err(QueryFault::SessionCursorMismatch));
            let own = cursor(&other);
            assert!(!seen.contains(&own), "two questions are written alike");
            seen.push(own);
        }
        let moved = SessionsScope {
            org_id: &OrgId::new("acme").unwrap(),
            quarantine_revision: 4,
            request: &SessionsRequest::default(),
        };
        let found = moved.position(&key(), &first);
        assert_eq!(found, Err(QueryFault::SessionCursorMismatch));
    }

    #[test]
    fn a_forged_cursor_is_invalid() {
        let made = cursor(&SessionsRequest::default());
        let invalid = |text: &str| {
            let found = with(&SessionsRequest::default(), |scope| {
                scope.position(&key(), &SessionCursor::new(text))
            });
            assert_eq!(found, Err(QueryFault::InvalidSessionCursor), "{text}");
        };
        for text in ["", "x", "AA", "not a cursor", "\u{e9}"] {
            invalid(text);
        }
        invalid(&format!("{}A", made.as_str()));
        let bytes = URL_SAFE_NO_PAD.decode(made.as_str()).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            invalid(&URL_SAFE_NO_PAD.encode(&changed));
            invalid(&URL_SAFE_NO_PAD.encode(&bytes[..place]));
        }
    }
}
