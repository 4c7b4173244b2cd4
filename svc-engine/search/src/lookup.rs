//! Finds the parts and Sessions that match the words of a query.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::RandomState;
use rusqlite::{Connection, params};
use svc_model::limit::{SEARCH_CANDIDATES_MAX, SEARCH_WORDS_MAX};
use svc_model::search::SearchKind;

use crate::directory::{CollectionSize, Directory, PartSession, RoleId};
use crate::error::IndexError;
use crate::part::{LEVELS, PartDigest};
use crate::rank::{
    PassageScores, TYPING_ERROR, part_share, passage_share, session_score, word_weight,
};
use crate::typing_error;

/// Rows of the lists of words that one query reads.
const ROWS_MAX: usize = 20_000;
/// Rows that are read to estimate in how many passages a word stands.
const SAMPLE_ROWS: usize = 512;
/// Places in the index where that many rows are read.
const SAMPLES: i64 = 4;
/// The best passages for which words are looked up whose lists are not read.
const RESCORED: usize = 24;
/// The Sessions of one part that are looked up, the ones with the highest numbers.
const PART_SESSIONS_MAX: usize = 256;
/// Parts that are in several Sessions whose Sessions one query looks up.
const SHARED_PARTS_MAX: usize = 400;
/// Stretches of rows in which each word is looked up, if a caller may read few Sessions.
const STRETCHES_MAX: usize = 64;
/// Rows between two stretches that are read with them.
const STRETCH_GAP: i64 = 64;
/// Passages that are few, so that very common words may add others.
const CANDIDATES_FEW: usize = 100;
/// Words of a query without a match that are looked for with a typing error.
const CORRECTED_WORDS_MAX: usize = 3;
/// Parts of which it is known that they alone may be answered.
const PARTS_MAX: usize = 100_000;
/// Sessions for which stretches of rows are looked up.
const STRETCHED_SESSIONS_MAX: usize = 256;

/// The Sessions that may be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchableSessions {
    /// All of them.
    All,
    /// Those with these numbers.
    Numbered(HashSet<i64>),
}

impl SearchableSessions {
    fn has(&self, session: i64) -> bool {
        match self {
            Self::All => true,
            Self::Numbered(numbers) => numbers.contains(&session),
        }
    }
}

/// What is looked up.
#[derive(Clone, Debug)]
pub struct IndexQuery<'q> {
    /// The words.
    pub words: &'q BTreeSet<String>,
    /// The Sessions.
    pub sessions: &'q SearchableSessions,
    /// The only kind of part; all but reasoning if it is absent.
    pub kind: Option<SearchKind>,
    /// The only role.
    pub role: Option<&'q str>,
    /// Whether only the Sessions that may be searched decide how rare a word is. Otherwise scores
    /// would tell a caller which words stand elsewhere.
    pub is_private: bool,
}

/// A part that matches, in one Session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundPart {
    /// The number of the part.
    pub part: i64,
    /// Its best passage, counted from 0.
    pub passage: usize,
    /// Its score.
    pub score: f64,
    /// Whether all of its numbers are finite.
    pub is_finite: bool,
}

/// A Session with parts that match.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSession {
    /// The number of the Session.
    pub session_number: i64,
    /// Its score.
    pub score: f64,
    /// Its parts, best first.
    pub parts: Vec<FoundPart>,
}

/// What matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The Sessions, best first.
    pub sessions: Vec<FoundSession>,
    /// Parts that were scored.
    pub candidates: u64,
    /// Whether every part that contains a word was scored.
    pub all_scored: bool,
}

/// Where a part stands in a Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPlace {
    /// The number of the part.
    pub part: i64,
    /// Its digest.
    pub digest: PartDigest,
    /// The message.
    pub content_id: i64,
    /// The part of the message.
    pub part_index: usize,
    /// The first call that shows the message.
    pub call_number: i64,
    /// Whether the call shows it in its output.
    pub is_output: bool,
    /// The message of the call.
    pub message_index: usize,
}

/// A word of a query, in the index.
struct Posting {
    word: String,
    /// In how many passages it stands, about.
    passages: u64,
    /// What of its weight counts.
    share: f64,
}

