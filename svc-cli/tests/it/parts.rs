//! Parts that the shell and agents ask for: all of them, or none.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use super::first_use::svc;

/// The reply of a service that leaves out all parts but the first.
const SHORT: &str = r#"{"schema_version":1,"session_id":"s","quarantine_revision":0,"items":[{"reference":{"inference_call_id":"c","side":"input","message_index":0,"part_index":0},"observed_at":"2026-01-01T00:00:00Z","role":"user","finish_reason":null,"part":{"type":"text","content":"x"}}]}"#;
/// The identity of the caller, for an agent that checks it first.
const ME: &str =
    r#"{"org_id":"o","version":"0.1.0","authority":"operator","client_id":"operator"}"#;

/// Answers every request of one program, and returns the URL.
fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that leaves has received what it needs.
            drop(answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !is_whole(&request) {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&chunk[..read]);
    }
    let body = if request.starts_with(b"GET /v1/me") {
        ME
    } else {
        SHORT
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nconnection: close\r\nx-request-id: r-17\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns whether a request has its head and all of the body that it announces.
fn is_whole(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[test]
fn the_shell_refuses_a_reply_that_lacks_a_requested_part() {
    let home = tempfile::tempdir().expect("a folder");
    let kept = home.path().join("reply.json");
    let read = |more: &[&str]| {
        svc(home.path())
            .args([
                "evidence",
                "read",
                "s",
                "c:input:0:0",
                "c:input:0:1",
                "--json",
            ])
            .args(more)
            .env("SVC_URL", start())
            .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
            .output()
            .expect("svc runs")
    };
    let file = kept.to_str().expect("a name in Unicode");
    for read in [read(&[]), read(&["--output", file])] {
        assert_eq!(read.status.code(), Some(1), "{read:?}");
        assert_eq!(read.stdout, b"", "{read:?}");
        let stderr = String::from_utf8_lossy(&read.stderr).into_owned();
        assert!(
            stderr.contains("\"incomplete\"") && stderr.contains("r-17"),
            "{stderr}"
        );
    }
    assert!(!kept.exists(), "half a reply is not evidence");
}

#[test]
fn an_agent_is_refused_a_reply_that_lacks_a_requested_part() {
    let home = tempfile::tempdir().expect("a folder");
    let mut agent = svc(home.path())
        .arg("mcp")
        .env("SVC_URL", start())
        .env("SVC_TOKEN", "0123456789abcdef0123456789abcdef")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("svc starts");
    let reference = |part: u64| serde_json::json!({"inference_call_id": "c", "side": "input", "message_index": 0, "part_index": part});
    let mut input = agent.stdin.take().expect("an input");
    for message in [
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"}}}),
        serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "open_evidence", "arguments": {
                "session_id": "s", "references": [reference(0), reference(1)]}}}),
    ] {
        writeln!(input, "{message}").expect("it reads");
    }
    let mut output = std::io::BufReader::new(agent.stdout.take().expect("an output"));
    let reply = loop {
        let mut line = String::new();
        let read = std::io::BufRead::read_line(&mut output, &mut line).expect("text");
        assert!(read > 0, "it has ended");
        let message: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if message["id"] == 2 {
            break message;
        }
    };
    drop(input);
    agent.wait().expect("it ends");
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let refusal = &reply["result"]["_meta"]["svc/refusal"];
    assert_eq!(refusal["code"], "incomplete", "{reply}");
}
