//! As much of HTTP/1.1 as a load generator needs: replies with a content length, on connections
//! that stay open.
//!
//! A general client would use more processor time per request than the server may. Nothing here
//! allocates per request once the buffers have grown.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::Failure;

/// A request: its HTTP head and body, in up to three pieces that are sent in one write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'bytes> {
    /// The pieces, in order.
    pub(crate) pieces: [&'bytes [u8]; 3],
    /// Bytes of the body alone.
    pub(crate) body_length: usize,
}

impl Request<'_> {
    /// Bytes on the wire.
    pub(crate) fn length(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }
}

/// Returns the head of a request on a connection that stays open.
pub(crate) fn head(path: &str, bearer: &str, body_length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {bearer}\r\n\
         content-type: application/json\r\ncontent-length: {body_length}\r\n\r\n"
    )
}

/// What the head of a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyHead {
    pub(crate) status: u16,
    /// Where the body begins.
    pub(crate) body_start: usize,
    /// Where the reply ends.
    pub(crate) end: usize,
}

/// Parses the head of a reply, once it is complete.
pub(crate) fn reply_head(bytes: &[u8]) -> Result<Option<ReplyHead>, Failure> {
    let Some(head_length) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() > 16_384 {
            Err("a reply's head is longer than 16 KiB".into())
        } else {
            Ok(None)
        };
    };
    let head = std::str::from_utf8(&bytes[..head_length])?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 "))
        .and_then(|line| line.get(..3))
        .ok_or("a reply does not begin with HTTP/1.1 and a status")?
        .parse()?;
    let length: usize = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .ok_or_else(|| format!("a reply has no content length: {head}"))?
        .1
        .trim()
        .parse()?;
    let body_start = head_length + 4;
    Ok(Some(ReplyHead {
        status,
        body_start,
        end: body_start + length,
    }))
}

/// Checks that a reply says that a new fact was stored.
pub(crate) fn expect_stored(status: u16, body: &[u8]) -> Result<(), Failure> {
    const STORED: &[u8] = b"\"stored\":true";
    if status == 200 && body.windows(STORED.len()).any(|window| window == STORED) {
        return Ok(());
    }
    Err(format!(
        "not stored: status {status}, {}",
        String::from_utf8_lossy(body)
    )
    .into())
}

/// Checks that a reply says that an export was accepted, whatever became of its records.
pub(crate) fn expect_taken(status: u16, body: &[u8]) -> Result<(), Failure> {
    if status == 200 && body == b"{}" {
        return Ok(());
    }
    Err(format!(
        "not taken: status {status}, {}",
        String::from_utf8_lossy(body)
    )
    .into())
}

/// A reply, and the time from the first byte sent to the last byte read.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) elapsed: Duration,
}

impl Reply {
    /// Returns the status and the beginning of the body.
    pub(crate) fn describe(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().take(400).collect();
        format!("status {}: {text}", self.status)
    }

    /// Returns the body as JSON, if the status is 200.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Failure> {
        if self.status != 200 {
            return Err(format!(
                "status {}: {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            )
            .into());
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// One blocking connection, for requests that are timed one by one.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        Ok(Self {
            stream,
            buffer: vec![0; 65_536],
        })
    }

    pub(crate) fn get(&mut self, path: &str, bearer: &str) -> Result<Reply, Failure> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {bearer}\r\n\r\n"
        );
        self.exchange(&head.into_bytes())
    }

    pub(crate) fn post(
        &mut self,
        path: &str,
        bearer: &str,
        body: &serde_json::Value,
    ) -> Result<Reply, Failure> {
        let body = body.to_string();
        self.exchange((head(path, bearer, body.len()) + &body).as_bytes())
    }

    /// Sends a prepared request.
    pub(crate) fn send(&mut self, request: Request<'_>) -> Result<Reply, Failure> {
        self.exchange(&request.pieces.concat())
    }

    /// Sends the bytes of a request.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Reply, Failure> {
        let begin = Instant::now();
        self.stream.write_all(request)?;
        let mut filled = 0;
        let mut head = None;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let count = self.stream.read(&mut self.buffer[filled..])?;
            if count == 0 {
                return Err("the server closed the connection".into());
            }
            filled += count;
            if head.is_none() {
                head = reply_head(&self.buffer[..filled])?;
            }
            if let Some(head) = head
                && filled >= head.end
            {
                let elapsed = begin.elapsed();
                let body = self.buffer[head.body_start..head.end].to_vec();
                return Ok(Reply {
                    status: head.status,
                    body,
                    elapsed,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_only_when_complete() {
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"stored\":true}";
        assert_eq!(reply_head(&reply[..20]).expect("not yet"), None);
        let head = reply_head(reply).expect("a head").expect("whole");
        assert_eq!((head.status, head.end), (200, reply.len()));
        expect_stored(head.status, &reply[head.body_start..head.end]).expect("stored");
        expect_stored(200, b"{\"stored\":false}").expect_err("a redelivery is not new");
        expect_taken(200, b"{}").expect("taken");
        expect_taken(503, b"{}").expect_err("503 accepts nothing");
        expect_stored(503, b"{\"stored\":true}").expect_err("503 stores nothing");
    }
}
