//! What the overview prints: for people, for a terminal, for programs, and without any argument.

use std::process::{Command, Output};

use svc_client::testing::{Answer, FakeServer};

use super::first_use::{Service, svc};

const SAMPLE: &str = include_str!("../../../svc-model/view/src/overview/sample.json");

fn ask(arguments: &[&str]) -> (Output, Vec<String>) {
    let home = tempfile::tempdir().expect("a folder");
    let server = FakeServer::start([Answer::text(200, SAMPLE)]);
    let output = svc(home.path())
        .args(arguments)
        .env("SVC_URL", server.url())
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
        .output()
        .expect("svc runs");
    let targets = server.received().into_iter().map(|asked| asked.target);
    (output, targets.collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_overview_is_a_sentence_and_what_it_stands_on() {
    let (output, asked) = ask(&[
        "overview",
        "--days",
        "31",
        "--repo",
        "github/github.com/77",
        "--model",
        "gpt-5",
        "--outcome",
        "failed",
        "--limit",
        "7",
    ]);
    assert_eq!(
        asked,
        [
            "/v1/overview?days=31&repository_provider=github&repository_host=github.com&\
             repository_id=77&model=gpt-5&outcome=failed&limit=7"
        ]
    );
    assert!(output.status.success(), "{output:?}");
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "{shown}");
    for part in [
        "70 calls in 40 Sessions by 3 people, 12 changes, 10 accepted, 8 in pushed commits",
        "2 not observable (no push was received near the calls)",
        "$41.2000 at list price (3 calls not priced).\n",
        "\ncommitted  ################xx??????  8 in pushed commits, 1 thrown away",
        "\nneeds a look\n- acme/orders: CI failed at 9b2f3a6c1d",
        "\n  svc commit 9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c --repo github/github.com/77\n",
        "\nSessions, latest first (2 of 40)\nPage the orders\\u{1b}\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let next = text(&output.stderr);
    assert!(next.contains(" session s-1\n"), "{next}");

    let (output, _) = ask(&["overview", "--color", "always"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("\u{1b}[31mxx\u{1b}[0m"), "{shown}");
    let next = text(&output.stderr);
    assert!(next.contains(" overview --outcome failed\n"), "{next}");
}

#[test]
fn a_program_gets_the_reply_as_it_is() {
    let (output, _) = ask(&["overview", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let [printed, sent] = [&*text(&output.stdout), SAMPLE]
        .map(|text| serde_json::from_str::<serde_json::Value>(text).expect("JSON"));
    assert_eq!(printed, sent);
    assert_eq!(text(&output.stderr), "");
}

/// Runs a command as a person does, on a terminal. Both of its streams end there.
fn on_terminal(command: &Command) -> (Option<i32>, String) {
    let mut terminal = Command::new("script");
    terminal.env_clear();
    for (name, value) in command.get_envs() {
        terminal.envs(value.map(|value| (name, value)));
    }
    let program = command.get_program().to_string_lossy();
    let output = terminal
        .args(["-qec", &*program, "/dev/null"])
        .output()
        .expect("script runs");
    (output.status.code(), text(&output.stdout))
}

#[test]
fn a_person_without_any_argument_is_shown_it_if_a_service_is_known_and_else_the_help() {
    let home = tempfile::tempdir().expect("a folder");
    let server = FakeServer::start([Answer::text(200, SAMPLE)]);
    let mut known = svc(home.path());
    known
        .env("SVC_URL", server.url())
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef");
    let (code, shown) = on_terminal(&known);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("70 calls in 40 Sessions"), "{shown}");
    let asked = server.received().remove(0).target;
    assert_eq!(asked, "/v1/overview?limit=5");

    let (code, help) = on_terminal(&svc(home.path()));
    assert_eq!(code, Some(2));
    assert!(help.contains("Usage: svc"), "{help}");
    assert!(help.contains("once a service is known"), "{help}");
    // A token that may not see it, or no token, is an error as of any command.
    let mut nameless = svc(home.path());
    nameless.env("SVC_URL", "http://127.0.0.1:9");
    let (code, error) = on_terminal(&nameless);
    assert_eq!(code, Some(1));
    assert!(error.contains("no token for the service"), "{error}");
    // A program that forgets the command is told so.
    let output = known.output().expect("svc runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
}

#[tokio::test]
async fn after_the_demo_it_says_what_became_of_its_work() {
    let home = tempfile::tempdir().expect("a folder");
    let demo = svc(home.path()).arg("demo").output().expect("svc runs");
    assert!(demo.status.success(), "{}", text(&demo.stderr));
    let service = Service::start_in(home);
    service.wait_until_healthy().await;
    let run = |arguments: &[&str]| {
        let output = svc(service.home())
            .args(arguments)
            .output()
            .expect("svc runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        text(&output.stdout)
    };
    let shown = run(&["overview", "--limit", "5"]);
    let sentence = shown.lines().next().expect("a line");
    assert!(sentence.starts_with("Last 7 days: "), "{shown}");
    for word in [
        "accepted",
        "in pushed commits",
        "merged",
        "green",
        "thrown away",
    ] {
        assert!(sentence.contains(word), "{word}: {sentence}");
    }
    for heading in [
        "what became of changes",
        "repository ",
        "model ",
        "Sessions, latest first (5 of ",
    ] {
        assert!(shown.contains(heading), "{heading}: {shown}");
    }
    // Each figure has the Sessions that it counts.
    let lost = run(&["overview", "--outcome", "deleted"]);
    let list = lost.split("Sessions, latest first").nth(1);
    let list = list.expect("a list");
    assert!(list.contains("(2 of 2)"), "{list}");
    assert_eq!(list.matches("1 thrown away").count(), 2, "{list}");
    let none = run(&["overview", "--model", "nobody's"]);
    assert!(none.starts_with("No call of this selection was captured in the last 7 days."));
}
