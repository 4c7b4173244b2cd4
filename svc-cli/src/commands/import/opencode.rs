//! What `OpenCode` keeps, as lines for its reader: from its database, or from the tree of files that
//! older versions wrote. Only one message is in memory at a time.
//!
//! A store has many Sessions, and rows change while the agent works. So the offset of a line is not
//! its place in a file: it grows with the time at which the message was created, and a reader that
//! goes on from a bookmark is given the lines from its offset on, as with a file.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use svc_model::json::{Json, Object};

mod database;
mod tree;

use self::database::Database;
use self::tree::Tree;

/// The maximum size of a line in bytes.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The bits of an offset below the milliseconds. A reader adds the size of a line to its offset,
/// which must not lead past the next message, created at least as many milliseconds later as it
/// takes to write so much.
const OFFSET_BITS: u32 = 24;
/// The offsets begin with the year 2017, in milliseconds since 1970.
const FIRST_MILLISECOND: i64 = 1_483_228_800_000;

/// A store of `OpenCode`.
#[derive(Clone, Debug)]
pub(super) enum OpenCodeStore {
    Database(Rc<Database>),
    Tree(Rc<Tree>),
}

/// A Session of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredSession {
    /// Its id.
    pub(super) id: String,
    /// Its working directory.
    pub(super) directory: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub(super) created_at: i64,
    /// When it changed last, in milliseconds since 1970; 0 if that is not known.
    pub(super) updated_at: i64,
    /// What its line says of it.
    session: Object,
}

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredLine {
    /// Its offset.
    pub(super) offset: u64,
    /// Its bytes, without a line end; `None` if they are more than 64 MiB.
    pub(super) bytes: Option<Vec<u8>>,
}

/// The lines of a Session.
#[derive(Debug)]
pub(super) struct SessionLines {
    store: OpenCodeStore,
    session: Option<Object>,
    messages: std::vec::IntoIter<MessagePlace>,
}

/// Where a message is. Messages are ordered by time, then by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessagePlace {
    created_at: i64,
    id: String,
    /// Its file in a tree.
    file: PathBuf,
}

impl OpenCodeStore {
    /// Opens the database of a file, or the tree of a folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return Ok(Self::Tree(Rc::new(Tree::open(path)?)));
        }
        Ok(Self::Database(Rc::new(Database::open(path)?)))
    }

    /// Returns the Sessions in order of time.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub(super) fn sessions(&self) -> io::Result<Vec<StoredSession>> {
        let mut sessions = match self {
            Self::Database(database) => database.sessions()?,
            Self::Tree(tree) => tree.sessions()?,
        };
        sessions
            .sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(sessions)
    }

    /// Returns the lines of a Session from an offset on: the Session, then its messages.
    ///
    /// # Errors
    ///
    /// If its messages cannot be listed.
    pub(super) fn lines(&self, session: &StoredSession, from: u64) -> io::Result<SessionLines> {
        let mut messages = match self {
            Self::Database(database) => database.messages(&session.id)?,
            Self::Tree(tree) => tree.messages(&session.id)?,
        };
        messages.retain(|message| message.offset() >= from);
        messages.sort_unstable();
        Ok(SessionLines {
            store: self.clone(),
            session: (from == 0).then(|| session.session.clone()),
            messages: messages.into_iter(),
        })
    }

    fn message(&self, place: &MessagePlace) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Database(database) => database.message(&place.id),
            Self::Tree(tree) => tree.message(place),
        }
    }
}

impl StoredSession {
    fn new(session: Object) -> Option<Self> {
        let id = session.get("id")?.as_str()?.to_owned();
        let time = |name| session.get(name).and_then(milliseconds).unwrap_or(0);
        let directory = session.get("directory").and_then(Json::as_str);
        Some(Self {
            directory: directory.map(str::to_owned),
            created_at: time("time_created"),
            updated_at: time("time_updated"),
            id,
            session,
        })
    }
}

impl MessagePlace {
    fn offset(&self) -> u64 {
        let since = self.created_at.saturating_sub(FIRST_MILLISECOND).max(0);
        let since = since.unsigned_abs().saturating_add(1);
        since.min(u64::MAX >> OFFSET_BITS) << OFFSET_BITS
    }
}

impl Iterator for SessionLines {
    type Item = io::Result<StoredLine>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(session) = self.session.take() {
            let line = Object::from_iter([("session", session)]);
            return Some(Ok(StoredLine {
                offset: 0,
                bytes: Some(Json::Object(line).to_canonical()),
            }));
        }
        let place = self.messages.next()?;
        let message = self.store.message(&place);
        Some(message.map(|bytes| StoredLine {
            offset: place.offset(),
            bytes,
        }))
    }
}

/// Returns the line of a message with its parts.
fn message_line(message: Object, parts: Vec<Json>) -> Vec<u8> {
    let line = [("message", Json::Object(message)), ("parts", parts.into())];
    Json::Object(Object::from_iter(line)).to_canonical()
}

/// Returns an object with a member that takes the place of one with this name.
fn with(mut object: Object, name: &str, value: Option<&str>) -> Object {
    if let Some(value) = value {
        object.insert(name, value);
    }
    object
}

/// Returns a part that cannot be read: a part of a kind that no reader knows.
fn malformed() -> Json {
    Object::from_iter([("type", "malformed")]).into()
}

fn milliseconds(value: &Json) -> Option<i64> {
    value.as_number()?.as_i64()
}

#[cfg(test)]
mod tests;
