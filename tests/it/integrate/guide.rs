//! The commands, requests and snippets in the guide do what it says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use harness::process;
use harness::server::{Configuration, INGEST_TOKEN, OPERATOR_TOKEN};
use svc_model::json::Json;

use super::{Job, ci_outcomes, jobs};
use crate::cli::{COMMAND_MAX, at, done, json, start};

/// Every page of the guide, one after the other.
static GUIDE: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/integrate");
    let pages = fs::read_dir(folder).expect("the guide");
    let mut pages: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    pages.sort();
    let pages = pages.iter().map(fs::read_to_string);
    pages.map(|page| page.expect("text")).collect()
});

/// Returns the blocks of the guide in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = GUIDE.split(&fence).skip(1);
    blocks
        .map(|rest| rest.split("```").next().expect("an end of the block"))
        .collect()
}

#[test]
fn every_shell_block_of_the_guide_is_shell() {
    let blocks = blocks("sh");
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for block in blocks {
        let mut command = Command::new("bash");
        command.args(["-n", "-c", block]);
        done(&process::run(&mut command, b"", COMMAND_MAX).expect("bash ends"));
    }
}

#[test]
fn the_commands_of_the_guide_work_as_described() {
    let server = start(&Configuration::default());
    // A job of GitLab in a clone, where all of the commands make sense.
    let job = Job::new(jobs()[1].1).with(&[("SVC_URL", &server.base_url())]);
    let git = "git -c init.defaultBranch=main init --quiet .";
    done(&job.bash(git));
    let mut run = 0;
    for block in blocks("sh") {
        let of_svc = |line: &&str| line.starts_with("svc ");
        // A script for another system is run as that system would run it, in a test of its own.
        if block.starts_with("#!") {
            continue;
        }
        let lines: Vec<&str> = block.lines().filter(of_svc).collect();
        for line in lines {
            let mut line = line.replace("https://svc.example", &server.base_url());
            let mut command = job.command("bash");
            if line.starts_with("svc login ") {
                // There is no terminal to ask for the token.
                line.push_str(" --with-token");
            } else {
                command.env("SVC_TOKEN", OPERATOR_TOKEN);
            }
            command.args(["-eu", "-c", &line]);
            let token = format!("{INGEST_TOKEN}\n");
            let output = process::run(&mut command, token.as_bytes(), COMMAND_MAX);
            let output = output.expect("the command ends");
            assert_eq!(output.status.code(), Some(0), "{line}\n{output:?}");
            run += 1;
        }
    }
    assert_eq!(run, 10, "each command of the guide");
    assert_eq!(ci_outcomes(&server), 1);
}

#[test]
fn the_requests_of_the_guide_are_answered() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let server = start(&Configuration::default());
    let job = Job::new(&[]).of(&server);
    let requests = blocks("sh").into_iter().filter(|block| {
        // Requests to a forge are checked below.
        block.contains("curl") && block.contains("$SVC_URL")
    });
    let mut sent = 0;
    for request in requests {
        let output = job.bash(request);
        assert!(
            output.status.success(),
            "{request}\n{}",
            output.stderr_text()
        );
        sent += 1;
    }
    assert_eq!(sent, 4);
    assert_eq!(ci_outcomes(&server), 1);
    let session = server.read_json("/v1/facts/session/session-1");
    let decisions = at(&session, &["tables", "developer_decisions", "visible"]);
    assert_eq!(decisions, &Json::from(1_u64));
}

/// Puts a program into a job's home that records its input.
fn stand_in(job: &Job, program: &str) {
    let folder = job.home.path().join("bin");
    let path = folder.join(program);
    let script = "#!/bin/sh\necho \"$@\" > arguments\ncat > body\n";
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, script))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .expect("a program");
}

