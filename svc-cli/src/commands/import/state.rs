//! How far each transcript was read, for each service: in the state folder, one file a transcript.

use std::fs::{Metadata, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err::{self as fs, File};
use serde::{Deserialize, Serialize};
use svc_engine::clock::Ids;
use svc_engine::private;
use svc_model::json;
use svc_model::version::Version1;
use svc_transcripts::Bookmark;

use super::transcript::{Transcript, digest};
use crate::error::CommandError;

/// The maximum size of a state file in bytes.
const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The folder of the state of one service.
#[derive(Debug)]
pub(crate) struct StateFolder {
    folder: PathBuf,
    url: String,
}

/// How far a transcript was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadState {
    version: Version1,
    /// The path, for a person who looks at the file.
    path: String,
    device: u64,
    inode: u64,
    /// The size of the file before it was read.
    bytes: u64,
    /// The last complete line.
    pub(super) last_line: LastLine,
    /// The first working directory that the file names.
    pub(super) cwd: Option<String>,
    /// Whether the last answer was taken too.
    pub(super) has_ended: bool,
    /// Whether the service was told that the format has changed.
    pub(super) told_format_changed: bool,
    pub(super) bookmark: Bookmark,
}

/// A line, by which a file is recognised that was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastLine {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) digest: String,
}

impl StateFolder {
    /// Returns the folder of the state of the service at this URL. Nothing is created.
    pub(crate) fn of(url: &str) -> Result<Self, CommandError> {
        let folder = svc_server::state_folder().ok_or_else(|| {
            let why = "neither XDG_STATE_HOME nor HOME is set, so there is no folder for the state";
            CommandError::refused("no_home", why)
        })?;
        Ok(Self {
            folder: folder.join("transcripts"),
            url: url.to_owned(),
        })
    }

    /// Returns the file of a transcript, which may not exist.
    fn file(&self, transcript: &Transcript, ending: &str) -> PathBuf {
        let path = fs::canonicalize(&transcript.path);
        let path = path.unwrap_or_else(|_| transcript.path.clone());
        let within = transcript.name().strip_prefix(&transcript.path);
        let within = within.unwrap_or(Path::new(""));
        let name = format!("{}\n{}\n{}", self.url, path.display(), within.display());
        self.folder
            .join(format!("{}.{ending}", &digest(name.as_bytes())[..32]))
    }

