//! The operator's shell, run as an operator would run it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::delivery::Call;
use harness::http::Request;
use harness::process::{self, Output};
use harness::programs;
use harness::server::{
    Backend, Configuration, FORGE_SECRET, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server,
    UNKNOWN_TOKEN,
};
use svc_model::json::Json;

/// How long a command may take.
pub(crate) const COMMAND_MAX: Duration = Duration::from_mins(1);
/// The Session that `svc demo` plants.
pub(crate) const DEMO: &str = "svc-demo";
/// The last call of it: its id is derived from the capture id, so it is the same everywhere.
pub(crate) const LAST_CALL: &str = "832e92a2-a783-5abf-a95a-5db0176c0a02";

/// Runs `svc` with these arguments, set up for a server.
pub(crate) fn svc(server: &Server, arguments: &[&str]) -> Output {
    svc_with(server, &[], arguments)
}

/// Runs `svc` with these arguments, set up for a server, with other variables.
pub(crate) fn svc_with(server: &Server, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = server.shell();
    command.envs(variables.iter().copied()).args(arguments);
    process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
}

pub(crate) fn start(configuration: &Configuration) -> Server {
    Server::start(Backend::Sqlite, configuration).expect("SQLite is never skipped")
}

/// Starts a server whose agents may read the planted Session, and plants it.
fn planted() -> Server {
    let server = start(&Configuration::granting(&[DEMO, "other"]));
    done(&svc(&server, &["demo", "--small"]));
    server
}

/// Returns what a person saw of a command that must succeed without a complaint: what it printed,
/// then what it named to run next, which stands on standard error.
pub(crate) fn done(output: &Output) -> String {
    let beside = output.stderr_text();
    assert_eq!(output.status.code(), Some(0), "{beside}");
    assert!(
        beside.is_empty() || beside.starts_with("\nnext:\n"),
        "{beside}"
    );
    output.stdout_text() + &beside
}

/// Returns the JSON that a command printed that must succeed.
pub(crate) fn json(output: &Output) -> Json {
    let text = done(output);
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    Json::parse(text.as_bytes()).expect("JSON")
}

/// Returns the member at a path.
pub(crate) fn at<'a>(value: &'a Json, path: &[&str]) -> &'a Json {
    path.iter().fold(value, |value, name| {
        let member = value.as_object().and_then(|object| object.get(name));
        member.unwrap_or_else(|| panic!("no {name} in {value:?}"))
    })
}

/// Checks that a command is refused, and returns what it said.
pub(crate) fn refused(output: &Output, status: i32) -> String {
    let said = output.stderr_text();
    assert_eq!(
        (output.status.code(), output.stdout_text().as_str()),
        (Some(status), ""),
        "{said}"
    );
    for secret in [
        OPERATOR_TOKEN,
        INGEST_TOKEN,
        RETRIEVAL_TOKEN,
        UNKNOWN_TOKEN,
        FORGE_SECRET,
    ] {
        assert!(!said.contains(secret), "a secret is shown in:\n{said}");
    }
    said
}

#[test]
fn an_unknown_command_is_a_usage_error_on_stderr() {
    let server = start(&Configuration::default());
    let said = refused(&svc(&server, &["no-such-command"]), 2);
    assert!(said.contains("no-such-command"), "{said}");
    let said = refused(&svc(&server, &["no-such-command", "--json"]), 2);
    assert_eq!(
        at(&Json::parse(said.as_bytes()).unwrap(), &["error", "code"]),
        &Json::from("usage")
    );
}

