//! Copies a mirror into a single file, and restores it. The mirror is locked meanwhile.
//!
//! Only what came from the forge is copied and restored: refs and objects. Everything that git obeys,
//! such as the configuration, is made anew, because somebody else may have written the file.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::private;
use svc_engine_store::backup::{ArchiveWriter, WrittenFile, read_archive};

use super::allowance::Allowance;
use super::folder::{LockError, MirrorFolder};
use super::{obeyed, unfinished};

/// How long to wait for a running refresh, which is a little longer than a refresh may take.
const LOCK_WAIT: Duration = Duration::from_mins(3);
/// The maximum bytes of a block.
const PIECE_BYTES: usize = 256 * 1024;

/// Why a mirror was not copied or restored.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The mirror is in use, or its folder cannot be used.
    #[error("the mirror cannot be locked")]
    Lock(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file cannot be read or written.
    #[error("cannot read or write a file of the mirror")]
    File(#[from] io::Error),
    /// The archive file is damaged.
    #[error("the file of the mirror is damaged")]
    Damaged,
}

impl From<LockError> for ArchiveError {
    fn from(error: LockError) -> Self {
        Self::Lock(Box::new(error))
    }
}

/// Returns whether a file or a folder of a mirror came from the forge: refs and objects.
pub fn belongs(name: &str, is_folder: bool) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_fan = |part: &str| part.len() == 2 && is_hexadecimal(part);
    match (&parts[..], is_folder) {
        (["HEAD" | "packed-refs"], false) | (["objects"] | ["objects", "pack"], true) => true,
        (["refs", within @ ..], is_folder) => {
            let is_plain = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains('\0');
            within.iter().all(is_plain)
                && (is_folder || !within.is_empty())
                && !within.last().is_some_and(|last| unfinished::is_lock(last))
        }
        (["objects", fan], true) => is_fan(fan),
        (["objects", "pack", file], false) => pack_id(file).is_some(),
        (["objects", fan, rest], false) => {
            is_fan(fan) && matches!(rest.len(), 38 | 62) && is_hexadecimal(rest)
        }
        _ => false,
    }
}

/// Returns the id in the name of a file of a pack.
fn pack_id(file: &str) -> Option<&str> {
    let (id, kind) = file.strip_prefix("pack-")?.split_once('.')?;
    let is_id = matches!(id.len(), 40 | 64) && is_hexadecimal(id);
    (is_id && matches!(kind, "pack" | "idx" | "rev")).then_some(id)
}

/// Returns how many digits an id has in a mirror with this file, if its name tells.
fn id_length(name: &str) -> Option<usize> {
    let within = name.strip_prefix("objects/")?;
    match within.strip_prefix("pack/") {
        Some(file) => pack_id(file).map(str::len),
        None => within
            .split_once('/')
            .map(|(fan, rest)| fan.len() + rest.len()),
    }
}

fn is_hexadecimal(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Copies a mirror into a new file.
pub fn keep(
    folder: &MirrorFolder,
    lifetime: &Lifetime,
    into: &Path,
    deadline: &Deadline,
) -> Result<WrittenFile, ArchiveError> {
    let wait = Allowance::until(deadline.within(LOCK_WAIT));
    let _lock = folder.lock(lifetime, &wait)?;
    let mut writer = ArchiveWriter::create(into)?;
    let root = folder.path(lifetime);
    let mut folders = vec![root.clone()];
    while let Some(next) = folders.pop() {
        let mut entries = fs::read_dir(&next)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            deadline.check().map_err(io::Error::other)?;
            let path = entry.path();
            let name = path.strip_prefix(&root).map_err(io::Error::other)?;
            let name = name.to_str();
            let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
            let kind = entry.file_type()?;
            if !belongs(name, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                writer.folder(name)?;
                folders.push(path);
            } else if kind.is_file() {
                file(&mut writer, name, &path)?;
            }
        }
    }
    Ok(writer.finish()?)
}