    /// Takes the lock of a transcript; nothing if somebody else has it.
    pub(crate) fn try_lock(&self, transcript: &Transcript) -> io::Result<Option<std::fs::File>> {
        private::create_folder(&self.folder)?;
        let file = private::append_to(&self.file(transcript, "lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns how far a transcript was read; nothing if it was not, if the state cannot be read, or
    /// if the file is another one by now.
    pub(crate) fn load(&self, transcript: &Transcript) -> Option<ReadState> {
        let bytes = private::read_plain(&self.file(transcript, "json"), STATE_BYTES_MAX).ok()?;
        let state: ReadState = json::from_slice(&bytes).ok()?;
        state.is_of(transcript).then_some(state)
    }

    /// Keeps how far a transcript was read.
    pub(crate) fn save(&self, transcript: &Transcript, state: &ReadState) -> io::Result<()> {
        private::create_folder(&self.folder)?;
        let bytes = json::to_vec(state, usize::MAX).map_err(io::Error::other)?;
        let file = self.file(transcript, "json");
        let aside = file.with_extension(format!("{}.tmp", Ids::random().fresh().simple()));
        private::write_new(&aside, &bytes)?;
        fs::rename(&aside, &file).inspect_err(|_| drop(fs::remove_file(&aside)))
    }
}

impl ReadState {
    /// Returns the state of a transcript that was read up to a line.
    pub(super) fn new(
        transcript: &Transcript,
        bytes: u64,
        last_line: LastLine,
        cwd: Option<String>,
        bookmark: Bookmark,
    ) -> io::Result<Self> {
        let about = fs::metadata(&transcript.path)?;
        Ok(Self {
            version: Version1,
            path: transcript.name().display().to_string(),
            device: about.dev(),
            inode: about.ino(),
            bytes,
            last_line,
            cwd,
            has_ended: false,
            told_format_changed: false,
            bookmark,
        })
    }

    /// Returns whether a transcript has nothing that was not read.
    pub(crate) fn is_whole(&self, transcript: &Transcript) -> bool {
        let end = if transcript.grows() {
            self.last_line.offset + self.last_line.bytes + 1
        } else {
            self.bytes
        };
        self.has_ended && transcript.bytes() == Some(end)
    }

    /// Returns whether a transcript is still the file that was read, which may have grown.
    fn is_of(&self, transcript: &Transcript) -> bool {
        let is_same = |about: Metadata| (about.dev(), about.ino()) == (self.device, self.inode);
        let is_known = || {
            if transcript.grows() {
                self.last_line.is_in(&transcript.path).unwrap_or(false)
            } else {
                // It is read as a whole, or not at all.
                self.is_whole(transcript)
            }
        };
        fs::metadata(&transcript.path).is_ok_and(is_same) && (transcript.is_stored() || is_known())
    }
}

impl LastLine {
    /// Returns the line with these bytes.
    pub(super) fn new(offset: u64, line: &[u8]) -> Self {
        Self {
            offset,
            bytes: line.len() as u64,
            digest: digest(line),
        }
    }

    /// Returns whether the line is still in a file.
    fn is_in(&self, path: &Path) -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut line = Vec::new();
        file.take(self.bytes).read_to_end(&mut line)?;
        Ok(Self::new(self.offset, &line) == *self)
    }
}

#[cfg(test)]
mod tests {
    use svc_transcripts::Agent;

    use super::*;

    fn state(transcript: &Transcript, line: &[u8]) -> ReadState {
        let bookmark = Bookmark {
            offset: 4,
            state: "s".to_owned(),
        };
        ReadState::new(transcript, 4, LastLine::new(0, line), None, bookmark).unwrap()
    }

    #[test]
    fn a_file_that_was_replaced_or_cut_is_read_from_its_start() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder {
            folder: place.path().join("state/transcripts"),
            url: "http://a".to_owned(),
        };
        let path = place.path().join("t.jsonl");
        let transcript = Transcript::new(Agent::Pi, path.clone());
        fs::write(&path, "one\n").unwrap();
        assert_eq!(folder.load(&transcript), None);
        let state = state(&transcript, b"one");
        folder.save(&transcript, &state).unwrap();
        assert_eq!(folder.load(&transcript), Some(state.clone()));
        let of_another = StateFolder {
            url: "http://b".to_owned(),
            folder: folder.folder.clone(),
        };
        assert_eq!(of_another.load(&transcript), None);
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(folder.load(&transcript), Some(state), "it has grown");
        for other in ["two\n", "on", ""] {
            fs::write(&path, other).unwrap();
            assert_eq!(folder.load(&transcript), None, "{other:?}");
        }
        let aside = place.path().join("aside");
        fs::write(&aside, "one\n").unwrap();
        fs::rename(&aside, &path).unwrap();
        assert_eq!(folder.load(&transcript), None, "another inode");
    }

    #[test]
    fn a_file_that_does_not_grow_is_read_again_if_it_changed() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder {
            folder: place.path().join("state"),
            url: "http://a".to_owned(),
        };
        let path = place.path().join("session-1.json");
        let transcript = Transcript::new(Agent::Gemini, path.clone());
        fs::write(&path, "{ }\n").unwrap();
        let mut state = state(&transcript, b"{ }\n");
        state.has_ended = true;
        folder.save(&transcript, &state).unwrap();
        let known = folder.load(&transcript);
        assert!(known.is_some_and(|known| known.is_whole(&transcript)));
        fs::write(&path, "{  }\n").unwrap();
        assert_eq!(folder.load(&transcript), None);
    }

    #[test]
    fn a_transcript_is_read_by_one_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder {
            folder: place.path().join("state"),
            url: "http://a".to_owned(),
        };
        let transcript = Transcript::new(Agent::Pi, place.path().join("t.jsonl"));
        let lock = folder.try_lock(&transcript).unwrap();
        assert!(lock.is_some() && folder.try_lock(&transcript).unwrap().is_none());
        drop(lock);
        assert!(folder.try_lock(&transcript).unwrap().is_some());
    }
}