#[test]
fn the_demo_plants_once_finds_and_reads() {
    let server = start(&Configuration::granting(&[DEMO]));
    let url = server.base_url();
    let first = done(&svc(&server, &["demo", "--small"]));
    let expected = format!(
        "planted Session svc-demo at {url}: 4 calls (4 new), 1 CI outcome (1 new)

$ svc context discover 'half-open window'
matched: 1 of 1 found Sessions (1 authorized), 13 of 40 parts match
left out: 4 reasoning

session   score  parts  commit  preview
svc-demo      3     13  -       The window is closed on both ends: `first..=last` includes t…

$ svc evidence read svc-demo {LAST_CALL}:input:4:0 {LAST_CALL}:output:0:0
{LAST_CALL}:input:4:0  2026-01-15T09:31:04.500000Z
  assistant
    The window is closed on both ends: `first..=last` includes the first row of the next page. A half-open window shares no row.

{LAST_CALL}:output:0:0  2026-01-15T09:31:04.500000Z
  assistant, stop
    Fixed: `Pager::window` returned a closed range, so every page repeated its neighbour's first row; it is a half-open window now. Three tests pass, and `pages_do_not_overlap` is new.

next:
  svc evidence inventory svc-demo
  svc facts
  svc install mcp-claude-code
"
    );
    assert_eq!(first, expected);
    let again = json(&svc(&server, &["demo", "--small", "--json"]));
    assert_eq!(
        at(&again, &["planted", "calls"]),
        &Json::parse(br#"{"total":4,"stored":0}"#).unwrap()
    );
    assert_eq!(
        at(&again, &["planted", "ci_outcomes", "stored"]),
        &Json::from(0_u64)
    );
}

#[test]
fn the_demo_starts_a_service_of_its_own_when_there_is_none() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path()).args(arguments);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let first = json(&run(&["demo", "--small", "--json"]));
    assert_eq!(at(&first, &["embedded"]), &Json::from(true));
    assert_eq!(
        at(&first, &["planted", "calls", "stored"]),
        &Json::from(4_u64)
    );
    assert_eq!(at(&first, &["discovery", "status"]), &Json::from("matched"));
    let again = json(&run(&["demo", "--small", "--json"]));
    assert_eq!(
        at(&again, &["planted", "calls", "stored"]),
        &Json::from(0_u64)
    );
}

#[test]
fn the_demo_plants_an_organization_with_a_repository_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("demo");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let svc = |arguments: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command.env_clear().env("HOME", home.path());
        command.env("PATH", &path).args(arguments);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let demo = || {
        let planted = json(&svc(&[
            "demo",
            "--folder",
            folder.to_str().unwrap(),
            "--json",
        ]));
        let organization = at(&planted, &["organization"]).clone();
        assert_eq!(at(&organization, &["mirrored"]), &Json::from(true));
        assert_eq!(at(&organization, &["sessions"]), &Json::from(40_u64));
        let stored = ["calls", "webhooks", "ci_outcomes"];
        (
            stored.map(|kind| at(&organization, &[kind, "stored"]).clone()),
            planted,
        )
    };
    let (first, planted) = demo();
    assert_eq!(first, [71_u64, 43, 44].map(Json::from));
    let (again, _) = demo();
    assert_eq!(again, [0_u64; 3].map(Json::from));

    // What it says to paste next is what the folder holds.
    let url = at(&planted, &["own", "database_url"]).as_str().unwrap();
    let mirrors = at(&planted, &["own", "mirrors"]).as_str().unwrap();
    let report = svc(&[
        "report",
        "lifecycle",
        "--mirror-path",
        mirrors,
        "--database-url",
        url,
    ]);
    let report = done(&report);
    for panel in [
        "attributed to a commit      80.0% (8 of 10; 49.0% to 94.3%)",
        "partially_modified   #.........  5.0% (1 of 20; 0.9% to 23.6%)",
        "in one merged pull request: 87.5% (14 of 16; 64.0% to 96.5%)",
        "retry_linkages             retry_linkage",
    ] {
        assert!(report.contains(panel), "{panel} is not in\n{report}");
    }
    let log = done(&svc(&["quarantine-log", "--database-url", url]));
    assert!(log.contains("1 rows"), "{log}");
}

#[test]
fn the_demo_plants_no_organization_among_the_evidence_of_others() {
    let server = start(&Configuration::granting(&[DEMO]));
    for session in ["mine", "yours"] {
        let call = Call::new(session, session);
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
    }
    let text = done(&svc(&server, &["demo"]));
    assert!(text.contains("svc demo --folder ./svc-demo"), "{text}");
    assert!(!text.contains("acme/orders"), "{text}");
}

