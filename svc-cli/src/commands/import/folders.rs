//! The folders whose Sessions may leave this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::Args;

use crate::error::CommandError;

/// Which Sessions are meant. Without any of these options, none is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FolderOptions {
    /// Only Sessions that worked in this folder or below it; may be repeated.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    cwd: Vec<PathBuf>,

    /// Sessions of every folder.
    #[arg(long)]
    all: bool,
}

/// The folders that were chosen.
#[derive(Clone, Debug)]
pub(crate) enum Folders {
    /// Nobody chose any.
    Unchosen,
    /// Every folder.
    All,
    /// These folders, without links, and what is below them.
    These(Vec<PathBuf>),
}

impl FolderOptions {
    /// Returns the folders.
    pub(crate) fn chosen(&self) -> Result<Folders, CommandError> {
        if self.all {
            return Ok(Folders::All);
        }
        if self.cwd.is_empty() {
            return Ok(Folders::Unchosen);
        }
        let resolve = |folder: &PathBuf| {
            let here = std::path::absolute(folder)?;
            resolved(&here).ok_or_else(|| {
                let folder = folder.display();
                CommandError::misuse("--cwd", format!("cannot be resolved: {folder}"))
            })
        };
        let folders: Result<_, CommandError> = self.cwd.iter().map(resolve).collect();
        folders.map(Folders::These)
    }
}

impl Folders {
    /// Returns whether a working directory is one of them or below one.
    pub(crate) fn have(&self, cwd: Option<&str>) -> bool {
        match self {
            Self::Unchosen => false,
            Self::All => true,
            Self::These(folders) => cwd
                .and_then(|cwd| resolved(Path::new(cwd)))
                .is_some_and(|cwd| folders.iter().any(|folder| cwd.starts_with(folder))),
        }
    }

    /// Returns the folders by name, if they were chosen so.
    pub(super) fn named(&self) -> &[PathBuf] {
        match self {
            Self::Unchosen | Self::All => &[],
            Self::These(folders) => folders,
        }
    }
}

/// Returns an absolute path without links. What no longer exists is taken as it is written, because
/// transcripts outlive the folders that they are about; it cannot lead back up.
fn resolved(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut missing: Vec<OsString> = Vec::new();
    let mut known = path.to_path_buf();
    loop {
        match fs::canonicalize(&known) {
            Ok(real) => {
                let whole = |real: PathBuf, name: OsString| real.join(name);
                return Some(missing.into_iter().rev().fold(real, whole));
            }
            // A link to nowhere may lead anywhere later.
            Err(_) if fs::symlink_metadata(&known).is_ok() => return None,
            Err(_) => match known.components().next_back()? {
                Component::Normal(name) => missing.push(name.to_owned()),
                _ => return None,
            },
        }
        known.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_out_of_a_folder_is_not_in_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["app/src", "application", "secret"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("secret"), at("app/out")).unwrap();
        symlink(at("app"), at("alias")).unwrap();
        symlink(at("nowhere"), at("app/dangling")).unwrap();
        let options = FolderOptions {
            cwd: vec![at("alias")],
            all: false,
        };
        let folders = options.chosen().unwrap();
        for (name, expected) in [
            ("app", true),
            ("app/src", true),
            ("alias/src", true),
            ("app/removed/since", true),
            ("app/out", false),
            ("app/out/deeper", false),
            ("app/dangling", false),
            ("app/src/../../secret", false),
            ("app/gone/../../secret", false),
            ("application", false),
            ("secret", false),
            ("", false),
        ] {
            let cwd = at(name);
            assert_eq!(folders.have(cwd.to_str()), expected, "{name}");
        }
        assert!(!folders.have(Some("app")) && !folders.have(None));
        assert!(Folders::All.have(None) && !Folders::Unchosen.have(at("app").to_str()));
    }
}
