//! The file of remembered Sessions in the repository's git folder: one line of JSON for each
//! Session and file that it wrote.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant as Monotonic};

use svc_engine::capture::notes::Stamp;
use svc_engine::private;
use svc_model::id::SessionId;
use svc_model::json::{Json, Object};
use svc_model::time::Instant;

use super::repository;
use crate::error::CommandError;

/// The name of the file.
const FILE: &str = "svc-sessions";
/// The maximum size of the file in bytes. Only the end of a larger file is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How many Sessions and files are remembered. Beyond that, the oldest are forgotten.
pub(super) const ENTRIES_MAX: usize = 4_096;
/// How long a Session is remembered: 30 days.
const AGE_MICROSECONDS_MAX: i64 = 30 * DAY_MICROSECONDS;
/// How old an entry may be before a further edit renews it.
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;
/// The maximum bytes of a file's path, which is the usual limit of systems.
pub(super) const PATH_BYTES_MAX: usize = 4_096;
/// How long to wait for another process that is using the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// A Session that worked on uncommitted changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedSession {
    pub(super) stamp: Stamp,
    /// The file that the Session wrote, relative to the top of the work tree. Older versions did
    /// not remember it, and not every agent names it.
    pub(super) file: Option<String>,
    /// When the Session was remembered. Older versions did not record it.
    pub(super) remembered_at: Option<Instant>,
}

impl RememberedSession {
    fn read(line: &[u8]) -> Option<Self> {
        let line = Json::parse(line).ok()?.into_object()?;
        let text = |name| line.get(name).and_then(Json::as_str);
        let file = match line.get("file") {
            None => None,
            Some(file) => Some(file.as_str().filter(|file| is_kept_path(file))?.to_owned()),
        };
        Some(Self {
            stamp: stamp(text("tool")?, text("session_id")?).ok()?,
            file,
            remembered_at: text("remembered_at").and_then(|at| Instant::parse(at).ok()),
        })
    }

    fn line(&self) -> Vec<u8> {
        let at = self.remembered_at.map(|at| at.to_string());
        let members = [
            ("tool", Some(self.stamp.tool.as_str())),
            ("session_id", Some(self.stamp.session_id.as_str())),
            ("file", self.file.as_deref()),
            ("remembered_at", at.as_deref()),
        ];
        let members = members
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)));
        let mut line = Json::Object(members.collect::<Object>()).to_canonical();
        line.push(b'\n');
        line
    }

    /// Returns whether both are about the same Session and file.
    fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp && self.file == other.file
    }

    /// Returns whether the entry is older than this many microseconds. An entry from the future is
    /// not, because clocks get corrected.
    fn is_older(&self, microseconds: i64, now: Instant) -> bool {
        self.remembered_at
            .is_some_and(|at| now.microseconds() - at.microseconds() > microseconds)
    }
}

/// Creates a stamp for a Session of an agent.
pub(super) fn stamp(tool: &str, session_id: &str) -> Result<Stamp, CommandError> {
    let tool = tool.trim();
    if tool.is_empty() || tool.contains('\0') || tool.len() > 64 {
        return Err(CommandError::argument(
            "--tool",
            "must be a name of at most 64 bytes",
        ));
    }
    let session_id = SessionId::new(session_id)
        .map_err(|error| CommandError::argument("the Session", error.message()))?;
    Ok(Stamp {
        tool: tool.to_owned(),
        session_id,
    })
}

/// Returns whether a path may be remembered.
pub(super) fn is_kept_path(path: &str) -> bool {
    !path.is_empty() && path.len() <= PATH_BYTES_MAX && !path.contains('\0')
}