#[test]
fn the_doctor_says_what_fails_and_what_fixes_it() {
    let server = start(&Configuration::default());
    let home = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let doctor = |token: &str, more: &[&str]| {
        let mut command = Command::new(programs::path(programs::SHELL));
        command
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", &path);
        command
            .env("SVC_URL", server.base_url())
            .env("SVC_TOKEN", token);
        command.current_dir(home.path()).arg("doctor").args(more);
        process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
    };
    let text = done(&doctor(OPERATOR_TOKEN, &[]));
    for line in [
        "clock             ok       within a minute of the service",
        "logs as protobuf  ok       received",
        "agents' events    warning  nothing stored yet",
        "fix: svc install claude-code --print",
        "store             -        none on this machine",
        "clone             -        this folder is not a git repository",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // What the doctor sends is no evidence.
    let again = done(&doctor(OPERATOR_TOKEN, &[]));
    assert!(again.contains("agents' events    warning"), "{again}");
    let checks = json(&doctor(OPERATOR_TOKEN, &["--json"]));
    assert_eq!(at(&checks, &["failed"]), &Json::from(0_u64));

    let refused = doctor(UNKNOWN_TOKEN, &[]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    let mend = format!("fix: svc login {}", server.base_url());
    assert!(text.contains(&mend), "{text}");

    // A forge that signs with another secret.
    let body = b"{}".to_vec();
    let forged = Request::post("/ingest/forge/push", body).header("x-github-event", "push");
    let forged = forged.header("x-hub-signature-256", format!("sha256={}", "0".repeat(64)));
    assert_eq!(server.send(&forged).status, 401);
    let text = doctor(OPERATOR_TOKEN, &[]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(
            "webhooks          FAILED   signed with another secret since the service started: 1"
        ),
        "{text}"
    );
}

#[test]
fn the_demo_stays_on_this_machine() {
    let server = start(&Configuration::default());
    let said = refused(&svc(&server, &["demo", "--url", "https://svc.example"]), 1);
    assert!(said.contains("--force"), "{said}");
}

#[test]
fn without_a_grant_the_demo_says_how_agents_can_find_it() {
    let server = start(&Configuration::default());
    let text = done(&svc(&server, &["demo", "--small"]));
    assert!(
        text.contains("SVC_RETRIEVAL_SESSION_IDS='[\"svc-demo\"]'"),
        "{text}"
    );
    assert!(text.contains("it is a half-open window now"), "{text}");
}

#[test]
fn facts_are_the_same_from_the_store_and_from_the_service() {
    let server = planted();
    let direct = done(&svc(&server, &["facts"]));
    let remote = done(&svc_with(&server, &[("SVC_DATABASE_URL", "")], &["facts"]));
    assert_eq!(direct, remote);
    assert_eq!(
        direct,
        "table                         total  visible
sessions                          1        -
inference_calls                   4        4
developer_decisions               0        0
ci_outcomes                       1        1
pushes                            0        0
pull_request_merges               0        0
pull_request_revisions            0        0
edit_observations                 0        0
rejected_edits                    0        0
retry_linkages                    0        0
session_commit_observations       0        0
repository_renames                0        0
quarantine_revision: 0
"
    );
    let direct = json(&svc(&server, &["facts", "--json"]));
    let remote = json(&svc_with(
        &server,
        &[("SVC_DATABASE_URL", "")],
        &["facts", "--json"],
    ));
    assert_eq!(direct, remote);
}

#[test]
fn a_token_is_named_and_never_shown() {
    let server = planted();
    let version = env!("CARGO_PKG_VERSION");
    let url = server.base_url();
    assert_eq!(
        done(&svc(&server, &["me"])),
        format!(
            "service       {url}\nversion       {version}\norganization  acme\nauthority     operator\nclient        operator\n"
        )
    );
    let retrieval = svc_with(&server, &[("SVC_TOKEN", RETRIEVAL_TOKEN)], &["me"]);
    assert!(done(&retrieval).ends_with("session       other\nsession       svc-demo\n"));
    let file = server
        .store()
        .url()
        .trim_start_matches("sqlite://")
        .to_owned()
        + ".token";
    fs::write(&file, format!("{INGEST_TOKEN}\n")).unwrap();
    let ingest = [("SVC_TOKEN", ""), ("SVC_TOKEN_FILE", file.as_str())];
    assert!(done(&svc_with(&server, &ingest, &["me"])).contains("client        alice\n"));
}

#[test]
fn context_leads_to_the_exact_part() {
    let server = planted();
    let discovered = done(&svc(
        &server,
        &["context", "discover", "half-open", "window"],
    ));
    assert!(
        discovered
            .ends_with("\nnext:\n  svc context retrieve --session svc-demo 'half-open window'\n"),
        "{discovered}"
    );

    let retrieved = svc(
        &server,
        &[
            "context",
            "retrieve",
            "--session",
            DEMO,
            "pages_do_not_overlap",
            "--max-bytes",
            "65536",
        ],
    );
    let retrieved = done(&retrieved);
    assert!(retrieved.starts_with("matched: "), "{retrieved}");
    assert!(
        retrieved.contains("calls edit_file (tool call call_demo_write)"),
        "{retrieved}"
    );
    assert!(
        retrieved.contains(&format!("  svc evidence manifest svc-demo {LAST_CALL}\n")),
        "{retrieved}"
    );

    let nothing = done(&svc(
        &server,
        &["context", "retrieve", "--session", DEMO, "zeppelin"],
    ));
    assert!(nothing.starts_with("no_match: 0 of 40 parts"), "{nothing}");
    // The service has several Sessions configured, so one must be named.
    let said = refused(&svc(&server, &["context", "retrieve", "pager"]), 1);
    assert!(said.contains("--session"), "{said}");
}

#[test]
fn evidence_goes_from_the_inventory_to_the_exact_bytes() {
    let server = planted();
    let inventory = done(&svc(&server, &["evidence", "inventory", DEMO]));
    assert!(
        inventory.starts_with("Session svc-demo: 4 visible calls, 0 quarantined\n"),
        "{inventory}"
    );
    assert!(
        inventory.ends_with(&format!("  svc evidence manifest svc-demo {LAST_CALL}\n")),
        "{inventory}"
    );
    let unknown = done(&svc(&server, &["evidence", "inventory", "nobody"]));
    assert!(
        unknown.starts_with("Session nobody is not known\n"),
        "{unknown}"
    );

    let manifest = done(&svc(&server, &["evidence", "manifest", DEMO, LAST_CALL]));
    assert!(
        manifest.starts_with(&format!(
            "call {LAST_CALL} of Session svc-demo: 10 messages, "
        )),
        "{manifest}"
    );
    assert!(manifest.contains("finish reason"), "{manifest}");

    let reference = format!("{LAST_CALL}:input:1:0");
    let read = done(&svc(&server, &["evidence", "read", DEMO, &reference]));
    assert!(read.ends_with("  user\n    Page 2 of the orders report starts with the last row of page 1. Find out why and fix it.\n"), "{read}");

    let folder = tempfile::tempdir().unwrap();
    let selection = folder.path().join("selection.json");
    let selected = format!(
        r#"{{"schema_version":1,"references":[{{"inference_call_id":"{LAST_CALL}","side":"input","message_index":1,"part_index":0}}]}}"#
    );
    fs::write(&selection, selected).unwrap();
    let reply = folder.path().join("reply.json");
    let arguments = [
        "evidence",
        "read",
        DEMO,
        "--references",
        selection.to_str().unwrap(),
        "--output",
        reply.to_str().unwrap(),
    ];
    assert_eq!(
        done(&svc(&server, &arguments)),
        format!("{}: 1 items\n", reply.display())
    );
    let exact = done(&svc(
        &server,
        &["evidence", "read", DEMO, &reference, "--json"],
    ));
    assert_eq!(fs::read_to_string(&reply).unwrap() + "\n", exact);
    let said = refused(&svc(&server, &arguments), 1);
    assert!(said.contains("never overwritten"), "{said}");
}

#[test]
fn a_retrieval_token_reads_within_its_grant() {
    let server = planted();
    let retrieval = [("SVC_TOKEN", RETRIEVAL_TOKEN)];
    let granted = done(&svc_with(
        &server,
        &retrieval,
        &["evidence", "inventory", DEMO],
    ));
    assert!(granted.contains("4 visible calls"), "{granted}");
    let foreign = svc_with(
        &server,
        &retrieval,
        &["evidence", "inventory", "foreign", "--json"],
    );
    let said = refused(&foreign, 1);
    let said = Json::parse(said.as_bytes()).unwrap();
    assert_eq!(at(&said, &["error", "code"]), &Json::from("outside_grant"));
}

#[test]
fn what_goes_wrong_says_what_to_do_next() {
    let server = start(&Configuration::default());
    let remote = ("SVC_DATABASE_URL", "");
    for (variables, arguments, code, hint) in [
        (
            &[remote, ("SVC_TOKEN", UNKNOWN_TOKEN)][..],
            &["facts"][..],
            "unauthorized",
            "SVC_TOKEN",
        ),
        (
            &[remote, ("SVC_TOKEN", INGEST_TOKEN)],
            &["facts"],
            "forbidden",
            "svc me",
        ),
        (
            &[remote, ("SVC_TOKEN", "")],
            &["facts"],
            "no_token",
            "SVC_TOKEN",
        ),
        (
            &[remote, ("SVC_URL", "http://127.0.0.1:1")],
            &["facts"],
            "unreachable",
            "svc serve",
        ),
        (
            &[remote, ("SVC_URL", "http://svc.example")],
            &["facts"],
            "configuration",
            "SVC_ALLOW_PLAIN_HTTP",
        ),
        (
            &[remote],
            &["evidence", "manifest", "s", "c"],
            "evidence_unavailable",
            "inventory",
        ),
        (
            &[],
            &["context", "discover", "pager"],
            "retrieval_disabled",
            "SVC_RETRIEVAL_TOKEN",
        ),
        (&[], &["context", "discover", "the"], "invalid_argument", ""),
        (
            &[],
            &["evidence", "read", "s", "nonsense"],
            "invalid_argument",
            "manifest",
        ),
        (
            &[],
            &["quarantine-log", "--tail", "0"],
            "invalid_argument",
            "",
        ),
        (
            &[("SVC_DATABASE_URL", "mysql://a")],
            &["db", "status"],
            "configuration",
            "",
        ),
    ] {
        let said = refused(&svc_with(&server, variables, arguments), 1);
        assert!(said.starts_with("error: "), "{said}");
        assert!(
            hint.is_empty()
                || said
                    .lines()
                    .any(|line| line.starts_with("hint: ") && line.contains(hint)),
            "{said}"
        );
        let arguments = [arguments, &["--json"]].concat();
        let said = refused(&svc_with(&server, variables, &arguments), 1);
        let said = Json::parse(said.as_bytes()).expect("JSON");
        assert_eq!(at(&said, &["error", "code"]), &Json::from(code));
        assert!(at(&said, &["error", "message"]).as_str().is_some());
    }
}

/// Runs `svc` as somebody whose configuration is this file, with these variables and no others.
fn configured(config: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a home");
    let folder = home.path().join(".config/svc");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), config).expect("a configuration");
    let mut command = Command::new(programs::path(programs::SHELL));
    command
        .env_clear()
        .env("HOME", home.path())
        .envs(variables.iter().copied())
        .args(arguments);
    process::run(&mut command, b"", COMMAND_MAX).expect("the command ends")
}

