//! Git hooks that stamp commits with the Sessions that worked on them, and push the notes along
//! with the branch.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use fs_err::{self as fs, OpenOptions};
use serde::Serialize;

use super::note::{NOTES, repository};
use crate::error::CommandError;
use crate::output::{Output, escape, is_executable, program_path};

/// The line that identifies our hooks.
const MARK: &str = "# Installed by: svc install git-hooks";
/// The suffix of the name that an existing hook is renamed to. It runs first.
const BEFORE: &str = "before-svc";
/// The start of the line that records where svc was when the hook was installed.
const INSTALLED: &[u8] = b"\ninstalled=";
/// The name of the program on PATH.
const NAME: &str = "svc";

/// A hook: its name, and the parts of its script.
struct Hook {
    name: &'static str,
    /// Runs the existing hook.
    first: &'static str,
    /// Runs svc.
    then: &'static str,
    /// The command of svc, by which a hook is known that somebody wrote by hand.
    command: &'static str,
    /// The message if svc is not found.
    undone: &'static str,
}

/// Neither hook blocks anything: a commit or a push succeeds whatever happens to its notes.
const HOOKS: [Hook; 2] = [
    Hook {
        name: "post-commit",
        first: r#""$before" "$@""#,
        then: r#""$svc" note stamp --pending >/dev/null || :"#,
        command: "note stamp",
        undone: "the commit is not stamped",
    },
    Hook {
        name: "pre-push",
        first: r#""$before" "$@" || exit $?"#,
        then: r#""$svc" note push "$1" </dev/null >/dev/null || :"#,
        command: "note push",
        undone: "the notes are not pushed",
    },
];

impl Hook {
    /// Returns the hook's script for a program that is installed here. A path may contain any bytes
    /// but NUL.
    fn text(&self, program: &Path) -> Vec<u8> {
        let Self {
            first,
            then,
            undone,
            ..
        } = self;
        let start = format!(
            r#"#!/bin/sh
{MARK}
before="$0.{BEFORE}"
if [ -x "$before" ]; then {first}; fi
# An agent's shell may have another PATH, in which svc is not found by name."#
        );
        let end = format!(
            r#"
svc="${{SVC_PROGRAM:-svc}}"
if [ -z "${{SVC_PROGRAM:-}}" ] && ! command -v svc >/dev/null 2>&1; then svc="$installed"; fi
if command -v "$svc" >/dev/null 2>&1; then
    {then}
else
    printf 'svc: {undone}: %s was not found\n' "$svc" >&2
fi
exit 0
"#
        );
        [
            start.as_bytes(),
            INSTALLED,
            &quoted(program.as_os_str().as_bytes()),
            end.as_bytes(),
        ]
        .concat()
    }

    /// Returns the lines for a hook of a team, which is silent for those who have no svc.
    fn lines(&self) -> String {
        let then = self.then;
        format!(
            r#"{MARK}
svc="${{SVC_PROGRAM:-svc}}"
if command -v "$svc" >/dev/null 2>&1; then {then}; fi
"#
        )
    }
}

/// Whose hooks git runs in a work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HooksFolderKind {
    /// This clone's alone.
    Own,
    /// Those of a folder in the work tree. They are committed, so they name no path of this machine.
    Team,
    /// Those above the folder that husky generates. The generated hooks pass them to `sh`.
    Husky,
    /// Those of a folder elsewhere, which other repositories may share.
    Shared,
}

/// Where git finds the hooks of the current work tree.
pub(super) struct HooksFolder {
    folder: PathBuf,
    kind: HooksFolderKind,
}

impl HooksFolder {
    pub(super) fn find() -> Result<Self, CommandError> {
        let set = ["config", "--type=path", "--get", "core.hooksPath"];
        let Some(set) = repository::ask(&set)? else {
            let (folder, kind) = (repository::own_path("hooks")?, HooksFolderKind::Own);
            return Ok(Self { folder, kind });
        };
        let top = PathBuf::from(repository::git(&["rev-parse", "--show-toplevel"])?);
        let git = fs::canonicalize(repository::git(&["rev-parse", "--git-common-dir"])?)?;
        let folder = top.join(set);
        let existing = folder
            .ancestors()
            .find_map(|path| fs::canonicalize(path).ok());
        let is_in = |parent: &Path| {
            existing
                .as_ref()
                .is_some_and(|path| path.starts_with(parent))
        };
        let leaves = folder.components().any(|part| part == Component::ParentDir);
        let (folder, kind) = if is_in(&git) {
            (folder, HooksFolderKind::Own)
        } else if leaves || !is_in(&fs::canonicalize(&top)?) {
            (folder, HooksFolderKind::Shared)
        } else if folder.ends_with("_") {
            (
                folder.parent().map_or(top, Path::to_owned),
                HooksFolderKind::Husky,
            )
        } else {
            (folder, HooksFolderKind::Team)
        };
        Ok(Self { folder, kind })
    }

