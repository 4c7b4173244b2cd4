//! What is kept in memory of each passage: eight bytes.

use std::collections::HashSet;

use svc_model::search::SearchKind;

/// Stands for several Sessions, or for a Session whose number is too large.
const SEVERAL: u32 = u32::MAX;

/// The kind of a part and more of it, in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartFlags(u8);

impl PartFlags {
    const FIRST: u8 = 0b100;
    const NON_FINITE: u8 = 0b1000;

    pub(crate) const fn new(kind: SearchKind, is_finite: bool, role: RoleId) -> Self {
        let kind = match kind {
            SearchKind::Text => 0,
            SearchKind::ToolCall => 1,
            SearchKind::ToolResult => 2,
            SearchKind::Reasoning => 3,
        };
        let finite = if is_finite { 0 } else { Self::NON_FINITE };
        Self(kind | finite | role.0 << 4)
    }

    pub(crate) const fn of_byte(byte: u8) -> Self {
        Self(byte)
    }

    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    pub(crate) const fn kind(self) -> SearchKind {
        match self.0 & 0b11 {
            0 => SearchKind::Text,
            1 => SearchKind::ToolCall,
            2 => SearchKind::ToolResult,
            _ => SearchKind::Reasoning,
        }
    }

    pub(crate) const fn is_finite(self) -> bool {
        self.0 & Self::NON_FINITE == 0
    }

    pub(crate) const fn role(self) -> RoleId {
        RoleId(self.0 >> 4)
    }

    /// Returns the flags of a part that also has another role.
    pub(crate) const fn with_role(self, role: RoleId) -> Self {
        if self.role().0 == role.0 {
            self
        } else {
            Self(self.0 & 0b1111 | RoleId::SEVERAL.0 << 4)
        }
    }
}

/// The number of a role. There are few; all others share the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleId(u8);

impl RoleId {
    /// Several roles, or one without a number.
    pub(crate) const SEVERAL: Self = Self(15);

    /// Returns the number of a role.
    pub(crate) fn of(role: &str) -> Self {
        const ROLES: [&str; 7] = [
            "user",
            "assistant",
            "system",
            "tool",
            "developer",
            "model",
            "function",
        ];
        let place = ROLES.iter().position(|known| *known == role);
        let place = place.and_then(|place| u8::try_from(place).ok());
        place.map_or(Self::SEVERAL, Self)
    }
}

/// Every passage, by its row.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The Session of a passage; 0 if there is no such passage.
    sessions: Vec<u32>,
    /// The number of its words.
    lengths: Vec<u16>,
    flags: Vec<u8>,
    passages: u64,
    words: u64,
    parts: u64,
}

/// The passages among which words are rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollectionSize {
    pub(crate) passages: u64,
    words: u64,
}

impl CollectionSize {
    fn of(lengths: impl Iterator<Item = u16>) -> Self {
        lengths.fold(Self::default(), |size, length| Self {
            passages: size.passages + 1,
            words: size.words + u64::from(length),
        })
    }

    /// Returns the mean number of words of a passage; at least 1.
    #[expect(clippy::cast_precision_loss, reason = "a mean need not be exact")]
    pub(crate) fn mean_length(self) -> f64 {
        (self.words as f64 / self.passages.max(1) as f64).max(1.0)
    }
}

/// A part in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartSession {
    /// It is in this Session alone.
    One(i64),
    /// It is in several.
    Several,
}

impl PartSession {
    const fn of(session: u32) -> Option<Self> {
        match session {
            0 => None,
            SEVERAL => Some(Self::Several),
            one => Some(Self::One(one as i64)),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::One(number) => match u32::try_from(number) {
                Ok(number) if number != 0 => number,
                _ => SEVERAL,
            },
            Self::Several => SEVERAL,
        }
    }
}

impl Directory {
    /// Adds a part, whose passages have these lengths, as the rows that begin with `part`.
    pub(crate) fn add(
        &mut self,
        part: i64,
        flags: PartFlags,
        session: PartSession,
        lengths: &[u16],
    ) {
        let Ok(start) = usize::try_from(part) else {
            return;
        };
        let end = start + lengths.len();
        if self.sessions.len() < end {
            self.sessions.resize(end, 0);
            self.lengths.resize(end, 0);
            self.flags.resize(end, 0);
        }
        for (place, length) in (start..end).zip(lengths) {
            self.sessions[place] = session.number();
            self.lengths[place] = *length;
            self.flags[place] = flags.byte() & !PartFlags::FIRST;
            self.words += u64::from(*length);
        }
        if start < end {
            self.flags[start] |= PartFlags::FIRST;
        }
        self.passages += lengths.len() as u64;
        self.parts += 1;
    }

    /// Changes the Session and the flags of a part.
    pub(crate) fn change(&mut self, part: i64, flags: PartFlags, session: PartSession) {
        for place in self.places(part) {
            self.sessions[place] = session.number();
            let first = self.flags[place] & PartFlags::FIRST;
            self.flags[place] = flags.byte() & !PartFlags::FIRST | first;
        }
    }

