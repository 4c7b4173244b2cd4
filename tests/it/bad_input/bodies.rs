//! Bodies that are not requests: not JSON, too large, or broken.

use harness::http::{Framing, Request};
use harness::random::Random;
use harness::server::{Backend, OPERATOR_TOKEN};

use super::target::Target;

on_both_backends! {
    a_malformed_body_is_refused_with_its_status_and_stores_nothing,
    a_body_over_its_cap_is_413_for_every_sender,
    a_broken_body_is_never_a_server_error,
}

/// The number of random changes to each valid body.
const MUTATIONS: usize = 300;

fn nested(open: &str, close: &str, depth: usize) -> Vec<u8> {
    format!("{}{}", open.repeat(depth), close.repeat(depth)).into_bytes()
}

fn a_malformed_body_is_refused_with_its_status_and_stores_nothing(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let malformed: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"}".to_vec(),
        b"{]".to_vec(),
        b"nul".to_vec(),
        b"{'a':1}".to_vec(),
        b"{\"a\":1,}".to_vec(),
        b"{\"a\":01}".to_vec(),
        b"{\"a\":\"\\x\"}".to_vec(),
        b"{\"a\":\"\\ud8\"}".to_vec(),
        b"{\"a\":\"\n\"}".to_vec(),
        b"{} {}".to_vec(),
        b"{\"a\":-}".to_vec(),
        b"\xff\xfe\xfd".to_vec(),
        b"{\"a\":\"\xc3\x28\"}".to_vec(),
        b"\x1f\x8b\x08\x00".to_vec(),
        b"\x00".to_vec(),
        format!("{{\"a\":{}}}", "9".repeat(4_301)).into_bytes(),
        nested("[", "]", 513),
        nested("{\"a\":", "}", 513),
        nested("[", "", 10_000),
        nested("[", "]", 8_000),
        nested("{\"a\":[", "]}", 2_000),
    ];
    let other_values = ["null", "true", "1", "NaN", "\"text\"", "-1e400"];
    for route in target.routes() {
        // Its 400 is for compressed bytes that cannot be read.
        let wanted = if ["/ingest/ci", "/ingest/calls"].contains(&&*route.path) {
            422
        } else {
            400
        };
        for body in &malformed {
            let reply = target.try_body(&route, body);
            let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert_eq!(
                reply.status,
                wanted,
                "{} {start}: {}",
                route.path,
                reply.text()
            );
        }
        // A route that takes any object refuses every other value as it refuses what is not JSON.
        let (other, empty) = if route.takes_any_object() {
            (400, 200)
        } else {
            (422, 422)
        };
        for value in other_values {
            assert_eq!(
                target.try_body(&route, value.as_bytes()).status,
                other,
                "{} {value}",
                route.path
            );
        }
        assert_eq!(
            target.try_body(&route, b"").status,
            other,
            "{} without a body",
            route.path
        );
        if route.body.as_array().is_none() {
            assert_eq!(
                target.try_body(&route, b"[]").status,
                other,
                "{} []",
                route.path
            );
            assert_eq!(
                target.try_body(&route, b"{}").status,
                empty,
                "{} {{}}",
                route.path
            );
        }
    }
    target.read_everything();
}

fn a_body_over_its_cap_is_413_for_every_sender(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    for route in target.routes() {
        let cap = route.endpoint.body_bytes_max;
        for framing in [Framing::Sized, Framing::Chunked] {
            let mut request = Request::post(&route.path, vec![b' '; cap + 1]);
            request.framing = framing;
            for request in [request.clone(), request.clone().bearer(OPERATOR_TOKEN)] {
                let reply = target.server.send(&request);
                assert_eq!(
                    reply.status,
                    413,
                    "{} {framing:?}: {}",
                    route.path,
                    reply.text()
                );
                assert_eq!(reply.text(), r#"{"detail":"request body too large"}"#);
            }
            request.body = Some(vec![b' '; cap]);
            let reply = target.server.send(&request);
            assert_eq!(reply.status, 401, "{} {framing:?}, {cap} bytes", route.path);
        }
        // Blanks around it make a valid body exactly as large as the cap.
        let mut body = route.body.to_canonical();
        body.resize(cap, b' ');
        let reply = target.post(&route, body.clone());
        assert_eq!(
            reply.status,
            200,
            "{} of {cap} bytes: {}",
            route.path,
            reply.text()
        );
    }
}

fn a_broken_body_is_never_a_server_error(backend: Backend) {
    let Some(target) = Target::start(backend) else {
        return;
    };
    let mut random = Random::new(2_026);
    let fragments: [&[u8]; 14] = [
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"\\ud800",
        b"\\u0000",
        b"\xed\xa0\x80",
        b"\xff",
        b"1e999",
        b"null",
    ];
    for route in target.routes() {
        let valid = route.body.to_canonical();
        for _ in 0..MUTATIONS {
            let mut body = valid.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(body.len().max(1)).min(body.len());
                let end = (at + random.below(12)).min(body.len());
                match random.below(5) {
                    0 => body.truncate(at),
                    1 => drop(body.drain(at..end)),
                    2 => {
                        let copy = body[at..end].to_vec();
                        drop(body.splice(at..at, copy));
                    }
                    3 => drop(body.splice(at..at, random.one_of(&fragments).iter().copied())),
                    _ => drop(body.splice(at..end, random.one_of(&fragments).iter().copied())),
                }
            }
            target.try_body(&route, &body);
        }
    }
    target.read_everything();
}
