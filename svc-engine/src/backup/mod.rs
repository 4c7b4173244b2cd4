//! Backups: folders with everything that the service stores. How they are made, verified and
//! restored.
//!
//! | File | Content |
//! |---|---|
//! | `manifest.json` | what the backup contains, and a digest of each table and mirror; written last |
//! | `tables/TABLE.rows` | the rows of a table, all tables from one snapshot |
//! | `mirrors/NUMBER.rows` | a mirror, copied after the snapshot |
//! | `SHA256SUMS` | the digests again, in the format of `sha256sum --check` |
//!
//! The format does not depend on the backend. A backup is written under a temporary name and
//! renamed at the end, so a folder with its final name is complete.

mod manifest;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use svc_model::id::OrgId;
use svc_model::json;
use svc_model::time::Instant;

pub use self::manifest::{FORMAT, FORMAT_VERSION, Manifest, MirrorFile};
use svc_engine_fact::Lifetime;
use svc_engine_fact::private;
use svc_engine_mirror::{ArchiveError, MirrorFolder};
use svc_engine_store::backup::{
    CopyError, Damage, Findings, KeptOrganization, LoadRequest, OperatorDecisions, Watch,
    hexadecimal, read_archive, take, verify_store, verify_tables,
};
pub use svc_engine_store::backup::{FetchedMirror, UndoneDecision};
use svc_engine_store::{
    Compaction, DatabaseUrl, ErasureOrder, KeptErasures, SchemaState, StoreError, schema_state,
};

const MANIFEST: &str = "manifest.json";
const SUMS: &str = "SHA256SUMS";
const MIRRORS: &str = "mirrors";
/// The maximum bytes of the manifest and of the digests.
const LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What follows the name of a backup until it is complete; the number of its process comes next.
const UNFINISHED: &str = ".unfinished-";

/// Why a backup cannot be made, verified or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The tables cannot be copied.
    #[error(transparent)]
    Tables(#[from] CopyError),
    /// A mirror cannot be copied.
    #[error("cannot copy the mirror of {repository}")]
    Mirror {
        /// The repository.
        repository: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store is restored, but not every mirror.
    #[error("the store is restored, but not every mirror: that of {repository}")]
    MirrorNotRestored {
        /// The repository.
        repository: String,
        /// What was restored before.
        restored: Box<RestoredStore>,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The folder of the mirrors cannot be read.
    #[error("cannot use the folder of the mirrors, {}", folder.display())]
    Mirrors {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written or read.
    #[error("cannot use the folder of the backup")]
    Folder(#[from] io::Error),
    /// Something with the backup's name exists.
    #[error("there is something at {} already", .0.display())]
    Exists(PathBuf),
    /// The folder contains no backup, or an incomplete one.
    #[error("{} is no backup: it has no manifest that can be read", .0.display())]
    NoBackup(PathBuf),
    /// A mirror in the backup holds something besides refs and objects.
    #[error(
        "{file} of the backup holds {name}, which no backup of a mirror has and git might obey"
    )]
    Foreign {
        /// The file of the mirror.
        file: String,
        /// What it holds.
        name: String,
    },
    /// The backup has a different version of the format.
    #[error("the backup has format {0}, this version reads {FORMAT_VERSION}")]
    OtherFormat(u64),
    /// The backup has a different revision of the schema.
    #[error("the backup has revision {kept} of the schema, made by svc {version}; this version has {head}",
        head = SchemaState::head())]
    OtherRevision {
        /// The backup's revision.
        kept: i64,
        /// The version of svc that created the backup.
        version: String,
    },
}

/// The result of a restore.
#[derive(Debug)]
pub struct RestoredStore {
    /// The backup.
    pub manifest: Manifest,
    /// Where the replaced database file is now.
    pub replaced: Option<PathBuf>,
    /// Mirrors that were restored.
    pub mirrors_restored: u64,
    /// Mirrors that already existed and were not changed.
    pub mirrors_kept: u64,
    /// Facts whose content had been erased from the replaced store, and was erased again after it
    /// came back with the backup. `None` if the erasures of the replaced store could not be read.
    pub erased_again: Option<u64>,
    /// Set if the files of the database may still hold the bytes of what was erased again.
    pub bytes_left: Option<BytesLeft>,
    /// The operators' decisions of the replaced store that the backup lacks. They are not made
    /// again. `None` if the decisions of the replaced store could not be read.
    pub undone: Option<Vec<UndoneDecision>>,
}