    /// Removes a part.
    pub(crate) fn remove(&mut self, part: i64) {
        let places = self.places(part);
        if places.is_empty() {
            return;
        }
        self.passages -= places.len() as u64;
        self.parts -= 1;
        for place in places {
            self.sessions[place] = 0;
            self.words -= u64::from(self.lengths[place]);
        }
    }

    /// Returns the places of the passages of a part.
    fn places(&self, part: i64) -> std::ops::Range<usize> {
        let Ok(start) = usize::try_from(part) else {
            return 0..0;
        };
        if self.sessions.get(start).is_none_or(|session| *session == 0) {
            return 0..0;
        }
        let rest = start + 1..self.flags.len();
        let is_next = |place: &usize| {
            self.flags[*place] & PartFlags::FIRST != 0 || self.sessions[*place] == 0
        };
        start
            ..rest
                .clone()
                .find(is_next)
                .unwrap_or(rest.end.max(start + 1))
    }

    /// Returns the Session of a passage.
    pub(crate) fn session(&self, row: i64) -> Option<PartSession> {
        let place = usize::try_from(row).ok()?;
        PartSession::of(*self.sessions.get(place)?)
    }

    /// Returns the flags of a passage.
    pub(crate) fn flags(&self, row: i64) -> PartFlags {
        let place = usize::try_from(row).ok();
        let flags = place.and_then(|place| self.flags.get(place));
        PartFlags::of_byte(flags.copied().unwrap_or_default() & !PartFlags::FIRST)
    }

    /// Returns the number of words of a passage.
    pub(crate) fn length(&self, row: i64) -> u16 {
        let place = usize::try_from(row).ok();
        let length = place.and_then(|place| self.lengths.get(place));
        length.copied().unwrap_or_default()
    }

    /// Returns the part of a passage.
    pub(crate) fn part(&self, row: i64) -> i64 {
        let mut place = usize::try_from(row).unwrap_or_default();
        while place > 0
            && self
                .flags
                .get(place)
                .is_some_and(|flags| flags & PartFlags::FIRST == 0)
        {
            place -= 1;
        }
        i64::try_from(place).unwrap_or_default()
    }

    /// Returns the row behind the last passage of a part.
    pub(crate) fn part_end(&self, part: i64) -> i64 {
        let places = self.places(part);
        i64::try_from(places.end).unwrap_or(i64::MAX).max(part)
    }

    /// Returns the number of passages.
    pub(crate) const fn passages(&self) -> u64 {
        self.passages
    }

    /// Returns the size of some Sessions, but for passages in several.
    pub(crate) fn size_of_sessions(&self, sessions: &HashSet<i64>) -> CollectionSize {
        let rows = self.sessions.iter().zip(&self.lengths);
        let found = rows.filter(|(session, _)| sessions.contains(&i64::from(**session)));
        CollectionSize::of(found.map(|(_, length)| *length))
    }

    /// Returns the size of some parts.
    pub(crate) fn size_of_parts(&self, parts: &[i64]) -> CollectionSize {
        let lengths = parts
            .iter()
            .flat_map(|part| &self.lengths[self.places(*part)]);
        CollectionSize::of(lengths.copied())
    }

    /// Returns the size of everything.
    pub(crate) const fn size(&self) -> CollectionSize {
        CollectionSize {
            passages: self.passages,
            words: self.words,
        }
    }

    /// Returns the number of parts.
    pub(crate) const fn parts(&self) -> u64 {
        self.parts
    }

    /// Returns the row behind the last one.
    pub(crate) fn end(&self) -> i64 {
        i64::try_from(self.sessions.len()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_leads_to_its_part() {
        let mut directory = Directory::default();
        let text = PartFlags::new(SearchKind::Text, true, RoleId::of("user"));
        let result = PartFlags::new(SearchKind::ToolResult, false, RoleId::of("x"));
        directory.add(1, text, PartSession::One(7), &[10, 20]);
        directory.add(3, result, PartSession::One(8), &[30]);
        assert_eq!((directory.parts(), directory.passages()), (2, 3));
        assert_eq!([1, 2, 3].map(|row| directory.part(row)), [1, 1, 3]);
        assert!((directory.size().mean_length() - 20.0).abs() < 1e-9);
        assert_eq!(directory.session(2), Some(PartSession::One(7)));
        assert_eq!(directory.flags(1), text);
        assert_eq!(directory.flags(3), result);
        assert!(!directory.flags(3).is_finite());
        assert_eq!(directory.flags(3).kind(), SearchKind::ToolResult);
        let both = text.with_role(RoleId::of("assistant"));
        assert_eq!(both.role(), RoleId::SEVERAL);
        directory.change(1, both, PartSession::Several);
        assert_eq!(directory.session(2), Some(PartSession::Several));
        assert_eq!(directory.part(2), 1);
        directory.remove(1);
        assert_eq!((directory.parts(), directory.passages()), (1, 1));
        assert_eq!(directory.session(1), None);
        assert_eq!(directory.session(3), Some(PartSession::One(8)));
        directory.remove(1);
        directory.remove(99);
        assert_eq!(directory.parts(), 1);
    }
}
