//! The socket of a connection. It reports the progress of answers to the connection's place, and
//! adds the usual body to refusals that the HTTP library writes itself.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use svc_model::json;
use svc_model::problem::Problem;
use tokio::net::TcpStream;

use crate::places::ConnectionPlace;

/// The socket of a connection.
pub(crate) struct Socket {
    stream: TokioIo<TcpStream>,
    place: ConnectionPlace,
    /// What is written in place of a refusal that has no body.
    replacement: Option<Replacement>,
}

struct Replacement {
    answer: Vec<u8>,
    written: usize,
    /// The number of bytes that it replaces.
    replaced_bytes: usize,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, place: ConnectionPlace) -> Self {
        Self {
            stream: TokioIo::new(stream),
            place,
            replacement: None,
        }
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// Writes the replacement of a refusal. No byte of the refusal counts as written until all of
    /// the replacement is.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(replacement) = &mut self.replacement {
            let rest = &replacement.answer[replacement.written..];
            if rest.is_empty() {
                let replaced = replacement.replaced_bytes;
                self.replacement = None;
                return Poll::Ready(Ok(replaced));
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            replacement.written += written;
        }
        Poll::Ready(Ok(0))
    }

    /// Starts a replacement if these bytes are a refusal by hyper itself: if no request is being
    /// answered, no route has written them.
    fn replace(&mut self, bytes: &[u8]) {
        if self.replacement.is_none()
            && self.place.has_no_request()
            && let Some(answer) = with_body(bytes)
        {
            self.replacement = Some(Replacement {
                answer,
                written: 0,
                replaced_bytes: bytes.len(),
            });
        }
    }
}

/// Returns the refusal of a request with an unreadable head, with the body of its problem.
fn with_body(refusal: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(refusal).ok()?;
    let status = text.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    let problem = match status {
        "414" | "431" => Problem::HeadTooLarge,
        _ if status.starts_with('4') => Problem::MalformedRequest,
        _ => return None,
    };
    let body = json::to_vec(&problem.body(), usize::MAX).ok()?;
    let length = body.len().to_string();
    let mut answer = Vec::with_capacity(256 + body.len());
    for line in text.trim_end().split("\r\n") {
        if !line.to_ascii_lowercase().starts_with("content-length:") {
            answer.extend_from_slice(line.as_bytes());
            answer.extend_from_slice(b"\r\n");
        }
    }
    for part in [
        "content-type: application/json\r\ncontent-length: ",
        &length,
        "\r\n\r\n",
    ] {
        answer.extend_from_slice(part.as_bytes());
    }
    answer.extend_from_slice(&body);
    Some(answer)
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.replace(bytes);
        if self.replacement.is_some() {
            return self.poll_replacement(cx);
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.place.sent();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.place.all_sent();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [head] = pieces {
            self.replace(head);
        }
        if self.replacement.is_some() {
            return self.poll_replacement(cx);
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces))?;
        self.place.sent();
        Poll::Ready(Ok(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_body_gets_its_problem_body() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
            content-length: 0\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        let answer = String::from_utf8(with_body(bare).unwrap()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"detail":"request head too large"}"#);
        assert_eq!(head.matches("content-length").count(), 1);
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        assert!(head.contains("\r\nconnection: close\r\n") && head.contains("\r\ndate: "));
        for other in [
            &b"HTTP/1.1 100 Continue\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"{}",
        ] {
            assert_eq!(with_body(other), None);
        }
    }
}