/// Reads an index for one query.
pub(crate) struct Lookup<'i> {
    connection: &'i Connection,
    directory: &'i Directory,
    query: &'i IndexQuery<'i>,
    /// The only rows in which to look, if they are few.
    stretches: Option<Vec<Range<i64>>>,
    /// The only parts that may be answered, if they are few.
    parts: Option<HashSet<i64, RandomState>>,
    /// The passages among which words are rare.
    collection: CollectionSize,
    rows_left: usize,
}

impl<'i> Lookup<'i> {
    pub(crate) fn new(
        connection: &'i Connection,
        directory: &'i Directory,
        query: &'i IndexQuery<'i>,
    ) -> Result<Self, IndexError> {
        let mut lookup = Self {
            connection,
            directory,
            query,
            stretches: None,
            parts: None,
            collection: directory.size(),
            rows_left: ROWS_MAX,
        };
        if let SearchableSessions::Numbered(sessions) = query.sessions {
            let parts = lookup.find_parts(sessions)?;
            if query.is_private {
                lookup.collection = match &parts {
                    Some(parts) => directory.size_of_parts(parts),
                    None => directory.size_of_sessions(sessions),
                };
            }
            if let Some(parts) = parts {
                lookup.stretches = lookup.find_stretches(&parts);
                lookup.parts = Some(parts.into_iter().collect());
            }
        }
        Ok(lookup)
    }

    /// Returns the parts of the only Sessions that may be searched, if they are few, in order.
    fn find_parts(&self, sessions: &HashSet<i64>) -> Result<Option<Vec<i64>>, IndexError> {
        if sessions.len() > STRETCHED_SESSIONS_MAX {
            return Ok(None);
        }
        let mut parts: Vec<i64> = Vec::new();
        let mut select = self
            .connection
            .prepare_cached("SELECT part FROM occurrences WHERE session = ?1")?;
        for session in sessions {
            let mut rows = select.query([session])?;
            while let Some(row) = rows.next()? {
                parts.push(row.get(0)?);
            }
            if parts.len() > PARTS_MAX {
                return Ok(None);
            }
        }
        parts.retain(|part| *part != 0);
        parts.sort_unstable();
        parts.dedup();
        Ok(Some(parts))
    }

    /// Returns the rows of parts, if they are few stretches.
    fn find_stretches(&self, parts: &[i64]) -> Option<Vec<Range<i64>>> {
        let mut stretches: Vec<Range<i64>> = Vec::new();
        for part in parts {
            let end = self.directory.part_end(*part);
            match stretches.last_mut() {
                Some(last) if *part <= last.end + STRETCH_GAP => last.end = last.end.max(end),
                _ => stretches.push(*part..end),
            }
        }
        (stretches.len() <= STRETCHES_MAX).then_some(stretches)
    }

    /// Returns whether a passage may be answered.
    fn is_asked(&self, row: i64) -> bool {
        let Some(session) = self.directory.session(row) else {
            return false;
        };
        let flags = self.directory.flags(row);
        let is_kind = match self.query.kind {
            Some(kind) => flags.kind() == kind,
            None => flags.kind() != SearchKind::Reasoning,
        };
        let is_role = self.query.role.is_none_or(|role| {
            let role = RoleId::of(role);
            flags.role() == role || flags.role() == RoleId::SEVERAL
        });
        is_kind
            && is_role
            && match (&self.parts, session) {
                (Some(parts), _) => parts.contains(&self.directory.part(row)),
                (None, PartSession::One(session)) => self.query.sessions.has(session),
                (None, PartSession::Several) => true,
            }
    }

    /// Calls `each` with the rows of a term within some rows, in order, up to so many.
    fn rows(
        &self,
        term: &str,
        within: Range<i64>,
        rows_max: usize,
        each: impl FnMut(i64),
    ) -> Result<usize, IndexError> {
        self.rows_in(RowOrder::Any, term, within, rows_max, each)
    }