/// The files of a restored database may still hold the bytes of what was erased again.
#[derive(Debug)]
pub struct BytesLeft {
    /// An erasure that was repeated, and its organization. Repeating it once more rewrites the files.
    pub order: (OrgId, ErasureOrder),
    /// Why the files could not be rewritten. `None` if readers still used the old state.
    pub cause: Option<StoreError>,
}

/// Backs up a store into a new folder, along with the mirrors if their folder is given. Servers may
/// keep running. Mirrors that were fetched according to the store but are not in their folder are
/// named in the manifest, and everything else is still backed up.
///
/// # Errors
///
/// If the name is taken, or if the store, a mirror or the folder cannot be used. Then nothing is
/// left behind.
pub fn back_up(
    url: &DatabaseUrl,
    mirrors: Option<&Path>,
    folder: &Path,
    taken_at: Instant,
    watch: &mut Watch<'_>,
) -> Result<Manifest, BackupError> {
    if fs::symlink_metadata(folder).is_ok() {
        return Err(BackupError::Exists(folder.to_owned()));
    }
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(format!("{UNFINISHED}{}", std::process::id()));
    let unfinished = folder.with_file_name(name);
    // Somebody else could read and change a backup in a folder that was there before.
    private::create_new_folder(&unfinished)?;
    let made = write(url, mirrors, &unfinished, taken_at, watch).and_then(|manifest| {
        fs::rename(&unfinished, folder)?;
        sync(folder.parent())?;
        Ok(manifest)
    });
    if made.is_err() {
        drop(fs::remove_dir_all(&unfinished));
    }
    made
}

/// Returns what killed commands left of backups with this name, and what others may be writing now.
pub fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let name = folder.file_name().unwrap_or_default();
    let mut left = unfinished_in(folder.parent().unwrap_or(Path::new("")));
    left.retain(|path| path.file_stem() == Some(name));
    left
}

/// Returns what killed commands left of backups in this folder, and what others may be writing now.
pub fn unfinished_in(folder: &Path) -> Vec<PathBuf> {
    let is_here = folder.as_os_str().is_empty();
    let entries = fs::read_dir(if is_here { Path::new(".") } else { folder });
    let is_unfinished = |name: &str| {
        let process = name.rsplit_once(UNFINISHED).map(|(_, process)| process);
        process.is_some_and(|process| process.parse::<u32>().is_ok())
    };
    let names = entries.into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name());
    let mut left: Vec<PathBuf> = names
        .filter(|name| name.to_str().is_some_and(is_unfinished))
        .map(|name| folder.join(name))
        .collect();
    left.sort();
    left
}

fn write(
    url: &DatabaseUrl,
    mirrors: Option<&Path>,
    folder: &Path,
    taken_at: Instant,
    watch: &mut Watch<'_>,
) -> Result<Manifest, BackupError> {
    let taken = take(url, folder, watch)?;
    let (mirrors, mirrors_missing) = match mirrors {
        Some(root) => {
            let kept = keep_mirrors(root, &taken.organizations, folder, watch)?;
            let missing = missing(taken.mirrors, &kept);
            (Some(kept), missing)
        }
        None => (None, missing(taken.mirrors, &[])),
    };
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        format_version: FORMAT_VERSION,
        svc_version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: url.backend().to_owned(),
        schema_revision: taken.schema_revision,
        taken_at,
        organizations: taken.organizations,
        tables: taken.tables,
        mirrors,
        mirrors_missing,
    };
    let mut text = json::to_vec(&manifest, usize::MAX).map_err(io::Error::other)?;
    text.push(b'\n');
    let mut sums = String::new();
    for (file, _, sha256) in manifest.files() {
        writeln!(sums, "{sha256}  {file}").expect("writing to a string cannot fail");
    }
    let digest = hexadecimal(&Sha256::digest(&text));
    writeln!(sums, "{digest}  {MANIFEST}").expect("writing to a string cannot fail");
    private::write_new(&folder.join(SUMS), sums.as_bytes())?;
    private::write_new(&folder.join(MANIFEST), &text)?;
    for within in ["tables", MIRRORS, ""] {
        let within = folder.join(within);
        if within.is_dir() {
            sync(Some(&within))?;
        }
    }
    Ok(manifest)
}

