//! Writes the index: calls become parts, passages and occurrences.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension as _, params};
use svc_engine_fact::Lifetime;
use svc_engine_store::{NamedFile, NumberedCall, ObservedCommit, Snapshot, written_message};
use svc_model::evidence::Message;
use svc_model::id::SessionId;
use svc_model::repository::CommitSha;
use svc_model::search::file_name;

use crate::changed_files::ChangedFiles;
use crate::directory::{Directory, PartFlags, PartSession, RoleId};
use crate::error::IndexError;
use crate::file::{IndexState, write_state};
use crate::part::{self, PartDigest};

/// Contents that are read at once.
const CONTENTS_AT_ONCE: usize = 64;
/// Stands for a fact in place of the part that names a file.
const BY_FACT: i64 = 0;
/// Stands for a commit in place of the part that names a file.
const BY_COMMIT: i64 = -1;
/// Sessions whose last call is remembered.
const SESSIONS_REMEMBERED: usize = 256;

/// Where a part stands in its message.
#[derive(Clone, Copy, Debug)]
struct PlacedPart {
    part: i64,
    part_index: usize,
}

/// A message in a Session, and the first call that shows it.
#[derive(Clone, Debug)]
struct Occurrence {
    session: i64,
    content: i64,
    call: i64,
    call_id: String,
    observed: i64,
    side: i64,
    message_index: usize,
}

impl Occurrence {
    fn is_before(&self, other: &Self) -> bool {
        (self.observed, &self.call_id, self.side, self.message_index)
            < (
                other.observed,
                &other.call_id,
                other.side,
                other.message_index,
            )
    }
}

type Occurrences = HashMap<(i64, i64), Occurrence, RandomState>;

/// The only writer of an index.
pub(crate) struct IndexWriter {
    connection: Connection,
    pub(crate) state: IndexState,
    directory: Arc<RwLock<Directory>>,
    /// What the directory has to learn once the transaction is on disk.
    learned: Vec<Lesson>,
    /// The messages of the last call of Sessions, so that a history is looked up once.
    last_calls: HashMap<i64, LastCall, RandomState>,
}

/// The last call of a Session.
#[derive(Debug, Default)]
struct LastCall {
    observed: i64,
    input: Vec<i64>,
}

enum Lesson {
    Added(i64, PartFlags, PartSession, Vec<u16>),
    Changed(i64, PartFlags, PartSession),
    Removed(i64),
}

impl IndexWriter {
    pub(crate) fn new(
        connection: Connection,
        state: IndexState,
        directory: Arc<RwLock<Directory>>,
    ) -> Self {
        Self {
            connection,
            state,
            directory,
            learned: Vec::new(),
            last_calls: HashMap::default(),
        }
    }

    pub(crate) fn begin(&mut self) -> Result<(), IndexError> {
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }

    /// Commits what was written since [`begin`](Self::begin), and tells the directory.
    pub(crate) fn commit(&mut self) -> Result<(), IndexError> {
        write_state(&self.connection, &self.state)?;
        self.connection.execute_batch("COMMIT")?;
        let mut directory = self
            .directory
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for lesson in self.learned.drain(..) {
            match lesson {
                Lesson::Added(part, flags, session, lengths) => {
                    directory.add(part, flags, session, &lengths);
                }
                Lesson::Changed(part, flags, session) => directory.change(part, flags, session),
                Lesson::Removed(part) => directory.remove(part),
            }
        }
        Ok(())
    }

    /// Adds the messages of calls.
    pub(crate) fn add_calls(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        calls: &[NumberedCall],
    ) -> Result<(), IndexError> {
        let mut found = Occurrences::default();
        for call in calls {
            self.note_messages(call, &mut found);
        }
        self.add_occurrences(snapshot, found)
    }

