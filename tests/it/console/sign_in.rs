//! Signing in and out.

use harness::http::Request;
use harness::server::{
    Backend, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};

use super::{assert_protected, cookies, form, open, signed_in, start};

const SIGN_IN: &str = "/console/sign-in";

fn served() -> Server {
    start(Backend::Sqlite).expect("SQLite is never skipped")
}

#[test]
fn only_the_operator_token_signs_in() {
    let server = served();
    for (token, status, reason) in [
        (RETRIEVAL_TOKEN, 403, "forbidden"),
        (INGEST_TOKEN, 403, "forbidden"),
        (UNKNOWN_TOKEN, 401, "unauthorized"),
        ("", 401, "unauthorized"),
    ] {
        let reply = server.send(&form(&server, SIGN_IN, &[("token", token)]));
        assert_protected(SIGN_IN, &reply);
        assert_eq!(reply.status, status, "{token}");
        assert_eq!(reply.header("set-cookie"), None, "{token}");
        let page = reply.text();
        assert!(page.contains(&format!("<code>{reason}</code>")), "{page}");
        assert!(token.is_empty() || !page.contains(token));
    }
    assert!(!server.log().contains(RETRIEVAL_TOKEN));
}

#[test]
fn a_cookie_is_hidden_from_scripts_and_limited_to_this_site() {
    let server = served();
    let sign_in = form(&server, SIGN_IN, &[("token", OPERATOR_TOKEN)]);
    let set = |reply: &harness::http::Reply| {
        let all = reply
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie");
        all.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    for cookie in set(&server.send(&sign_in)) {
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(cookie.contains("; Path=/;") && !cookie.contains("Domain"));
        assert!(!cookie.contains("Secure") && cookie.starts_with("svc-"));
        assert!(!cookie.contains(OPERATOR_TOKEN));
    }
    // Behind a proxy with TLS, which passes the origin on.
    let mut configuration = super::configured();
    configuration.variables.insert(
        "SVC_CONSOLE_HOSTS".into(),
        r#"["svc.example","127.0.0.1"]"#.into(),
    );
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    let mut https = sign_in.clone();
    https.headers.retain(|(name, _)| name != "origin");
    let from = |origin: &str| {
        let https = https.clone().header("origin", origin);
        server.send(&https.header("sec-fetch-site", "same-origin"))
    };
    let cookies = set(&from("https://svc.example"));
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    for cookie in cookies {
        assert!(cookie.starts_with("__Host-svc-"), "{cookie}");
        assert!(cookie.contains("; HttpOnly; SameSite=Strict; Secure"));
    }
    let plain = from("http://svc.example");
    assert_eq!(plain.status, 403);
    assert!(plain.text().contains("<code>plain_http</code>"));
    assert_eq!(plain.header("set-cookie"), None);
}

#[test]
fn a_form_from_another_site_is_refused() {
    let server = served();
    let cookies = signed_in(&server);
    for path in [SIGN_IN, "/console/sign-out"] {
        let sent = form(&server, path, &[("token", OPERATOR_TOKEN)]).header("cookie", &cookies);
        let mut without = sent.clone();
        without.headers.retain(|(name, _)| name != "origin");
        let base = server.base_url();
        let mut refused = vec![without.clone()];
        for origin in [
            "null",
            "https://evil.example",
            "http://127.0.0.1:1",
            "http://localhost",
        ] {
            refused.push(without.clone().header("origin", origin));
        }
        for site in ["cross-site", "same-site", "none", ""] {
            let with = without.clone().header("origin", &*base);
            refused.push(with.header("sec-fetch-site", site));
        }
        for request in refused {
            let reply = server.send(&request);
            assert_eq!(reply.status, 403, "{:?}", request.headers);
            assert!(reply.text().contains("<code>foreign_form</code>"));
            assert_eq!(reply.header("set-cookie"), None);
        }
    }
    assert_eq!(open(&server, &cookies, "/console").status, 200, "still in");
}

#[test]
fn a_foreign_host_is_refused_on_every_page() {
    use std::io::{Read as _, Write as _};
    let server = served();
    let cookies = signed_in(&server);
    let asked = |host: &str, path: &str| {
        let mut connection = std::net::TcpStream::connect(server.address()).expect("a connection");
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookies}\r\nconnection: close\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).expect("a head");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        answer
    };
    for path in [
        "/console",
        SIGN_IN,
        "/console/assets/x",
        "/console/sessions",
    ] {
        for host in ["evil.example", "127.0.0.1.evil.example:80", "127.0.0.2"] {
            let answer = asked(host, path);
            assert!(
                answer.starts_with("HTTP/1.1 403"),
                "{host} {path}: {answer}"
            );
            assert!(answer.contains("<code>wrong_host</code>"), "{answer}");
        }
    }
    assert!(asked("localhost:1", "/console").starts_with("HTTP/1.1 200"));
}

