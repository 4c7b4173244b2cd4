//! What the shell offers a person besides answers.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::first_use::svc;

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let home = tempfile::tempdir().expect("a folder");
    svc(home.path())
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("svc runs")
}

/// Returns what a successful command printed.
fn printed(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run(arguments, variables);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn completions_are_valid_in_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell], &[]);
        for word in ["investigate", "completions", "gitlab-ci", "validate"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("svc");
        std::fs::write(&file, script).expect("a file");
        // A shell that is not installed cannot check.
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(read.status.success(), "{shell}: {read:?}");
        }
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let name = pages.to_str().expect("a name in Unicode");
    let stdout = printed(&["man", name], &[]);
    assert!(stdout.ends_with(&format!("pages in {name}\n")), "{stdout}");
    for (page, words) in [
        ("svc.1", &["svc serve", "investigate"][..]),
        ("svc-ci-report.1", &["soft", "whole"]),
        ("svc-commit.1", &["svc commit HEAD"]),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).expect("a page");
        for word in words {
            assert!(text.contains(word), "{page} has no {word}");
        }
    }
}

#[test]
fn colours_can_be_turned_on_and_off() {
    let wrong = ["commit", "none"];
    for (choice, variables, coloured) in [
        (&[][..], &[][..], false),
        (&["--color", "always"], &[], true),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false),
        (&["--color", "always"], &[("NO_COLOR", "1")], true),
    ] {
        let output = run(&[&wrong[..], choice].concat(), variables);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.contains('\u{1b}'), coloured, "{choice:?}: {stderr}");
    }
    let usage = run(&["nonsense", "--color", "always"], &[]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&usage.stderr).contains('\u{1b}'));
}

#[test]
fn every_setting_shows_its_source_and_no_secret_is_printed() {
    let variables = [
        ("SVC_LISTEN", "127.0.0.1:8301"),
        ("SVC_OPERATOR_TOKEN", "never-shown-never-shown"),
        ("SVC_TOKEN", "never-shown-never-shown"),
    ];
    let arguments = ["config", "show", "--origin", "--org", "acme"];
    let shown = printed(&arguments, &variables);
    assert!(!shown.contains("never-shown"), "{shown}");
    let row = |name: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        let words = line.unwrap_or_else(|| panic!("no {name}: {shown}"));
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("SVC_LISTEN"), "SVC_LISTEN 127.0.0.1:8301 SVC_LISTEN");
    assert_eq!(row("SVC_ORG_ID"), "SVC_ORG_ID acme flag");
    assert_eq!(
        row("SVC_OPERATOR_TOKEN"),
        "SVC_OPERATOR_TOKEN (secret) SVC_OPERATOR_TOKEN"
    );
    assert_eq!(row("SVC_URL"), "SVC_URL http://127.0.0.1:8301 default");
    assert_eq!(row("SVC_TOKEN"), "SVC_TOKEN (secret) SVC_TOKEN");
    assert!(row("SVC_READ_SLOTS").ends_with("2 default"));
    let json = printed(&["config", "show", "--json"], &variables);
    assert!(!json.contains("never-shown"), "{json}");
    let listen =
        r#"{"name":"SVC_LISTEN","value":"127.0.0.1:8301","secret":false,"origin":"SVC_LISTEN"}"#;
    assert!(json.contains(listen), "{json}");
}

