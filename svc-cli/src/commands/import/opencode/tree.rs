//! The tree of files that versions of `OpenCode` before 1.2 wrote: `session/PROJECT/*.json`,
//! `message/SESSION/*.json`, and `part/MESSAGE/*.json` or all parts in one folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use svc_model::json::{Json, Object};

use super::{
    LINE_BYTES_MAX, MessagePlace, StoredSession, malformed, message_line, milliseconds, with,
};

/// A tree of files.
#[derive(Debug)]
pub(in super::super) struct Tree {
    root: PathBuf,
    /// The parts that have no folder for their message, by message.
    parts: BTreeMap<String, Vec<PathBuf>>,
}

impl Tree {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let mut parts: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for file in files(&root.join("part"))? {
            let part = read(&file)?.and_then(|part| text(&part, "messageID"));
            if let Some(message_id) = part {
                parts.entry(message_id).or_default().push(file);
            }
        }
        Ok(Self {
            root: root.to_owned(),
            parts,
        })
    }

    pub(super) fn sessions(&self) -> io::Result<Vec<StoredSession>> {
        let mut sessions = BTreeMap::new();
        for project in folders(&self.root.join("session"))? {
            for file in files(&project)? {
                if let Some(found) = read(&file)?.and_then(session) {
                    sessions.insert(found.id.clone(), found);
                }
            }
        }
        for folder in folders(&self.root.join("message"))? {
            let id = folder.file_name().and_then(|name| name.to_str());
            if let Some(id) = id.filter(|id| !sessions.contains_key(*id)) {
                let unknown = StoredSession::new(Object::from_iter([("id", id)]));
                sessions.extend(unknown.map(|session| (id.to_owned(), session)));
            }
        }
        Ok(sessions.into_values().collect())
    }

    pub(super) fn messages(&self, session_id: &str) -> io::Result<Vec<MessagePlace>> {
        let mut places = Vec::new();
        for file in self.files_of("message", session_id)? {
            let message = read(&file)?.unwrap_or_default();
            let time = message.get("time").and_then(Json::as_object);
            let created = time.and_then(|time| time.get("created"));
            places.push(MessagePlace {
                created_at: created.and_then(milliseconds).unwrap_or(0),
                id: text(&message, "id").unwrap_or_default(),
                file,
            });
        }
        Ok(places)
    }

    /// Returns the line of a message; `None` if it is too long.
    pub(super) fn message(&self, place: &MessagePlace) -> io::Result<Option<Vec<u8>>> {
        let files = self.parts(&place.id)?;
        let mut size = fs::metadata(&place.file)?.len();
        for file in &files {
            size += fs::metadata(file)?.len();
        }
        if size > LINE_BYTES_MAX {
            return Ok(None);
        }
        let Some(message) = read(&place.file)? else {
            // It is counted as malformed.
            return Ok(Some(b"{".to_vec()));
        };
        let session_id = text(&message, "sessionID");
        let message = with(message, "session_id", session_id.as_deref());
        let mut parts = Vec::new();
        for file in files {
            parts.push(read(&file)?.map_or_else(malformed, Json::from));
        }
        parts.sort_by_key(|part| part.as_object().and_then(|part| text(part, "id")));
        Ok(Some(message_line(message, parts)))
    }

    fn parts(&self, message_id: &str) -> io::Result<Vec<PathBuf>> {
        let mut parts = self.files_of("part", message_id)?;
        parts.extend(self.parts.get(message_id).into_iter().flatten().cloned());
        Ok(parts)
    }

    /// Returns the files in the folder of an id. An id that would lead elsewhere has none.
    fn files_of(&self, kind: &str, id: &str) -> io::Result<Vec<PathBuf>> {
        let is_name = !id.is_empty() && !id.contains('/') && ![".", ".."].contains(&id);
        if is_name {
            files(&self.root.join(kind).join(id))
        } else {
            Ok(Vec::new())
        }
    }
}

/// Returns a Session under the names that the database has.
fn session(found: Object) -> Option<StoredSession> {
    let mut session = Object::new();
    for (name, there) in [
        ("id", "id"),
        ("parent_id", "parentID"),
        ("directory", "directory"),
        ("version", "version"),
    ] {
        session = with(session, name, text(&found, there).as_deref());
    }
    let time = found.get("time").and_then(Json::as_object);
    for (name, there) in [("time_created", "created"), ("time_updated", "updated")] {
        let time = time.and_then(|time| time.get(there));
        if let Some(time) = time.and_then(milliseconds) {
            session.insert(name, time);
        }
    }
    StoredSession::new(session)
}

fn text(object: &Object, name: &str) -> Option<String> {
    object.get(name)?.as_str().map(str::to_owned)
}

/// Reads a file; nothing if it is no object or is too long.
fn read(file: &Path) -> io::Result<Option<Object>> {
    if fs::metadata(file)?.len() > LINE_BYTES_MAX {
        return Ok(None);
    }
    let json = Json::parse(&fs::read(file)?).ok();
    Ok(json.and_then(Json::into_object))
}

/// Returns the files of JSON in a folder, in order of their names. A folder that is absent has none.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let files = entries(folder, |kind| kind.is_file())?.into_iter();
    Ok(files.filter(is_json).collect())
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let folders = entries(folder, |kind| kind.is_dir())?;
    Ok(folders.into_iter().collect())
}

/// Returns the entries of a folder that are of a kind. Links are not followed.
fn entries(
    folder: &Path,
    is_wanted: impl Fn(std::fs::FileType) -> bool,
) -> io::Result<BTreeSet<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let entry = entry?;
        if is_wanted(entry.file_type()?) {
            found.insert(entry.path());
        }
    }
    Ok(found)
}
