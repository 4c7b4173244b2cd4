//! Who may open which page: every page in the list with every credential, compared with a table.

use std::collections::BTreeSet;

use harness::http::Request;
use harness::server::{
    Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};

use super::{assert_protected, form, open, signed_in, start};

/// Each page, and the status for a visitor who has not signed in and for one who has.
const TABLE: &[(&str, u16, u16)] = &[
    // With a name that is not a current one.
    ("GET /console/assets/{name}", 404, 404),
    ("GET /console/sign-in", 200, 303),
    ("POST /console/sign-in", 401, 401),
    ("GET /console/sign-out", 303, 200),
    ("POST /console/sign-out", 303, 303),
    ("GET /console", 303, 200),
    ("GET /console/sessions", 303, 200),
    // Without words to search for, it is a form.
    ("GET /console/search", 303, 200),
    ("GET /console/session", 303, 200),
    ("GET /console/calls", 303, 200),
    // For a call that does not exist.
    ("GET /console/call", 303, 409),
    ("GET /console/part", 303, 409),
    ("GET /console/failures", 303, 200),
    ("GET /console/commit", 303, 200),
    ("GET /console/models", 303, 200),
    ("GET /console/comparison", 303, 200),
    ("GET /console/lifecycle", 303, 200),
    ("GET /console/abandonment", 303, 200),
    ("GET /console/retention", 303, 200),
    ("GET /console/share", 303, 200),
    ("GET /console/spend", 303, 200),
    ("GET /console/health", 303, 200),
    ("GET /console/quarantine", 303, 200),
];

fn split(route: &str) -> (&str, &str) {
    route.split_once(' ').expect("a method and a path")
}

/// Returns a valid request to a page.
fn valid(server: &Server, route: &str) -> Request {
    match split(route) {
        ("POST", path) => form(server, path, &[("token", UNKNOWN_TOKEN)]),
        (_, "/console/commit") => Request::get(format!("/console/commit?sha={}", "a".repeat(40))),
        (_, path) if path.contains('{') => Request::get(path.replace("{name}", "console.css")),
        (_, path) => {
            let session = "?session_id=nobody's";
            let call = "&inference_call_id=f8d5f475-40a1-5ebb-9796-b05b24001822";
            let part = "&side=input&message_index=0&part_index=0";
            let parameters: &[&str] = match path {
                "/console/session" | "/console/calls" => &[session],
                "/console/call" => &[session, call],
                "/console/part" => &[session, call, part],
                _ => &[],
            };
            Request::get(format!("{path}{}", parameters.concat()))
        }
    }
}

#[test]
fn every_page_has_a_row_and_every_row_a_page() {
    let rows: BTreeSet<String> = TABLE.iter().map(|(row, ..)| (*row).to_owned()).collect();
    assert_eq!(rows.len(), TABLE.len(), "a row is listed twice");
    let routes = svc_server::console_routes();
    let pages = routes.iter().map(|route| {
        let (method, path) = (route.method.as_str(), route.path);
        format!("{method} {path}")
    });
    assert_eq!(rows, pages.collect());
    for route in routes {
        let nobody = TABLE.iter().find(|(row, ..)| {
            let (method, path) = split(row);
            method == route.method.as_str() && path == route.path
        });
        let (_, nobody, _) = nobody.expect("a row");
        assert!(route.is_open || *nobody == 303, "{}", route.path);
    }
}

#[test]
fn pages_need_a_sign_in_and_ignore_tokens_in_headers() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let mut wrong = Vec::new();
    for (route, nobody, operator) in TABLE {
        let (_, path) = split(route);
        let mut check = |who: &str, request: &Request, wanted: u16| {
            let reply = server.send(request);
            assert_protected(path, &reply);
            if reply.status != wanted {
                wrong.push(format!("{route} as {who}: {}, not {wanted}", reply.status));
            }
            if wanted == 303 && route.starts_with("GET") && who != "signed in" {
                let location = reply.header("location").expect("where to go");
                assert!(location.starts_with("/console/sign-in"), "{location}");
                assert!(reply.body.is_empty(), "{route}");
            }
        };
        let request = valid(&server, route);
        check("nobody", &request, *nobody);
        for (who, token) in [
            ("operator's token", OPERATOR_TOKEN),
            ("retrieval token", RETRIEVAL_TOKEN),
            ("ingest token", INGEST_TOKEN),
            ("unknown token", UNKNOWN_TOKEN),
        ] {
            if route.starts_with("GET") {
                check(who, &request.clone().bearer(token), *nobody);
            }
        }
        for cookie in ["svc-console=", "svc-console=x", "__Host-svc-console=0000"] {
            let with = request.clone().header("cookie", cookie);
            if route.starts_with("GET") {
                check("a made-up cookie", &with, *nobody);
            }
        }
        // Each is opened by a new visitor, because one of the pages signs out.
        let cookies = signed_in(&server);
        check("signed in", &request.header("cookie", &cookies), *operator);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_the_setting_there_is_no_console() {
    let server = Server::start(Backend::Sqlite, &Configuration::default());
    let server = server.expect("SQLite is never skipped");
    for (route, ..) in TABLE {
        let reply = server.send(&valid(&server, route));
        assert_eq!(reply.status, 404, "{route}");
        assert_eq!(reply.text(), r#"{"detail":"Not Found"}"#, "{route}");
    }
}

#[test]
fn other_methods_are_answered_with_the_allowed_ones() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    for (path, other, allow) in [
        ("/console", "POST", "GET"),
        ("/console/sessions", "DELETE", "GET"),
        ("/console/sign-in", "PUT", "GET, POST"),
        ("/console/sign-out", "PATCH", "GET, POST"),
    ] {
        let request = Request {
            method: other.into(),
            path: path.into(),
            ..Request::default()
        };
        let reply = server.try_send(&request).expect("an answer");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)));
    }
    let mut head = Request::get("/console");
    head.method = "HEAD".into();
    let reply = server.try_send(&head.header("cookie", signed_in(&server)));
    let reply = reply.expect("an answer");
    assert_eq!((reply.status, reply.body.len()), (200, 0));
}

#[test]
fn assets_are_named_by_their_content_and_cached() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let page = open(&server, "", "/console/sign-in").text();
    let assets: Vec<String> = super::links(&page)
        .into_iter()
        .filter(|link| link.starts_with("/console/assets/"))
        .collect();
    assert_eq!(assets.len(), 2, "{page}");
    for (asset, kind) in assets
        .iter()
        .zip(["text/css; charset=utf-8", "image/svg+xml"])
    {
        let reply = open(&server, "", asset);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some(kind))
        );
        let kept = reply.header("cache-control").expect("how long");
        assert_eq!(kept, "public, max-age=31536000, immutable");
    }
    // Nothing is loaded from elsewhere, and nothing runs.
    for never in ["<script", "javascript:", "http://", "https://", " style="] {
        assert!(!page.contains(never), "{never}");
    }
}

#[test]
fn a_way_back_too_long_for_a_header_is_omitted() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let way = |length: usize| {
        let path = format!("/console/sessions?model={}", "%25".repeat(length));
        let reply = server.send(&Request::get(path));
        assert_eq!(reply.status, 303);
        let location = reply.header("location").expect("where to go").to_owned();
        assert_eq!(server.send(&Request::get(&location)).status, 200);
        location
    };
    assert!(way(10).contains("%253Fmodel") || way(10).contains("%3Fmodel"));
    assert_eq!(way(9_000), "/console/sign-in?to=%2Fconsole%2Fsessions");
}
