//! What a killed program leaves in a mirror.
//!
//! git protects its files with lock files and receives data in temporary ones. If it is killed
//! along with its server, both remain: the lock files would block every later fetch, and the
//! temporary files would take up space forever. Whoever holds the lock of the mirror knows that
//! nobody else uses it. So these files are removed after each failure, and when a mark shows that
//! the last work was not completed.

use std::fs;
use std::io;
use std::path::Path;

use svc_engine_fact::private;

/// The mark, which exists in the mirror while work is in progress.
const MARK: &str = "svc-unfinished";
/// The maximum depth of folders below `refs` that are searched.
const DEPTH_MAX: usize = 64;

/// Marks the start of work, and removes what earlier work left behind.
pub(super) fn begin(repository: &Path) -> io::Result<()> {
    match private::create_file(&repository.join(MARK)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => sweep(repository),
        created => created.map(drop),
    }
}

/// Marks the end of work.
pub(super) fn end(repository: &Path) -> io::Result<()> {
    absent_is_fine(fs::remove_file(repository.join(MARK)))
}

/// Removes what unfinished work left behind.
pub(super) fn sweep(repository: &Path) -> io::Result<()> {
    let objects = repository.join("objects");
    for folder in [
        repository.to_owned(),
        objects.join("info"),
        objects.join("info/commit-graphs"),
    ] {
        remove(&folder, 0, is_lock)?;
    }
    remove(&repository.join("refs"), DEPTH_MAX, is_lock)?;
    remove(&objects.join("pack"), 0, |name| {
        is_lock(name) || name.starts_with("tmp_") || name.starts_with(".tmp-")
    })?;
    for name in names(&objects)? {
        if name.starts_with("tmp_objdir-") || name.starts_with("incoming-") {
            absent_is_fine(fs::remove_dir_all(objects.join(name)))?;
        }
    }
    Ok(())
}

pub(super) fn is_lock(name: &str) -> bool {
    // No ref may have a name like this.
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "lock")
}

/// Removes the files in a folder whose names `chosen` accepts, and those in its subfolders up to a
/// depth.
fn remove(folder: &Path, depth: usize, chosen: fn(&str) -> bool) -> io::Result<()> {
    for name in names(folder)? {
        let path = folder.join(&name);
        // Links are not followed.
        let kind = match fs::symlink_metadata(&path) {
            Ok(kind) => kind.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if kind.is_dir() {
            if depth > 0 {
                remove(&path, depth - 1, chosen)?;
            }
        } else if chosen(&name) {
            absent_is_fine(fs::remove_file(path))?;
        }
    }
    Ok(())
}

/// Returns the names in a folder that are valid text; empty if the folder is absent.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: [&str; 9] = [
        "HEAD.lock",
        "packed-refs.lock",
        "refs/heads/deep/er/main.lock",
        "refs/notes/svc.lock",
        "objects/info/commit-graphs/commit-graph-chain.lock",
        "objects/pack/multi-pack-index.lock",
        "objects/pack/tmp_pack_x1Y2z3",
        "objects/pack/.tmp-77-pack-0a.pack",
        "objects/tmp_objdir-incoming-4/pack/tmp_pack_a",
    ];
    const KEPT: [&str; 5] = [
        "HEAD",
        "packed-refs",
        "refs/heads/deep/er/main",
        "refs/heads/lock",
        "objects/pack/pack-0a.pack",
    ];

    fn fill(folder: &Path) {
        for name in LEFT.iter().chain(&KEPT) {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn only_unfinished_work_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let is_there = |name: &&str| folder.path().join(name).exists();
        fill(folder.path());
        begin(folder.path()).unwrap();
        assert!(LEFT.iter().all(&is_there), "there is no record of it");
        begin(folder.path()).unwrap();
        assert!(!LEFT.iter().any(&is_there));
        assert!(KEPT.iter().all(&is_there));
        fill(folder.path());
        end(folder.path()).unwrap();
        end(folder.path()).unwrap();
        begin(folder.path()).unwrap();
        assert!(LEFT.iter().all(&is_there), "that was finished");
        sweep(&folder.path().join("absent")).unwrap();
    }
}