    fn rows_in(
        &self,
        order: RowOrder,
        term: &str,
        within: Range<i64>,
        rows_max: usize,
        mut each: impl FnMut(i64),
    ) -> Result<usize, IndexError> {
        let mut select = self.connection.prepare_cached(match order {
            RowOrder::Any => {
                "SELECT rowid FROM passages WHERE passages MATCH ?1 AND rowid >= ?2 \
                AND rowid < ?3 LIMIT ?4"
            }
            RowOrder::LatestFirst => {
                "SELECT rowid FROM passages WHERE passages MATCH ?1 AND rowid >= ?2 \
                AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4"
            }
        })?;
        let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let mut rows = select.query(params![quoted(term), within.start, within.end, rows_max])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            each(row.get(0)?);
            count += 1;
        }
        Ok(count)
    }

    /// Estimates in how many passages a word stands. Rare words are counted.
    fn count(&self, word: &str) -> Result<u64, IndexError> {
        let end = self.directory.end();
        let first = self.rows(word, 0..end, SAMPLE_ROWS, |_| ())?;
        if first < SAMPLE_ROWS {
            return Ok(first as u64);
        }
        let (mut found, mut span) = (0_u64, 0_u64);
        for sample in 0..SAMPLES {
            let start = end / SAMPLES * sample;
            let mut last = start;
            let count = self.rows(word, start..end, SAMPLE_ROWS / 4, |row| last = row)?;
            found += count as u64;
            let stop = if count < SAMPLE_ROWS / 4 {
                end
            } else {
                last + 1
            };
            span += stop.abs_diff(start);
        }
        let estimate = found.saturating_mul(end.unsigned_abs()) / span.max(1);
        Ok(estimate.clamp(SAMPLE_ROWS as u64, self.directory.passages().max(1)))
    }

    /// Scores everything that matches.
    pub(crate) fn found(mut self) -> Result<Found, IndexError> {
        let mut postings = Vec::new();
        for word in self.query.words {
            let passages = self.count(word)?;
            postings.push(Posting {
                word: word.clone(),
                passages,
                share: 1.0,
            });
        }
        postings.sort_by(|a, b| {
            a.passages
                .cmp(&b.passages)
                .then_with(|| a.word.cmp(&b.word))
        });
        // Words that nothing has take no place of others.
        let (absent, mut postings): (Vec<Posting>, Vec<Posting>) = postings
            .into_iter()
            .partition(|posting| posting.passages == 0);
        let mut all_scored = postings.len() <= SEARCH_WORDS_MAX;
        postings.truncate(SEARCH_WORDS_MAX);
        let mut scores = PassageScores::default();
        let mut unread = Vec::new();
        let mut unfound = absent;
        let is_common = |posting: &Posting| {
            posting.passages > 1_000 && posting.passages > self.directory.passages() / 10
        };
        let all_common = postings.iter().all(is_common);
        let mut common = Vec::new();
        for posting in postings {
            if is_common(&posting) && !all_common && self.stretches.is_none() {
                common.push(posting);
                continue;
            }
            match self.add_word(&posting, &mut scores, true)? {
                WordRead::Whole { asked: 0 } => unfound.push(posting),
                WordRead::Whole { .. } => {}
                WordRead::Cut => all_scored = false,
                WordRead::Unread => {
                    all_scored = false;
                    unread.push(posting);
                }
            }
        }
        for posting in unfound.iter().take(CORRECTED_WORDS_MAX) {
            all_scored &= self.add_corrected(&posting.word, &mut scores)?;
        }
        // Very common words only add to what other words found, unless that is little.
        let is_open = scores.len() < CANDIDATES_FEW;
        for posting in common {
            match self.add_word(&posting, &mut scores, is_open)? {
                WordRead::Unread => {
                    all_scored = false;
                    unread.push(posting);
                }
                WordRead::Cut => all_scored = false,
                WordRead::Whole { .. } => all_scored &= is_open,
            }
        }
        self.rescore(&unread, &mut scores)?;
        let (sessions, candidates) = self.sessions(&scores, &mut all_scored)?;
        Ok(Found {
            sessions,
            candidates,
            all_scored,
        })
    }

    /// Adds a word to the scores of the passages that contain it, if its list can be read.
    fn add_word(
        &mut self,
        posting: &Posting,
        scores: &mut PassageScores,
        is_open: bool,
    ) -> Result<WordRead, IndexError> {
        let all = 0..self.directory.end();
        let stretches = self.stretches.clone();
        let stretches = stretches.unwrap_or_else(|| Vec::from([all]));
        let is_few = self.stretches.is_some();
        let is_too_long = posting.passages > self.rows_left as u64;
        if is_too_long && !is_few && (!is_open || scores.len() > 0) {
            return Ok(WordRead::Unread);
        }
        let is_cut = is_too_long && !is_few || is_open && scores.len() >= SEARCH_CANDIDATES_MAX;
        let is_open = is_open && scores.len() < SEARCH_CANDIDATES_MAX;
        let order = if is_too_long {
            RowOrder::LatestFirst
        } else {
            RowOrder::Any
        };
        let mut found: Vec<(i64, u8)> = Vec::new();
        for stretch in stretches {
            let begin = found.len();
            let rows_max = self.rows_left;
            let read = self.rows_in(order, &posting.word, stretch.clone(), rows_max, |row| {
                let is_new = is_open && scores.len() + found.len() < SEARCH_CANDIDATES_MAX;
                if (is_new || scores.contains(row)) && self.is_asked(row) {
                    found.push((row, 0));
                }
            })?;
            self.rows_left = self.rows_left.saturating_sub(read);
            let of_stretch = &mut found[begin..];
            of_stretch.sort_unstable();
            if !of_stretch.is_empty() {
                self.add_marks(&posting.word, stretch.clone(), of_stretch)?;
            }
        }
        let mean = self.collection.mean_length();
        let asked = found.len();
        let weight = posting.share * self.weight(posting.passages, asked);
        for (row, marks) in found {
            let share = passage_share(usize::from(marks), self.directory.length(row), mean);
            scores.add(row, weight * share, is_open);
        }
        Ok(if is_cut {
            WordRead::Cut
        } else {
            WordRead::Whole { asked }
        })
    }

    /// Returns the weight of a word that so many passages contain, and so many that may be answered.
    fn weight(&self, passages: u64, asked: usize) -> f64 {
        let passages = if self.query.is_private {
            asked as u64
        } else {
            passages
        };
        word_weight(passages, self.collection.passages)
    }

    /// Counts the marks of a word in passages, which are in order.
    fn add_marks(
        &mut self,
        word: &str,
        within: Range<i64>,
        passages: &mut [(i64, u8)],
    ) -> Result<(), IndexError> {
        for (_, mark) in LEVELS {
            let mut next = 0;
            let read = self.rows(
                &format!("{word}{mark}"),
                within.clone(),
                self.rows_left,
                |row| {
                    next += passages[next..].partition_point(|(passage, _)| *passage < row);
                    if let Some((passage, marks)) = passages.get_mut(next)
                        && *passage == row
                    {
                        *marks += 1;
                    }
                },
            )?;
            self.rows_left = self.rows_left.saturating_sub(read);
            if read == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Adds the words that a word without a match may be meant to be. Returns whether all of their
    /// passages were scored.
    fn add_corrected(
        &mut self,
        word: &str,
        scores: &mut PassageScores,
    ) -> Result<bool, IndexError> {
        /// Words that stand for one.
        const CORRECTED_MAX: usize = 4;
        let mut known = Vec::new();
        for candidate in typing_error::candidates(word) {
            if self.query.words.contains(&candidate) {
                continue;
            }
            if self.rows(&candidate, 0..self.directory.end(), 1, |_| ())? > 0 {
                known.push(candidate);
            }
        }
        // Words that the caller may not read change nothing.
        let (mut corrected, mut all_scored) = (0, true);
        for word in known {
            let posting = Posting {
                passages: self.count(&word)?,
                word,
                share: TYPING_ERROR,
            };
            match self.add_word(&posting, scores, true)? {
                WordRead::Whole { asked: 0 } => {}
                WordRead::Whole { .. } => corrected += 1,
                WordRead::Cut | WordRead::Unread => all_scored = false,
            }
            if corrected == CORRECTED_MAX {
                break;
            }
        }
        Ok(all_scored)
    }

    /// Adds words whose lists are too long to be read to the scores of the best passages.
    fn rescore(&self, unread: &[Posting], scores: &mut PassageScores) -> Result<(), IndexError> {
        if unread.is_empty() {
            return Ok(());
        }
        let mut best = scores.sorted();
        best.truncate(RESCORED);
        let mean = self.collection.mean_length();
        for posting in unread {
            let weight = posting.share * self.weight(posting.passages, SAMPLE_ROWS);
            for (row, _) in &best {
                if self.rows(&posting.word, *row..*row + 1, 1, |_| ())? > 0 {
                    let share = passage_share(0, self.directory.length(*row), mean);
                    scores.add(*row, weight * share, false);
                }
            }
        }
        Ok(())
    }

    /// Returns the Sessions of scored passages, best first, equal ones by descending number, and the
    /// number of parts.
    fn sessions(
        &self,
        scores: &PassageScores,
        all_scored: &mut bool,
    ) -> Result<(Vec<FoundSession>, u64), IndexError> {
        let mut seen: HashSet<i64, RandomState> = HashSet::default();
        let mut sessions: HashMap<i64, Vec<FoundPart>, RandomState> = HashMap::default();
        let (mut shared, mut candidates) = (0, 0);
        for (row, score) in scores.sorted() {
            let part = self.directory.part(row);
            if !seen.insert(part) {
                continue;
            }
            let mut found = FoundPart {
                part,
                passage: usize::try_from(row - part).unwrap_or_default(),
                score,
                is_finite: self.directory.flags(row).is_finite(),
            };
            match self.directory.session(row) {
                None => {}
                Some(PartSession::One(session)) => {
                    candidates += 1;
                    sessions.entry(session).or_default().push(found);
                }
                Some(PartSession::Several) => {
                    shared += 1;
                    if shared > SHARED_PARTS_MAX {
                        *all_scored = false;
                        continue;
                    }
                    let (of_part, count) = self.sessions_of_part(part)?;
                    let count = if self.query.is_private {
                        of_part.len()
                    } else {
                        count
                    };
                    found.score *= part_share(count);
                    candidates += u64::from(!of_part.is_empty());
                    for session in of_part {
                        sessions.entry(session).or_default().push(found);
                    }
                }
            }
        }
        let sessions = sessions.into_iter().map(|(session_number, mut parts)| {
            parts.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.part.cmp(&a.part)));
            FoundSession {
                session_number,
                score: session_score(parts.iter().map(|part| part.score)),
                parts,
            }
        });
        let mut sessions: Vec<FoundSession> = sessions.collect();
        sessions.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(b.session_number.cmp(&a.session_number))
        });
        Ok((sessions, candidates))
    }

    /// Returns the latest Sessions of a part that may be searched, and in how many it is.
    fn sessions_of_part(&self, part: i64) -> Result<(Vec<i64>, usize), IndexError> {
        let mut select = self.connection.prepare_cached(
            "SELECT DISTINCT session FROM occurrences WHERE part = ?1 ORDER BY session DESC",
        )?;
        let mut rows = select.query([part])?;
        let mut sessions = Vec::new();
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let session = row.get(0)?;
            count += 1;
            if sessions.len() < PART_SESSIONS_MAX && self.query.sessions.has(session) {
                sessions.push(session);
            }
            if count > 16 * PART_SESSIONS_MAX {
                break;
            }
        }
        Ok((sessions, count))
    }
}