#[test]
fn wrong_tokens_are_slowed_down_and_the_right_one_always_opens() {
    let server = served();
    let attempt = |token: &str| server.send(&form(&server, SIGN_IN, &[("token", token)]));
    for _ in 0..10 {
        assert_eq!(attempt(UNKNOWN_TOKEN).status, 401);
    }
    let reply = attempt(UNKNOWN_TOKEN);
    assert_eq!(reply.status, 429);
    let wait: u64 = reply
        .header("retry-after")
        .expect("when")
        .parse()
        .expect("s");
    assert!((1..=6).contains(&wait), "{wait}");
    assert!(reply.text().contains("<code>too_many_attempts</code>"));
    let reply = attempt(OPERATOR_TOKEN);
    assert_eq!(reply.status, 303, "strangers keep nobody out");
    assert_eq!(open(&server, &cookies(&reply), "/console").status, 200);
}

#[test]
fn signing_out_takes_effect_at_once_here_or_everywhere() {
    let server = served();
    let [one, two, three] = [0; 3].map(|_| signed_in(&server));
    let out = |cookies: &str, place: &str| {
        let out = form(&server, "/console/sign-out", &[("where", place)]);
        let reply = server.send(&out.header("cookie", cookies));
        assert_eq!(reply.status, 303);
        assert_eq!(reply.header("location"), Some(SIGN_IN));
        let ended = reply.header("set-cookie").expect("a cookie that ends");
        assert!(ended.starts_with("svc-console=;") && ended.contains("Max-Age=0"));
    };
    let status = |cookies: &str| open(&server, cookies, "/console").status;
    out(&one, "here");
    assert_eq!(
        [&one, &two, &three].map(|cookies| status(cookies)),
        [303, 200, 200]
    );
    // Somebody who has not signed in cannot sign anybody out.
    out("svc-console=x", "everywhere");
    assert_eq!(status(&two), 200);
    out(&two, "everywhere");
    assert_eq!(
        [&one, &two, &three].map(|cookies| status(cookies)),
        [303, 303, 303]
    );
}

#[test]
fn a_sign_in_gets_a_new_id_and_redirects_only_within_the_console() {
    let server = served();
    let first = signed_in(&server);
    let again = form(&server, SIGN_IN, &[("token", OPERATOR_TOKEN)]).header("cookie", &first);
    assert!(cookies(&server.send(&again)).starts_with("svc-console="));
    assert_eq!(open(&server, &first, "/console").status, 303, "the old one");
    let led = server.send(&Request::get("/console/session?session_id=a%2Fb&from=1"));
    let to = led.header("location").expect("a place");
    assert_eq!(
        to,
        "/console/sign-in?to=%2Fconsole%2Fsession%3Fsession_id%3Da%252Fb%26from%3D1"
    );
    let page = open(&server, "", to).text();
    let hidden =
        r#"<input type="hidden" name="to" value="/console/session?session_id=a%2Fb&amp;from=1">"#;
    assert!(page.contains(hidden), "{page}");
    for (to, expected) in [
        (
            "/console/session?session_id=a%2Fb&from=1",
            "/console/session?session_id=a%2Fb&from=1",
        ),
        ("//evil.example", "/console"),
        ("https://evil.example/console", "/console"),
        ("/console/../v1/facts", "/console"),
        ("/console\r\nx: y", "/console"),
    ] {
        let fields = [("token", OPERATOR_TOKEN), ("to", to)];
        let reply = server.send(&form(&server, SIGN_IN, &fields));
        assert_eq!(reply.header("location"), Some(expected), "{to}");
    }
    let mut led = Request::get(SIGN_IN).header("sec-fetch-site", "cross-site");
    assert!(
        server
            .send(&led)
            .text()
            .contains("You came from another site")
    );
    led.headers.clear();
    assert!(!server.send(&led).text().contains("another site"));
}

#[test]
fn a_form_has_a_size_limit() {
    let server = served();
    let large = "x".repeat(5_000);
    let reply = server.send(&form(&server, SIGN_IN, &[("token", &large)]));
    assert_eq!(reply.status, 413);
    assert_protected(SIGN_IN, &reply);
}
