//! Halves of calls as rows.

use svc_engine_fact::{CallHalf, HalfKey, HalfOutline, HalfSide, HalfState, KeptHalf};
use svc_model::id::{OrgId, SessionId, UserId};
use svc_model::json::Json;
use svc_model::time::Instant;

use crate::pack::half::{PieceKey, StoredOutline, piece_key, take_pieces};
use crate::pack::packing;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};

/// The states of a row. In a third, only the key is left.
const OPEN: i64 = 0;
const WITNESS: i64 = 1;

/// The number of columns.
pub(crate) const WIDTH: usize = 18;

/// The columns of a half without its body.
pub(crate) const KEPT: &str =
    "half_key, session_id, state, side, occurred_at_us, sequence, captured_at_us,
    due_at_us, byte_count, query_source, model, prompt_id, user_id, request_id, outline";

/// A half that is ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedHalf {
    pub(crate) key: HalfKey,
    pub(crate) byte_count: u64,
    pub(crate) row: Vec<Value<'static>>,
    /// The keys and the rows of its pieces.
    pub(crate) pieces: Vec<(PieceKey, Vec<Value<'static>>)>,
}

impl PreparedHalf {
    /// Prepares a half that is due at a moment.
    pub(crate) fn of(org_id: &OrgId, half: CallHalf, due_at: Instant) -> Self {
        let CallHalf { outline, body } = half;
        let session_id = outline.session_id.as_str();
        let mut body = Json::Object(body);
        let byte_count = body.canonical_len() as u64;
        let pieces = body.as_object_mut().map(take_pieces).unwrap_or_default();
        let pieces = pieces.into_iter().map(|piece| {
            let key = piece_key(org_id.as_str(), session_id, &piece);
            let row = vec![
                Value::OwnBlob(key.to_vec()),
                Value::OwnText(org_id.as_str().to_owned()),
                Value::OwnText(session_id.to_owned()),
                Value::OwnBlob(packing::cell(piece)),
            ];
            (key, row)
        });
        let pieces: Vec<(PieceKey, Vec<Value<'static>>)> = pieces.collect();
        let keys: Vec<u8> = pieces.iter().flat_map(|(key, _)| *key).collect();
        let body = packing::cell(body.to_canonical());
        Self {
            key: outline.key,
            byte_count,
            row: row(org_id, outline, due_at, byte_count, keys, body),
            pieces,
        }
    }

    /// Returns the cost of writing it, in units of a small row.
    pub(crate) fn weight(&self) -> usize {
        2 + self.pieces.len() / 4
    }
}

fn row(
    org_id: &OrgId,
    outline: HalfOutline,
    due_at: Instant,
    byte_count: u64,
    pieces: Vec<u8>,
    body: Vec<u8>,
) -> Vec<Value<'static>> {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::OwnText);
    let stored = StoredOutline {
        messages: outline.messages,
        input: outline.input,
        called_tools: outline.called_tools,
    };
    vec![
        Value::OwnBlob(outline.key.to_vec()),
        Value::OwnText(org_id.as_str().to_owned()),
        Value::OwnText(outline.session_id.into()),
        OPEN.into(),
        side_letter(outline.side).into(),
        outline.occurred_at.into(),
        outline.sequence.into(),
        outline.captured_at.into(),
        due_at.into(),
        i64::try_from(byte_count).unwrap_or(i64::MAX).into(),
        Value::OwnText(outline.query_source),
        text(outline.model),
        text(outline.prompt_id),
        text(outline.user_id.map(String::from)),
        text(outline.request_id),
        Value::OwnBlob(stored.cell()),
        Value::OwnBlob(pieces),
        Value::OwnBlob(body),
    ]
}

const fn side_letter(side: HalfSide) -> &'static str {
    match side {
        HalfSide::Request => "q",
        HalfSide::Response => "r",
    }
}

/// Reads the columns of [`KEPT`].
pub(crate) fn kept(row: &Row<'_>) -> Result<KeptHalf, StoreError> {
    let wrong = |what| corrupt("call_halves", what);
    let moment = |place| Instant::from_microseconds(row.integer(place)?).ok_or(wrong("a time"));
    let outline = row.with_blob(14, StoredOutline::of_cell)??;
    let session_id = row.with_text(1, |id| SessionId::new(id).ok())?;
    let user_id = row.optional_text(12)?.map(|id| UserId::new(&id).ok());
    Ok(KeptHalf {
        outline: HalfOutline {
            key: half_key(row, 0)?,
            side: match &*row.text(3)? {
                "q" => HalfSide::Request,
                "r" => HalfSide::Response,
                _ => return Err(wrong("side")),
            },
            session_id: session_id.ok_or(wrong("session_id"))?,
            query_source: row.text(9)?,
            model: row.optional_text(10)?,
            prompt_id: row.optional_text(11)?,
            user_id: user_id.map(|id| id.ok_or(wrong("user_id"))).transpose()?,
            occurred_at: moment(4)?,
            sequence: row.optional_integer(5)?,
            request_id: row.optional_text(13)?,
            captured_at: moment(6)?,
            messages: outline.messages,
            input: outline.input,
            called_tools: outline.called_tools,
        },
        state: match row.integer(2)? {
            OPEN => HalfState::Open,
            WITNESS => HalfState::Witness,
            _ => return Err(wrong("state")),
        },
        byte_count: row.count(8)?,
        due_at: moment(7)?,
    })
}

/// Reads the key of a half.
pub(crate) fn half_key(row: &Row<'_>, place: usize) -> Result<HalfKey, StoreError> {
    let key = row.with_blob(place, |key| HalfKey::try_from(key).ok())?;
    key.ok_or(corrupt("call_halves", "half_key"))
}