fn file(writer: &mut ArchiveWriter, name: &str, path: &Path) -> io::Result<()> {
    let file = private::open_plain(path)?;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut is_first = true;
    loop {
        piece.clear();
        (&file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.is_empty() && !is_first {
            return Ok(());
        }
        writer.piece(name, &piece)?;
        is_first = false;
    }
}

/// Restores a mirror if there is none, and returns whether it did. An existing mirror is kept,
/// because it is at least as new as the file.
pub fn put_back(
    folder: &MirrorFolder,
    lifetime: &Lifetime,
    from: &Path,
    deadline: &Deadline,
) -> Result<bool, ArchiveError> {
    let wait = Allowance::until(deadline.within(LOCK_WAIT));
    let _lock = folder.lock(lifetime, &wait)?;
    if folder.exists(lifetime) {
        return Ok(false);
    }
    let root = folder.path(lifetime);
    private::create_folder(&root)?;
    // A mirror exists once it has a `HEAD`, so that file is written last.
    let (mut head, mut digits) = (Vec::new(), None);
    let read = read_archive(from, |name, piece| {
        deadline.check().map_err(io::Error::other)?;
        if !belongs(name, piece.is_none()) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let path = root.join(name);
        match piece {
            None => private::create_folder(&path),
            Some(piece) if name == "HEAD" => {
                head.extend_from_slice(piece);
                Ok(())
            }
            Some(piece) => {
                digits = digits.or_else(|| id_length(name));
                private::append_to(&path)?.write_all(piece)
            }
        }
    });
    let put = match read {
        Ok(Some(_)) => made_anew(&root, lifetime, digits.unwrap_or(40), &head),
        Ok(None) => Err(ArchiveError::Damaged),
        Err(error) => Err(error.into()),
    };
    if put.is_err() {
        drop(fs::remove_dir_all(&root));
    }
    put.map(|()| true)
}

/// Writes what a mirror has besides refs and objects, and the `HEAD` that completes it.
fn made_anew(
    root: &Path,
    lifetime: &Lifetime,
    digits: usize,
    head: &[u8],
) -> Result<(), ArchiveError> {
    for folder in ["objects", "refs"] {
        private::create_folder(&root.join(folder))?;
    }
    private::write_new(&root.join("config"), obeyed::config(digits).as_bytes())?;
    private::write_new(
        &root.join("description"),
        format!("{lifetime}\n").as_bytes(),
    )?;
    Ok(private::write_new(&root.join("HEAD"), head)?)
}

#[cfg(test)]
mod tests {
    use svc_model::id::OrgId;

    use super::*;
    use crate::bare::tests::Mirrored;
    use crate::testing::git::{Repository, git};

    fn deadline() -> Deadline {
        Deadline::after(Duration::from_mins(1))
    }

    #[test]
    fn a_mirror_is_restored_without_anything_that_git_obeys() {
        let lifetime = Lifetime::parse("own/name").unwrap();
        for format in ["sha1", "sha256"] {
            let repository = Repository::create_with(format);
            repository.commit("one");
            repository.push();
            let mirrored = Mirrored::new();
            mirrored.fetch(&repository).unwrap();
            let scratch = tempfile::tempdir().unwrap();
            let folder = |name| {
                let org_id = OrgId::new("acme").unwrap();
                MirrorFolder::new(&scratch.path().join(name), org_id)
            };
            let (from, into) = (folder("from"), folder("into"));
            let path = from.path(&lifetime);
            private::create_folder_of(&path).unwrap();
            fs::rename(&mirrored.mirror().path, &path).unwrap();
            fs::create_dir_all(path.join("hooks")).unwrap();
            let evil = "[core]\n\tsshCommand = x\n";
            for name in ["hooks/update", "config.worktree", "objects/info/alternates"] {
                fs::write(path.join(name), evil).unwrap();
            }
            let refs = |path: &Path| git(path, &["for-each-ref"], "");
            fs::remove_file(path.join("objects/info/alternates")).unwrap();
            let expected = refs(&path);
            let file = scratch.path().join("file");
            keep(&from, &lifetime, &file, &deadline()).unwrap();
            assert!(put_back(&into, &lifetime, &file, &deadline()).unwrap());
            let restored = into.path(&lifetime);
            assert_eq!(refs(&restored), expected);
            assert!(expected.contains("refs/heads/main"));
            assert_eq!(obeyed::check(&restored), Ok(()));
            assert!(!restored.join("hooks").exists());
            assert_eq!(into.mirrors().unwrap(), std::slice::from_ref(&lifetime));
            assert!(!put_back(&into, &lifetime, &file, &deadline()).unwrap());
        }
    }

    #[test]
    fn a_file_with_anything_else_is_not_restored() {
        let lifetime = Lifetime::parse("own/name").unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let folder = MirrorFolder::new(&scratch.path().join("m"), OrgId::new("acme").unwrap());
        for (number, name) in ["config", "objects/info/alternates", "../x"]
            .into_iter()
            .enumerate()
        {
            let file = scratch.path().join(number.to_string());
            let mut writer = ArchiveWriter::create(&file).unwrap();
            writer.piece("HEAD", b"ref: refs/heads/main\n").unwrap();
            writer.piece(name, b"x").unwrap();
            writer.finish().unwrap();
            assert!(
                put_back(&folder, &lifetime, &file, &deadline()).is_err(),
                "{name}"
            );
            assert!(!folder.path(&lifetime).exists());
        }
    }

    #[test]
    fn refs_and_objects_belong_to_a_mirror_and_nothing_else() {
        let (one, two) = ("0a".repeat(20), "0a".repeat(32));
        for (name, is_folder) in [
            ("HEAD", false),
            ("packed-refs", false),
            ("refs", true),
            ("refs/heads/deep", true),
            ("refs/heads/deep/main", false),
            ("objects", true),
            ("objects/pack", true),
            ("objects/0a", true),
            (&format!("objects/0a/{}", &one[2..]), false),
            (&format!("objects/pack/pack-{one}.pack"), false),
            (&format!("objects/pack/pack-{two}.rev"), false),
        ] {
            assert!(belongs(name, is_folder), "{name}");
            assert!(
                !belongs(name, !is_folder) || name.starts_with("refs/"),
                "{name}"
            );
        }
        for name in [
            "",
            "config",
            "config.worktree",
            "commondir",
            "description",
            "hooks",
            "hooks/post-checkout",
            "info/attributes",
            "objects/info",
            "objects/info/alternates",
            "objects/info/commit-graph",
            "objects/pack/multi-pack-index",
            "objects/pack/../../config",
            "objects/0a/../../config",
            "refs/../config",
            "refs//x",
            "/refs/x",
            "refs/heads/main.lock",
            "svc-pull-requests",
            "HEAD/x",
        ] {
            assert!(!belongs(name, false) && !belongs(name, true), "{name}");
        }
        assert_eq!(id_length(&format!("objects/0a/{}", &two[2..])), Some(64));
        assert_eq!(id_length(&format!("objects/pack/pack-{one}.idx")), Some(40));
        assert_eq!(id_length("refs/heads/main"), None);
    }
}
