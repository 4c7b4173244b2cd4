//! The locations of mirrors, and their locks.
//!
//! | Path under the root | Content |
//! |---|---|
//! | `repositories-v1/ORG/PROVIDER/HOST/ID` | the bare repository of an identified lifetime |
//! | `ORG%2FOWNER%2FNAME` | the bare repository of a bare name |
//! | `.locks/…` | the lock file of each mirror, under the same path, held by whoever changes the mirror |
//! | `.reading-locks/…` | a second lock file, shared by readers, and held exclusively to remove the mirror |
//!
//! Every part is percent-encoded except letters, digits, `_`, `.`, `-` and `~`. A mirror exists if
//! it has a `HEAD`. A rename moves nothing, because an identity keeps its folder.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Passed;
use svc_engine_fact::private;
use svc_model::id::OrgId;
use svc_model::repository::RepositoryProvider;

use super::allowance::{Allowance, StopReason};

const IDENTIFIED: &str = "repositories-v1";
const LOCKS: &str = ".locks";
const KEEPS: &str = ".reading-locks";
/// The maximum bytes of a file name, on every common file system.
const FILE_NAME_BYTES_MAX: usize = 255;
/// How often to try a lock that somebody else holds.
const LOOK: Duration = Duration::from_millis(50);

/// The mirrors of one organization.
#[derive(Clone, Debug)]
pub struct MirrorFolder {
    root: PathBuf,
    org_id: OrgId,
}

/// Exclusive use of a mirror, while this is held.
#[derive(Debug)]
pub(super) struct MirrorLock {
    file: File,
}

/// Protection of a mirror from removal, while this is held.
#[derive(Debug)]
pub(super) struct RemovalGuard {
    _file: File,
}

/// Why a mirror cannot be locked.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another process on this machine is using the mirror.
    #[error("another process works on the mirror")]
    Taken,
    /// The work was stopped.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// The folder cannot be used.
    #[error("the folder of the mirrors cannot be used")]
    Folder(#[from] io::Error),
}

impl MirrorFolder {
    /// Creates a handle to the folder. The folder itself is created when needed.
    pub fn new(root: &Path, org_id: OrgId) -> Self {
        Self {
            root: root.to_owned(),
            org_id,
        }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a repository's mirror, whether or not it exists.
    pub fn path(&self, lifetime: &Lifetime) -> PathBuf {
        self.root.join(self.relative(lifetime))
    }

    /// Returns whether a mirror exists.
    pub fn exists(&self, lifetime: &Lifetime) -> bool {
        self.path(lifetime).join("HEAD").is_file()
    }

    /// Locks a mirror. `wait` limits how long to wait for others on this machine.
    pub(super) fn lock(
        &self,
        lifetime: &Lifetime,
        wait: &Allowance,
    ) -> Result<MirrorLock, LockError> {
        let file = self.hold(LOCKS, lifetime, File::try_lock, wait)?;
        Ok(MirrorLock { file })
    }

    /// Protects a mirror from removal while it is read. Others may read it too, and a fetch may run
    /// at the same time, because it only adds objects.
    pub(super) fn keep(
        &self,
        lifetime: &Lifetime,
        wait: &Allowance,
    ) -> Result<RemovalGuard, LockError> {
        let file = self.hold(KEEPS, lifetime, File::try_lock_shared, wait)?;
        Ok(RemovalGuard { _file: file })
    }

    /// Removes a locked mirror. `wait` limits how long to wait for its readers.
    pub(super) fn remove(
        &self,
        lifetime: &Lifetime,
        _lock: &MirrorLock,
        wait: &Allowance,
    ) -> Result<(), LockError> {
        let alone = self.hold(KEEPS, lifetime, File::try_lock, wait)?;
        let path = self.path(lifetime);
        // A mirror without a `HEAD` counts as absent: if this is interrupted, the mirror is fetched
        // anew.
        for removed in [
            fs::remove_file(path.join("HEAD")),
            fs::remove_dir_all(&path),
        ] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        drop(alone);
        Ok(())
    }

    /// Opens and locks a lock file. `wait` limits how long to wait.
    fn hold(
        &self,
        kind: &str,
        lifetime: &Lifetime,
        try_lock: fn(&File) -> Result<(), TryLockError>,
        wait: &Allowance,
    ) -> Result<File, LockError> {
        let path = self.root.join(kind).join(self.relative(lifetime));
        loop {
            private::create_folder_of(&path)?;
            let file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)?;
            match try_lock(&file) {
                // If the folder of the mirrors was removed, this lock file went with it, and the
                // next process would lock a different file.
                Ok(()) if is_at(&file, &path)? => return Ok(file),
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => match wait.left() {
                    Ok(left) => thread::sleep(left.min(LOOK)),
                    Err(StopReason::Passed(Passed::Time)) => return Err(LockError::Taken),
                    Err(stopped) => return Err(stopped.into()),
                },
            }
        }
    }

