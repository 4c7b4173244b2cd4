//! From a commit of the main branch to the Sessions of the pull request that was merged as it.

use std::path::Path;
use std::process::Command;

use super::first_use::{Service, svc};

/// Runs a program in a folder, and returns what it prints.
fn printed(mut command: Command, folder: &Path) -> String {
    let output = command.current_dir(folder).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments);
    printed(command, folder).trim_end().to_owned()
}

#[tokio::test]
async fn a_commit_of_the_main_branch_of_the_demo_names_the_sessions_behind_it() {
    let home = tempfile::tempdir().expect("a folder");
    let mut demo = svc(home.path());
    demo.arg("demo");
    printed(demo, home.path());
    let service = Service::start_in(home);
    service.wait_until_healthy().await;
    let mut cloning = Command::new("git");
    let origin = service.home().join(".local/share/svc/demo/orders.git");
    cloning.args(["clone", "-q"]).arg(origin).arg("orders");
    printed(cloning, service.home());
    let clone = service.home().join("orders");
    let run = |arguments: &[&str]| {
        let mut command = svc(service.home());
        command.args(arguments);
        printed(command, &clone)
    };
    for (commit, through, sessions) in [
        ("main", "19 (rebase, merged 20", &["audit-log-tests"][..]),
        ("main~1", "19 (rebase, merged 20", &["audit-log-code"]),
        (
            "main~2",
            "16 (squash, merged 20",
            &["webhooks-code", "webhooks-tests"],
        ),
        ("main~3", "15 (rebase, merged 20", &["invoice-tests"]),
        ("main~4", "15 (rebase, merged 20", &["invoice-code"]),
        (
            "main~6",
            "14 (merge, merged 20",
            &["stock-code", "stock-tests"],
        ),
    ] {
        let shown = run(&["commit", commit, "--repo", "acme/orders"]);
        let head = shown.lines().next().unwrap_or_default();
        let expected = match sessions.len() {
            1 => "no Session observed at it; 1 at a commit whose work it has",
            _ => "no Session observed at it; 2 at commits whose work it has",
        };
        assert!(head.ends_with(expected), "{commit}: {shown}");
        let through = format!("\n  through pull request {through}");
        assert_eq!(shown.matches(&through).count(), 1, "{commit}: {shown}");
        assert_eq!(
            shown.matches("\n    session orders-").count(),
            sessions.len(),
            "{commit}: {shown}"
        );
        for session in sessions {
            let line = format!("\n    session orders-{session} at ");
            assert!(shown.contains(&line), "{commit}: {shown}");
            let next = format!("svc session orders-{session}\n");
            assert!(shown.contains(&next), "{commit}: {shown}");
        }
    }
    // Nobody's agent made this one, and it was no pull request.
    let shown = run(&["commit", "main~5", "--repo", "acme/orders"]);
    assert!(!shown.contains("pull request"), "{shown}");

    // The clone was made of a folder, whose name is not that of the repository.
    let head = git(&clone, &["rev-parse", "main~1"]);
    let shown = run(&["commit", "main~1"]);
    assert_eq!(
        shown,
        format!(
            "{head}: no attributions\n\
             no stored fact links it to a repository; name the repository, and its mirror is \
             searched too: svc commit {head} --repo OWNER/NAME\n"
        )
    );
    git(
        &clone,
        &[
            "remote",
            "set-url",
            "origin",
            "git@github.com:acme/orders.git",
        ],
    );
    let named = run(&["commit", "main~1", "--repo", "acme/orders"]);
    for commit in ["main~1", &head] {
        assert_eq!(run(&["commit", commit]), named, "{commit}");
    }
    // What a clone does not have is not of its repository.
    let absent = run(&["commit", &"a".repeat(40)]);
    assert!(absent.contains("--repo OWNER/NAME"), "{absent}");

    let shown = run(&["investigate", "70030"]);
    for expected in [
        "  none observed at it; 2 at commits whose work it has\n",
        "  through pull request 16 (squash, merged 20",
        "\nSession orders-webhooks-code, at ",
        ", through pull request 16 (squash)\nseen ",
        "svc session orders-webhooks-tests\n",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
}
