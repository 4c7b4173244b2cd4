//! Notes on commits, made by the commands and the hooks in real repositories.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const NOTES: &str = "refs/notes/svc";

/// A forge and the work trees of the people who push to it.
struct Forge {
    folder: TempDir,
}

/// The work tree of one person.
struct Person {
    work: PathBuf,
    home: PathBuf,
}

impl Forge {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let forge = Self { folder };
        let person = forge.person("first");
        let bare = forge.folder.path().join("forge.git");
        let bare = bare.to_str().expect("a path");
        person.git(&["init", "-q", "--bare", "-b", "main", bare]);
        forge
    }

    /// Returns a person with an empty folder.
    fn person(&self, name: &str) -> Person {
        let work = self.folder.path().join(name);
        let home = self.folder.path().join(format!("{name}-home"));
        fs::create_dir_all(&work).expect("a work tree");
        fs::create_dir_all(&home).expect("a home");
        Person { work, home }
    }

    /// Returns a person who has cloned the repository and installed the hooks.
    fn clone(&self, name: &str) -> Person {
        let person = self.person(name);
        person.git(&["clone", "-q", "../forge.git", "."]);
        person.ok(&["install", "git-hooks"]);
        person
    }
}

impl Person {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a PATH"))
            .env("HOME", &self.home)
            .env("SVC_PROGRAM", env!("CARGO_BIN_EXE_svc"))
            .envs([
                ("GIT_AUTHOR_NAME", "A"),
                ("GIT_AUTHOR_EMAIL", "a@example.test"),
                ("GIT_COMMITTER_NAME", "A"),
                ("GIT_COMMITTER_EMAIL", "a@example.test"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_EDITOR", "true"),
            ]);
        command
    }

