//! Commits, as a person in a clone names them.

use std::path::Path;
use std::process::Command;

use super::first_use::svc;

/// Runs git in a folder and returns what it prints.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.test"])
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Runs the shell in a folder. Returns its exit code and everything that it printed.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let home = tempfile::tempdir().expect("a folder");
    let output = svc(home.path())
        .args(arguments)
        .current_dir(folder)
        .env("SVC_URL", "http://127.0.0.1:9")
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
        .output()
        .expect("svc runs");
    let printed = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

#[test]
fn every_command_accepts_the_names_that_git_gives_a_commit() {
    let clone = tempfile::tempdir().expect("a folder");
    git(clone.path(), &["init", "-q", "-b", "main"]);
    git(clone.path(), &["commit", "-q", "--allow-empty", "-m", "a"]);
    let head = git(clone.path(), &["rev-parse", "HEAD"]);
    let outside = tempfile::tempdir().expect("a folder");
    let report = |folder: &Path, commit: &str| {
        let report = "ci report --dry-run --system other --run-id 1 --repo own/app --branch main";
        let arguments: Vec<&str> = report.split(' ').collect();
        let result = ["--result", "passed", "--commit", commit];
        run(folder, &[&arguments[..], &result].concat())
    };
    for name in ["HEAD", "main", &head[..8], &head] {
        let (status, printed) = report(clone.path(), name);
        assert_eq!(status, Some(0), "{printed}");
        let member = format!(r#""commit_sha":"{head}""#);
        assert!(printed.contains(&member), "{name}: {printed}");
    }

    let repository = ["--repo", "github/github.com/7"];
    for (command, more) in [
        (&["commit"][..], &[][..]),
        (&["context", "discover", "pager"], &["--commit", "HEAD"]),
    ] {
        let named = if more.is_empty() { &["HEAD"][..] } else { more };
        let arguments = [command, named, &repository].concat();
        // It tries to ask, but no service listens there.
        let (_, printed) = run(clone.path(), &arguments);
        assert!(printed.contains("cannot be reached"), "{printed}");
        let (status, printed) = run(outside.path(), &arguments);
        assert_eq!(status, Some(1), "{printed}");
        assert!(printed.contains("40 or 64 hexadecimal digits"), "{printed}");
    }
    let (status, printed) = report(outside.path(), "HEAD");
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("--commit must be 40 or 64"), "{printed}");
}