/// In which order rows are read, which matters if not all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowOrder {
    Any,
    LatestFirst,
}

/// How much of the list of a word was read.
enum WordRead {
    /// All of it.
    Whole {
        /// Its passages that may be answered.
        asked: usize,
    },
    /// Only some of its passages were scored.
    Cut,
    /// Nothing of it.
    Unread,
}

/// Returns a term as FTS5 takes it, in quotes. No term has a quote.
fn quoted(term: &str) -> String {
    format!("\"{term}\"")
}

/// Returns where parts stand in a Session.
pub(crate) fn places(
    connection: &Connection,
    session: i64,
    parts: &[i64],
) -> Result<Vec<PartPlace>, IndexError> {
    let mut select = connection.prepare_cached(
        "SELECT o.part, p.digest, o.content, o.part_index, o.call, o.side, o.message_index \
        FROM occurrences o JOIN parts p ON p.part = o.part \
        WHERE o.part = ?1 AND o.session = ?2 ORDER BY o.observed, o.call",
    )?;
    let mut found = Vec::new();
    for part in parts {
        let mut rows = select.query([part, &session])?;
        while let Some(row) = rows.next()? {
            let number = |index| -> Result<usize, IndexError> {
                Ok(usize::try_from(row.get::<_, i64>(index)?).unwrap_or_default())
            };
            found.push(PartPlace {
                part: row.get(0)?,
                digest: PartDigest(row.get(1)?),
                content_id: row.get(2)?,
                part_index: number(3)?,
                call_number: row.get(4)?,
                is_output: row.get(5)?,
                message_index: number(6)?,
            });
        }
    }
    Ok(found)
}

/// Returns the Sessions and paths of files with a name.
pub(crate) fn files(connection: &Connection, name: &str) -> Result<Vec<(i64, String)>, IndexError> {
    let mut select =
        connection.prepare_cached("SELECT DISTINCT session, path FROM files WHERE name = ?1")?;
    let mut rows = select.query([name])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, row.get(1)?));
    }
    Ok(found)
}