    /// Notes the messages of a call that are not the beginning of the Session's last call.
    fn note_messages(&mut self, call: &NumberedCall, found: &mut Occurrences) {
        if self.last_calls.len() > SESSIONS_REMEMBERED {
            self.last_calls.clear();
        }
        let input: Vec<i64> = call.input.iter().collect();
        let last = self.last_calls.entry(call.session_number).or_default();
        let observed = call.observed_at.microseconds();
        let known = input.iter().zip(last.input.iter());
        let known = known.take_while(|(id, last)| id == last).count();
        let known = if last.observed < observed { known } else { 0 };
        for (message_index, content) in input.iter().enumerate().skip(known) {
            note(found, occurrence(call, *content, 0, message_index));
        }
        for (message_index, content) in call.output.iter().enumerate() {
            note(found, occurrence(call, content, 1, message_index));
        }
        *last = LastCall { observed, input };
    }

    fn add_occurrences(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mut found: Occurrences,
    ) -> Result<(), IndexError> {
        self.move_known(snapshot, &mut found)?;
        let mut by_content: HashMap<i64, Vec<Occurrence>, RandomState> = HashMap::default();
        for (_, occurrence) in found {
            by_content
                .entry(occurrence.content)
                .or_default()
                .push(occurrence);
        }
        let mut contents: Vec<i64> = by_content.keys().copied().collect();
        contents.sort_unstable();
        for some in contents.chunks(CONTENTS_AT_ONCE) {
            let mut failure = None;
            let read = snapshot.content(some, |content, bytes| {
                let message = written_message(bytes)?;
                let places = by_content.get(&content).map(Vec::as_slice);
                if failure.is_none() {
                    failure = self.add_message(&message, places.unwrap_or_default()).err();
                }
                Ok(())
            });
            match failure {
                Some(failure) => return Err(failure),
                None => read?,
            }
        }
        Ok(())
    }

