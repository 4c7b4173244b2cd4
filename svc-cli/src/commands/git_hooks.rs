//! Git hooks that stamp commits with the Sessions that worked on them, and push the notes with the
//! branch.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::note::{NOTES, repository};
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The line by which a hook of ours is known.
const MARK: &str = "# Installed by: svc install git-hooks";
/// What a hook that was there before is called from then on. It runs first.
const BEFORE: &str = "before-svc";

/// A hook: its name, and what it does after the one that was there before.
struct Hook {
    name: &'static str,
    script: &'static str,
}

/// Neither holds anybody up: a commit is made and a branch is pushed whatever becomes of its notes.
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

/// What became of the hooks, as a program reads it.
#[derive(Debug, Serialize)]
struct Installed {
    hooks: Vec<InstalledHook>,
    /// Whether amended and rebased commits were made to keep their notes.
    rewrite_ref_added: bool,
}

#[derive(Debug, Serialize)]
struct InstalledHook {
    hook: &'static str,
    path: String,
    action: &'static str,
    /// Whether a hook that was there before runs first.
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

/// Installs the hooks into the repository that the program is called in.
pub(super) fn install(output: &mut Output) -> Result<(), CommandError> {
    if let Some(folder) = repository::ask(&["config", "--get", "core.hooksPath"])? {
        return Err(CommandError::refused(
            "hooks_path",
            format!("the hooks of this repository are in {folder}, which is somebody else's"),
        )
        .hint("see what to add to them: svc install git-hooks --print"));
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

/// Returns the names of the hooks that are not installed in the repository that the program is called in.
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let action = match present {
        Some(present) if present == hook.text() => "unchanged",
        Some(present) if present.contains(MARK) => {
            write(&path, hook)?;
            "updated"
        }
        Some(_) => {
            if before.exists() {
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
        chained: before.exists(),
    })
}

/// Writes a hook beside its place and moves it there: git never runs half of one.
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
            text.push_str("; the hook that was there runs first");
        }
        text.push('\n');
    }
    if installed.rewrite_ref_added {
        text.push_str("amended and rebased commits keep their notes from now on\n");
    }
    text
}
