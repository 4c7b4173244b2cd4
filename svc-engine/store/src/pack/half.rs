//! The stored form of half of a call: what tells which halves belong together, and its body.
//!
//! A client sends its whole history with every request, so the items of the large lists of a body
//! are pieces, which the halves of a Session share. The rest of the body is its skeleton, with null
//! in the place of each piece.

use sha2::{Digest as _, Sha256};
use svc_engine_fact::{CalledTools, MessagesDigest};
use svc_model::json::{Json, Object};

use super::{number, packing};
use crate::sql::error::{StoreError, corrupt};

/// The members of a body whose items are pieces.
const LISTS: [&str; 3] = ["messages", "system", "tools"];

/// The digest of a piece, of its Session and of its organization.
pub(crate) type PieceKey = [u8; 16];

/// What is stored of the outline of a half besides its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredOutline {
    pub(crate) messages: MessagesDigest,
    pub(crate) input: MessagesDigest,
    pub(crate) called_tools: Vec<CalledTools>,
}

impl StoredOutline {
    /// Writes the outline.
    pub(crate) fn cell(&self) -> Vec<u8> {
        let mut bytes = [self.messages, self.input].concat();
        for called in &self.called_tools {
            bytes.extend(called.before);
            number::write(called.ids.len() as u64, &mut bytes);
            for id in &called.ids {
                number::write(id.len() as u64, &mut bytes);
                bytes.extend(id.as_bytes());
            }
        }
        packing::cell(bytes)
    }

    /// Reads what [`cell`](Self::cell) wrote.
    pub(crate) fn of_cell(cell: &[u8]) -> Result<Self, StoreError> {
        let bytes = packing::of_cell(cell)?;
        Self::read(&bytes).ok_or(corrupt("call_halves", "outline"))
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut outline = Self {
            messages: digest(&mut bytes)?,
            input: digest(&mut bytes)?,
            called_tools: Vec::new(),
        };
        while !bytes.is_empty() {
            let before = digest(&mut bytes)?;
            let ids = (0..number::read(&mut bytes)?).map(|_| text(&mut bytes));
            let ids = ids.collect::<Option<_>>()?;
            outline.called_tools.push(CalledTools { before, ids });
        }
        Some(outline)
    }
}

fn digest(bytes: &mut &[u8]) -> Option<MessagesDigest> {
    let (digest, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*digest)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number::read(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// Returns the key of a piece.
pub(crate) fn piece_key(org_id: &str, session_id: &str, piece: &[u8]) -> PieceKey {
    let mut hash = Sha256::new();
    for name in [org_id, session_id] {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
    }
    hash.update(piece);
    let mut key = PieceKey::default();
    key.copy_from_slice(&hash.finalize()[..16]);
    key
}

/// Returns the keys in a column of pieces.
pub(crate) fn piece_keys(column: &[u8]) -> Result<Vec<PieceKey>, StoreError> {
    let (keys, rest) = column.as_chunks();
    if rest.is_empty() {
        Ok(keys.to_vec())
    } else {
        Err(corrupt("call_halves", "pieces"))
    }
}

/// Takes the pieces out of a body.
pub(crate) fn take_pieces(body: &mut Object) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for item in places(body) {
        pieces.push(std::mem::take(item).to_canonical());
    }
    pieces
}

/// Puts the pieces back into a body, in their order.
pub(crate) fn put_pieces(
    body: &mut Object,
    pieces: impl IntoIterator<Item = Result<Json, StoreError>>,
) -> Result<(), StoreError> {
    let mut pieces = pieces.into_iter();
    for item in places(body) {
        *item = pieces.next().ok_or(corrupt("call_halves", "pieces"))??;
    }
    match pieces.next() {
        None => Ok(()),
        Some(_) => Err(corrupt("call_halves", "pieces")),
    }
}

/// Returns the places of the pieces.
fn places(body: &mut Object) -> impl Iterator<Item = &mut Json> {
    body.iter_mut()
        .filter(|(name, _)| name.as_str().is_some_and(|name| LISTS.contains(&name)))
        .filter_map(|(_, list)| match list {
            Json::Array(items) => Some(items),
            _ => None,
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_body_is_put_together_from_its_pieces() {
        for (text, count) in [
            (
                r#"{"model":"m","system":[{"a":1},null],"messages":[{"b":2}],"n":1.50,"tools":[3]}"#,
                4,
            ),
            (r#"{"system":"text","messages":[],"tools":{"x":[1]}}"#, 0),
            (
                r#"{"id":"msg_1","content":[{"type":"text","text":"x"}]}"#,
                0,
            ),
        ] {
            let whole = Json::parse(text.as_bytes()).unwrap().into_object().unwrap();
            let mut body = whole.clone();
            let pieces = take_pieces(&mut body);
            assert_eq!(pieces.len(), count, "{text}");
            let parsed = |piece: &Vec<u8>| Ok(Json::parse(piece).unwrap());
            let mut few = body.clone();
            let other = [Ok(Json::Null)].into_iter();
            assert!(put_pieces(&mut few, pieces.iter().map(parsed).chain(other)).is_err());
            assert_eq!(put_pieces(&mut few.clone(), []).is_err(), count > 0);
            put_pieces(&mut body, pieces.iter().map(parsed)).unwrap();
            assert_eq!(body, whole);
        }
    }

    #[test]
    fn equal_pieces_of_other_sessions_have_other_keys() {
        let keys = [
            piece_key("a", "b", b"x"),
            piece_key("a", "bx", b""),
            piece_key("ab", "", b"x"),
            piece_key("a", "b", b"y"),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert!(!keys[..place].contains(key));
        }
        assert_eq!(piece_keys(&keys.concat()).unwrap(), keys);
        assert!(piece_keys(&[0; 17]).is_err());
    }

    proptest! {
        #[test]
        fn an_outline_is_read_back(
            digests in any::<[[u8; 16]; 3]>(),
            ids in proptest::collection::vec(".*", 0..4),
            cut in 1_usize..200,
        ) {
            let [messages, input, before] = digests;
            let called = CalledTools { before, ids };
            let outline = StoredOutline {
                messages,
                input,
                called_tools: vec![called.clone(), called],
            };
            let cell = outline.cell();
            prop_assert_eq!(&StoredOutline::of_cell(&cell).unwrap(), &outline);
            drop(StoredOutline::of_cell(&cell[..cell.len().saturating_sub(cut)]));
        }
    }
}