#[test]
fn a_default_is_shown_as_it_is_and_a_password_of_a_url_is_not() {
    let home = tempfile::tempdir().expect("a folder");
    let output = svc(home.path())
        .args(["config", "show"])
        .env("SVC_URL", "https://ann:never-shown@svc.example")
        .output()
        .expect("svc runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("https://(hidden)@svc.example"), "{shown}");
    assert!(!shown.contains("never-shown"), "{shown}");
    let database = home.path().join(".local/share/svc/svc.db");
    assert!(
        shown.contains(database.to_str().expect("a name")),
        "{shown}"
    );
}

/// Returns the exit code and what is printed to standard error.
fn failed(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = run(arguments, variables);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

#[test]
fn an_invalid_argument_is_wrong_usage() {
    let selected = ["ci", "failures", "--repo", "acme/shop"];
    for arguments in [
        &["sessions", "--since", "yesterday"][..],
        &["export", "--until", "2026-13-01"],
        &["ci", "failures"],
        &[&selected[..], &["--since", "1d", "--until", "2d"]].concat(),
        &["session", ""],
        &["transcript", ""],
    ] {
        let (code, errors) = failed(arguments, &[("SVC_TOKEN", "0123456789abcdef01234567")]);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_server_that_does_not_start_says_what_to_do() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("an address").to_string();
    let (code, errors) = failed(&["serve", "--listen", &taken], &[]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("svc serve --listen 127.0.0.1:0"),
        "{errors}"
    );
    let url = "postgres://svc@127.0.0.1:1/svc";
    let (code, errors) = failed(&["serve", "--database-url", url], &[]);
    assert_eq!(code, Some(1), "{errors}");
    for line in [
        "hint: export SVC_OPERATOR_TOKEN=$(openssl rand -hex 32)\n",
        "hint: export SVC_INGEST_TOKENS=\"{\\\"gateway\\\":\\\"$(openssl rand -hex 32)\\\"}\"\n",
        "hint: export SVC_FORGE_WEBHOOK_SECRET=$(openssl rand -hex 32)\n",
    ] {
        assert!(errors.contains(line), "{errors}");
    }
}

#[test]
fn the_state_of_the_schema_can_be_the_exit_code() {
    let home = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = svc(home.path()).args(arguments).output();
        output.expect("svc runs").status.code()
    };
    assert_eq!(run(&["db", "status"]), Some(0));
    assert_eq!(run(&["db", "status", "--check"]), Some(1));
    assert_eq!(run(&["db", "upgrade"]), Some(0));
    assert_eq!(run(&["db", "status", "--check"]), Some(0));
}

#[test]
fn the_doctor_says_first_whether_the_service_answers() {
    let output = run(&["doctor"], &[("SVC_URL", "http://127.0.0.1:9")]);
    let shown = String::from_utf8_lossy(&output.stdout);
    let line = shown.lines().next().expect("a check");
    assert!(line.starts_with("service"), "{shown}");
    assert!(line.contains("FAILED   http://127.0.0.1:9: "), "{shown}");
    assert!(!shown.contains("no token"), "{shown}");
}

#[test]
fn a_snippet_is_printed_with_and_without_the_print_flag() {
    let url = ["--url", "https://svc.example.com"];
    let plain = printed(&[&["install", "codex"][..], &url].concat(), &[]);
    let asked = printed(&[&["install", "codex", "--print"][..], &url].concat(), &[]);
    assert_eq!(plain, asked);
    assert!(plain.contains("https://svc.example.com/v1/logs"), "{plain}");
}

#[test]
fn a_json_error_contains_hints() {
    let output = run(&["me", "--json"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.starts_with(r#"{"error":{"code":"no_token""#),
        "{stderr}"
    );
    assert!(stderr.contains(r#""hints":["set SVC_TOKEN"#), "{stderr}");
}

/// Runs a command with a document on its standard input.
fn given(arguments: &[&str], document: &str) -> Output {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = svc(home.path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("svc runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(document.as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("it ends")
}

#[test]
fn the_published_schemas_are_listed_and_shown_as_they_are_in_their_files() {
    let listed = printed(&["schema", "list"], &[]);
    assert!(listed.starts_with("schema "), "{listed}");
    for row in ["GatewayPayload ", "CommitNote ", "VendorCIRequest "] {
        assert!(listed.contains(&format!("\n{row}")), "{row} in {listed}");
    }
    assert!(listed.contains("POST /ingest/ci"), "{listed}");
    let json = printed(&["schema", "list", "--json"], &[]);
    assert!(
        json.contains(r#"{"name":"Part","direction":"payload","#),
        "{json}"
    );
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    for (name, file) in [
        ("Part", "Part.json"),
        ("gatewaypayload.json", "GatewayPayload.json"),
        ("OpenAPI", "openapi.json"),
    ] {
        let published = std::fs::read_to_string(schemas.join(file)).expect("a schema");
        assert_eq!(printed(&["schema", "show", name], &[]), published, "{name}");
    }
    let unknown = run(&["schema", "show", "GatewayPayloads"], &[]);
    assert_eq!(unknown.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        stderr.contains("there is no schema GatewayPayloads"),
        "{stderr}"
    );
    assert!(stderr.contains("did you mean GatewayPayload"), "{stderr}");
}

#[test]
fn a_document_is_checked_against_a_published_schema() {
    let note =
        r#"{"v":1,"sessions":[{"tool":"t","session_id":"s","stamped_at":"2026-11-20T12:00:00Z"}]}"#;
    let check = ["schema", "validate", "commitnote", "-"];
    let valid = given(&check, note);
    assert!(valid.status.success(), "{valid:?}");
    assert_eq!(
        String::from_utf8_lossy(&valid.stdout),
        "valid: CommitNote\n"
    );

    let wrong = note.replace(r#""session_id":"s""#, r#""session_id":7"#);
    let wrong = wrong.replace(r#""v":1"#, r#""v":1,"more":true"#);
    let refused = given(&check, &wrong);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned();
    let places: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    assert_eq!(places.len(), 2, "{shown}");
    assert!(
        places.contains(&"(document)") && places.contains(&"/sessions/0/session_id"),
        "{shown}"
    );
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("2 violations of CommitNote"), "{stderr}");
    assert!(stderr.contains("svc schema show CommitNote"), "{stderr}");

    let json = given(&[&check[..], &["--json"]].concat(), &wrong);
    let json = String::from_utf8_lossy(&json.stdout).into_owned();
    assert!(
        json.starts_with(r#"{"schema":"CommitNote","valid":false,"violations":[{"pointer":"#),
        "{json}"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("note.json");
    std::fs::write(&file, note).expect("a file");
    let file = file.to_str().expect("a name in Unicode");
    printed(&["schema", "validate", "CommitNote", file], &[]);
    let absent = run(
        &["schema", "validate", "CommitNote", "/nowhere/at.all"],
        &[],
    );
    assert_eq!(absent.status.code(), Some(1));
    let broken = given(&check, "{");
    assert_eq!(broken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("not JSON"));
}

#[test]
fn help_to_a_full_disk_is_an_error_and_to_a_closed_pipe_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full disk");
    let output = svc(folder.path()).arg("--help").stdout(full).output();
    assert_eq!(output.expect("svc runs").status.code(), Some(1));
    let mut child = svc(folder.path())
        .arg("--help")
        .stdout(Stdio::piped())
        .spawn()
        .expect("svc runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("svc ends").success());
}

#[test]
fn unusable_arguments_and_addresses_are_refused() {
    for (arguments, code, words) in [
        (&["verify", ""][..], 2, "DIR"),
        (&["backup", ""], 2, "DIR"),
        (&["restore", "--org", "acme", "folder"], 2, "--org"),
        (&["facts", "--url", "ftp://svc.example"], 1, "https://"),
        (&["facts", "--url", "https://svc.example/?a"], 1, "query"),
    ] {
        let output = run(arguments, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("svc login"), "{arguments:?}: {stderr}");
    }
}
