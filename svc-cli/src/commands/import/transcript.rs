//! One transcript: a file, or a Session of a store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;
use sha2::{Digest as _, Sha256};
use svc_model::json::Json;
use svc_model::time::Instant;
use svc_transcripts::{Agent, TranscriptReader};

use super::folders::Folders;
use super::lines::{Line, Lines};
use super::opencode::{OpenCodeStore, StoredSession};
use super::places::is_document;

/// The lines at the beginning of a file in which its first time is looked for.
const BEGINNING: usize = 100;

/// One transcript of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    pub(super) agent: Agent,
    /// The file, or the store.
    pub(super) path: PathBuf,
    /// The path, and in a store the id of the Session.
    name: PathBuf,
    stored: Option<StoredTranscript>,
}

/// A Session of a store.
#[derive(Clone, Debug)]
struct StoredTranscript {
    store: OpenCodeStore,
    session: StoredSession,
}

/// What the beginning of a transcript tells.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The first working directory.
    pub(crate) cwd: Option<String>,
    /// The first time.
    pub(super) time: Option<Instant>,
}

impl Transcript {
    /// Returns the transcript in a file.
    pub(crate) fn new(agent: Agent, path: PathBuf) -> Self {
        Self {
            agent,
            name: path.clone(),
            path,
            stored: None,
        }
    }

    /// Returns the transcripts at a path: one in a file, or those of a store.
    pub(super) fn all_at(agent: Agent, path: PathBuf) -> io::Result<Vec<Self>> {
        if agent != Agent::OpenCode {
            return Ok(vec![Self::new(agent, path)]);
        }
        let store = OpenCodeStore::open(&path)?;
        let transcript = |session: StoredSession| Self {
            agent,
            name: path.join(&session.id),
            path: path.clone(),
            stored: Some(StoredTranscript {
                store: store.clone(),
                session,
            }),
        };
        Ok(store.sessions()?.into_iter().map(transcript).collect())
    }

    /// Returns the name by which a reader knows it.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the lines from an offset on.
    pub(super) fn lines(&self, from: u64) -> io::Result<Lines> {
        if let Some(StoredTranscript { store, session }) = &self.stored {
            return store.lines(session, from).map(Lines::Stored);
        }
        // Reading a pipe or a device may never end.
        if !fs::metadata(&self.path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        if is_document(self.agent, &self.path) {
            Lines::of_document(&self.path)
        } else {
            Lines::of_file(&self.path, from)
        }
    }

    /// Returns whether its lines are only ever appended to.
    pub(super) fn grows(&self) -> bool {
        let is_archive = self.path.extension().is_some_and(|ending| ending == "zst");
        !is_archive && !is_document(self.agent, &self.path)
    }

    /// Returns whether it is a Session of a store, which has only whole answers.
    pub(super) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Returns when it was last written to.
    pub(super) fn written_at(&self) -> Option<SystemTime> {
        if let Some(StoredTranscript { session, .. }) = &self.stored {
            let since = u64::try_from(session.updated_at).ok();
            let since = since.filter(|since| *since > 0).map(Duration::from_millis);
            return since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        }
        fs::metadata(&self.path).ok()?.modified().ok()
    }

    /// Returns when its file was created, where the file system knows it.
    pub(super) fn created_at(&self) -> Option<SystemTime> {
        fs::metadata(&self.path).ok()?.created().ok()
    }

    /// Returns the size of its file in bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        let about = fs::metadata(&self.path).ok();
        about.filter(|_| !self.is_stored()).map(|about| about.len())
    }

    /// Reads the beginning, until it tells the working directory and a time.
    pub(crate) fn beginning(&self, folders: &Folders) -> io::Result<Beginning> {
        if let Some(StoredTranscript { session, .. }) = &self.stored {
            let microseconds = session.created_at.saturating_mul(1_000);
            return Ok(Beginning {
                cwd: session.directory.clone(),
                time: Instant::from_microseconds(microseconds),
            });
        }
        let mut reader = TranscriptReader::new(self.agent, self.name());
        let mut lines = self.lines(0)?;
        let mut beginning = Beginning {
            cwd: self.root(folders),
            time: None,
        };
        let mut count = 0;
        while let Some(line) = lines.next()? {
            count += 1;
            if let Line::Whole { offset, bytes } = line {
                if beginning.time.is_none() && count <= BEGINNING {
                    beginning.time = time(&bytes);
                }
                if beginning.cwd.is_none() {
                    // A line that builds on one that is no longer known is far from the beginning.
                    if reader.line(offset, &bytes).is_err() {
                        break;
                    }
                    drop(reader.take());
                    beginning.cwd = reader.cwd().map(str::to_owned);
                }
            }
            let is_timed = beginning.time.is_some() || count >= BEGINNING;
            // With every folder chosen, it need not be known beforehand.
            let is_placed = beginning.cwd.is_some() || matches!(folders, Folders::All);
            if is_timed && is_placed {
                break;
            }
        }
        Ok(beginning)
    }

    /// Returns the project's folder if the place of the file tells it. The lines of Gemini CLI do
    /// not: they are in a folder with a note of it, or that is named by its digest.
    fn root(&self, folders: &Folders) -> Option<String> {
        if self.agent != Agent::Gemini {
            return None;
        }
        let project = self.path.parent()?.parent()?;
        if let Ok(root) = fs::read_to_string(project.join(".project_root")) {
            return Some(root.trim_end().to_owned());
        }
        let name = project.file_name()?.to_str()?;
        let mut folders = folders.named().iter().filter_map(|folder| folder.to_str());
        folders
            .find(|folder| digest(folder.as_bytes()) == name)
            .map(str::to_owned)
    }
}

/// Returns the digest of bytes in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Returns the time of a line.
fn time(line: &[u8]) -> Option<Instant> {
    let line = Json::parse(line).ok()?.into_object()?;
    let mut members = ["timestamp", "startTime"].iter();
    let text = members.find_map(|name| line.get(name)?.as_str())?;
    Instant::parse(text).ok()
}
