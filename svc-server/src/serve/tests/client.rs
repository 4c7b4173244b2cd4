//! A client that can send any bytes, and some requests for it to send.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(super) struct Client(pub(super) BufReader<TcpStream>);

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Client {
    /// Sends bytes. The server may end the connection meanwhile.
    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.0.get_mut().write_all(bytes.as_ref()));
    }

    /// Reads one answer, or returns `None` if the connection ends without one.
    pub(super) fn answer(&mut self) -> Option<Answer> {
        self.read(true)
    }

    pub(super) fn read(&mut self, with_body: bool) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match self.0.read_line(&mut head) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it hangs");
                    return None;
                }
            }
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; if with_body { length } else { 0 }];
        self.0.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        Some(Answer { status, head, body })
    }

    /// Waits until the server ends the connection.
    pub(super) fn wait_for_the_end(&mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut rest) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it hangs");
        }
    }

    /// Returns whether the server has ended the connection.
    pub(super) fn has_ended(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let read = stream.read(&mut byte);
        stream.set_nonblocking(false).unwrap();
        match read {
            Ok(read) => read == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }

    /// Returns whether there is something to read, or the connection has ended.
    pub(super) fn has_ended_or_answered(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }
}

/// Counts the connections that the server has not ended.
pub(super) fn open(clients: &mut [Client]) -> usize {
    let ended = clients.iter_mut().map(Client::has_ended);
    ended.filter(|ended| !ended).count()
}

pub(super) fn post(path: &str, headers: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: svc\r\n{headers}content-length: {length}\r\n\r\n")
}

pub(super) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

pub(super) fn signed(secret: &str, body: &[u8]) -> String {
    let mut code = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    code.update(body);
    let mut digits = String::new();
    for byte in code.finalize().into_bytes() {
        write!(digits, "{byte:02x}").unwrap();
    }
    format!("x-hub-signature-256: sha256={digits}\r\nx-github-event: ping\r\n")
}

/// Returns a body of this many bytes that every route accepts if it accepts any object.
pub(super) fn padded(bytes: usize) -> Vec<u8> {
    let mut body = b"{}".to_vec();
    body.resize(bytes, b' ');
    body
}

pub(super) fn webhook(secret: &str, bytes: usize) -> (String, Vec<u8>) {
    let body = padded(bytes);
    let head = post("/ingest/forge", &signed(secret, &body), bytes);
    (head, body)
}

pub(super) fn call(name: &str) -> String {
    format!(
        r#"{{"id":"{name}","trace_id":"{name}","call_type":"acompletion","model":"m","status":"success","startTime":1767322800.0,"endTime":1767322801.0,"messages":[{{"role":"user","content":"x"}}],"response":{{"choices":[{{"message":{{"role":"assistant","content":"y"}}}}]}},"metadata":{{"requester_metadata":{{"session_id":"s"}}}}}}"#
    )
}
