//! The console: who may open it, what it shows, and that what it shows has no effect.

mod access;
mod browser;
mod inert;
mod pages;
mod search;
mod sign_in;

use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};

const SESSION: &str = "fix/the pager";

/// Starts a server with the console.
fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &configured())
}

fn configured() -> Configuration {
    let mut configuration = Configuration::granting_one(SESSION);
    let variables = &mut configuration.variables;
    variables.insert("SVC_ENABLE_CONSOLE".into(), "true".into());
    configuration
}

/// Returns a form as a page of the console sends it.
fn form(server: &Server, path: &str, fields: &[(&str, &str)]) -> Request {
    let body: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    let mut request = Request::post(path, body.join("&"));
    request.headers.clear();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", server.base_url())
}

/// Returns a value as it is written in a query or a form.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes()
        .map(|byte| {
            if plain(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Returns the cookies that an answer sets, as a browser sends them back.
fn cookies(reply: &Reply) -> String {
    let set = reply
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    let pairs = set.filter_map(|(_, value)| value.split(';').next());
    pairs.collect::<Vec<_>>().join("; ")
}

/// Signs in as the operator, and returns the cookies.
pub(crate) fn signed_in(server: &Server) -> String {
    let sign_in = form(server, "/console/sign-in", &[("token", OPERATOR_TOKEN)]);
    let reply = server.send(&sign_in);
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert_eq!(reply.header("location"), Some("/console"));
    cookies(&reply)
}

/// Opens a page as a signed-in user.
pub(crate) fn open(server: &Server, cookies: &str, path: &str) -> Reply {
    let reply = server.send(&Request::get(path).header("cookie", cookies));
    assert_protected(path, &reply);
    reply
}

/// Checks what an answer lets a browser do.
fn assert_protected(path: &str, reply: &Reply) {
    assert_eq!(
        reply.header("content-security-policy"),
        Some(
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'"
        ),
        "{path}"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{path}: {name}");
    }
    let referrer = reply.header("referrer-policy").expect("a policy");
    // On a page with a form, the browser sends the origin, but only to this service.
    let has_form = reply.text().contains("method=\"post\"");
    let expected = if has_form {
        "same-origin"
    } else {
        "no-referrer"
    };
    assert_eq!(referrer, expected, "{path}");
    if !path.starts_with("/console/assets/") {
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    }
}

/// Returns the addresses within the console that a page links to.
fn links(page: &str) -> Vec<String> {
    let hrefs = page.split("href=\"").skip(1);
    let hrefs = hrefs.filter_map(|rest| rest.split('"').next());
    hrefs
        .filter(|href| href.starts_with("/console"))
        .map(|href| href.replace("&amp;", "&"))
        .collect()
}

/// Returns the texts of a page without its elements, with one blank between two.
pub(crate) fn words(page: &str) -> String {
    let mut text = String::new();
    for (place, piece) in page.split('<').enumerate() {
        let piece = match piece.split_once('>') {
            Some((_, text)) if place > 0 => text,
            _ => piece,
        };
        text.push_str(piece);
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
