//! How suggested commands call this program.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::quote;

/// The program's name when it is installed.
const NAME: &str = "svc";

/// Returns how to call this program from any folder: by its name if a shell finds it by name, or
/// else by its path.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| named(running().as_deref(), env::var_os("PATH").as_deref()))
}

/// Returns where this program is, for files that outlive it. That is where a shell finds it by
/// name, because this path stays valid when a package manager replaces the link's target, or else
/// where it runs from.
pub(crate) fn program_path() -> Option<PathBuf> {
    Some(lasting(running()?, env::var_os("PATH").as_deref()))
}

fn running() -> Option<PathBuf> {
    let running = env::current_exe().ok()?;
    fs::canonicalize(running).ok()
}

fn lasting(running: PathBuf, path: Option<&OsStr>) -> PathBuf {
    let found = path.and_then(found).filter(|found| {
        let leads_here = fs::canonicalize(found).is_ok_and(|found| found == running);
        leads_here && found.is_absolute()
    });
    found.unwrap_or(running)
}

fn named(running: Option<&Path>, path: Option<&OsStr>) -> String {
    // Without the system's report of the running program's path, only the name is left.
    let Some(running) = running else {
        return NAME.to_owned();
    };
    let found = path
        .and_then(found)
        .and_then(|path| fs::canonicalize(path).ok());
    if found.as_deref() == Some(running) {
        return NAME.to_owned();
    }
    quote(&running.display().to_string()).into_owned()
}

/// Returns the program that a shell finds by name.
fn found(path: &OsStr) -> Option<PathBuf> {
    let mut candidates = env::split_paths(path).map(|folder| folder.join(NAME));
    candidates.find(|file| is_executable(file))
}

/// Returns whether a file is executable for anybody.
pub(crate) fn is_executable(file: &Path) -> bool {
    let metadata = fs::metadata(file);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_program_name_is_used_only_if_the_shell_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let install = |at: &str, mode: u32| {
            let file = root.join(at).join(NAME);
            fs::create_dir_all(root.join(at)).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let (running, _other) = (install("own", 0o755), install("other", 0o755));
        install("no program", 0o644);
        fs::create_dir(root.join("linked")).unwrap();
        std::os::unix::fs::symlink(&running, root.join("linked/svc")).unwrap();
        let of = |folders: &[&str]| {
            let path = env::join_paths(folders.iter().map(|folder| root.join(folder))).unwrap();
            named(Some(&running), Some(&path))
        };
        let path = running.display().to_string();
        assert_eq!(of(&["own"]), "svc");
        assert_eq!(of(&["absent", "no program", "linked", "other"]), "svc");
        assert_eq!(of(&["other", "own"]), path);
        assert_eq!(of(&["absent"]), path);
        assert_eq!(named(Some(&running), None), path);
        assert_eq!(named(None, None), "svc");
        let lasts = |folders: &[&str]| {
            let path = env::join_paths(folders.iter().map(|folder| root.join(folder))).unwrap();
            lasting(running.clone(), Some(&path))
        };
        assert_eq!(lasts(&["linked", "own"]), root.join("linked/svc"));
        assert_eq!(lasts(&["other", "linked"]), running);
        assert_eq!(lasting(running.clone(), None), running);
        let spaced = install("two words", 0o755);
        assert_eq!(
            named(Some(&spaced), None),
            format!("'{}'", spaced.display())
        );
    }
}