/// Returns the entries to remember, latest last: the latest one for each Session and file, within
/// the limits.
fn kept(entries: Vec<RememberedSession>, now: Instant) -> Vec<RememberedSession> {
    let mut known = BTreeSet::new();
    let mut bytes = 0;
    let mut kept = Vec::new();
    for entry in entries.into_iter().rev() {
        if entry.is_older(AGE_MICROSECONDS_MAX, now)
            || !known.insert((entry.stamp.clone(), entry.file.clone()))
        {
            continue;
        }
        bytes += entry.line().len() as u64;
        if kept.len() == ENTRIES_MAX || bytes > FILE_BYTES_MAX {
            break;
        }
        kept.push(entry);
    }
    kept.reverse();
    kept
}

fn read_lines(text: &[u8]) -> Vec<RememberedSession> {
    // A damaged line costs only itself.
    text.split(|byte| *byte == b'\n')
        .filter_map(RememberedSession::read)
        .collect()
}

/// The remembered Sessions of the current repository.
#[derive(Debug)]
pub(super) struct RememberedSessions {
    path: PathBuf,
}

impl RememberedSessions {
    pub(super) fn here() -> Result<Self, CommandError> {
        Ok(Self {
            path: repository::own_path(FILE)?,
        })
    }

    /// Returns the entries, latest last. Malformed ones are skipped.
    pub(super) fn entries(&self, now: Instant) -> Result<Vec<RememberedSession>, CommandError> {
        Ok(kept(read_lines(&self.text()?), now))
    }

    /// Remembers entries, and returns whether any of them is new.
    pub(super) fn add(
        &self,
        added: &[RememberedSession],
        now: Instant,
    ) -> Result<bool, CommandError> {
        let (mut file, text) = self.locked()?;
        let mut entries = kept(read_lines(&text), now);
        let is_known = |entry: &RememberedSession| entries.iter().any(|known| known.is_same(entry));
        let is_new = !added.iter().all(is_known);
        let is_fresh = |entry: &&RememberedSession| {
            let mut known = entries.iter();
            known.any(|known| known.is_same(entry) && !known.is_older(DAY_MICROSECONDS, now))
        };
        let added = added.iter().filter(|entry| !is_fresh(entry));
        let added: Vec<RememberedSession> = added.cloned().collect();
        let lines = added
            .iter()
            .flat_map(RememberedSession::line)
            .collect::<Vec<u8>>();
        let is_full = file.metadata()?.len() + lines.len() as u64 > FILE_BYTES_MAX
            || entries.len() + added.len() > ENTRIES_MAX;
        if is_full {
            entries.extend(added);
            self.rewrite(&kept(entries, now))?;
        } else if !lines.is_empty() {
            // A line that was cut off while it was written must not spoil this one.
            if text.last().is_some_and(|last| *last != b'\n') {
                file.write_all(b"\n")?;
            }
            file.write_all(&lines)?;
        }
        Ok(is_new)
    }

    /// Forgets entries. Those remembered since they were read are kept.
    pub(super) fn forget(
        &self,
        done: &[RememberedSession],
        now: Instant,
    ) -> Result<(), CommandError> {
        if done.is_empty() {
            return Ok(());
        }
        let (_file, text) = self.locked()?;
        let mut entries = kept(read_lines(&text), now);
        entries.retain(|entry| !done.contains(entry));
        self.rewrite(&entries)
    }

    /// Overwrites the file and then truncates it. If this stops halfway, the file may contain
    /// entries that are no longer needed, but nothing is lost. The file is not replaced by a new
    /// one, because other processes that wait for it would then write to a file without a name.
    fn rewrite(&self, entries: &[RememberedSession]) -> Result<(), CommandError> {
        let lines = entries
            .iter()
            .flat_map(RememberedSession::line)
            .collect::<Vec<u8>>();
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        file.write_all(&lines)?;
        file.set_len(lines.len() as u64)?;
        Ok(())
    }

    /// Opens and locks the file for appending, and returns it with its text.
    fn locked(&self) -> Result<(File, Vec<u8>), CommandError> {
        self.check()?;
        let file = private::append_to(&self.path)?;
        lock(&file)?;
        let text = self.text()?;
        Ok((file, text))
    }

