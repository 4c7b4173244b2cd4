//! Git hooks that stamp commits with the Sessions that worked on them, and push the notes along
//! with the branch.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::note::{NOTES, repository};
use crate::error::CommandError;
use crate::output::{Output, escape, is_executable};

/// The line that identifies our hooks.
const MARK: &str = "# Installed by: svc install git-hooks";
/// The name that an existing hook is renamed to. It runs first.
const BEFORE: &str = "before-svc";

/// A hook: its name, and the script that runs after an existing hook.
struct Hook {
    name: &'static str,
    script: &'static str,
}

/// Neither hook blocks: a commit or a push succeeds whatever happens to its notes.
const HOOKS: [Hook; 2] = [
    Hook {
        name: "post-commit",
        script: r#"before="$0.before-svc"
if [ -x "$before" ]; then "$before" "$@"; fi
svc="${SVC_PROGRAM:-svc}"
if command -v "$svc" >/dev/null 2>&1; then
    "$svc" note stamp --pending >/dev/null || :
fi
exit 0
"#,
    },
    Hook {
        name: "pre-push",
        script: r#"before="$0.before-svc"
if [ -x "$before" ]; then "$before" "$@" || exit $?; fi
svc="${SVC_PROGRAM:-svc}"
if command -v "$svc" >/dev/null 2>&1; then
    "$svc" note push "$1" </dev/null >/dev/null || :
fi
exit 0
"#,
    },
];

impl Hook {
    fn text(&self) -> String {
        format!("#!/bin/sh\n{MARK}\n{}", self.script)
    }
}

/// The result of the installation, for programs.
#[derive(Debug, Serialize)]
struct Installed {
    hooks: Vec<InstalledHook>,
    /// Whether git was configured to keep the notes of amended and rebased commits.
    rewrite_ref_added: bool,
}

#[derive(Debug, Serialize)]
struct InstalledHook {
    hook: &'static str,
    path: String,
    action: &'static str,
    /// Whether an existing hook runs first.
    chained: bool,
}

/// Prints the hooks.
pub(super) fn print(output: &mut Output) -> Result<(), CommandError> {
    let mut text = String::new();
    for hook in &HOOKS {
        text.extend(["==> .git/hooks/", hook.name, " <==\n", &hook.text(), "\n"]);
    }
    text.extend(["git config --add notes.rewriteRef ", NOTES, "\n"]);
    output.text(&text)
}

/// Installs the hooks into the current repository.
pub(super) fn install(output: &mut Output) -> Result<(), CommandError> {
    if let Some(folder) = repository::ask(&["config", "--get", "core.hooksPath"])? {
        return Err(CommandError::refused(
            "hooks_path",
            format!(
                "core.hooksPath of this repository is {folder}, which other repositories may share"
            ),
        )
        .hint("to see what to add to those hooks: svc install git-hooks --print"));
    }
    let folder = repository::own_path("hooks")?;
    fs::create_dir_all(&folder)?;
    let mut installed = Installed {
        hooks: Vec::new(),
        rewrite_ref_added: false,
    };
    for hook in &HOOKS {
        installed.hooks.push(place(hook, &folder)?);
    }
    let kept = repository::ask(&["config", "--get-all", "notes.rewriteRef"])?;
    let all_notes = ["refs/notes/*", NOTES];
    if !kept
        .unwrap_or_default()
        .lines()
        .any(|kept| all_notes.contains(&kept))
    {
        repository::git(&["config", "--local", "--add", "notes.rewriteRef", NOTES])?;
        installed.rewrite_ref_added = true;
    }
    output.value(&installed, render)
}

/// Returns the names of the hooks that are not installed in the current repository.
pub(super) fn missing() -> Result<Vec<&'static str>, CommandError> {
    let folder = repository::own_path("hooks")?;
    let is_missing = |hook: &&Hook| {
        let present = fs::read_to_string(folder.join(hook.name));
        !present.is_ok_and(|present| present.contains(MARK))
    };
    Ok(HOOKS
        .iter()
        .filter(is_missing)
        .map(|hook| hook.name)
        .collect())
}

fn place(hook: &Hook, folder: &Path) -> Result<InstalledHook, CommandError> {
    let path = folder.join(hook.name);
    let before = folder.join(format!("{}.{BEFORE}", hook.name));
    let present = match fs::read(&path) {
        Ok(present) => Some(String::from_utf8_lossy(&present).into_owned()),
        // A link that leads nowhere is somebody's hook too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => is_there(&path).then(String::new),
        Err(error) => return Err(error.into()),
    };
    let action = match present {
        Some(present) if present == hook.text() => "unchanged",
        Some(present) if present.contains(MARK) => {
            write(&path, hook)?;
            "updated"
        }
        Some(_) => {
            if is_there(&before) {
                return Err(CommandError::refused(
                    "hook_exists",
                    format!("{} exists already", before.display()),
                ));
            }
            fs::rename(&path, &before)?;
            write(&path, hook)?;
            "installed"
        }
        None => {
            write(&path, hook)?;
            "installed"
        }
    };
    Ok(InstalledHook {
        hook: hook.name,
        path: path.display().to_string(),
        action,
        // Git, and the new hook, run only what they may.
        chained: is_executable(&before),
    })
}

/// Returns whether there is anything of this name, also a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Writes a hook to a temporary file and renames it, so that git never runs an incomplete one.
fn write(path: &Path, hook: &Hook) -> io::Result<()> {
    let new = PathBuf::from(format!("{}.svc-new", path.display()));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o755)
        .open(&new)?;
    file.write_all(hook.text().as_bytes())?;
    drop(file);
    fs::rename(new, path)
}

fn render(installed: &Installed) -> String {
    let mut text = String::new();
    for hook in &installed.hooks {
        text.extend([&escape(&hook.path), ": ", hook.action]);
        if hook.chained {
            text.push_str("; the existing hook runs first");
        }
        text.push('\n');
    }
    if installed.rewrite_ref_added {
        text.push_str("amended and rebased commits will keep their notes\n");
    }
    text
}