#[test]
fn the_configuration_means_the_same_to_every_command() {
    let server = planted();
    let (url, store) = (server.base_url(), server.store().url().to_owned());
    let address = url.trim_start_matches("http://");
    let token = [("SVC_TOKEN", OPERATOR_TOKEN)];
    // Where a server of this machine listens is where its commands look for it.
    let listens = format!("listen = \"{address}\"\n");
    let me = done(&configured(&listens, &token, &["me"]));
    assert!(me.contains("organization  acme\n"), "{me}");
    // The store of the configuration is the one that every command works on.
    let stored = format!("database_url = \"{store}\"\norg_id = \"acme\"\n");
    let planted_calls = "inference_calls                   4        4\n";
    assert!(done(&configured(&stored, &[], &["facts"])).contains(planted_calls));
    let hide = ["quarantine", "inference_calls", LAST_CALL, "--reason", "x"];
    let hidden = done(&configured(&stored, &[], &hide));
    assert!(
        hidden.contains(&format!(" in {store}, organization acme")),
        "{hidden}"
    );
    let log = done(&configured(&stored, &[], &["quarantine-log"]));
    assert!(log.contains(LAST_CALL), "{log}");
    // What is given on the command line wins over all of it, and over the environment.
    let nowhere = [
        ("SVC_TOKEN", OPERATOR_TOKEN),
        ("SVC_DATABASE_URL", "sqlite:///nowhere/at.all"),
    ];
    let asked = done(&configured(&stored, &nowhere, &["facts", "--url", &url]));
    assert!(
        asked.contains("inference_calls                   4        3\n"),
        "{asked}"
    );
    let said = refused(&configured(&stored, &nowhere, &["facts"]), 1);
    assert!(
        said.contains("svc db upgrade") && said.contains("svc login URL"),
        "{said}"
    );
    let both = ["facts", "--url", &url, "--database-url", &store];
    refused(&configured("", &token, &both), 1);
}

