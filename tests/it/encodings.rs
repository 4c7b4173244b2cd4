//! Every ingest route takes gzip, and says what is wrong with any other body.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::delivery::{
    Call, allowed_edit, ci_outcome, first_two_calls, logs, sent_calls, traced_call, traces,
};
use harness::http::{Reply, Request};
use harness::player::{SIGNATURE_HEADER, signature};
use harness::server::{Backend, Configuration, FORGE_SECRET, INGEST_TOKEN, Server};
use serde_json::json;
use svc_model::limit::BODY_BYTES_MAX;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

/// Sends a body as it is, with both credentials: the signature is that of the bytes that are sent.
fn send(server: &Server, path: &str, encoding: &str, sent: &[u8]) -> Reply {
    let request = Request::post(path, sent)
        .header("content-encoding", encoding)
        .header("x-github-event", "push")
        .header(SIGNATURE_HEADER, signature(FORGE_SECRET, sent));
    server.send(&request.bearer(INGEST_TOKEN))
}

#[test]
fn every_ingest_route_takes_gzip_and_no_other_encoding() {
    let server = Server::start(Backend::Sqlite, &Configuration::default());
    let server = server.expect("SQLite is never skipped");
    let push = json!({"ref": "refs/heads/main", "after": "a".repeat(40),
        "repository": {"id": 1, "full_name": "a/b"}});
    let routes = [
        ("/ingest/gateway", Call::new("s", "one").body()),
        (
            "/ingest/gateway/litellm",
            Call::new("s", "two").bare().to_string().into_bytes(),
        ),
        (
            "/ingest/calls",
            sent_calls("s", &first_two_calls()).to_string().into_bytes(),
        ),
        ("/ingest/ci", ci_outcome("run-1").to_string().into_bytes()),
        ("/ingest/forge", push.to_string().into_bytes()),
        (
            "/v1/logs",
            logs(&allowed_edit("s", "tu1")).to_string().into_bytes(),
        ),
        (
            "/v1/traces",
            traces(&[traced_call("s", "chatcmpl-7")])
                .to_string()
                .into_bytes(),
        ),
    ];
    for (path, body) in routes {
        let packed = gzip(&body);
        let mut wrong_sum = packed.clone();
        let sum = wrong_sum.len() - 6;
        wrong_sum[sum] ^= 0xff;
        for sent in [
            body.as_slice(),
            b"",
            &packed[..packed.len() - 4],
            &[packed.as_slice(), b"more"].concat(),
            &wrong_sum,
        ] {
            let reply = send(&server, path, "gzip", sent);
            let text =
                r#"{"detail":"body is not the complete gzip that Content-Encoding announces"}"#;
            assert_eq!((reply.status, &*reply.text()), (400, text), "{path}");
        }
        for encoding in ["zstd", "br", "deflate", "gzip, gzip"] {
            let reply = send(&server, path, encoding, &packed);
            let text = r#"{"detail":"Content-Encoding must be gzip or identity"}"#;
            assert_eq!((reply.status, &*reply.text()), (415, text), "{path}");
        }
        let bomb = gzip(&vec![b' '; BODY_BYTES_MAX + 1]);
        assert_eq!(send(&server, path, "gzip", &bomb).status, 413, "{path}");
        for (encoding, sent) in [("gzip", &*packed), ("identity", body.as_slice())] {
            let reply = send(&server, path, encoding, sent);
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        }
    }
}