    fn run(
        &self,
        program: &Path,
        arguments: &[&str],
        more: &[(&str, &str)],
        input: &str,
    ) -> Output {
        let mut child = self
            .command(program)
            .args(arguments)
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("a piped input");
        // A program may ignore its input.
        let _ignored = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    fn svc(&self, arguments: &[&str]) -> Output {
        self.run(Path::new(env!("CARGO_BIN_EXE_svc")), arguments, &[], "")
    }

    /// Returns the line of a check of the doctor, or the one so many lines after it.
    fn doctor(&self, check: &str, after: usize) -> String {
        let shown = self.svc(&["doctor"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let mut lines = shown.lines().skip_while(|line| !line.starts_with(check));
        let line = lines.nth(after);
        line.unwrap_or_else(|| panic!("no {check}: {shown}"))
            .to_owned()
    }

    /// Runs a command of the shell, which must succeed, and returns what it prints.
    fn ok(&self, arguments: &[&str]) -> String {
        succeeded(&self.svc(arguments), arguments)
    }

    fn git_with(&self, arguments: &[&str], more: &[(&str, &str)]) -> String {
        succeeded(&self.run(Path::new("git"), arguments, more, ""), arguments)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, &[])
    }

    fn commit(&self, message: &str) -> String {
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn remember(&self, session_id: &str) {
        self.ok(&["note", "session", session_id, "--tool", "t"]);
    }

    /// Writes a file and runs the hook, as an agent does.
    fn write(&self, session_id: &str, file: &str) {
        let path = self.work.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let mut written = fs::read_to_string(&path).unwrap_or_default();
        // Two Sessions must never write the same commit.
        written.extend([session_id, " wrote a line\n"]);
        fs::write(&path, written).expect("a file");
        let path = path.to_str().expect("a path").replace('\n', "\\n");
        let path = path.replace('"', "\\\"");
        let input = format!(
            r#"{{"session_id":"{session_id}","cwd":"/","hook_event_name":"PostToolUse",
                "tool_name":"Write","tool_input":{{"file_path":"{path}","content":"x"}}}}"#
        );
        let arguments = ["note", "session", "--hook", "claude-code"];
        let program = Path::new(env!("CARGO_BIN_EXE_svc"));
        succeeded(&self.run(program, &arguments, &[], &input), &arguments);
    }

    /// Adds files and commits them, as a person.
    fn commit_files(&self, files: &[&str]) -> String {
        self.git(&[&["add", "--all", "--"], files].concat());
        self.git(&["commit", "-q", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Adds files and commits them, as a Session.
    fn commit_as(&self, session_id: &str, files: &[&str]) -> String {
        self.git(&[&["add", "--all", "--"], files].concat());
        let named = [("CLAUDE_CODE_SESSION_ID", session_id)];
        self.git_with(&["commit", "-q", "-m", "x"], &named);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Returns the Sessions that the notes of a commit name.
    fn sessions(&self, commit: &str) -> Vec<String> {
        let shown = self.ok(&["note", "show", commit]);
        let lines = shown.lines().filter(|line| line.starts_with("refs/"));
        lines
            .map(|line| {
                line.split_whitespace()
                    .nth(1)
                    .expect("a Session")
                    .to_owned()
            })
            .collect()
    }
}

fn succeeded(output: &Output, arguments: &[&str]) -> String {
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Returns a person with a repository of their own and no hooks.
fn alone(forge: &Forge) -> Person {
    let person = forge.person("alone");
    person.git(&["init", "-q", "-b", "main"]);
    person
}

#[test]
fn a_stamp_is_appended_like_a_git_note_and_only_once() {
    let forge = Forge::new();
    let person = alone(&forge);
    let commit = person.commit("first");
    let stamp = |session_id: &str, more: &[&str]| {
        let arguments = ["note", "stamp", session_id, "--tool", "claude-code"];
        person.ok(&[&arguments, more].concat())
    };
    assert_eq!(
        stamp("b", &[]),
        format!("{}: stamped: claude-code b", &commit[..10])
    );
    assert!(stamp("b", &[]).contains("already stamped"));
    stamp("a", &["--commit", &commit]);
    let note = person.git(&["notes", "--ref=svc", "show", &commit]);
    let lines: Vec<&str> = note.lines().collect();
    assert_eq!(lines.len(), 3, "{note}");
    assert!(lines[0].starts_with(
        r#"{"v":1,"sessions":[{"tool":"claude-code","session_id":"b","stamped_at":"20"#
    ));
    assert_eq!(lines[1], "");
    assert!(lines[2].contains(r#""session_id":"a""#));
    assert!(!note.contains('.'), "whole seconds");
    assert_eq!(person.sessions("HEAD"), ["b", "a"]);
    let shown = person.ok(&["note", "show", "--json"]);
    assert_eq!(
        shown,
        format!(
            r#"{{"commit":"{commit}","notes":[{{"notes_ref":"refs/notes/svc","session_ids":["b","a"],"ignored":null}}]}}"#
        )
    );
}

#[test]
fn a_stamp_that_is_not_possible_is_an_error() {
    let forge = Forge::new();
    let person = alone(&forge);
    let outside = person.svc(&["note", "stamp", "s", "--tool", "t"]);
    assert_eq!(outside.status.code(), Some(1), "there is no commit");
    let commit = person.commit("first");
    for wrong in [
        ["note", "stamp", " ", "--tool", "t"],
        ["note", "stamp", "s", "--tool", ""],
    ] {
        assert_eq!(person.svc(&wrong).status.code(), Some(1), "{wrong:?}");
    }
    let usage = person.svc(&["note", "stamp", "--tool", "t"]);
    assert_eq!(usage.status.code(), Some(2));
    person.git(&["notes", "--ref=svc", "add", "-m", "reviewed by me", &commit]);
    let foreign = person.svc(&["note", "stamp", "s", "--tool", "t"]);
    assert_eq!(foreign.status.code(), Some(1));
    let note = person.git(&["notes", "--ref=svc", "show", &commit]);
    assert_eq!(note, "reviewed by me", "it is left alone");
    assert!(person.ok(&["note", "show"]).contains("ignored"));
}

#[test]
fn an_agents_hook_remembers_its_session_and_never_fails() {
    let forge = Forge::new();
    let person = alone(&forge);
    let hook_of = |agent: &str, input: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_svc"));
        let arguments = ["note", "session", "--hook", agent];
        let output = person.run(program, &arguments, &[], input);
        assert!(output.status.success());
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    };
    let hook = |input: &str| hook_of("claude-code", input);
    hook(r#"{"session_id":"5b1f8a70","cwd":"/x","hook_event_name":"PostToolUse"}"#);
    hook(r#"{"session_id":"5b1f8a70","hook_event_name":"PostToolUse"}"#);
    for odd in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"session_id":7}"#,
        r#"{"session_id":""}"#,
    ] {
        hook(odd);
    }
    hook_of(
        "cursor",
        r#"{"conversation_id":"c-1","session_id":"other"}"#,
    );
    let file = person.work.join(".git/svc-sessions");
    let remembered = fs::read_to_string(&file).expect("the file");
    let lines: Vec<&str> = remembered.lines().collect();
    let starts = [
        r#"{"tool":"claude-code","session_id":"5b1f8a70","remembered_at":"20"#,
        r#"{"tool":"cursor","session_id":"c-1","remembered_at":"20"#,
    ];
    assert_eq!(lines.len(), starts.len(), "{remembered}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let elsewhere = forge.person("elsewhere");
    let program = Path::new(env!("CARGO_BIN_EXE_svc"));
    let arguments = ["note", "session", "--hook", "codex"];
    let output = elsewhere.run(program, &arguments, &[], r#"{"session_id":"s"}"#);
    assert!(output.status.success(), "there is no repository");
}

#[test]
fn hooks_stamp_commits_and_push_their_notes() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    person.commit("nobody's");
    person.remember("one");
    person.remember("two");
    let first = person.commit("first");
    assert_eq!(person.sessions(&first), ["one", "two"]);
    let second = person.commit("second");
    assert_eq!(
        person.sessions(&second),
        Vec::<String>::new(),
        "they are forgotten"
    );
    // An agent runs git itself.
    person.git_with(
        &["commit", "-q", "--allow-empty", "-m", "third"],
        &[("CLAUDE_CODE_SESSION_ID", "three")],
    );
    assert_eq!(person.sessions("HEAD"), ["three"]);
    person.git(&["push", "-q", "origin", "main"]);
    let pushed = |notes: &str| {
        let arguments = ["ls-remote", "../forge.git", notes];
        let listed = person.git(&arguments);
        listed.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(
        pushed(NOTES),
        Some(person.git(&["rev-parse", NOTES])),
        "the notes go with the branch"
    );
    assert!(person.ok(&["note", "push"]).contains("no new notes"));
}

#[test]
fn notes_of_several_people_are_joined() {
    let forge = Forge::new();
    let ann = forge.clone("ann");
    ann.remember("ann");
    let base = ann.commit("base");
    ann.git(&["push", "-q", "origin", "main"]);
    let ben = forge.clone("ben");
    ben.ok(&[
        "note",
        "stamp",
        "ben-on-base",
        "--tool",
        "t",
        "--commit",
        &base,
    ]);
    ben.remember("ben");
    let own = ben.commit("ben's");
    ben.git(&["push", "-q", "origin", "HEAD:refs/heads/ben"]);
    ann.ok(&[
        "note",
        "stamp",
        "ann-later",
        "--tool",
        "t",
        "--commit",
        &base,
    ]);
    assert!(ann.ok(&["note", "push"]).contains("notes pushed"));
    let cleo = forge.clone("cleo");
    cleo.git(&[
        "fetch",
        "-q",
        "origin",
        "refs/notes/svc:refs/notes/svc",
        "ben",
    ]);
    let mut on_base = cleo.sessions(&base);
    on_base.sort();
    assert_eq!(on_base, ["ann", "ann-later", "ben-on-base"]);
    assert_eq!(cleo.sessions(&own), ["ben"]);
    let temporary = ann.git(&["for-each-ref", "refs/notes/svc-of-others"]);
    assert_eq!(temporary, "");
}

#[test]
fn amended_and_rebased_commits_keep_their_notes() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    let base = person.commit("base");
    person.remember("one");
    person.commit("first");
    person.remember("two");
    person.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "better"]);
    let mut sessions = person.sessions("HEAD");
    sessions.sort();
    assert_eq!(sessions, ["one", "two"]);
    // Another Session replays the commits, but did not write them.
    person.git(&["checkout", "-q", "-b", "other", &base]);
    person.commit("other");
    person.remember("three");
    let replayed = ["rebase", "-q", "--keep-empty", "other", "main"];
    person.git_with(&replayed, &[("CODEX_THREAD_ID", "replaying")]);
    let mut sessions = person.sessions("HEAD");
    sessions.sort();
    assert_eq!(sessions, ["one", "two"]);
    let next = person.commit("next");
    assert_eq!(person.sessions(&next), ["three"]);
}

#[test]
fn existing_hooks_run_first_and_decide_the_result() {
    let forge = Forge::new();
    let person = forge.person("ann");
    person.git(&["clone", "-q", "../forge.git", "."]);
    let hooks = person.work.join(".git/hooks");
    fs::create_dir_all(&hooks).expect("the hooks");
    for (name, script) in [
        ("post-commit", "#!/bin/sh\necho ran >> commits\n"),
        ("pre-push", "#!/bin/sh\ncat >> pushes\n[ ! -e refuse ]\n"),
    ] {
        fs::write(hooks.join(name), script).expect("a hook");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(hooks.join(name), executable).expect("its mode");
    }
    let output = person.ok(&["install", "git-hooks"]);
    assert!(output.contains("the existing hook runs first"), "{output}");
    let again = person.ok(&["install", "git-hooks"]);
    assert!(again.contains("unchanged"), "{again}");
    person.remember("one");
    let commit = person.commit("first");
    assert_eq!(person.sessions(&commit), ["one"]);
    let read = |name: &str| fs::read_to_string(person.work.join(name)).expect("what it wrote");
    assert_eq!(read("commits"), "ran\n");
    fs::write(person.work.join("refuse"), "").expect("a file");
    let refused = person.run(Path::new("git"), &["push", "-q", "origin", "main"], &[], "");
    assert!(!refused.status.success());
    fs::remove_file(person.work.join("refuse")).expect("no file");
    person.git(&["push", "-q", "origin", "main"]);
    assert!(read("pushes").contains(&commit), "it reads what is pushed");
}

#[test]
fn hooks_that_git_does_not_run_are_kept_and_not_claimed_to_run() {
    let forge = Forge::new();
    let person = forge.person("ann");
    person.git(&["clone", "-q", "../forge.git", "."]);
    let hooks = person.work.join(".git/hooks");
    fs::create_dir_all(&hooks).expect("a folder");
    fs::write(hooks.join("post-commit"), "#!/bin/sh\nexit 1\n").expect("a hook");
    std::os::unix::fs::symlink("/nowhere/hook", hooks.join("pre-push")).expect("a link");
    let output = person.ok(&["install", "git-hooks"]);
    assert!(!output.contains("the existing hook runs first"), "{output}");
    let kept = fs::read_link(hooks.join("pre-push.before-svc")).expect("the link");
    assert_eq!(kept, Path::new("/nowhere/hook"));
    assert!(hooks.join("post-commit.before-svc").exists());
    assert!(person.ok(&["install", "git-hooks"]).contains("unchanged"));
}

#[test]
fn hooks_without_svc_block_no_commit_and_foreign_hook_folders_are_untouched() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    let gone = [("SVC_PROGRAM", "/nowhere/svc")];
    person.git_with(&["commit", "-q", "--allow-empty", "-m", "x"], &gone);
    person.git_with(&["push", "-q", "origin", "main"], &gone);
    let other = forge.person("ben");
    other.git(&["clone", "-q", "../forge.git", "."]);
    let shared = forge.folder.path().join("shared-hooks");
    fs::create_dir(&shared).expect("a folder");
    let shared = shared.to_str().expect("a path");
    for elsewhere in [shared, "../shared-hooks", "new/../../shared-hooks"] {
        other.git(&["config", "core.hooksPath", elsewhere]);
        let refused = other.svc(&["install", "git-hooks"]);
        assert_eq!(refused.status.code(), Some(1), "{elsewhere}");
        let mend = other.doctor("hooks", 1);
        assert!(mend.ends_with("svc install git-hooks --print"), "{mend}");
    }
    assert_eq!(fs::read_dir(shared).expect("a folder").count(), 0);
    let printed = other.ok(&["install", "git-hooks", "--print"]);
    assert!(printed.contains("note stamp --pending") && printed.contains("notes.rewriteRef"));
}

#[test]
fn hooks_in_the_work_tree_are_this_repositorys_own() {
    let forge = Forge::new();
    let person = forge.person("ann");
    person.git(&["clone", "-q", "../forge.git", "."]);
    for (set, folder) in [(".githooks", ".githooks"), (".husky/_", ".husky")] {
        person.git(&["config", "core.hooksPath", set]);
        let hooks = person.work.join(folder);
        fs::create_dir_all(person.work.join(set)).expect("a folder");
        // As husky generates it: it runs the hook of the same name above its folder.
        let shim = person.work.join(".husky/_/post-commit");
        if set == ".husky/_" {
            fs::write(&shim, "#!/bin/sh\nexec sh -e .husky/post-commit \"$@\"\n").expect("a hook");
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&shim, executable).expect("its mode");
            fs::write(hooks.join("post-commit"), "echo ran >> ran").expect("a hook");
        }
        assert!(person.doctor("hooks", 0).contains("not installed"));
        assert_eq!(
            person.doctor("hooks", 1).trim(),
            "fix: svc install git-hooks"
        );
        person.ok(&["install", "git-hooks"]);
        assert!(person.doctor("hooks", 0).contains("commits are stamped"));
        assert!(person.ok(&["install", "git-hooks"]).contains("unchanged"));
        let hook = fs::read_to_string(hooks.join("post-commit")).expect("the hook");
        let program = env!("CARGO_BIN_EXE_svc");
        assert!(!hook.contains(program), "others commit with it too: {hook}");
        person.remember(folder);
        assert_eq!(person.sessions(&person.commit("x")), [folder]);
    }
    let ran = fs::read_to_string(person.work.join("ran")).expect("what it wrote");
    assert_eq!(ran, "ran\n");
}

#[test]
fn a_shell_with_another_path_runs_the_svc_that_installed_the_hooks() {
    let forge = Forge::new();
    let person = forge.person("ann");
    person.git(&["clone", "-q", "../forge.git", "."]);
    let folder = forge.folder.path().join("Ann's \"own\" programs");
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("svc");
    let built = Path::new(env!("CARGO_BIN_EXE_svc"));
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).expect("a copy");
    }
    let folders = std::env::var_os("PATH").expect("a PATH");
    let folders = std::env::split_paths(&folders).filter(|folder| !folder.join("svc").exists());
    let path = std::env::join_paths(folders).expect("a PATH");
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = person.command(program);
        command.env_remove("SVC_PROGRAM").env("PATH", &path);
        let output = command.args(arguments).output().expect("it ends");
        succeeded(&output, arguments);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run(&program, &["install", "git-hooks"]);
    person.remember("one");
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    let git = Path::new("git");
    assert_eq!(run(git, &commit), "");
    assert_eq!(person.sessions("HEAD"), ["one"]);
    let warned = |word: &str| {
        let line = person.doctor("hooks ", 0);
        assert!(line.contains(word), "{line}");
    };
    warned("commits are stamped");
    fs::remove_file(&program).expect("it was there");
    let stderr = run(git, &commit);
    assert!(
        stderr.starts_with("svc: the commit is not stamped: "),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let stderr = run(git, &["push", "-q", "origin", "main"]);
    assert!(
        stderr.starts_with("svc: the notes are not pushed: "),
        "{stderr}"
    );
    warned("there is no program");
    person.ok(&["install", "git-hooks"]);
    warned("commits are stamped");
    let hook = person.work.join(".git/hooks/post-commit");
    let older = fs::read_to_string(&hook).expect("the hook");
    let older: Vec<&str> = older
        .lines()
        .filter(|line| !line.contains("installed"))
        .collect();
    fs::write(&hook, older.join("\n")).expect("an older hook");
    warned("of an older form");
    person.ok(&["install", "git-hooks"]);
    warned("commits are stamped");
}

const NOBODY: [&str; 0] = [];

#[test]
fn a_commit_names_the_sessions_that_wrote_its_files() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    for (session_id, file) in [
        ("a", "one.py"),
        ("b", "two.py"),
        ("c", "three.py"),
        ("d", "four.py"),
        ("e", "five.py"),
        ("e", "six.py"),
    ] {
        person.write(session_id, file);
    }
    let own = person.commit_as("e", &["five.py"]);
    assert_eq!(person.sessions(&own), ["e"]);
    let mixed = person.commit_as("f", &["six.py", "two.py"]);
    assert_eq!(person.sessions(&mixed), ["b", "e", "f"]);
    let unrelated = person.commit("by hand");
    assert_eq!(person.sessions(&unrelated), NOBODY);
    let two = person.commit_files(&["one.py", "three.py"]);
    assert_eq!(person.sessions(&two), ["a", "c"]);
    // A committed file is done. Later writes count again.
    fs::write(person.work.join("one.py"), "by hand\n").expect("a file");
    let by_hand = person.commit_files(&["one.py"]);
    assert_eq!(person.sessions(&by_hand), NOBODY);
    person.write("a", "one.py");
    let last = person.commit_files(&["one.py", "four.py"]);
    assert_eq!(person.sessions(&last), ["a", "d"]);
    let left = fs::read_to_string(person.work.join(".git/svc-sessions")).expect("the file");
    assert_eq!(left, "");
}

#[test]
fn a_session_without_a_file_waits_for_the_commit_of_a_person() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    // The format of an older version.
    let older = r#"{"tool":"t","session_id":"older"}"#;
    fs::write(person.work.join(".git/svc-sessions"), format!("{older}\n")).expect("a file");
    person.remember("outside");
    person.write("e", "mine.py");
    let own = person.commit_as("e", &["mine.py"]);
    assert_eq!(person.sessions(&own), ["e"]);
    let next = person.commit("next");
    assert_eq!(person.sessions(&next), ["older", "outside"]);
    let last = person.commit("last");
    assert_eq!(person.sessions(&last), NOBODY);
    // A file outside the repository counts as no file.
    let elsewhere = forge.folder.path().join("elsewhere.md");
    fs::write(&elsewhere, "x").expect("a file");
    person.write("a", elsewhere.to_str().expect("a path"));
    let next = person.commit("next");
    assert_eq!(person.sessions(&next), ["a"]);
}

#[test]
fn files_have_any_name_and_may_be_renamed_deleted_or_in_another_folder() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    let odd = [
        "two words.py",
        "\"quoted\".py",
        "línea\n.py",
        "sub/deep/x.py",
    ];
    for (session_id, file) in ["a", "b", "c", "d"].into_iter().zip(odd) {
        person.write(session_id, file);
    }
    let first = person.commit_files(&odd);
    assert_eq!(person.sessions(&first), ["a", "b", "c", "d"]);
    person.git(&["mv", "two words.py", "new.py"]);
    person.write("e", "new.py");
    person.write("f", "sub/deep/x.py");
    fs::remove_file(person.work.join("sub/deep/x.py")).expect("it was there");
    let second = person.commit_files(&["new.py", "sub"]);
    assert_eq!(person.sessions(&second), ["e"]);
    person.ok(&["note", "session", "g", "--tool", "t", "--file", "sub/y.py"]);
    let again = ["note", "session", "g", "--tool", "t", "--file", "sub/y.py"];
    assert_eq!(person.ok(&again), "known: t g");
    person.git(&["checkout", "-q", "-b", "other"]);
    fs::create_dir_all(person.work.join("sub")).expect("a folder");
    fs::write(person.work.join("sub/x.py"), "x").expect("a file");
    let unrelated = person.commit_files(&["sub/x.py"]);
    assert_eq!(person.sessions(&unrelated), NOBODY);
    fs::write(person.work.join("sub/y.py"), "x").expect("a file");
    let third = person.commit_files(&["sub/y.py"]);
    assert_eq!(person.sessions(&third), ["g"]);
    // A linked work tree has its own Sessions.
    person.git(&["worktree", "add", "-q", "-b", "linked", "../linked"]);
    let linked = Person {
        work: forge.folder.path().join("linked"),
        home: person.home.clone(),
    };
    linked.write("h", "new.py");
    person.write("i", "new.py");
    assert_eq!(linked.sessions(&linked.commit_files(&["new.py"])), ["h"]);
    assert_eq!(person.sessions(&person.commit_files(&["new.py"])), ["i"]);
}