/// Runs a line as a shell does into which it is pasted, with this search path.
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

/// Runs each of these lines, and everything that they name to run next. Returns all that were run.
fn follow(lines: Vec<String>, path: &OsStr, variables: &[(&str, &str)]) -> BTreeSet<String> {
    let mut waiting = lines;
    let mut seen = BTreeSet::new();
    while let Some(line) = waiting.pop() {
        if !seen.insert(line.clone()) {
            continue;
        }
        let output = pasted(&line, Path::new("/nowhere"), path, variables);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        let beside = output.stderr_text();
        let next = beside.split("next:\n").nth(1).unwrap_or_default();
        waiting.extend(next.lines().map(|line| line.trim().to_owned()));
        assert!(!output.stdout_text().contains("next:"), "{line}");
    }
    seen
}

#[test]
fn what_is_named_to_run_next_works_where_it_is_pasted() {
    let server = planted();
    let url = server.base_url();
    let installed = programs::search_path();
    let elsewhere = OsString::from("/usr/bin:/bin");
    let path = programs::path(programs::SHELL);
    let path = fs::canonicalize(path).expect("the program");
    // One has installed the program, the other has only built it.
    for (program, search) in [("svc", &installed), (&*path.to_string_lossy(), &elsewhere)] {
        // On the machine of somebody who is not near the store, and names the service each time.
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
fn what_the_demo_names_to_run_next_works_without_an_installed_program() {
    let home = tempfile::tempdir().expect("a home");
    let path = fs::canonicalize(programs::path(programs::SHELL)).expect("the program");
    let search = OsString::from("/usr/bin:/bin");
    let folder = home.path().join("demo");
    let demo = format!("{} demo --folder {}", path.display(), folder.display());
    let planted = pasted(&demo, home.path(), &search, &[]);
    assert_eq!(planted.status.code(), Some(0), "{planted:?}");
    let beside = planted.stderr_text();
    let next = beside.split("next:\n").nth(1).expect("what to run next");
    let lines: Vec<&str> = next.lines().map(str::trim).collect();
    let (serves, others): (Vec<&str>, _) = lines.iter().partition(|it| it.ends_with(" serve"));
    assert_eq!((serves.len(), others.len()), (1, 2), "{lines:?}");
    for line in others {
        let report = pasted(line, home.path(), &search, &[]);
        assert_eq!(report.status.code(), Some(0), "{line}: {report:?}");
    }
    // The service never ends by itself; that it starts with what is pasted is enough.
    let line = format!("{} --listen 127.0.0.1:0", serves[0]);
    let line = format!("timeout --preserve-status --signal=TERM 5 env {line}");
    let served = pasted(&line, home.path(), &search, &[]);
    assert_eq!(served.status.code(), Some(0), "{served:?}");
}
