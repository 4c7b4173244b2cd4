//! The documentation is closed unless it is enabled, and needs nothing from elsewhere.

use harness::http::Request;
use harness::server::{Backend, Configuration, Server};
use svc_model::json::Json;

const PAGES: [&str; 5] = [
    "/openapi.json",
    "/docs",
    "/redoc",
    "/docs/docs.css",
    "/docs/docs.js",
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

#[test]
fn an_enabled_documentation_is_whole_and_loads_nothing_from_elsewhere() {
    let mut configuration = Configuration::default();
    configuration
        .variables
        .insert("SVC_ENABLE_DOCS".into(), "true".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("a server");
    for page in PAGES {
        let reply = server.try_send(&Request::get(page)).expect("an answer");
        assert_eq!(reply.status, 200, "{page}");
        assert!(reply.header("content-security-policy").is_some(), "{page}");
        if page != "/openapi.json" {
            for elsewhere in ["src=\"http", "href=\"http", "url(http", "import(\"http"] {
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
        .and_then(|it| it.get("paths"))
        .and_then(Json::as_object);
    let paths = paths.expect("paths");
    for route in svc_model::endpoint::all() {
        assert!(paths.contains_key(route.path), "{}", route.path);
    }
}
