//! What git obeys in a repository: its configuration, and files that lead elsewhere.
//!
//! Some settings of a repository's own configuration make git run programs, and the settings that a
//! call is given win only over the same keys. So git is started on a mirror only if the mirror's
//! configuration has nothing but what `git init` and `git clone --mirror` write. Somebody who could write to the folder of the
//! mirrors, or to a backup, gets no program run.

use std::fs;
use std::io;
use std::path::Path;

use svc_engine_fact::private;

use super::object_id::ObjectId;

/// The keys that `git init` writes on any system, whose values are single words, and those that
/// `git clone --mirror` adds, which no call of ours uses.
const KEYS: [&str; 11] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
    "remote.origin.url",
    "remote.origin.fetch",
    "remote.origin.mirror",
];
/// Files and folders that no mirror has, and that would make git read or run something else.
const FOREIGN: [&str; 6] = [
    "commondir",
    "config.worktree",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
    "objects/info/http-alternates",
];
/// Folders that are no links, if they are there.
const FOLDERS: [&str; 5] = ["info", "objects", "objects/info", "objects/pack", "refs"];
const CONFIG: &str = "config";
const CONFIG_BYTES_MAX: u64 = 4 * 1024;

/// Returns the configuration of a mirror whose ids have this many hexadecimal digits.
pub(super) fn config(id_length: usize) -> String {
    let (version, extension) = match id_length {
        64 => (1, "[extensions]\n\tobjectformat = sha256\n"),
        _ => (0, ""),
    };
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = true\n{extension}"
    )
}

/// Writes the configuration of a mirror that lost it, as a crash leaves an empty file.
pub(super) fn mend(mirror: &Path, like: ObjectId) -> io::Result<()> {
    let file = mirror.join(CONFIG);
    match fs::symlink_metadata(&file) {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => fs::remove_file(&file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    private::write_new(&file, config(like.to_string().len()).as_bytes())
}

/// Checks that git obeys nothing in a mirror but what this service has written.
///
/// # Errors
///
/// What git would obey.
pub(super) fn check(mirror: &Path) -> Result<(), String> {
    let kind = |name: &str| fs::symlink_metadata(mirror.join(name));
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    for name in FOREIGN {
        if !kind(name).is_err_and(|error| is_absent(&error)) {
            return Err(format!("the mirror has {name}"));
        }
    }
    for name in FOLDERS {
        if kind(name).is_ok_and(|found| !found.is_dir()) {
            return Err(format!("{name} of the mirror is not a folder"));
        }
    }
    match private::read_plain(&mirror.join(CONFIG), CONFIG_BYTES_MAX) {
        Ok(text) => match foreign(&String::from_utf8_lossy(&text)) {
            Some(line) => Err(format!("the configuration of the mirror has line {line}")),
            None => Ok(()),
        },
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(format!("the configuration of the mirror: {}", error.kind())),
    }
}

/// Returns the number of the first line that `git init` would not write. Only the plainest form is
/// read, in which no line can mean anything else to git.
fn foreign(config: &str) -> Option<usize> {
    let mut section = "";
    let is_known = |line: &str| {
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() {
            return true;
        }
        if let Some(name) = line.strip_prefix('[') {
            section = match name {
                "core]" => "core",
                "extensions]" => "extensions",
                "remote \"origin\"]" => "remote.origin",
                _ => return false,
            };
            return true;
        }
        let Some((key, value)) = line.split_once(" = ") else {
            return false;
        };
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_plain = section == "remote.origin" || (is_word(value) && !value.is_empty());
        KEYS.contains(&&*format!("{section}.{key}")) && is_plain
    };
    let unknown = config.split('\n').map(is_known).position(|known| !known);
    unknown.map(|line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_itself_writes_is_obeyed() {
        for id_length in [40, 64] {
            assert_eq!(foreign(&config(id_length)), None);
        }
        let macos = "[core]\n\tignorecase = true\n\tprecomposeunicode = true\n";
        assert_eq!(foreign(macos), None);
        let cloned =
            "[remote \"origin\"]\n\turl = /a b\n\tfetch = +refs/*:refs/*\n\tmirror = true\n";
        assert_eq!(foreign(cloned), None);
        for (config, line) in [
            ("[core]\n\tsshCommand = x\n", 2),
            ("[core]\n\tbare = true\n\tgitProxy = x\n", 3),
            ("[core]\n\tbare = a\\\n\tb = c\n", 2),
            ("[core] bare = true\n", 1),
            ("[core]\n\tbare = \"true\"\n", 2),
            ("[core]\n\tbare = true ; x\n", 2),
            ("[core]\n\tbare = \n", 2),
            ("[core]\r\n", 1),
            ("\u{feff}[core]\n", 1),
            ("[core]\n\tbare = true\u{b}x\n", 2),
            ("[remote \"origin\"]\n\tuploadpack = x\n", 2),
            ("[remote \"x\"]\n", 1),
            ("[include]\n\tpath = /x\n", 1),
            ("[url \"ext::x\"]\n", 1),
            ("\tbare = true\n", 1),
            ("[extensions]\n\tworktreeConfig = true\n", 2),
        ] {
            assert_eq!(foreign(config), Some(line), "{config:?}");
        }
    }

    #[test]
    fn nothing_in_a_mirror_leads_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = folder.path();
        for folder in FOLDERS {
            fs::create_dir_all(mirror.join(folder)).unwrap();
        }
        fs::write(mirror.join(CONFIG), config(40)).unwrap();
        assert_eq!(check(mirror), Ok(()));
        for name in FOREIGN {
            std::os::unix::fs::symlink("/nowhere", mirror.join(name)).unwrap();
            assert_eq!(check(mirror), Err(format!("the mirror has {name}")));
            fs::remove_file(mirror.join(name)).unwrap();
        }
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(mirror.join("refs"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, mirror.join("refs")).unwrap();
        assert!(check(mirror).unwrap_err().contains("refs"));
        fs::remove_file(mirror.join("refs")).unwrap();
        fs::rename(mirror.join(CONFIG), elsewhere.with_extension("config")).unwrap();
        let config = elsewhere.with_extension("config");
        std::os::unix::fs::symlink(config, mirror.join(CONFIG)).unwrap();
        assert!(check(mirror).is_err());
    }
}
