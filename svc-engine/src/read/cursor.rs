//! The end of a page of CI outcomes, as text that only this service can create.
//!
//! A cursor is a position and the digest of its query, with a message authentication code. So a
//! caller cannot start a page where none ended, or use a position from one query in another, and
//! the service stores nothing between two pages.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, OrgId};
use svc_model::problem::QueryFault;
use svc_model::query::{CiCursor, CiFailuresRequest};
use svc_model::time::Instant;
use uuid::Uuid;

/// The version of the layout, the first byte of every cursor.
const VERSION: u8 = 1;
/// Bytes of the digest of a query.
pub(super) const SCOPE_BYTES: usize = 16;
/// Bytes of the authentication code.
pub(super) const CODE_BYTES: usize = 16;
/// Bytes before the code: the version, the moment, the id, the scope.
const SIGNED_BYTES: usize = 1 + 8 + 16 + SCOPE_BYTES;
/// The purpose that the key is derived for. For another purpose, the same secret gives another key.
const PURPOSE: &[u8] = b"svc ci outcome cursor 1";

/// The key for cursors. Servers with the same key accept each other's cursors.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl CursorKey {
    /// Derives the key from a secret, which cannot be recovered from the key.
    pub fn derive(secret: &[u8]) -> Self {
        Self(code(secret, PURPOSE))
    }

    /// Appends the authentication code of these bytes.
    pub(super) fn seal(&self, bytes: &mut Vec<u8>) {
        let code = code(&self.0, bytes);
        bytes.extend(&code[..CODE_BYTES]);
    }

    /// Returns the first `signed` bytes, if the rest is their authentication code.
    pub(super) fn opened<'b>(&self, bytes: &'b [u8], signed: usize) -> Option<&'b [u8]> {
        let (signed, given) = bytes.split_at_checked(signed)?;
        let mut authentic = hmac(&self.0);
        authentic.update(signed);
        let is_authentic =
            given.len() == CODE_BYTES && authentic.verify_truncated_left(given).is_ok();
        is_authentic.then_some(signed)
    }
}

impl fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CursorKey([REDACTED])")
    }
}

/// The last outcome of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OutcomePosition {
    pub(super) captured_at: Instant,
    pub(super) outcome_id: FactId,
}

/// The query that a cursor belongs to. The size of a page is not part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailuresScope<'a> {
    pub(super) org_id: &'a OrgId,
    pub(super) repository: &'a Lifetime,
    pub(super) boundary: Instant,
    pub(super) quarantine_revision: u64,
    pub(super) request: &'a CiFailuresRequest,
}

impl FailuresScope<'_> {
    /// Returns a digest of the query. The encoding is unambiguous.
    fn digest(&self) -> [u8; SCOPE_BYTES] {
        let mut hash = Sha256::new();
        let mut add = |member: &[u8]| {
            hash.update((member.len() as u64).to_be_bytes());
            hash.update(member);
        };
        let request = self.request;
        add(self.org_id.as_str().as_bytes());
        match self.repository {
            Lifetime::Identified(identity) => {
                add(identity.repository_provider.as_str().as_bytes());
                add(identity.repository_host.as_str().as_bytes());
                add(identity.repository_id.as_str().as_bytes());
            }
            Lifetime::Named(name) => add(name.as_str().as_bytes()),
        }
        for moment in [
            self.boundary,
            request.captured_after,
            request.captured_before,
        ] {
            add(&moment.microseconds().to_be_bytes());
        }
        add(&self.quarantine_revision.to_be_bytes());
        add(request.result.as_str().as_bytes());
        match &request.workflow_name {
            Some(name) => add(&[b"=", name.as_bytes()].concat()),
            None => add(b""),
        }
        add(&request.pr_number.unwrap_or(0).to_be_bytes());
        let mut digest = [0; SCOPE_BYTES];
        digest.copy_from_slice(&hash.finalize()[..SCOPE_BYTES]);
        digest
    }

    /// Returns the cursor of a position.
    pub(super) fn cursor(&self, key: &CursorKey, position: OutcomePosition) -> CiCursor {
        let mut bytes = Vec::with_capacity(SIGNED_BYTES + CODE_BYTES);
        bytes.push(VERSION);
        bytes.extend(position.captured_at.microseconds().to_be_bytes());
        bytes.extend(position.outcome_id.uuid().as_bytes());
        bytes.extend(self.digest());
        key.seal(&mut bytes);
        CiCursor::new(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns the position of a cursor.
    ///
    /// # Errors
    ///
    /// [`QueryFault::InvalidCursor`] if this service did not create it, and
    /// [`QueryFault::CursorMismatch`] if it belongs to another query.
    pub(super) fn position(
        &self,
        key: &CursorKey,
        cursor: &CiCursor,
    ) -> Result<OutcomePosition, QueryFault> {
        let (position, scope) = open(key, cursor).ok_or(QueryFault::InvalidCursor)?;
        if scope == self.digest() {
            Ok(position)
        } else {
            Err(QueryFault::CursorMismatch)
        }
    }
}

/// Returns the position and the query digest of a cursor that was created with this key.
fn open(key: &CursorKey, cursor: &CiCursor) -> Option<(OutcomePosition, [u8; SCOPE_BYTES])> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.as_str()).ok()?;
    let signed = key.opened(&bytes, SIGNED_BYTES)?;
    let (version, rest) = signed.split_first()?;
    let (captured_at, rest) = rest.split_first_chunk()?;
    let (outcome_id, rest) = rest.split_first_chunk()?;
    let position = OutcomePosition {
        captured_at: Instant::from_microseconds(i64::from_be_bytes(*captured_at))?,
        outcome_id: FactId::new(Uuid::from_bytes(*outcome_id)),
    };
    (*version == VERSION).then_some((position, rest.try_into().ok()?))
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length")
}