    fn text(&self) -> Result<Vec<u8>, CommandError> {
        if !self.check()? {
            return Ok(Vec::new());
        }
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        let mut text = Vec::new();
        if length <= FILE_BYTES_MAX {
            file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
            return Ok(text);
        }
        file.seek(SeekFrom::Start(length - FILE_BYTES_MAX))?;
        file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
        // The first line has lost its beginning.
        let end = text.iter().position(|byte| *byte == b'\n');
        Ok(text.split_off(end.map_or(text.len(), |end| end + 1)))
    }

    /// Returns whether the file exists. A pipe of this name is refused, because opening it would
    /// wait forever.
    fn check(&self) -> Result<bool, CommandError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => Ok(true),
            Ok(_) => Err(CommandError::refused(
                "not_a_file",
                format!("{} is not a file", self.path.display()),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for other processes that are using the file. The lock ends when the file is closed.
fn lock(file: &File) -> Result<(), CommandError> {
    let end = Monotonic::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Monotonic::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(CommandError::refused(
                    "sessions_busy",
                    "another process uses the file of remembered Sessions",
                ));
            }
            // Not every file system has locks. Without them, concurrent writes may be lost.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    const MINUTE: i64 = 60 * 1_000_000;

    fn at(microseconds: i64) -> Instant {
        let start = 1_793_491_200_000_000;
        Instant::from_microseconds(start + microseconds).unwrap()
    }

    fn entry(session_id: &str, file: Option<&str>, microseconds: Option<i64>) -> RememberedSession {
        RememberedSession {
            stamp: stamp("t", session_id).unwrap(),
            file: file.map(str::to_owned),
            remembered_at: microseconds.map(at),
        }
    }

    fn scratch() -> (tempfile::TempDir, RememberedSessions) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        (folder, RememberedSessions { path })
    }

    #[test]
    fn a_malformed_line_is_ignored() {
        let older = RememberedSession::read(br#"{"tool":"t","session_id":"s"}"#);
        assert_eq!(older, Some(entry("s", None, None)));
        let newer = entry("s", Some("a \"b\".rs"), Some(MINUTE));
        assert_eq!(
            RememberedSession::read(newer.line().trim_ascii_end()),
            Some(newer)
        );
        let later = br#"{"tool":"t","session_id":"s","remembered_at":"soon","more":1}"#;
        assert_eq!(RememberedSession::read(later), Some(entry("s", None, None)));
        for wrong in [
            &b""[..],
            b"{",
            b"[]",
            b"{}",
            b"\xff\xfe",
            br#"{"tool":"t"}"#,
            br#"{"tool":"","session_id":"s"}"#,
            // Without its file, the Session would count for any commit.
            br#"{"tool":"t","session_id":"s","file":7}"#,
            br#"{"tool":"t","session_id":"s","file":""}"#,
        ] {
            assert_eq!(RememberedSession::read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_age_and_the_number_of_entries_are_bounded() {
        let old = AGE_MICROSECONDS_MAX;
        let now = at(old);
        let entries = vec![
            entry("too old", Some("a"), Some(-1)),
            entry("old", Some("a"), Some(0)),
            entry("renewed", Some("a"), Some(0)),
            entry("without a time", None, None),
            entry("ahead", Some("a"), Some(old + MINUTE)),
            entry("renewed", Some("a"), Some(old)),
        ];
        let expected = [1, 3, 4, 5].map(|at| entries[at].clone());
        assert_eq!(kept(entries, now), expected);
        let many = |count| (0..count).map(|number| entry("s", Some(&format!("{number}")), None));
        let entries = kept(many(ENTRIES_MAX + 1).collect(), now);
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert_eq!(entries[0], entry("s", Some("1"), None));
        let long = "x".repeat(PATH_BYTES_MAX - 4);
        let large = (0..300).map(|number| entry("s", Some(&format!("{number:04}{long}")), None));
        let entries = kept(large.collect(), now);
        let bytes: usize = entries.iter().map(|entry| entry.line().len()).sum();
        assert!(entries.len() > 200 && bytes as u64 <= FILE_BYTES_MAX);
    }

    #[test]
    fn added_sessions_are_remembered_until_forgotten() {
        let (_folder, remembered) = scratch();
        assert_eq!(remembered.entries(at(0)).unwrap(), []);
        let [first, second] = [
            entry("a", Some("1"), Some(0)),
            entry("a", Some("2"), Some(0)),
        ];
        let both = [first.clone(), second.clone()];
        assert!(remembered.add(&both, at(0)).unwrap());
        let again = entry("a", Some("1"), Some(MINUTE));
        assert!(!remembered.add(&[again], at(MINUTE)).unwrap());
        assert_eq!(remembered.entries(at(MINUTE)).unwrap(), both);
        // An edit on a later day renews the entry.
        let later = 2 * DAY_MICROSECONDS;
        let renewed = entry("a", Some("1"), Some(later));
        assert!(
            !remembered
                .add(slice::from_ref(&renewed), at(later))
                .unwrap()
        );
        let entries = remembered.entries(at(later)).unwrap();
        assert_eq!(entries, [second.clone(), renewed.clone()]);
        // The entry was renewed after it was read.
        remembered.forget(&[first, second], at(later)).unwrap();
        assert_eq!(
            remembered.entries(at(later)).unwrap(),
            slice::from_ref(&renewed)
        );
        remembered.forget(&[renewed], at(later)).unwrap();
        assert_eq!(fs::read(&remembered.path).unwrap(), b"");
    }

    #[test]
    fn damage_loses_only_the_damaged_lines() {
        let (_folder, remembered) = scratch();
        let text = b"\xff\n{\"tool\":\"t\",\"session_id\":\"a\"}\n\0\n{\"tool\":\"t\",\"sess";
        fs::write(&remembered.path, text).unwrap();
        let [first, second] = [entry("a", None, None), entry("b", Some("1"), Some(0))];
        assert_eq!(remembered.entries(at(0)).unwrap(), slice::from_ref(&first));
        assert!(remembered.add(slice::from_ref(&second), at(0)).unwrap());
        assert_eq!(
            remembered.entries(at(0)).unwrap(),
            [first.clone(), second.clone()]
        );
        remembered.forget(&[first], at(0)).unwrap();
        assert_eq!(fs::read(&remembered.path).unwrap(), second.line());
    }

    #[test]
    fn a_too_large_file_is_read_from_its_end_and_shortened() {
        let (_folder, remembered) = scratch();
        let mut text = b"x".repeat(usize::try_from(FILE_BYTES_MAX).unwrap());
        text.push(b'\n');
        let [first, second] = [entry("a", Some("1"), None), entry("b", Some("1"), Some(0))];
        text.extend(first.line());
        fs::write(&remembered.path, text).unwrap();
        assert_eq!(remembered.entries(at(0)).unwrap(), slice::from_ref(&first));
        assert!(remembered.add(slice::from_ref(&second), at(0)).unwrap());
        let lines = [first.line(), second.line()].concat();
        assert_eq!(fs::read(&remembered.path).unwrap(), lines);
    }

    #[test]
    fn a_locked_file_or_a_pipe_is_an_error_without_waiting() {
        let (_folder, remembered) = scratch();
        let added = [entry("a", Some("1"), Some(0))];
        let held = private::append_to(&remembered.path).unwrap();
        held.lock().unwrap();
        let busy = remembered.add(&added, at(0)).unwrap_err();
        assert_eq!(busy.code(), "sessions_busy");
        drop(held);
        fs::remove_file(&remembered.path).unwrap();
        let status = std::process::Command::new("mkfifo")
            .arg(&remembered.path)
            .status();
        assert!(status.unwrap().success());
        for error in [
            remembered.entries(at(0)).unwrap_err(),
            remembered.add(&added, at(0)).unwrap_err(),
            remembered.forget(&added, at(0)).unwrap_err(),
        ] {
            assert_eq!(error.code(), "not_a_file");
        }
    }
}