    /// Returns how to install the hooks here.
    pub(super) fn mend(&self) -> String {
        match self.kind {
            HooksFolderKind::Own | HooksFolderKind::Team | HooksFolderKind::Husky => {
                "svc install git-hooks".to_owned()
            }
            HooksFolderKind::Shared => format!(
                "add to the hooks in {} what this prints: svc install git-hooks --print",
                self.folder.display()
            ),
        }
    }

    /// Returns the hooks that do not work, or not always.
    pub(super) fn faults(&self) -> Vec<(&'static str, Fault)> {
        let fault = |hook: &Hook| {
            let present = fs::read(self.folder.join(hook.name)).unwrap_or_default();
            let fault = match fault(hook, &present)? {
                Fault::Older if self.kind == HooksFolderKind::Husky => return None,
                fault => fault,
            };
            Some((hook.name, fault))
        };
        HOOKS.iter().filter_map(fault).collect()
    }

    fn install(&self, hook: &Hook) -> Result<InstalledHook, CommandError> {
        match self.kind {
            HooksFolderKind::Own => place(hook, &program(), &self.folder),
            HooksFolderKind::Team | HooksFolderKind::Shared => {
                place(hook, Path::new(NAME), &self.folder)
            }
            HooksFolderKind::Husky => add(hook, &self.folder),
        }
    }
}

/// Quotes a text for every POSIX shell. Some shells know no escapes such as `\n`.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Undoes [`quoted`] for the text at the start of these bytes.
fn unquoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = bytes.strip_prefix(b"'")?;
    let mut text = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\'')?;
        text.extend(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(br"\''") {
            Some(after) => {
                text.push(b'\'');
                rest = after;
            }
            None => return Some(text),
        }
    }
}

/// Returns where the program was when this hook was installed. Older hooks do not record it.
fn installed_program(hook: &[u8]) -> Option<PathBuf> {
    let at = position(hook, INSTALLED)?;
    let path = unquoted(&hook[at + INSTALLED.len()..])?;
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Why a hook does not work, or not always.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not installed.
    Missing,
    /// It does nothing if svc is not on PATH.
    Older,
    /// The program that it runs if svc is not on PATH no longer exists.
    ProgramGone(PathBuf),
}

/// The result of the installation, for programs.
#[derive(Debug, Serialize)]
struct HooksInstallation {
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
    let program = program();
    let mut text = String::new();
    for hook in &HOOKS {
        let script = hook.text(&program);
        let script = String::from_utf8_lossy(&script);
        text.extend(["==> .git/hooks/", hook.name, " <==\n", &script, "\n"]);
    }
    text.extend(["git config --add notes.rewriteRef ", NOTES, "\n"]);
    output.text(&text)
}

/// Installs the hooks into the current repository.
pub(super) fn install(output: &mut Output) -> Result<(), CommandError> {
    let place = HooksFolder::find()?;
    if place.kind == HooksFolderKind::Shared {
        let folder = place.folder.display();
        return Err(CommandError::refused(
            "hooks_path",
            format!("core.hooksPath is {folder}, which other repositories may share"),
        )
        .hint("to see what to add to those hooks: svc install git-hooks --print"));
    }
    fs::create_dir_all(&place.folder)?;
    let hooks = HOOKS.iter().map(|hook| place.install(hook));
    let mut installed = HooksInstallation {
        hooks: hooks.collect::<Result<_, _>>()?,
        rewrite_ref_added: false,
    };
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

fn fault(hook: &Hook, present: &[u8]) -> Option<Fault> {
    if !is_ours(present) {
        let is_there = position(present, hook.command.as_bytes()).is_some();
        return (!is_there).then_some(Fault::Missing);
    }
    match installed_program(present) {
        None => Some(Fault::Older),
        // A team's hook names no path.
        Some(program) if program == Path::new(NAME) || is_executable(&program) => None,
        Some(program) => Some(Fault::ProgramGone(program)),
    }
}

fn is_ours(hook: &[u8]) -> bool {
    position(hook, MARK.as_bytes()).is_some()
}

/// Returns the program that the hooks run if svc is not on PATH.
fn program() -> PathBuf {
    // Without the system's report of the running program's path, only the name is left.
    program_path().unwrap_or_else(|| PathBuf::from(NAME))
}

fn place(hook: &Hook, program: &Path, folder: &Path) -> Result<InstalledHook, CommandError> {
    let path = folder.join(hook.name);
    let before = folder.join(format!("{}.{BEFORE}", hook.name));
    let present = match fs::read(&path) {
        Ok(present) => Some(present),
        // A dangling link is somebody's hook too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => is_there(&path).then(Vec::new),
        Err(error) => return Err(error.into()),
    };
    let text = hook.text(program);
    let action = match present {
        Some(present) if present == text => "unchanged",
        Some(present) if is_ours(&present) => {
            write(&path, &text)?;
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
            write(&path, &text)?;
            "installed"
        }
        None => {
            write(&path, &text)?;
            "installed"
        }
    };
    Ok(InstalledHook {
        hook: hook.name,
        path: path.display().to_string(),
        action,
        // Git and the new hook run it only if it is executable.
        chained: is_executable(&before),
    })
}

/// Adds the lines to a hook that husky runs. Its mode, which is committed, stays.
fn add(hook: &Hook, folder: &Path) -> Result<InstalledHook, CommandError> {
    let path = folder.join(hook.name);
    let present = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        present => present?,
    };
    let is_there = fault(hook, &present) != Some(Fault::Missing);
    if !is_there {
        let end = if matches!(present.last(), None | Some(b'\n')) {
            ""
        } else {
            "\n"
        };
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all([end, &hook.lines()].concat().as_bytes())?;
    }
    Ok(InstalledHook {
        hook: hook.name,
        path: path.display().to_string(),
        action: if is_there { "unchanged" } else { "installed" },
        chained: !is_there && !present.is_empty(),
    })
}

