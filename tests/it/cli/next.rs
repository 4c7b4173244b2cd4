//! The commands that a command suggests to run next.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use harness::process::{self, Output};
use harness::programs;
use harness::server::OPERATOR_TOKEN;

use super::{COMMAND_MAX, DEMO, planted};

/// Runs a line as if it were pasted into a shell with this search path.
fn pasted(line: &str, home: &Path, path: &OsStr, variables: &[(&str, &str)]) -> Output {
    let mut shell = Command::new("bash");
    shell
        .env_clear()
        .env("HOME", home)
        .env("PATH", path)
        .envs(variables.iter().copied())
        .args(["-c", line]);
    process::run(&mut shell, b"", COMMAND_MAX).expect("the command ends")
}

/// Runs these lines and every command that they suggest, except those that want the name of a file.
/// Returns all lines.
pub(crate) fn follow(
    lines: Vec<String>,
    path: &OsStr,
    variables: &[(&str, &str)],
) -> BTreeSet<String> {
    let mut waiting = lines;
    let mut seen = BTreeSet::new();
    while let Some(line) = waiting.pop() {
        if !seen.insert(line.clone()) {
            continue;
        }
        // Only the reader knows the name.
        if line.split(' ').any(|word| word == "FILE") {
            continue;
        }
        let output = pasted(&line, Path::new("/nowhere"), path, variables);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        let next = output.stderr_text();
        let next = next.split("next:\n").nth(1).unwrap_or_default();
        waiting.extend(next.lines().map(|line| line.trim().to_owned()));
        assert!(!output.stdout_text().contains("next:"), "{line}");
    }
    seen
}

#[test]
fn suggested_commands_work_when_pasted() {
    let server = planted();
    let url = server.base_url();
    let installed = programs::search_path();
    let elsewhere = OsString::from("/usr/bin:/bin");
    let path = programs::path(programs::SHELL);
    let path = fs::canonicalize(path).expect("the program");
    // One person has installed the program, and the other has only built it.
    for (program, search) in [("svc", &installed), (&*path.to_string_lossy(), &elsewhere)] {
        // As from a machine other than the store's, so each command names the service.
        let lines = [
            format!("session {DEMO} --url {url}"),
            format!("context discover half-open window --url {url}"),
            format!("ci failures --repo demo/pager --since 2026-01-01T00:00:00Z --url {url}"),
            format!("investigate svc-demo-1 --url {url}"),
            format!("demo --url {url}"),
        ];
        let lines = lines.map(|line| format!("{program} {line}")).to_vec();
        let seen = follow(lines, search, &[("SVC_TOKEN", OPERATOR_TOKEN)]);
        assert!(seen.len() > 8, "{seen:?}");
        let begins = |line: &String| line.starts_with(&format!("{program} "));
        assert!(seen.iter().all(begins), "{seen:?}");
    }
}

#[test]
fn commands_suggested_by_the_demo_work_without_an_installed_program() {
    let home = tempfile::tempdir().expect("a home");
    let path = fs::canonicalize(programs::path(programs::SHELL)).expect("the program");
    let search = OsString::from("/usr/bin:/bin");
    let folder = home.path().join("demo");
    let demo = format!("{} demo --folder {}", path.display(), folder.display());
    let planted = pasted(&demo, home.path(), &search, &[]);
    assert_eq!(planted.status.code(), Some(0), "{planted:?}");
    let next = planted.stderr_text();
    let next = next.split("next:\n").nth(1).expect("suggested commands");
    let lines: Vec<&str> = next.lines().map(str::trim).collect();
    let [serve, overview, reports @ ..] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(reports.len(), 2, "{lines:?}");
    for line in reports {
        let report = pasted(line, home.path(), &search, &[]);
        assert_eq!(report.status.code(), Some(0), "{line}: {report:?}");
    }
    // The service never ends by itself, and the overview asks it.
    let line = format!(
        "{serve} --listen 127.0.0.1:0 & until {overview}; do sleep 0.1; done; kill %1; wait %1"
    );
    let served = pasted(&line, home.path(), &search, &[]);
    assert_eq!(served.status.code(), Some(0), "{served:?}");
    let shown = served.stdout_text();
    assert!(shown.starts_with("Last 7 days: "), "{shown}");
    assert!(shown.contains(" at list price ("), "{shown}");
}
