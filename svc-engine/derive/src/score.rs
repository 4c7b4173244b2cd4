//! Retrieval policy version 1: which parts may be returned, and how well each matches a query.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};
use svc_model::context::Query;
use svc_model::evidence::{Message, Part};
use svc_model::json;

use super::search_tokens::SearchTokens;

/// One part as retrieval sees it, independent of the query.
#[derive(Clone, Debug)]
pub struct SearchablePart {
    /// Why it is excluded from every answer, if it is.
    pub excluded: Option<Exclusion>,
    /// Its words.
    pub tokens: SearchTokens,
    sameness: OnceLock<Sameness>,
}

/// Why a part is excluded from every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// It is reasoning.
    Reasoning,
    /// It contains a number that strict JSON cannot represent.
    NonFinite,
}

impl SearchablePart {
    /// Returns what retrieval sees of a part.
    pub fn of(part: &Part) -> Self {
        let excluded = match part {
            Part::Reasoning { .. } => Some(Exclusion::Reasoning),
            part if !part.is_finite() => Some(Exclusion::NonFinite),
            Part::Text { .. } | Part::ToolCall { .. } | Part::ToolCallResponse { .. } => None,
        };
        let tokens = if excluded.is_none() {
            SearchTokens::of(part)
        } else {
            SearchTokens::default()
        };
        Self {
            excluded,
            tokens,
            sameness: OnceLock::new(),
        }
    }

    /// Returns what identifies this part's content. `message` and `part` must be those that it was
    /// made from.
    pub fn sameness(&self, message: &Message, part: &Part) -> Sameness {
        *self.sameness.get_or_init(|| Sameness::of(message, part))
    }

    /// Returns how many distinct tokens of the query the part contains.
    pub fn score(&self, query: &Query) -> u64 {
        query
            .tokens()
            .iter()
            .filter(|token| self.tokens.contains(token.as_bytes()))
            .count() as u64
    }
}

/// Identifies equal content: role, finish reason and the whole part, whatever the order of members.
/// The side, the call and the time do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sameness {
    /// The SHA-256 of the sorted form of these three.
    pub digest: [u8; 32],
    /// The length of that form in bytes.
    pub key_bytes: u64,
    /// The length in bytes of the encoded values of `role`, `finish_reason` and `part`.
    pub body_bytes: u64,
}

impl Sameness {
    /// Returns what identifies the content of a part of a message.
    pub fn of(message: &Message, part: &Part) -> Self {
        let Ok(value) = json::to_value(part) else {
            // A part that cannot be sent is never a candidate.
            return Self {
                digest: [0; 32],
                key_bytes: 0,
                body_bytes: 0,
            };
        };
        let mut key = b"{\"finish_reason\":".to_vec();
        let before = key.len();
        match &message.finish_reason {
            Some(reason) => reason.write_escaped(&mut key),
            None => key.extend_from_slice(b"null"),
        }
        let finish_bytes = key.len() - before;
        key.extend_from_slice(b",\"part\":");
        let before = key.len();
        value.write_sorted(&mut key);
        // Sorting moves members around without changing their length.
        let part_bytes = key.len() - before;
        key.extend_from_slice(b",\"role\":");
        let before = key.len();
        message.role.write_escaped(&mut key);
        let role_bytes = key.len() - before;
        key.push(b'}');
        Self {
            digest: Sha256::digest(&key).into(),
            key_bytes: key.len() as u64,
            body_bytes: (role_bytes + finish_bytes + part_bytes) as u64,
        }
    }
}
