//! Packs Sessions and parts into an answer: first each Session with its best part, then further
//! parts.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use svc_model::evidence::Part;
use svc_model::json::{self, Text};
use svc_model::limit::{CONTEXT_ENVELOPE_BYTES_MAX, SEARCH_WHOLE_PART_BYTES_MAX};
use svc_model::search::{
    Excerpt, SearchPart, SearchRequest, SearchSession, passages, search_text, words,
};

use super::super::ContentCache;
use super::super::answer::ReadContext;
use super::super::content::MessageContent;
use super::super::grant::Reach;
use super::super::title::session_title;
use super::check::{CheckedSession, VisiblePart};
use crate::error::Error;
use svc_engine_search::PartDigest;
use svc_engine_store::{ClaimKind, SessionClaims, StoreError};
use svc_model::id::{SessionId, UserId};

/// Characters of the excerpt of a part whose passage does not fit.
const SHORT_CHARACTERS: usize = 600;
/// Characters before the first word of such an excerpt, at most.
const BEFORE: usize = 100;

/// What did not fit, and what was not offered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packed {
    /// Sessions of which no part fitted.
    pub(super) sessions_without_room: u64,
    /// Parts that did not fit.
    pub(super) without_room: u64,
    /// Parts of answered Sessions that are not answered, although they might fit.
    pub(super) further_parts: u64,
    /// Parts with a number that is not finite.
    pub(super) non_finite: u64,
}

/// A part in the answer.
struct PackedPart {
    /// Its Session.
    item: usize,
    /// The forms in which it can be answered, the longest first.
    forms: Vec<SearchPart>,
    /// The form that is answered.
    form: usize,
}

/// An answer that is being packed. Everything is packed in its shortest form first, and what is
/// best gets a longer form as long as there is room.
pub(super) struct Packer<'q> {
    request: &'q SearchRequest,
    bytes_left: usize,
    items: Vec<SearchSession>,
    parts: Vec<PackedPart>,
    /// The parts of each item that were not offered yet.
    further: Vec<Vec<VisiblePart>>,
    best_session: f64,
    best_part: f64,
    packed: Packed,
    users: Option<SessionClaims>,
}

impl<'q> Packer<'q> {
    /// Returns an empty answer, in which at most these Sessions will be packed.
    pub(super) fn new(
        reading: &mut ReadContext<'_, '_>,
        request: &'q SearchRequest,
        sessions: &[CheckedSession],
    ) -> Result<Self, Error> {
        let bytes = usize::try_from(request.max_bytes.get()).unwrap_or(usize::MAX);
        let users = if matches!(reading.reach, Reach::All) {
            let ids = sessions.iter().map(|one| one.row.session_id.clone());
            let ids: Vec<SessionId> = ids.collect();
            Some(reading.snapshot.session_claims(&ids)?)
        } else {
            None
        };
        let scores = sessions.iter().flat_map(|session| &session.parts);
        let scores = scores.map(|part| part.found.score);
        Ok(Self {
            request,
            bytes_left: bytes.saturating_sub(CONTEXT_ENVELOPE_BYTES_MAX),
            items: Vec::new(),
            parts: Vec::new(),
            further: Vec::new(),
            best_session: sessions.first().map_or(0.0, |best| best.score),
            best_part: scores.fold(0.0, f64::max),
            packed: Packed::default(),
            users,
        })
    }