fn keep_mirrors(
    root: &Path,
    organizations: &[KeptOrganization],
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Vec<MirrorFile>, BackupError> {
    private::create_folder(&folder.join(MIRRORS))?;
    let mut files = Vec::new();
    for organization in organizations {
        let mirrors = MirrorFolder::new(root, organization.org_id.clone());
        let present = mirrors.mirrors().map_err(|source| BackupError::Mirrors {
            folder: root.to_owned(),
            source,
        })?;
        for lifetime in present {
            let file = format!("{MIRRORS}/{}.rows", files.len() + 1);
            (watch.progress)(MIRRORS, files.len() as u64);
            let written =
                svc_engine_mirror::keep(&mirrors, &lifetime, &folder.join(&file), &watch.deadline)
                    .map_err(|error| of_mirror(&lifetime, error))?;
            files.push(MirrorFile {
                org_id: organization.org_id.clone(),
                repository: lifetime.to_string(),
                file,
                rows: written.rows,
                bytes: written.bytes,
                sha256: written.sha256,
            });
        }
    }
    Ok(files)
}

/// Returns the mirrors that were fetched but are not in the backup.
fn missing(mut fetched: Vec<FetchedMirror>, kept: &[MirrorFile]) -> Vec<FetchedMirror> {
    let kept: HashSet<_> = kept
        .iter()
        .map(|mirror| (&mirror.org_id, &*mirror.repository))
        .collect();
    fetched.retain(|mirror| !kept.contains(&(&mirror.org_id, &*mirror.repository)));
    fetched
}

fn of_mirror(lifetime: &Lifetime, error: ArchiveError) -> BackupError {
    BackupError::Mirror {
        repository: lifetime.to_string(),
        source: Box::new(error),
    }
}

fn sync(folder: Option<&Path>) -> io::Result<()> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Reads the manifest of a backup.
///
/// # Errors
///
/// If the folder does not contain a complete backup of this format.
pub fn read_manifest(folder: &Path) -> Result<Manifest, BackupError> {
    let none = || BackupError::NoBackup(folder.to_owned());
    let text = private::read_plain(&folder.join(MANIFEST), LIST_BYTES_MAX).map_err(|_| none())?;
    let manifest: Manifest = json::from_slice(&text).map_err(|_| none())?;
    if manifest.format != FORMAT {
        return Err(none());
    }
    if manifest.format_version != FORMAT_VERSION {
        return Err(BackupError::OtherFormat(manifest.format_version));
    }
    let is_below = |file: &str| {
        let parts = Path::new(file).components();
        parts
            .clone()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
            && parts.count() == 2
    };
    if manifest.files().any(|(file, _, _)| !is_below(file)) {
        return Err(none());
    }
    Ok(manifest)
}

/// Restores a backup into an empty store, or in place of a store if `replace` is set, and the
/// mirrors that are absent into a folder. The backup may be from either backend.
///
/// # Errors
///
/// If the store is not empty and may not be replaced, if a file of the backup is damaged, or if
/// `SHA256SUMS` does not match. Then the store is unchanged. After
/// [`BackupError::MirrorNotRestored`] the store has been restored.
pub fn restore(
    folder: &Path,
    url: &DatabaseUrl,
    mirrors: Option<&Path>,
    replace: bool,
    watch: &mut Watch<'_>,
) -> Result<RestoredStore, BackupError> {
    let manifest = read_manifest(folder)?;
    if manifest.schema_revision != SchemaState::head() {
        return Err(BackupError::OtherRevision {
            kept: manifest.schema_revision,
            version: manifest.svc_version,
        });
    }
    check_files(folder, &manifest, mirrors.is_some(), watch)?;
    let erasures = of_replaced(url, |url| KeptErasures::of(url, &watch.deadline));
    let decisions = of_replaced(url, |url| OperatorDecisions::of(url, &watch.deadline));
    let nothing = KeptErasures::default();
    let loading = LoadRequest {
        folder,
        tables: &manifest.tables,
        replace,
        erasures: erasures.as_ref().unwrap_or(&nothing),
    };
    let loaded = loading.load(url, watch)?;
    let undone = decisions.and_then(|before| {
        let left = OperatorDecisions::of(url, &watch.deadline).ok()?;
        Some(before.undone(&left))
    });
    let mut restored = RestoredStore {
        replaced: loaded.replaced,
        erased_again: erasures.map(|_| loaded.erased_again.facts),
        bytes_left: bytes_left(loaded.compaction, loaded.erased_again.last),
        undone,
        mirrors_restored: 0,
        mirrors_kept: 0,
        manifest,
    };
    let Some(root) = mirrors else {
        return Ok(restored);
    };
    let kept = restored.manifest.mirrors.clone().unwrap_or_default();
    for file in kept {
        let lifetime = Lifetime::parse(&file.repository);
        let lifetime = lifetime.ok_or_else(|| BackupError::NoBackup(folder.to_owned()))?;
        let mirrors = MirrorFolder::new(root, file.org_id);
        (watch.progress)(MIRRORS, restored.mirrors_restored);
        let from = folder.join(&file.file);
        match svc_engine_mirror::put_back(&mirrors, &lifetime, &from, &watch.deadline) {
            Ok(true) => restored.mirrors_restored += 1,
            Ok(false) => restored.mirrors_kept += 1,
            Err(error) => {
                return Err(BackupError::MirrorNotRestored {
                    repository: lifetime.to_string(),
                    restored: Box::new(restored),
                    source: Box::new(error),
                });
            }
        }
    }
    Ok(restored)
}

fn bytes_left(
    compaction: Result<Compaction, StoreError>,
    order: Option<(OrgId, ErasureOrder)>,
) -> Option<BytesLeft> {
    let cause = match compaction {
        Ok(Compaction::Done) => return None,
        Ok(Compaction::InUse) => None,
        Err(error) => Some(error),
    };
    order.map(|order| BytesLeft { order, cause })
}

/// Refuses a backup whose files do not match their digests, before anything of it is restored. The
/// tables are checked later, as they are read.
fn check_files(
    folder: &Path,
    manifest: &Manifest,
    with_mirrors: bool,
    watch: &mut Watch<'_>,
) -> Result<(), BackupError> {
    let damaged = |file: &str| CopyError::Damaged {
        file: file.to_owned(),
    };
    match unconfirmed(folder, manifest)? {
        UnconfirmedFiles::Files(files) if files.is_empty() => {}
        _ => return Err(damaged(SUMS).into()),
    }
    for file in manifest.mirrors.iter().flatten().filter(|_| with_mirrors) {
        match flaw(folder, file, watch)? {
            None => {}
            Some(Flaw::Damaged) => return Err(damaged(&file.file).into()),
            Some(Flaw::Foreign(name)) => {
                let file = file.file.clone();
                return Err(BackupError::Foreign { file, name });
            }
        }
    }
    Ok(())
}

/// What `SHA256SUMS` does not confirm.
enum UnconfirmedFiles {
    /// There is no such file.
    All,
    /// For these files, it differs from the manifest.
    Files(Vec<String>),
}

fn unconfirmed(folder: &Path, manifest: &Manifest) -> io::Result<UnconfirmedFiles> {
    let sums = match private::read_plain(&folder.join(SUMS), LIST_BYTES_MAX) {
        // Digests that are no text confirm nothing.
        Ok(sums) => String::from_utf8(sums).unwrap_or_default(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(UnconfirmedFiles::All),
        Err(error) => return Err(error),
    };
    let lines: HashSet<&str> = sums.lines().collect();
    let text = private::read_plain(&folder.join(MANIFEST), LIST_BYTES_MAX)?;
    let digest = hexadecimal(&Sha256::digest(&text));
    let files = manifest.files().chain([(MANIFEST, 0, &*digest)]);
    let missing = files.filter(|(file, _, sha256)| !lines.contains(&*format!("{sha256}  {file}")));
    let missing = missing.map(|(file, _, _)| file.to_owned());
    Ok(UnconfirmedFiles::Files(missing.collect()))
}

/// What is wrong with a mirror's file.
enum Flaw {
    /// It is not the file that was written.
    Damaged,
    /// It holds something besides refs and objects.
    Foreign(String),
}

fn flaw(
    folder: &Path,
    file: &MirrorFile,
    watch: &mut Watch<'_>,
) -> Result<Option<Flaw>, BackupError> {
    (watch.progress)(MIRRORS, 0);
    let mut foreign = None;
    let read = read_archive(&folder.join(&file.file), |name, piece| {
        if foreign.is_none() && !svc_engine_mirror::belongs(name, piece.is_none()) {
            foreign = Some(name.to_owned());
        }
        watch.deadline.check().map_err(io::Error::other)
    });
    watch
        .deadline
        .check()
        .map_err(|error| CopyError::from(StoreError::from(error)))?;
    let is_whole = matches!(&read, Ok(Some(written))
        if (written.rows, written.bytes, &written.sha256) == (file.rows, file.bytes, &file.sha256));
    Ok(if is_whole {
        foreign.map(Flaw::Foreign)
    } else {
        Some(Flaw::Damaged)
    })
}

/// Reads something of the store that a backup replaces. A store without a schema has nothing. `None`
/// if it cannot be read, because a store may be replaced for being damaged.
fn of_replaced<T: Default>(
    url: &DatabaseUrl,
    read: impl FnOnce(&DatabaseUrl) -> Result<T, StoreError>,
) -> Option<T> {
    match schema_state(url) {
        Ok(SchemaState::Absent) => Some(T::default()),
        Ok(_) => read(url).ok(),
        Err(_) => None,
    }
}

/// Verifies a backup: the digest of each file, and the invariants of stores.
pub fn verify_backup(
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<(Manifest, Findings), BackupError> {
    let manifest = read_manifest(folder)?;
    if manifest.schema_revision != SchemaState::head() {
        return Err(BackupError::OtherRevision {
            kept: manifest.schema_revision,
            version: manifest.svc_version,
        });
    }
    let mut findings = verify_tables(folder, &manifest.tables, watch).map_err(CopyError::from)?;
    match unconfirmed(folder, &manifest)? {
        UnconfirmedFiles::All => {
            findings.add(SUMS, None, Damage::FileDamaged, "the file is absent");
        }
        UnconfirmedFiles::Files(files) => {
            for file in files {
                let detail = "SHA256SUMS says otherwise";
                findings.add(&file, None, Damage::FileDamaged, detail);
            }
        }
    }
    // Somebody who excludes the mirrors knows that they are missing.
    let missing = manifest.mirrors.as_ref().map(|_| &manifest.mirrors_missing);
    for missing in missing.into_iter().flatten() {
        let id = Some(&*missing.repository);
        let detail = "its folder was absent when the backup was made";
        findings.add(MIRRORS, id, Damage::MirrorAbsent, detail);
    }
    for file in manifest.mirrors.iter().flatten() {
        let detail = match flaw(folder, file, watch)? {
            None => continue,
            Some(Flaw::Damaged) => file.file.clone(),
            Some(Flaw::Foreign(name)) => {
                format!("{} holds {name}, which git might obey", file.file)
            }
        };
        findings.add(
            MIRRORS,
            Some(&*file.repository),
            Damage::FileDamaged,
            detail,
        );
    }
    Ok((manifest, findings))
}

/// Verifies a store.
///
/// # Errors
///
/// If the store cannot be read, or the deadline passes.
pub fn verify(url: &DatabaseUrl, watch: &mut Watch<'_>) -> Result<Findings, BackupError> {
    Ok(verify_store(url, watch).map_err(CopyError::from)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use svc_engine_fact::deadline::Deadline;
    use svc_engine_store::backup::ArchiveWriter;

    use super::*;

    /// Anybody who can write a backup can recompute its digests.
    #[test]
    fn a_mirror_with_something_that_git_might_obey_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(MIRRORS)).unwrap();
        for (number, (name, expected)) in [("refs/heads/main", None), ("config", Some("config"))]
            .into_iter()
            .enumerate()
        {
            let file = format!("{MIRRORS}/{number}.rows");
            let mut writer = ArchiveWriter::create(&folder.path().join(&file)).unwrap();
            writer.piece(name, b"x").unwrap();
            let written = writer.finish().unwrap();
            let file = MirrorFile {
                org_id: OrgId::new("acme").unwrap(),
                repository: "own/name".to_owned(),
                file,
                rows: written.rows,
                bytes: written.bytes,
                sha256: written.sha256,
            };
            let mut watch = Watch {
                deadline: Deadline::after(Duration::from_mins(1)),
                progress: &mut |_, _| {},
            };
            let found = match flaw(folder.path(), &file, &mut watch).unwrap() {
                None => None,
                Some(Flaw::Foreign(name)) => Some(name),
                Some(Flaw::Damaged) => panic!("it is whole"),
            };
            assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn lists_that_are_no_plain_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join(MANIFEST);
        std::os::unix::fs::symlink("/dev/zero", &manifest).unwrap();
        let read = read_manifest(folder.path());
        assert!(matches!(read, Err(BackupError::NoBackup(_))), "{read:?}");
    }

    #[test]
    fn unfinished_backups_are_found_by_their_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.unfinished-7", "b.unfinished-x", "c.unfinished-7", "b"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let [b, c] = ["b.unfinished-7", "c.unfinished-7"].map(|name| folder.path().join(name));
        assert_eq!(
            unfinished(&folder.path().join("b")),
            std::slice::from_ref(&b)
        );
        assert_eq!(unfinished_in(folder.path()), [b, c]);
    }
}
