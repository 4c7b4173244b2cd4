//! The guides for people: the commands that they show work, and every link leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::delivery::{Call, Receipt};
use harness::process;
use harness::server::{Backend, Configuration, RETRIEVAL_TOKEN, Server};
use svc_model::json::Json;

use crate::cli::COMMAND_MAX;

const AGENTS: &str = include_str!("../../docs/agents.md");
const SESSION: &str = "session-of-the-guide";

on_both_backends! {
    an_agent_that_follows_the_guide_reads_exact_parts,
}

/// Returns the contents of the blocks in a language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    let blocks = text.split(fence.as_str()).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default())
        .collect()
}

fn an_agent_that_follows_the_guide_reads_exact_parts(backend: Backend) {
    let Some(server) = Server::start(backend, &Configuration::granting(&[SESSION])) else {
        return;
    };
    let call = Call::new(SESSION, "the-call").body();
    let receipt = Receipt::of(&server.deliver("/ingest/gateway", call));
    // What follows is about tools, and has a test of its own.
    let (routes, _) = AGENTS.split_once("## Tools over MCP").expect("two parts");
    let answers: Vec<Json> = blocks(routes, "sh")
        .into_iter()
        .flat_map(|block| {
            let mut command = Command::new("bash");
            command
                .args(["-eu", "-o", "pipefail", "-c", block])
                .env("SVC_URL", server.base_url())
                .env("SVC_RETRIEVAL_TOKEN", RETRIEVAL_TOKEN)
                .env("SESSION", SESSION)
                .env("CALL", &receipt.fact);
            let output = process::run(&mut command, b"", COMMAND_MAX).expect("the block ends");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{block}\n{stderr}");
            // Two answers of one block follow one another.
            let stdout = String::from_utf8(output.stdout).expect("ASCII JSON");
            let answers = stdout.replace("}{", "}\n{");
            let answers = answers.lines().map(|line| Json::parse(line.as_bytes()));
            answers.collect::<Vec<_>>()
        })
        .map(|answer| answer.expect("an answer in JSON"))
        .collect();
    let check_answer = |place: usize, what: &str| {
        let answer = String::from_utf8(answers[place].to_canonical()).expect("ASCII");
        assert!(answer.contains(what), "{answer}");
    };
    assert_eq!(answers.len(), 6, "one per question of the guide");
    check_answer(0, "\"retrieval\"");
    check_answer(1, SESSION);
    check_answer(2, &receipt.fact);
    check_answer(3, &receipt.fact);
    check_answer(4, "\"message_index\"");
    check_answer(5, "fix the pager in src/pager.rs");
}

/// Returns the targets of a text's links: a path and an anchor, either of which may be empty.
fn links(text: &str) -> Vec<(&str, &str)> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    let inside = targets.filter(|target| !target.contains("://"));
    inside
        .map(|target| target.split_once('#').unwrap_or((target, "")))
        .collect()
}

/// Returns the anchors of the headings of a text.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/decisions",
        "docs/integrate",
        "docs/reference",
        "svc-client",
    ] {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    assert!(pages.len() > 30, "{pages:?}");
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).expect("a page");
        for (path, anchor) in links(&text) {
            let target = if path.is_empty() {
                page.clone()
            } else {
                page.with_file_name("").join(path)
            };
            let leads = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target)
                        .is_ok_and(|text| anchors(&text).contains(anchor)));
            if !leads {
                broken.push(format!("{}: {path}#{anchor}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
