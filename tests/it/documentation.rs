//! The documentation is disabled unless it is enabled, and loads nothing from elsewhere.

use std::process::Command;
use std::time::Duration;

use harness::foreign::{cases, left_out};
use harness::http::Request;
use harness::process;
use harness::server::{Backend, Configuration, Server};
use svc_model::json::Json;

const PAGES: [&str; 11] = [
    "/openapi.json",
    "/openapi-3.0.json",
    "/schemas/1/GatewayPayload.json",
    "/docs",
    "/docs/docs.css",
    "/docs/docs.js",
    "/docs/swagger-ui.css",
    "/docs/swagger-ui-bundle.js",
    "/redoc",
    "/redoc/redoc.css",
    "/redoc/redoc.js",
];

#[test]
fn the_documentation_is_closed_by_default() {
    let server = Server::start(Backend::Sqlite, &Configuration::default()).expect("a server");
    for page in PAGES {
        let reply = server.try_send(&Request::get(page)).expect("an answer");
        assert_eq!(reply.status, 404, "{page}");
        assert_eq!(reply.text(), r#"{"detail":"Not Found"}"#);
    }
}

/// How long a browser may take for a page.
const BROWSER_MAX: Duration = Duration::from_mins(2);

fn documented() -> Server {
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_ENABLE_DOCS".into(), "true".into());
    Server::start(Backend::Sqlite, &configuration).expect("a server")
}

#[test]
fn enabled_documentation_is_complete_and_loads_nothing_from_elsewhere() {
    let server = documented();
    for page in PAGES {
        let reply = server.try_send(&Request::get(page)).expect("an answer");
        assert_eq!(reply.status, 200, "{page}");
        let policy = reply.header("content-security-policy");
        let policy = policy.unwrap_or_else(|| panic!("{page} has no policy"));
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for lax in ["unsafe", "http", "*"] {
            assert!(!policy.contains(lax), "{page}: {policy}");
        }
        if page == "/docs" || page == "/redoc" {
            for elsewhere in ["src=\"http", "href=\"http", "//"] {
                assert!(!reply.text().contains(elsewhere), "{page}: {elsewhere}");
            }
        }
    }
    let document = server
        .try_send(&Request::get("/openapi.json"))
        .expect("an answer")
        .json();
    let paths = document
        .as_object()
        .and_then(|document| document.get("paths"))
        .and_then(Json::as_object);
    let paths = paths.expect("paths");
    for route in svc_model::endpoint::all() {
        assert!(paths.contains_key(route.path), "{}", route.path);
    }
}

#[test]
fn a_page_is_compressed_only_for_clients_that_accept_it() {
    let server = documented();
    let get = || Request::get("/docs/swagger-ui-bundle.js");
    let plain = server.try_send(&get()).expect("an answer");
    assert_eq!(plain.header("content-encoding"), None);
    assert!(plain.text().contains("SwaggerUIBundle"));
    let packed = get().header("Accept-Encoding", "gzip, br");
    let packed = server.try_send(&packed).expect("an answer");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 3 < plain.body.len());
    let mut inflated = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&*packed.body);
    std::io::Read::read_to_end(&mut decoder, &mut inflated).expect("gzip");
    assert!(inflated == plain.body, "the same text");
}

/// Returns the browser of this machine, if it has one.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn a_browser_shows_both_pages_and_blocks_none_of_their_parts() {
    let Some(browser) = browser() else {
        return left_out("there is no Chromium (apt-get install chromium)");
    };
    let server = documented();
    let summary = "Store the outcome of one run of any CI system.";
    let pages = [
        ("docs", &["swagger-ui", "Authorize", summary][..]),
        ("redoc", &["Sample request", "ProblemBody", summary]),
    ];
    for (page, wanted) in cases(&pages) {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(browser);
        command
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--enable-logging=stderr", "--log-level=0"])
            // Nothing else can be reached, whatever the page or the browser wants.
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--virtual-time-budget=15000", "--dump-dom"])
            .arg(format!("{}/{page}", server.base_url()));
        let output = process::run(&mut command, b"", BROWSER_MAX).expect("the browser ends");
        let shown = output.stdout_text();
        for words in *wanted {
            assert!(shown.contains(words), "{page} does not show {words}");
        }
        assert!(!shown.contains("cannot be shown"), "{page}");
        // What a policy blocks and what a script throws appears on the browser's console.
        let log = output.stderr_text();
        let complaints = log.lines().filter(|line| line.contains("CONSOLE"));
        assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "{page}");
    }
}