    /// Packs a Session with the best of its parts that can be answered.
    pub(super) fn offer_session(
        &mut self,
        reading: &mut ReadContext<'_, '_>,
        session: &CheckedSession,
    ) -> Result<(), Error> {
        let item = SearchSession {
            session_id: session.row.session_id.clone(),
            title: session_title(reading.snapshot, &session.row.session_id)?,
            user_ids: self.users_of(&session.row.session_id),
            score: relative(session.score, self.best_session),
            matched_parts: session.parts.len() as u64,
            first_observed_at: session.row.first_observed_at,
            last_observed_at: session.row.last_observed_at,
            parts: Vec::new(),
        };
        let own = size(&item) + 1;
        let mut parts = session.parts.iter();
        for visible in parts.by_ref() {
            let Some(forms) = self.written(reading, visible)? else {
                continue;
            };
            if own < self.bytes_left && self.pack(forms, own) {
                self.items.push(item);
                self.further.push(parts.cloned().collect());
            } else {
                self.packed.sessions_without_room += 1;
                self.packed.without_room += 1;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Packs a part in its shortest form, for the next item or an earlier one, with so many bytes
    /// beside it.
    fn pack_for(&mut self, item: usize, forms: Vec<SearchPart>, beside: usize) -> bool {
        let Some(shortest) = forms.last() else {
            return false;
        };
        let bytes = size(shortest) + 1 + beside;
        if bytes > self.bytes_left {
            return false;
        }
        self.bytes_left -= bytes;
        let form = forms.len() - 1;
        self.parts.push(PackedPart { item, forms, form });
        true
    }

    fn pack(&mut self, forms: Vec<SearchPart>, beside: usize) -> bool {
        self.pack_for(self.items.len(), forms, beside)
    }

    /// Packs further parts of the packed Sessions, up to so many for each, best first.
    pub(super) fn offer_further(
        &mut self,
        reading: &mut ReadContext<'_, '_>,
        parts_max: usize,
    ) -> Result<(), Error> {
        let mut offered: Vec<(usize, VisiblePart)> = Vec::new();
        for (place, further) in self.further.iter_mut().enumerate() {
            let some = further.len().min(parts_max.saturating_sub(1));
            self.packed.further_parts += (further.len() - some) as u64;
            offered.extend(further.drain(..some).map(|part| (place, part)));
        }
        offered.sort_by(|(a, one), (b, other)| {
            let order = other.found.score.total_cmp(&one.found.score);
            order
                .then(a.cmp(b))
                .then(other.found.part.cmp(&one.found.part))
        });
        for (item, visible) in offered {
            let Some(forms) = self.written(reading, &visible)? else {
                continue;
            };
            if !self.pack_for(item, forms, 0) {
                self.packed.without_room += 1;
            }
        }
        Ok(())
    }

    /// Gives the parts longer forms as long as there is room, in the order in which they were
    /// packed, and returns the Sessions, and what is not among them.
    pub(super) fn finish(mut self) -> (Vec<SearchSession>, Packed) {
        for part in &mut self.parts {
            let now = size(&part.forms[part.form]);
            let room = self.bytes_left + now;
            let longer = part.forms[..part.form].iter();
            let sizes: Vec<usize> = longer.map(size).collect();
            if let Some(form) = sizes.iter().position(|size| *size <= room) {
                self.bytes_left = room - sizes[form];
                part.form = form;
            }
        }
        for mut part in self.parts {
            let shown = part.forms.swap_remove(part.form);
            self.items[part.item].parts.push(shown);
        }
        for item in &mut self.items {
            item.parts.sort_by_key(|part| Reverse(part.score));
        }
        (self.items, self.packed)
    }

    /// Returns how many Sessions are packed.
    pub(super) fn sessions(&self) -> usize {
        self.items.len()
    }

    fn users_of(&self, session_id: &SessionId) -> Option<Vec<UserId>> {
        let key = (session_id.clone(), ClaimKind::User);
        let users = self.users.as_ref()?.get(&key);
        let users = users.into_iter().flatten();
        Some(users.filter_map(|user| UserId::new(user).ok()).collect())
    }

    /// Returns the forms in which a part can be answered, the longest first; nothing if it cannot be.
    fn written(
        &mut self,
        reading: &mut ReadContext<'_, '_>,
        visible: &VisiblePart,
    ) -> Result<Option<Vec<SearchPart>>, Error> {
        let cache = reading.content()?;
        let content = content(reading, &cache, visible.content_id)?;
        let message = &content.message;
        let place = usize::try_from(visible.reference.part_index).unwrap_or(usize::MAX);
        let Some(part) = message.parts.get(place) else {
            return Ok(None);
        };
        if PartDigest::of(part) != visible.digest {
            return Ok(None);
        }
        if !part.is_finite() {
            self.packed.non_finite += 1;
            return Ok(None);
        }
        let empty = SearchPart {
            score: relative(visible.found.score, self.best_part),
            reference: visible.reference.clone(),
            observed_at: visible.observed_at,
            role: message.role.clone(),
            finish_reason: message.finish_reason.clone(),
            part_type: part.part_type().into(),
            tool_name: match part {
                Part::ToolCall { name, .. } => Some(name.clone()),
                _ => None,
            },
            whole: false,
            part: None,
            excerpt: None,
        };
        let mut forms = Vec::new();
        if json::to_vec(part, SEARCH_WHOLE_PART_BYTES_MAX).is_ok() {
            forms.push(SearchPart {
                whole: true,
                part: Some(part.clone().into()),
                ..empty.clone()
            });
        }
        for excerpt in self.excerpts(part, visible.found.passage) {
            forms.push(SearchPart {
                excerpt: Some(excerpt),
                ..empty.clone()
            });
        }
        Ok(Some(forms))
    }

    /// Returns the passage of a part, and a shorter excerpt of it.
    fn excerpts(&self, part: &Part, passage: usize) -> Vec<Excerpt> {
        let text = search_text(part);
        let shown = text.to_string_lossy();
        let Some(passage) = passages(&shown).get(passage).cloned() else {
            return Vec::new();
        };
        let short = self.short(&shown, passage.clone());
        let ranges = [
            Some(passage.clone()),
            Some(short).filter(|short| *short != passage),
        ];
        let excerpt = |range: Range<usize>| {
            // A surrogate stands as three bytes in both.
            let text_of = Text::from_wtf8(text.as_bytes()[range.clone()].to_vec());
            Excerpt {
                text: text_of.unwrap_or_default(),
                start: range.start as u64,
                end: range.end as u64,
                total: text.len() as u64,
            }
        };
        ranges.into_iter().flatten().map(excerpt).collect()
    }

    /// Returns a stretch of a passage around the first word of the query.
    fn short(&self, text: &str, passage: Range<usize>) -> Range<usize> {
        let asked = self.request.query.words();
        let mut first = None;
        words(&text[passage.clone()], |word, place| {
            if asked.contains(word) && first.is_none_or(|first| place.start < first) {
                first = Some(place.start);
            }
        });
        let first = passage.start + first.unwrap_or_default();
        let before = &text[passage.start..first];
        let mut start = before
            .char_indices()
            .rev()
            .take(BEFORE)
            .last()
            .map_or(first, |(at, _)| passage.start + at);
        if start > passage.start {
            let blank = text[start..first].find(char::is_whitespace);
            start += blank.map_or(0, |blank| {
                let rest = &text[start + blank..];
                blank + rest.chars().next().map_or(0, char::len_utf8)
            });
        }
        let rest = &text[start..passage.end];
        let Some((cut, _)) = rest.char_indices().nth(SHORT_CHARACTERS) else {
            return start..passage.end;
        };
        let blank = rest[..cut]
            .rfind(char::is_whitespace)
            .filter(|blank| start + blank > first);
        start..start + blank.unwrap_or(cut)
    }
}

fn content(
    reading: &mut ReadContext<'_, '_>,
    cache: &ContentCache,
    content_id: i64,
) -> Result<Arc<MessageContent>, StoreError> {
    let mut loaded = cache.load(reading.snapshot, [content_id])?;
    loaded.remove(&content_id).ok_or(StoreError::Corrupt {
        table: "content",
        what: "content is missing",
    })
}

/// Returns the size of a value in the answer.
fn size(value: &impl serde::Serialize) -> usize {
    json::to_vec(value, usize::MAX).map_or(usize::MAX / 4, |bytes| bytes.len())
}

/// Returns a score from 1 to 1,000 relative to the best one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is in the range"
)]
fn relative(score: f64, best: f64) -> u64 {
    if best <= 0.0 {
        return 1_000;
    }
    (1_000.0 * score / best).round().clamp(1.0, 1_000.0) as u64
}