    /// Returns the existing mirrors, ordered by their repositories.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    pub fn mirrors(&self) -> io::Result<Vec<Lifetime>> {
        let mut mirrors = Vec::new();
        let identified = self
            .root
            .join(IDENTIFIED)
            .join(encode(self.org_id.as_str()));
        for provider in entries(&identified)? {
            for host in entries(&identified.join(&provider))? {
                for id in entries(&identified.join(&provider).join(&host))? {
                    let parts = [&provider, &host, &id].map(|part| decode(part));
                    mirrors.extend(Lifetime::parse(&parts.join("/")));
                }
            }
        }
        for name in entries(&self.root)? {
            mirrors.extend(self.named(&name));
        }
        mirrors.retain(|lifetime| self.exists(lifetime));
        mirrors.sort();
        Ok(mirrors)
    }

    /// Returns the bare name of the mirror in this folder under the root.
    fn named(&self, folder: &str) -> Option<Lifetime> {
        let decoded = decode(folder);
        let prefix = format!("{}/", self.org_id);
        let spelled = decoded.strip_prefix(&prefix).map(str::to_owned);
        // A name that is too long for a folder name is in the mirror's description.
        let described = || fs::read_to_string(self.root.join(folder).join("description")).ok();
        spelled
            .into_iter()
            .chain(std::iter::once_with(described).flatten())
            .filter_map(|text| Lifetime::parse(text.trim_end()))
            .find(|lifetime| self.relative(lifetime) == Path::new(folder))
    }

    fn relative(&self, lifetime: &Lifetime) -> PathBuf {
        match lifetime {
            Lifetime::Identified(identity) => [
                IDENTIFIED,
                &encode(self.org_id.as_str()),
                &encode(RepositoryProvider::as_str(identity.repository_provider)),
                &encode(identity.repository_host.as_str()),
                &encode(identity.repository_id.as_str()),
            ]
            .iter()
            .collect(),
            Lifetime::Named(name) => {
                let text = format!("{}/{name}", self.org_id);
                PathBuf::from(shortened(encode(&text), &text))
            }
        }
    }
}