fn code(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut hmac = hmac(key);
    hmac.update(message);
    hmac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, id, repository};
    use svc_model::ingest::CiResult;
    use svc_model::query::RepositorySelector;
    use svc_model::repository::RepositoryName;

    use super::*;

    struct Question {
        org_id: OrgId,
        repository: Lifetime,
        boundary: Instant,
        quarantine_revision: u64,
        request: CiFailuresRequest,
    }

    impl Question {
        fn scope(&self) -> FailuresScope<'_> {
            FailuresScope {
                org_id: &self.org_id,
                repository: &self.repository,
                boundary: self.boundary,
                quarantine_revision: self.quarantine_revision,
                request: &self.request,
            }
        }
    }

    fn named(name: &str) -> Lifetime {
        Lifetime::Named(RepositoryName::new(name).unwrap())
    }

    fn question() -> Question {
        Question {
            org_id: OrgId::new("acme").unwrap(),
            repository: named("own/repo"),
            boundary: at(9),
            quarantine_revision: 3,
            request: CiFailuresRequest::new(RepositorySelector::default(), at(1), at(9)),
        }
    }

    fn position() -> OutcomePosition {
        OutcomePosition {
            captured_at: at(5),
            outcome_id: id(7),
        }
    }

    fn key() -> CursorKey {
        CursorKey::derive(b"operator-operator-operator")
    }

    #[test]
    fn a_cursor_returns_its_position_for_the_same_question() {
        let cursor = question().scope().cursor(&key(), position());
        assert_eq!(question().scope().position(&key(), &cursor), Ok(position()));
        let other_limit = Question {
            request: CiFailuresRequest {
                limit: svc_model::query::PageLimit::new(1).unwrap(),
                cursor: Some(cursor.clone()),
                repository: RepositorySelector::named(RepositoryName::new("own/repo").unwrap()),
                ..question().request
            },
            ..question()
        };
        assert_eq!(
            other_limit.scope().position(&key(), &cursor),
            Ok(position())
        );
    }

    #[test]
    fn a_cursor_belongs_to_one_question() {
        let cursor = question().scope().cursor(&key(), position());
        let request = |change: fn(&mut CiFailuresRequest)| {
            let mut question = question();
            change(&mut question.request);
            question
        };
        let others = [
            Question {
                org_id: OrgId::new("other").unwrap(),
                ..question()
            },
            Question {
                repository: named("own/other"),
                ..question()
            },
            Question {
                repository: Lifetime::Identified(repository(7)),
                ..question()
            },
            Question {
                boundary: at(8),
                ..question()
            },
            Question {
                quarantine_revision: 4,
                ..question()
            },
            request(|request| request.captured_after = at(2)),
            request(|request| request.captured_before = at(8)),
            request(|request| request.result = CiResult::Error),
            request(|request| request.workflow_name = Some(String::new())),
            request(|request| request.workflow_name = Some("CI".to_owned())),
            request(|request| request.pr_number = Some(1)),
        ];
        let mut seen = vec![cursor.clone()];
        for other in others {
            assert_eq!(
                other.scope().position(&key(), &cursor),
                Err(QueryFault::CursorMismatch)
            );
            let own = other.scope().cursor(&key(), position());
            assert!(!seen.contains(&own), "two questions are written alike");
            seen.push(own);
        }
    }

    #[test]
    fn a_forged_cursor_is_invalid() {
        let cursor = question().scope().cursor(&key(), position());
        let invalid = |text: &str| {
            let found = question().scope().position(&key(), &CiCursor::new(text));
            assert_eq!(found, Err(QueryFault::InvalidCursor), "{text}");
        };
        for text in ["", "x", "AA", "not a cursor", "\u{e9}"] {
            invalid(text);
        }
        invalid(&format!("{}A", cursor.as_str()));
        invalid(&cursor.as_str()[4..]);
        let bytes = URL_SAFE_NO_PAD.decode(cursor.as_str()).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            invalid(&URL_SAFE_NO_PAD.encode(changed));
        }
        let foreign = CursorKey::derive(b"another-another-another-");
        let foreign = question().scope().cursor(&foreign, position());
        invalid(foreign.as_str());
    }

    #[test]
    fn the_debug_form_does_not_show_the_key() {
        let shown = format!("{:?}", CursorKey([0x61; 32]));
        assert!(!shown.contains("97") && !shown.contains('a'), "{shown}");
    }
}
