//! The whole flow in a real browser: every page is used as a person would use it, and checked by
//! axe.
//!
//! With `SVC_TEST_FOREIGN=whole`, axe looks at every page at two widths and in both schemes;
//! otherwise at the width of a desk, in light.
//!
//! This runs where Chromium is installed, and where npm can install the driver and axe into a
//! folder that is kept. Elsewhere the test says what is missing and ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::delivery::{
    Call, Receipt, Webhook, allowed_edit, ci_outcome, logs, pull_request, push,
};
use harness::foreign::{is_whole, left_out};
use harness::http::Request;
use harness::process;
use harness::server::{Backend, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};

use super::{SESSION, start};

const PACKAGES: [&str; 2] = ["puppeteer-core@24.43.1", "axe-core@4.14.1"];
/// Where Debian and others install the browser.
const PROGRAMS: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// How long the installation of the driver may take.
const INSTALL_MAX: Duration = Duration::from_mins(3);
/// How long the whole flow may take.
const FLOW_MAX: Duration = Duration::from_mins(8);

/// Returns the browser, and the folder with the driver and axe.
fn installed() -> Result<(&'static str, PathBuf), String> {
    let program = PROGRAMS
        .into_iter()
        .find(|program| Path::new(program).exists());
    let program = program.ok_or("there is no Chromium (apt-get install chromium)")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-browser");
    let done = folder.join("installed");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&done).is_ok_and(|known| known == wanted) {
        return Ok((program, folder));
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let quiet = ["install", "--silent", "--no-audit", "--no-fund"];
    for arguments in [
        &["init", "--yes"][..],
        &[&quiet[..], &PACKAGES[..]].concat(),
    ] {
        let mut npm = Command::new("npm");
        npm.args(arguments).current_dir(&folder);
        let output = process::run(&mut npm, b"", INSTALL_MAX)?;
        if !output.status.success() {
            let stderr = output.stderr_text();
            return Err(format!(
                "npm: {}",
                stderr.lines().last().unwrap_or_default()
            ));
        }
    }
    fs::write(done, wanted).map_err(|error| error.to_string())?;
    Ok((program, folder))
}

fn plant(server: &Server) {
    let mut stored = String::new();
    for (name, model) in [
        ("one", "gpt-4o"),
        ("two", "gpt-4o"),
        ("three", "gpt-4o"),
        ("four", "claude-sonnet-4-5"),
    ] {
        let call = Call::new(SESSION, name).model(model).messages(vec![
            json!({"role": "user", "content": "fix <img src=x onerror=alert(1)>"}),
        ]);
        let reply = server.deliver("/ingest/gateway", call.body());
        stored = Receipt::of(&reply).fact;
    }
    for path in ["/v1/quarantine", "/v1/release"] {
        let reason = "it holds <b>a customer's</b> data, and it took a while to find that out";
        let body = json!({"table": "inference_calls", "fact_id": stored, "reason": reason});
        server.send(&Request::post(path, body.to_string()).bearer(OPERATOR_TOKEN));
    }
    server.deliver(
        "/v1/logs",
        logs(&allowed_edit(SESSION, "edit-1")).to_string(),
    );
    let mut outcome = ci_outcome("run-1");
    outcome["result"] = "failed".into();
    server.deliver("/ingest/ci", outcome.to_string());
    for (event, payload) in [
        ("push", push('b', 'a')),
        ("pull_request", pull_request("closed", 14)),
    ] {
        server.send(&Webhook::new(event, &payload).to("/ingest/forge"));
    }
}

#[test]
fn every_page_is_reachable_and_axe_reports_no_violation() {
    let (program, folder) = match installed() {
        Ok(installed) => installed,
        Err(why) => return left_out(&why),
    };
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    plant(&server);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/console/browser.mjs");
    let mut flow = Command::new("node");
    flow.arg(script)
        .args([program, &server.base_url(), OPERATOR_TOKEN])
        .arg(if is_whole() { "whole" } else { "smoke" })
        .current_dir(folder);
    let output = process::run(&mut flow, b"", FLOW_MAX).expect("the browser ends");
    let stderr = output.stderr_text();
    assert!(output.status.success(), "{stderr}");
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for nothing in ["violations", "wide", "foreign", "errors"] {
        assert_eq!(seen[nothing], json!([]), "{nothing}");
    }
    // axe is there, and finds an error.
    assert_eq!(seen["proof"], json!(["html-has-lang"]));
    assert_eq!(
        seen["led"],
        "/console/sign-in?to=%2Fconsole%2Fsessions%3Flimit%3D5"
    );
    assert_eq!(seen["after"], "/console/sessions?limit=5");
    let wrong = seen["wrong"].as_str().unwrap_or_default();
    assert!(wrong.contains("unauthorized"), "{wrong}");
    // No script could read a cookie, even if there were a script.
    assert_eq!(seen["visible"], "");
    for cookie in seen["cookies"].as_array().expect("cookies") {
        assert_eq!(cookie["httpOnly"], true, "{cookie}");
        assert_eq!(cookie["sameSite"], "Strict", "{cookie}");
    }
    assert_eq!(seen["first"], "Skip to the content");
    assert_eq!(seen["skipped"], true);
    assert_eq!(seen["out"], "/console/sign-in");
    let pages = seen["pages"].as_object().expect("pages");
    assert!(pages.values().all(|status| status == 200), "{pages:?}");
    for route in svc_server::console_routes() {
        let is_of_route = |page: &String| page.split('?').next() == Some(route.path);
        assert!(
            route.is_open || pages.keys().any(is_of_route),
            "{}",
            route.path
        );
    }
}