impl MirrorLock {
    /// Returns a handle to the lock for another process, which then holds it too.
    pub(super) fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Returns whether an open file is the file at a path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let open = identity(file.metadata()?);
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(identity(there) == open),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns a name that fits. A longer one is cut and its hash is appended. Cut names have exactly
/// the maximum length, and no other names do.
fn shortened(encoded: String, text: &str) -> String {
    if encoded.len() < FILE_NAME_BYTES_MAX {
        return encoded;
    }
    let digest = Sha256::digest(text);
    let mut end = String::from("~");
    for byte in digest {
        write!(end, "{byte:02x}").expect("writing to a string cannot fail");
    }
    let mut short = encoded;
    short.truncate(FILE_NAME_BYTES_MAX - end.len());
    short + &end
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'~') {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    encoded
}

fn decode(encoded: &str) -> String {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (byte, after) = match byte {
            Some(byte) if *first == b'%' => (byte, &after[2..]),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the names of the folders in a folder; empty if the folder is absent.
fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::deadline::Deadline;

    use super::*;

    fn lifetime(text: &str) -> Lifetime {
        Lifetime::parse(text).unwrap()
    }

    fn folder(root: &Path) -> MirrorFolder {
        MirrorFolder::new(root, OrgId::new("acme").unwrap())
    }

    #[test]
    fn every_repository_has_its_own_path() {
        let folder = folder(Path::new("/m"));
        for (text, path) in [
            (
                "github/github.com/11",
                "/m/repositories-v1/acme/github/github.com/11",
            ),
            ("o/leg", "/m/acme%2Fo%2Fleg"),
            ("o_~.-/../".trim_end_matches('/'), "/m/acme%2Fo_~.-%2F.."),
            ("a b/caf\u{e9}%", "/m/acme%2Fa%20b%2Fcaf%C3%A9%25"),
        ] {
            assert_eq!(folder.path(&lifetime(text)), Path::new(path));
        }
    }

    #[test]
    fn a_long_name_has_its_own_path() {
        let folder = folder(Path::new("/m"));
        let name = |lifetime: &Lifetime| {
            let path = folder.path(lifetime);
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let mut names = std::collections::HashSet::new();
        for length in [200, 245, 246, 247, 248, 249, 300, 1_000] {
            let short = name(&lifetime(&format!("o/{}", "x".repeat(length))));
            assert!(short.len() <= FILE_NAME_BYTES_MAX, "{length}");
            assert_eq!(short.len() == 255, short.contains('~'), "{length}");
            assert!(names.insert(short));
        }
        let first = name(&lifetime(&format!("o/{}1", "\u{e9}".repeat(300))));
        let second = name(&lifetime(&format!("o/{}2", "\u{e9}".repeat(300))));
        assert_ne!(first, second);
    }

    #[test]
    fn existing_mirrors_are_found_under_any_name() {
        let root = tempfile::tempdir().unwrap();
        let mine = folder(root.path());
        let long = format!("o/{}", "x".repeat(300));
        let all = [
            "github/example.test/7",
            "github/github.com/11",
            "a b/caf\u{e9}%",
            "o/leg",
            &long,
        ];
        for text in all {
            let path = mine.path(&lifetime(text));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("HEAD"), "").unwrap();
            fs::write(path.join("description"), format!("{text}\n")).unwrap();
        }
        let unfinished = mine.path(&lifetime("o/unfinished"));
        fs::create_dir_all(unfinished).unwrap();
        let others = MirrorFolder::new(root.path(), OrgId::new("other").unwrap());
        assert_eq!(others.mirrors().unwrap(), []);
        assert_eq!(mine.mirrors().unwrap(), all.map(lifetime));
        let absent = folder(&root.path().join("absent"));
        assert_eq!(absent.mirrors().unwrap(), []);
    }

    #[test]
    fn a_removed_lock_file_locks_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folder = folder(root.path());
        let wait = Allowance::until(Deadline::after(Duration::from_secs(20)));
        let lifetime = lifetime("o/a");
        let path = root.path().join(LOCKS).join(folder.relative(&lifetime));
        let first = folder.lock(&lifetime, &wait).unwrap();
        thread::scope(|scope| {
            // The waiting thread has opened the file before it is removed, and gets its lock
            // afterwards.
            let waiting = scope.spawn(|| folder.lock(&lifetime, &wait).unwrap());
            while fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
                .filter(|target| *target == path)
                .count()
                < 2
            {
                thread::sleep(Duration::from_millis(1));
            }
            fs::remove_dir_all(root.path().join(LOCKS)).unwrap();
            drop(first);
            let second = waiting.join().unwrap();
            assert!(is_at(&second.file, &path).unwrap());
        });
    }

    #[test]
    fn a_mirror_may_be_changed_but_not_removed_while_it_is_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = folder(root.path());
        let lifetime = lifetime("o/a");
        fs::create_dir_all(folder.path(&lifetime)).unwrap();
        fs::write(folder.path(&lifetime).join("HEAD"), "").unwrap();
        let wait =
            |milliseconds| Allowance::until(Deadline::after(Duration::from_millis(milliseconds)));
        let lock = folder.lock(&lifetime, &wait(0)).unwrap();
        let readers = [0, 1].map(|_| folder.keep(&lifetime, &wait(0)).unwrap());
        let removed = folder.remove(&lifetime, &lock, &wait(80));
        assert!(matches!(removed, Err(LockError::Taken)));
        assert!(folder.exists(&lifetime));
        drop(readers);
        // A program that another thread starts holds every open file for a moment.
        folder.remove(&lifetime, &lock, &wait(5_000)).unwrap();
        assert!(!folder.path(&lifetime).exists());
        folder.remove(&lifetime, &lock, &wait(5_000)).unwrap();
    }

    #[test]
    fn only_one_holder_at_a_time_locks_a_mirror() {
        let root = tempfile::tempdir().unwrap();
        let folder = folder(&root.path().join("new"));
        let wait =
            |milliseconds| Allowance::until(Deadline::after(Duration::from_millis(milliseconds)));
        let first = folder.lock(&lifetime("o/a"), &wait(0)).unwrap();
        assert!(matches!(
            folder.lock(&lifetime("o/a"), &wait(80)),
            Err(LockError::Taken)
        ));
        let other = folder.lock(&lifetime("o/b"), &wait(0)).unwrap();
        let shared = first.share().unwrap();
        drop((first, other));
        assert!(matches!(
            folder.lock(&lifetime("o/a"), &wait(0)),
            Err(LockError::Taken)
        ));
        drop(shared);
        // A program that another thread starts holds every open file for a moment.
        folder.lock(&lifetime("o/a"), &wait(5_000)).unwrap();
        let mode = fs::metadata(folder.root()).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
            0o700
        );
    }
}