#[test]
fn webhooks_are_created_with_the_address_and_secret_of_the_service() {
    for (source, program, events) in [
        ("github", "gh", 4),
        ("gitea", "curl", 3),
        ("forgejo", "curl", 2),
    ] {
        let job = Job::new(&[
            ("SVC_FORGE_WEBHOOK_SECRET", "0123456789abcdef"),
            ("GITEA_URL", "https://git.example"),
            ("GITEA_TOKEN", "t"),
            ("FORGEJO_URL", "https://git.example"),
            ("FORGEJO_TOKEN", "t"),
        ]);
        stand_in(&job, program);
        let install = [
            "install",
            source,
            "--print",
            "--json",
            "--url",
            "https://e.acme.dev",
        ];
        let snippet = json(&job.svc(&install));
        let snippet = at(&snippet, &["snippet"]).as_str().unwrap().to_owned();
        done(&job.bash(&format!("PATH=\"$HOME/bin:$PATH\"\n{snippet}")));
        let body = fs::read(job.home.path().join("body")).unwrap();
        let body = Json::parse(&body).unwrap_or_else(|error| panic!("{source}: {error}"));
        for (member, value) in [
            ("url", "https://e.acme.dev/ingest/forge"),
            ("secret", "0123456789abcdef"),
            ("content_type", "json"),
        ] {
            assert_eq!(
                at(&body, &["config", member]),
                &Json::from(value),
                "{source}"
            );
        }
        assert_eq!(at(&body, &["events"]).as_array().unwrap().len(), events);
        let arguments = fs::read_to_string(job.home.path().join("arguments")).unwrap();
        assert!(arguments.contains("repos/OWNER/NAME/hooks"), "{arguments}");
        assert!(
            !arguments.contains("0123456789abcdef"),
            "{source}: a secret is an argument"
        );
    }
}

#[test]
fn the_pipeline_snippets_report_the_pipeline_they_run_in() {
    let server = start(&Configuration::default());
    let print = |source: &str| {
        let job = Job::new(&[]);
        let url = server.base_url();
        let snippet = json(&job.svc(&["install", source, "--print", "--json", "--url", &url]));
        at(&snippet, &["snippet"]).as_str().unwrap().to_owned()
    };
    let token = [("SVC_TOKEN", INGEST_TOKEN)];
    let url = [("SVC_URL", &*server.base_url())];

    // The Buildkite hook is a script, and knows the service by itself.
    let buildkite = Job::new(jobs()[4].1).with(&token);
    assert!(
        done(&buildkite.bash(&print("buildkite"))).starts_with("buildkite run e44f9784 failed")
    );

    // The others contain their command in a file of another language.
    for (source, job, command, reported) in [
        (
            "gitlab-ci",
            1,
            "svc ci report --soft-fail",
            "gitlab-ci run 500/test attempt 9001 failed",
        ),
        (
            "circleci",
            3,
            "svc ci report --soft-fail --status success",
            "circleci run 7a1d93f0 passed",
        ),
        (
            "jenkins",
            2,
            "svc ci report --soft-fail --status ${currentBuild.currentResult}",
            "jenkins run shop/main/153 failed",
        ),
    ] {
        assert!(print(source).contains(command), "{source}");
        let job = Job::new(jobs()[job].1).with(&token).with(&url);
        // What Jenkins itself fills in.
        let command = command.replace("${currentBuild.currentResult}", "FAILURE");
        let printed = done(&job.bash(&command));
        assert!(printed.starts_with(reported), "{printed}");
    }
    assert_eq!(ci_outcomes(&server), 4);
}

#[test]
fn the_guide_names_every_word_and_every_neutral_name() {
    for table in [
        "`SUCCESS`, `FAILURE`, `UNSTABLE`, `ABORTED`, `NOT_BUILT`",
        "`success`, `failed`, `canceled`, `skipped`, `manual`",
        "`success`, `failed`, `error`, `canceled`, `unauthorized`",
        "`passed`, `failed`, `canceled`, `skipped`, `not_run`",
        "| `gateway_a` | LiteLLM",
        "| `ci_a` | Jenkins |",
        "| `ci_b` | GitLab CI |",
        "| `ci_c` | CircleCI |",
        "| `ci_d` | Buildkite |",
    ] {
        assert!(GUIDE.contains(table), "{table}");
    }
    // The page about the SDK shows a program that is compiled and run.
    let example = include_str!("../../../svc-client/examples/call.rs");
    let block = format!("```rust\n{example}```\n");
    assert!(GUIDE.contains(&block), "put this into sdk.md:\n{block}");
    assert!(!GUIDE.contains(OPERATOR_TOKEN));
}