    /// Removes the messages that are already known in their Sessions. Where a call shows one
    /// earlier than the call that was known, it becomes the first.
    fn move_known(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        found: &mut Occurrences,
    ) -> Result<(), IndexError> {
        let mut earlier = Vec::new();
        {
            let mut known = self.connection.prepare_cached(
                "SELECT call, observed FROM occurrences WHERE session = ?1 AND content = ?2 \
                LIMIT 1",
            )?;
            let mut failure = None;
            found.retain(|(session, content), occurrence| {
                let row = known
                    .query_row([session, content], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                    })
                    .optional();
                match row {
                    Ok(None) => return true,
                    Ok(Some((call, observed))) => {
                        if call != occurrence.call && occurrence.observed <= observed {
                            earlier.push((occurrence.clone(), call, observed));
                        }
                    }
                    Err(error) => failure = Some(error),
                }
                false
            });
            if let Some(failure) = failure {
                return Err(failure.into());
            }
        }
        for (occurrence, call, observed) in earlier {
            if occurrence.observed == observed {
                let known = snapshot.call_id_at(call)?;
                if known.is_some_and(|known| known.to_string() < occurrence.call_id) {
                    continue;
                }
            }
            let mut change = self.connection.prepare_cached(
                "UPDATE occurrences SET call = ?3, observed = ?4, side = ?5, message_index = ?6 \
                WHERE session = ?1 AND content = ?2",
            )?;
            change.execute(params![
                occurrence.session,
                occurrence.content,
                occurrence.call,
                occurrence.observed,
                occurrence.side,
                index(occurrence.message_index),
            ])?;
        }
        Ok(())
    }

    /// Adds a message at its places.
    fn add_message(&mut self, message: &Message, places: &[Occurrence]) -> Result<(), IndexError> {
        let role = RoleId::of(&message.role.to_string_lossy());
        if message.parts.is_empty() {
            // So that it is known.
            return self.add_places(places, 0, 0, &[]);
        }
        for (part_index, part) in message.parts.iter().enumerate() {
            let flags = PartFlags::new(part::kind(part), part.is_finite(), role);
            let files = part::files(part);
            let first = places.first().map_or(0, |place| place.session);
            let (number, known) = self.part_of(part, flags, first)?;
            if known != 0 && places.iter().any(|place| place.session != known) {
                self.move_part(number, 0)?;
            }
            self.add_places(places, part_index, number, &files)?;
        }
        Ok(())
    }

    fn add_places(
        &self,
        places: &[Occurrence],
        part_index: usize,
        part: i64,
        files: &[String],
    ) -> Result<(), IndexError> {
        let mut add = self.connection.prepare_cached(
            "INSERT OR IGNORE INTO occurrences (session, content, part_index, part, call, \
            observed, side, message_index) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        for place in places {
            add.execute(params![
                place.session,
                place.content,
                index(part_index),
                part,
                place.call,
                place.observed,
                place.side,
                index(place.message_index),
            ])?;
            for path in files {
                self.add_file(place.session, path, part)?;
            }
        }
        Ok(())
    }

    fn add_file(&self, session: i64, path: &str, part: i64) -> Result<(), IndexError> {
        let mut add = self.connection.prepare_cached(
            "INSERT OR IGNORE INTO files (name, session, path, part) VALUES (?1, ?2, ?3, ?4)",
        )?;
        add.execute(params![file_name(path), session, path, part])?;
        Ok(())
    }

    /// Adds the files that facts name for Sessions.
    pub(crate) fn add_named_files(
        &self,
        snapshot: &mut Snapshot<'_>,
        files: &[NamedFile],
    ) -> Result<(), IndexError> {
        let sessions: Vec<SessionId> = files.iter().map(|file| file.session_id.clone()).collect();
        let numbers = snapshot.session_numbers(&sessions)?;
        for file in files {
            if let Some(session) = numbers.get(&file.session_id) {
                self.add_file(*session, &file.path, BY_FACT)?;
            }
        }
        Ok(())
    }

    /// Adds the files of commits at which Sessions were observed.
    pub(crate) fn add_commits(
        &self,
        snapshot: &mut Snapshot<'_>,
        observed: &[ObservedCommit],
        changed_files: &mut dyn ChangedFiles,
    ) -> Result<(), IndexError> {
        let sessions: Vec<SessionId> = observed.iter().map(|one| one.session_id.clone()).collect();
        let numbers = snapshot.session_numbers(&sessions)?;
        let mut by_repository: BTreeMap<&Lifetime, Vec<&ObservedCommit>> = BTreeMap::new();
        for one in observed {
            by_repository.entry(&one.repository).or_default().push(one);
        }
        for (repository, of_repository) in by_repository {
            let commits: Vec<CommitSha> =
                of_repository.iter().map(|one| one.commit.clone()).collect();
            let files = changed_files.of(repository, &commits, snapshot.deadline());
            for (place, path) in files {
                let one = of_repository.get(place);
                if let Some(session) = one.and_then(|one| numbers.get(&one.session_id)) {
                    self.add_file(*session, &path, BY_COMMIT)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of a part, which is added if it is new, and its Session, 0 for several.
    fn part_of(
        &mut self,
        part: &svc_model::evidence::Part,
        flags: PartFlags,
        session: i64,
    ) -> Result<(i64, i64), IndexError> {
        let digest = PartDigest::of(part);
        let known = self
            .connection
            .prepare_cached("SELECT part, flags, session FROM parts WHERE digest = ?1")?
            .query_row([digest.0], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, u8>(1)?,
                    row.get::<_, i64>(2)?,
                ))
            })
            .optional()?;
        if let Some((number, known, session)) = known {
            let known = PartFlags::of_byte(known);
            let both = known.with_role(flags.role());
            if both != known {
                self.change_part(number, both, session)?;
            }
            return Ok((number, session));
        }
        let number = self.state.next_part;
        let mut lengths = Vec::new();
        {
            let mut add = self
                .connection
                .prepare_cached("INSERT INTO passages (rowid, words) VALUES (?1, ?2)")?;
            part::passages_of(part, |passage| {
                let row = number.saturating_add(index(lengths.len()));
                add.execute(params![row, passage.text])?;
                lengths.push(passage.length);
                Ok::<_, IndexError>(())
            })?;
        }
        if lengths.is_empty() {
            // A part without text has a row too, so that it is known.
            lengths.push(0);
        }
        let bytes: Vec<u8> = lengths
            .iter()
            .flat_map(|length| length.to_le_bytes())
            .collect();
        self.connection
            .prepare_cached(
                "INSERT INTO parts (part, digest, flags, session, lengths) \
                VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![number, digest.0, flags.byte(), session, bytes])?;
        self.state.next_part = number.saturating_add(index(lengths.len()));
        let added = PartSession::One(session);
        self.learned
            .push(Lesson::Added(number, flags, added, lengths));
        Ok((number, session))
    }

    /// Changes the Session of a part, 0 for several.
    fn move_part(&mut self, part: i64, session: i64) -> Result<(), IndexError> {
        let flags: u8 = self
            .connection
            .prepare_cached("SELECT flags FROM parts WHERE part = ?1")?
            .query_row([part], |row| row.get(0))?;
        self.change_part(part, PartFlags::of_byte(flags), session)
    }

    /// Changes the Session of a part, 0 for several, and its flags.
    fn change_part(&mut self, part: i64, flags: PartFlags, session: i64) -> Result<(), IndexError> {
        self.connection
            .prepare_cached("UPDATE parts SET flags = ?2, session = ?3 WHERE part = ?1")?
            .execute(params![part, flags.byte(), session])?;
        let session = match session {
            0 => PartSession::Several,
            session => PartSession::One(session),
        };
        self.learned.push(Lesson::Changed(part, flags, session));
        Ok(())
    }

    /// Makes everything about a Session anew, from what is visible of it. What nothing shows any
    /// more leaves the index.
    pub(crate) fn renew_session(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        session: i64,
        changed_files: &mut dyn ChangedFiles,
    ) -> Result<(), IndexError> {
        self.last_calls.remove(&session);
        let mut known: HashMap<i64, Vec<PlacedPart>, RandomState> = HashMap::default();
        {
            let mut rows = self.connection.prepare_cached(
                "SELECT content, part_index, part FROM occurrences WHERE session = ?1",
            )?;
            let mut rows = rows.query([session])?;
            while let Some(row) = rows.next()? {
                let part_index: i64 = row.get(1)?;
                known.entry(row.get(0)?).or_default().push(PlacedPart {
                    part: row.get(2)?,
                    part_index: usize::try_from(part_index).unwrap_or_default(),
                });
            }
        }
        let mut found = Occurrences::default();
        snapshot.calls_of_session(session, None, None, |call| {
            // The first call that shows a message comes first.
            for (side, contents) in [(0, &call.input), (1, &call.output)] {
                for (message_index, content) in contents.iter().enumerate() {
                    found
                        .entry((session, content))
                        .or_insert_with(|| occurrence(&call, content, side, message_index));
                }
            }
            ControlFlow::Continue(())
        })?;
        self.connection
            .prepare_cached("DELETE FROM occurrences WHERE session = ?1")?
            .execute([session])?;
        let mut new = Occurrences::default();
        for (key, occurrence) in found {
            let Some(parts) = known.get(&occurrence.content) else {
                new.insert(key, occurrence);
                continue;
            };
            for placed in parts {
                let places = std::slice::from_ref(&occurrence);
                self.add_places(places, placed.part_index, placed.part, &[])?;
            }
        }
        self.add_occurrences(snapshot, new)?;
        self.leave_parts(known.values().flatten().map(|placed| placed.part))?;
        self.renew_files(snapshot, session, changed_files)
    }

    /// Removes those parts that nothing shows any more.
    fn leave_parts(&mut self, parts: impl Iterator<Item = i64>) -> Result<(), IndexError> {
        let mut parts: Vec<i64> = parts.filter(|part| *part != 0).collect();
        parts.sort_unstable();
        parts.dedup();
        for part in parts {
            let (first, last): (Option<i64>, Option<i64>) = self
                .connection
                .prepare_cached(
                    "SELECT MIN(session), MAX(session) FROM occurrences WHERE part = ?1",
                )?
                .query_row([part], |row| Ok((row.get(0)?, row.get(1)?)))?;
            match (first, last) {
                (Some(first), Some(last)) => {
                    self.move_part(part, if first == last { first } else { 0 })?;
                }
                _ => self.remove_part(part)?,
            }
        }
        Ok(())
    }

    fn remove_part(&mut self, part: i64) -> Result<(), IndexError> {
        let lengths: Vec<u8> = self
            .connection
            .prepare_cached("SELECT lengths FROM parts WHERE part = ?1")?
            .query_row([part], |row| row.get(0))?;
        let end = part.saturating_add(index(lengths.len() / 2));
        self.connection
            .prepare_cached("DELETE FROM passages WHERE rowid >= ?1 AND rowid < ?2")?
            .execute([part, end])?;
        self.connection
            .prepare_cached("DELETE FROM parts WHERE part = ?1")?
            .execute([part])?;
        self.learned.push(Lesson::Removed(part));
        Ok(())
    }

    fn renew_files(
        &self,
        snapshot: &mut Snapshot<'_>,
        session: i64,
        changed_files: &mut dyn ChangedFiles,
    ) -> Result<(), IndexError> {
        self.connection
            .prepare_cached(
                "DELETE FROM files WHERE session = ?1 AND (part <= 0 OR NOT EXISTS (SELECT 1 \
                FROM occurrences o WHERE o.part = files.part AND o.session = files.session))",
            )?
            .execute([session])?;
        let sessions = snapshot.sessions_numbered(&[session])?;
        if let Some(known) = sessions.get(&session) {
            let files = snapshot.files_of_session(&known.session_id)?;
            self.add_named_files(snapshot, &files)?;
            let commits = snapshot.observed_commits_of_session(&known.session_id)?;
            self.add_commits(snapshot, &commits, changed_files)?;
        }
        Ok(())
    }

    /// Returns the last fact of a kind that the index has followed.
    pub(crate) fn followed_fact(&self, table: &str) -> Result<Option<[u8; 16]>, IndexError> {
        let id = self
            .connection
            .prepare_cached("SELECT fact_id FROM followed_facts WHERE fact_table = ?1")?
            .query_row([table], |row| row.get(0))
            .optional()?;
        Ok(id)
    }

    /// Notes the last fact of a kind that the index has followed.
    pub(crate) fn follow_fact(&self, table: &str, id: [u8; 16]) -> Result<(), IndexError> {
        self.connection
            .prepare_cached(
                "INSERT INTO followed_facts (fact_table, fact_id) VALUES (?1, ?2) \
                ON CONFLICT (fact_table) DO UPDATE SET fact_id = ?2",
            )?
            .execute(params![table, id])?;
        Ok(())
    }

    /// Empties the log of changes, if nobody reads it.
    pub(crate) fn empty_log(&self) -> Result<(), IndexError> {
        let mut checkpoint = self
            .connection
            .prepare_cached("PRAGMA wal_checkpoint(TRUNCATE)")?;
        checkpoint.query([])?.next()?;
        Ok(())
    }

    /// Merges pieces of the index by one step, and returns whether there is more to merge. The
    /// fewer pieces, the quicker is a query. `is_first` begins to merge all of them.
    pub(crate) fn merge(&self, is_first: bool) -> Result<bool, IndexError> {
        /// Pages of one step.
        const PAGES: i64 = 256;
        let before = self.connection.total_changes();
        self.connection
            .prepare_cached("INSERT INTO passages (passages, rank) VALUES ('merge', ?1)")?
            .execute([if is_first { -PAGES } else { PAGES }])?;
        // By one change, FTS5 says that nothing was merged.
        Ok(self.connection.total_changes() - before >= 2)
    }

    /// Writes the whole index again without what was removed, so that no byte of it is left.
    pub(crate) fn overwrite_removed(&self) -> Result<(), IndexError> {
        self.connection
            .execute_batch("INSERT INTO passages (passages) VALUES ('optimize')")?;
        self.empty_log()
    }
}

fn occurrence(call: &NumberedCall, content: i64, side: i64, message_index: usize) -> Occurrence {
    Occurrence {
        session: call.session_number,
        content,
        call: call.call_number,
        call_id: call.inference_call_id.as_str().to_owned(),
        observed: call.observed_at.microseconds(),
        side,
        message_index,
    }
}

/// Keeps the earliest occurrence of each message in each Session.
fn note(found: &mut Occurrences, occurrence: Occurrence) {
    let key = (occurrence.session, occurrence.content);
    match found.get_mut(&key) {
        Some(known) if occurrence.is_before(known) => *known = occurrence,
        Some(_) => {}
        None => {
            found.insert(key, occurrence);
        }
    }
}

fn index(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