/// Returns whether anything has this name, including a dangling link.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Writes a hook to a temporary file and renames it, so that git never runs an incomplete one.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = PathBuf::from(format!("{}.svc-new", path.display()));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o755)
        .open(&new)?;
    file.write_all(text)?;
    drop(file);
    fs::rename(new, path)
}

fn render(installed: &HooksInstallation) -> String {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    /// A hook as it was installed before its script contained the program's path.
    const OLDER: &str = r#"#!/bin/sh
# Installed by: svc install git-hooks
before="$0.before-svc"
if [ -x "$before" ]; then "$before" "$@"; fi
svc="${SVC_PROGRAM:-svc}"
if command -v "$svc" >/dev/null 2>&1; then
    "$svc" note stamp --pending >/dev/null || :
fi
exit 0
"#;

    fn script(at: &Path, text: &[u8]) {
        fs::write(at, text).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_hook_records_the_path_of_the_program() {
        for path in [
            &b"/usr/bin/svc"[..],
            b"/two words/svc",
            br"/it's/a\'$(x)`y`/svc",
            b"/line\nend'\n'/svc",
            b"/\xff/svc",
            b"",
        ] {
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            for hook in &HOOKS {
                let found = installed_program(&hook.text(&path));
                assert_eq!(found.as_ref(), Some(&path));
            }
        }
        for without in [
            OLDER,
            "",
            "\ninstalled=",
            "\ninstalled='x",
            "\ninstalled=x'",
        ] {
            assert_eq!(installed_program(without.as_bytes()), None, "{without}");
        }
    }

    #[test]
    fn faults_of_a_hook_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's svc");
        let [hook, _] = &HOOKS;
        let text = hook.text(&program);
        let fault = |text: &[u8]| fault(hook, text);
        assert_eq!(fault(b"#!/bin/sh\n"), Some(Fault::Missing));
        assert_eq!(fault(b"#!/bin/sh\nsvc note stamp --pending\n"), None);
        assert_eq!(fault(OLDER.as_bytes()), Some(Fault::Older));
        assert_eq!(fault(&text), Some(Fault::ProgramGone(program.clone())));
        assert_eq!(fault(&hook.text(Path::new(NAME))), None);
        script(&program, b"");
        assert_eq!(fault(&text), None);
    }

    #[test]
    fn a_hook_runs_the_program_that_is_named_or_on_the_path_or_where_it_was_installed() {
        let folder = tempfile::tempdir().unwrap();
        let installed = folder.path().join("it's \"in\" $HOME");
        let on_path = folder.path().join("on path");
        for folder in [&installed, &on_path] {
            fs::create_dir(folder).unwrap();
        }
        let [named, by_path] = [folder.path().join("named"), on_path.join("svc")];
        let installed = installed.join("svc");
        let absent = folder.path().join("absent");
        let file = folder.path().join("hook");
        for hook in &HOOKS {
            for (program, word) in [
                (&named, "named"),
                (&by_path, "by path"),
                (&installed, "installed"),
            ] {
                let content = format!("#!/bin/sh\necho '{word}' \"$1 $2\" >&2\nexit 1\n");
                script(program, content.as_bytes());
            }
            let run = |program: &Path, variable: Option<&Path>, path: &Path| {
                script(&file, &hook.text(program));
                let mut command = Command::new("/bin/sh");
                command
                    .arg(&file)
                    .arg("origin")
                    .env_clear()
                    .env("PATH", path);
                if let Some(variable) = variable {
                    command.env("SVC_PROGRAM", variable);
                }
                let output = command.output().unwrap();
                assert!(output.status.success(), "it never fails");
                assert!(output.stdout.is_empty());
                String::from_utf8(output.stderr).unwrap()
            };
            let starts = |stderr: String, word: &str| assert!(stderr.starts_with(word), "{stderr}");
            starts(run(&installed, Some(&named), &on_path), "named note");
            starts(run(&installed, Some(&named), &absent), "named note");
            starts(run(&installed, None, &on_path), "by path note");
            starts(run(&absent, None, &on_path), "by path note");
            starts(run(&installed, None, &absent), "installed note");
            let nothing = Path::new("");
            starts(run(&installed, Some(nothing), &absent), "installed note");
            for (stderr, program) in [
                (run(&absent, None, &absent), &absent),
                (run(&installed, Some(&absent), &on_path), &absent),
            ] {
                let line = format!(
                    "svc: {}: {} was not found\n",
                    hook.undone,
                    program.display()
                );
                assert_eq!(stderr, line);
            }
        }
    }
}
