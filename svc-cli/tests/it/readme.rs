//! Whoever pastes the README after the demo sees something.

use std::path::Path;
use std::process::Command;

use super::first_use::{Service, svc};

const README: &str = include_str!("../../../README.md");

/// What answers say that show nothing.
const EMPTY: [&str; 8] = [
    "no Session matches",
    "no sessions",
    "is not known",
    "no fact mentions",
    "no visible run",
    "runs in this range",
    "none observed",
    "no attributions",
];

/// Returns the lines of the README's shell blocks that a person pastes once a service runs.
fn lines() -> Vec<&'static str> {
    let blocks = README.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    blocks
        .flat_map(str::lines)
        .filter(|line| line.starts_with("svc ") || line.starts_with("git clone "))
        .filter(|line| !line.starts_with("svc serve"))
        .collect()
}

/// Runs a line in a folder, as a job of a pipeline would, and returns what it prints.
fn pasted(service: &Service, folder: &Path, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_svc"))
        .parent()
        .expect("a folder");
    let mut command = Command::new("/bin/sh");
    command
        .args(["-euc", line])
        .current_dir(folder)
        .env_clear()
        .env("HOME", service.home())
        .env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    if line.starts_with("svc ci report") {
        command.envs([
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", "9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c"),
            ("CI_JOB_ID", "1"),
            ("CI_JOB_NAME", "test"),
            ("CI_PIPELINE_ID", "2"),
            ("CI_PROJECT_PATH", "acme/orders"),
        ]);
    }
    let output = command.output().expect("a shell");
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{line}\n{printed}{errors}");
    printed
}

#[tokio::test]
async fn every_line_of_the_readme_answers_something_after_the_demo() {
    let home = tempfile::tempdir().expect("a folder");
    let demo = svc(home.path()).arg("demo").output().expect("svc runs");
    assert!(
        demo.status.success(),
        "{}",
        String::from_utf8_lossy(&demo.stderr)
    );
    let service = Service::start_in(home);
    service.wait_until_healthy().await;
    let (work, clone) = (
        service.home().join("work"),
        service.home().join("work/orders"),
    );
    std::fs::create_dir(&work).expect("a folder");
    let lines = lines();
    assert!(lines.len() > 25, "{lines:#?}");
    // Hooks need a repository.
    pasted(&service, &work, "git init -q");
    for line in lines {
        let folder = if clone.exists() { &clone } else { &work };
        let printed = pasted(&service, folder, line);
        // Nothing waits, and a clone is made in silence.
        if line.starts_with("svc outbox status") || line.starts_with("git ") {
            continue;
        }
        assert!(!printed.trim().is_empty(), "{line}");
        for empty in EMPTY {
            assert!(!printed.contains(empty), "{line}\n{printed}");
        }
        let mut rates = printed
            .split_whitespace()
            .filter(|word| word.ends_with('%'))
            .peekable();
        assert!(
            rates.peek().is_none() || rates.any(|rate| rate != "0.0%"),
            "{line}\n{printed}"
        );
        // What was worked on last week was not seen a moment ago.
        if line.starts_with("svc sessions --user") {
            assert!(printed.contains("5d ago"), "{printed}");
            assert!(!printed.contains("just now"), "{printed}");
        }
    }
}