#[test]
fn an_amended_commit_names_the_sessions_that_wrote_the_added_files() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    person.write("a", "one.py");
    person.write("b", "two.py");
    person.commit_files(&["one.py"]);
    // Written, but not part of the amended commit.
    person.write("c", "one.py");
    person.git(&["commit", "-q", "--amend", "-m", "better"]);
    assert_eq!(person.sessions("HEAD"), ["a"]);
    person.git(&["add", "two.py"]);
    person.git(&["commit", "-q", "--amend", "--no-edit"]);
    let sorted = || {
        let mut sessions = person.sessions("HEAD");
        sessions.sort();
        sessions
    };
    assert_eq!(sorted(), ["a", "b"]);
    let next = person.commit_files(&["one.py"]);
    assert_eq!(person.sessions(&next), ["c"]);
    let arguments = ["commit", "-q", "--amend", "-m", "by an agent"];
    person.git_with(&arguments, &[("CODEX_THREAD_ID", "d")]);
    assert_eq!(sorted(), ["c", "d"]);
}

#[test]
fn a_merged_commit_is_compared_with_its_first_parent() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    person.write("a", "one.py");
    person.commit_files(&["one.py"]);
    person.git(&["checkout", "-q", "-b", "other"]);
    fs::write(person.work.join("one.py"), "other\n").expect("a file");
    person.commit_files(&["one.py"]);
    person.git(&["checkout", "-q", "-"]);
    fs::write(person.work.join("one.py"), "ours\n").expect("a file");
    person.commit_files(&["one.py"]);
    let arguments = ["merge", "-q", "other"];
    let conflict = person.run(Path::new("git"), &arguments, &[], "");
    assert!(!conflict.status.success());
    person.write("b", "one.py");
    person.write("c", "two.py");
    let merged = person.commit_files(&["one.py"]);
    assert_eq!(person.sessions(&merged), ["b"]);
    let next = person.commit_files(&["two.py"]);
    assert_eq!(person.sessions(&next), ["c"]);
}

#[test]
fn a_damaged_file_of_sessions_does_not_hide_the_committing_session() {
    let forge = Forge::new();
    let person = forge.clone("ann");
    let file = person.work.join(".git/svc-sessions");
    fs::write(&file, b"\xff\xfe\n{\"tool\":\"t\"").expect("a file");
    person.write("a", "one.py");
    let first = person.commit_as("e", &["one.py"]);
    assert_eq!(person.sessions(&first), ["a", "e"]);
    fs::remove_file(&file).expect("it was there");
    let status = Command::new("mkfifo").arg(&file).status();
    assert!(status.expect("mkfifo").success());
    person.write("a", "one.py");
    let second = person.commit_as("e", &["one.py"]);
    assert_eq!(person.sessions(&second), ["e"]);
    fs::remove_file(&file).expect("it was there");
    fs::create_dir(&file).expect("a folder");
    let third = person.commit("third");
    assert_eq!(person.sessions(&third), NOBODY);
}
