//! Clients that common generators make from `openapi.json`: they post, discover and read with a
//! service. Also what linters say about such documents.
//!
//! The programs are looked for in the folder that [`FOLDER_VARIABLE`] names, or in
//! `target/generators`. `tests/clients/README.md` says how to install them. A test whose program is
//! absent says so and ends. If the variable names a folder, all of them must be there.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use tempfile::TempDir;

/// The variable that names the folder of the programs.
const FOLDER_VARIABLE: &str = "SVC_TEST_GENERATORS";
/// The Session that the clients write and read.
const SESSION: &str = "fix-the-pager";

fn workspace() -> &'static Path {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    workspace.expect("the workspace")
}

fn document() -> PathBuf {
    workspace().join("schemas/openapi.json")
}

/// Returns a program in the folder, or `None` if it is absent and need not be there.
fn program(name: &str) -> Option<PathBuf> {
    let given = std::env::var_os(FOLDER_VARIABLE).filter(|given| !given.is_empty());
    let is_given = given.is_some();
    let folder = given.map_or_else(|| workspace().join("target/generators"), PathBuf::from);
    let places = [folder.join("python/bin"), folder.join("node_modules/.bin")];
    let found = places
        .iter()
        .map(|place| place.join(name))
        .find(|path| path.exists());
    if found.is_none() {
        let place = folder.display();
        assert!(!is_given, "{name} is not in {place}");
        let mut err = std::io::stderr();
        let result = writeln!(
            err,
            "skipped: {name} is not in {place}; see tests/clients/README.md"
        );
        result.expect("standard error");
    }
    found
}

/// Runs a program in a folder and returns what it prints.
fn run(folder: &Path, program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .output()
        .expect("the program can be run");
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{}: {printed}", program.display());
    printed
}

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn start() -> Server {
    let configuration = Configuration::granting_one(SESSION);
    Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped")
}

#[test]
fn a_client_of_openapi_python_client_posts_discovers_and_reads() {
    let (Some(generator), Some(python)) = (program("openapi-python-client"), program("python"))
    else {
        return;
    };
    let folder = scratch();
    let document = document();
    let document = document.to_str().expect("UTF-8");
    let printed = run(
        folder.path(),
        &generator,
        &["generate", "--meta", "none", "--path", document],
    );
    for lost in ["Unable to process schema", "Error(s) encountered"] {
        assert!(!printed.contains(lost), "{printed}");
    }
    let server = start();
    let script = workspace().join("tests/clients/first_hour.py");
    // A script finds modules in its own folder.
    fs::copy(script, folder.path().join("first_hour.py")).expect("a copy");
    let base_url = server.base_url();
    let printed = run(
        folder.path(),
        &python,
        &["first_hour.py", &base_url, OPERATOR_TOKEN, INGEST_TOKEN],
    );
    assert_eq!(printed, "posted, found, read\n");
}

#[test]
fn a_client_of_hey_api_posts_discovers_and_reads() {
    let (Some(generator), Some(compiler)) = (program("openapi-ts"), program("tsc")) else {
        return;
    };
    let folder = scratch();
    let document = document();
    let document = document.to_str().expect("UTF-8");
    let generate = [
        "-i",
        document,
        "-o",
        "client",
        "-c",
        "@hey-api/client-fetch",
    ];
    run(folder.path(), &generator, &generate);
    let script = workspace().join("tests/clients/first_hour.ts");
    fs::copy(script, folder.path().join("first_hour.ts")).expect("a copy");
    // Strict mode, so what the document leaves untyped does not compile.
    let options = "--strict --target es2022 --lib es2023,dom,dom.iterable --module commonjs \
                   --moduleResolution node10 --skipLibCheck --outDir js first_hour.ts";
    let options: Vec<&str> = options.split_whitespace().collect();
    run(folder.path(), &compiler, &options);
    let server = start();
    let base_url = server.base_url();
    let printed = run(
        folder.path(),
        Path::new("node"),
        &["js/first_hour.js", &base_url, OPERATOR_TOKEN, INGEST_TOKEN],
    );
    assert_eq!(printed, "posted, found, read\n");
}

#[test]
fn redocly_reports_no_problem_in_the_document() {
    let Some(linter) = program("redocly") else {
        return;
    };
    let document = document();
    let document = document.to_str().expect("UTF-8");
    let lint = ["lint", "--format=json", document];
    let printed = run(scratch().path(), &linter, &lint);
    for nothing in ["\"errors\": 0", "\"warnings\": 0"] {
        assert!(printed.contains(nothing), "{printed}");
    }
}

#[test]
fn spectral_reports_no_problem_in_the_document() {
    let Some(linter) = program("spectral") else {
        return;
    };
    let folder = scratch();
    fs::write(
        folder.path().join("rules.yaml"),
        "extends: [\"spectral:oas\"]\n",
    )
    .expect("a file");
    let document = document();
    let document = document.to_str().expect("UTF-8");
    let lint = [
        "lint",
        "--fail-severity",
        "hint",
        "-r",
        "rules.yaml",
        document,
    ];
    run(folder.path(), &linter, &lint);
}

#[test]
fn ajv_takes_every_schema_in_strict_mode_and_its_examples() {
    // It has no program; the compiler of TypeScript stands beside it.
    let Some(compiler) = program("tsc") else {
        return;
    };
    let modules = compiler.ancestors().nth(2).expect("a folder of modules");
    let script = workspace().join("tests/clients/strict.mjs");
    let schemas = workspace().join("schemas");
    let paths = [script.as_path(), modules, &schemas].map(|path| path.to_str().expect("UTF-8"));
    let printed = run(workspace(), Path::new("node"), &paths);
    assert_eq!(printed, "every example is valid\n");
}

#[test]
fn the_lines_of_the_page_about_clients_run() {
    let page = fs::read_to_string(workspace().join("docs/integrate/clients.md")).expect("the page");
    let lines: Vec<&str> = page
        .lines()
        .filter_map(|row| row.strip_prefix("| ")?.split('`').nth(1))
        .collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let folder = scratch();
    let schemas = folder.path().join("schemas");
    std::os::unix::fs::symlink(workspace().join("schemas"), &schemas).expect("a link");
    let schema = fs::read(schemas.join("GatewayPayload.json")).expect("a schema");
    let schema: serde_json::Value = serde_json::from_slice(&schema).expect("JSON");
    let call = schema["examples"][0].to_string();
    fs::write(folder.path().join("call.json"), call).expect("a file");
    for line in lines {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a program");
        let words: Vec<&str> = words.collect();
        if let Some(program) = program(name) {
            run(folder.path(), &program, &words);
        }
    }
}
