//! A minimal HTTP/1.1 client that can be rude.
//!
//! Ordinary client libraries refuse to send what these tests must send: bodies that continue after
//! the answer has come, chunked bodies without a length, headers and paths exactly as the case
//! gives them. So the harness uses the socket itself. There is one connection per request, bodies
//! are sized or chunked in both directions, and the answer is read while the body is still being
//! written.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use svc_model::json::Json;

/// How long a connection may stay silent. This is longer than any deadline of the service, so a
/// service that hangs is noticed.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// A body up to this size fits into the socket buffers and is written before the answer is read.
const WRITTEN_AHEAD_MAX: usize = 16 * 1024;
/// Bytes per chunk of a chunked body.
const CHUNK_BYTES: usize = 4096;
/// Maximum bytes of the head of an answer. No honest answer comes near it.
const HEAD_BYTES_MAX: u64 = 256 * 1024;

/// How the body of a request travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// With a length.
    #[default]
    Sized,
    /// In chunks, without a length.
    Chunked,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query, as it is sent.
    pub path: String,
    /// Header names and values, as they are sent.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// How the body is sent.
    pub framing: Framing,
}

impl Request {
    /// Returns a request without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".into(),
            path: path.into(),
            ..Self::default()
        }
    }

    /// Returns a request with a JSON body.
    pub fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: "POST".into(),
            path: path.into(),
            body: Some(body.into()),
            ..Self::default()
        }
        .header("content-type", "application/json")
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a bearer credential.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    fn head(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        match (&self.body, self.framing) {
            (Some(_), Framing::Chunked) => head.push_str("transfer-encoding: chunked\r\n"),
            (Some(body), Framing::Sized) => {
                head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
            }
            (None, _) if matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") => {
                head.push_str("content-length: 0\r\n");
            }
            (None, _) => {}
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the last header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the body as a JSON value.
    pub fn json(&self) -> Json {
        Json::parse(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the body as text, with undecodable bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request and returns the answer.
///
/// Failing to send is not an error as long as an answer comes, because the service may refuse a
/// body before it has read all of it.
///
/// # Errors
///
/// If no complete answer comes.
pub fn send(address: SocketAddr, request: &Request) -> io::Result<Reply> {
    let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    let mut message = request.head(address);
    let body = request.body.as_deref().unwrap_or_default();
    if request.framing == Framing::Sized && body.len() <= WRITTEN_AHEAD_MAX {
        message.extend_from_slice(body);
        let written = (&stream).write_all(&message);
        return read_reply(&stream, &request.method)
            .map_err(|error| written.err().unwrap_or(error));
    }
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_message(&stream, &message, body, request.framing));
        let reply = read_reply(&stream, &request.method);
        // Whatever is still unsent no longer matters, and the writer could otherwise wait forever.
        let _ignored = stream.shutdown(Shutdown::Both);
        let written = writer.join().expect("the writer does not panic");
        reply.map_err(|error| written.err().unwrap_or(error))
    })
}

fn write_message(
    mut stream: &TcpStream,
    head: &[u8],
    body: &[u8],
    framing: Framing,
) -> io::Result<()> {
    stream.write_all(head)?;
    match framing {
        Framing::Sized => stream.write_all(body),
        Framing::Chunked => {
            for chunk in body.chunks(CHUNK_BYTES) {
                let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
                framed.extend_from_slice(chunk);
                framed.extend_from_slice(b"\r\n");
                stream.write_all(&framed)?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
    }
}

fn read_reply(stream: &TcpStream, method: &str) -> io::Result<Reply> {
    let mut reader = BufReader::new(stream);
    loop {
        let (status, headers) = read_head(&mut reader)?;
        if (100..200).contains(&status) {
            continue;
        }
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        if method == "HEAD" || matches!(status, 204 | 304) {
            return Ok(reply);
        }
        if reply
            .header("transfer-encoding")
            .is_some_and(|coding| coding.contains("chunked"))
        {
            reply.body = read_chunks(&mut reader)?;
        } else if let Some(length) = reply.header("content-length") {
            let length = length.parse().map_err(|_| broken("content-length"))?;
            reply.body.resize(length, 0);
            reader.read_exact(&mut reply.body)?;
        } else {
            reader.read_to_end(&mut reply.body)?;
        }
        return Ok(reply);
    }
}

type Head = (u16, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let mut reader = reader.take(HEAD_BYTES_MAX);
    let mut line = String::new();
    let mut next = |line: &mut String| -> io::Result<bool> {
        line.clear();
        if reader.read_line(line)? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the answer has no end",
            ));
        }
        line.truncate(line.trim_end().len());
        Ok(!line.is_empty())
    };
    next(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| broken("status line"))?;
    let mut headers = Vec::new();
    while next(&mut line)? {
        let (name, value) = line.split_once(':').ok_or_else(|| broken("header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((status, headers))
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let size = line.trim_end().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(|_| broken("chunk size"))?;
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        line.clear();
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the answer has a broken {what}"),
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Serves one connection with `serve` and returns what the client received.
    fn exchange(
        request: &Request,
        serve: impl FnOnce(TcpStream) -> Vec<u8> + Send,
    ) -> (io::Result<Reply>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        thread::scope(|scope| {
            let server = scope.spawn(|| serve(listener.accept().expect("a client").0));
            let reply = send(address, request);
            (reply, server.join().expect("the server does not panic"))
        })
    }

    fn read_until(stream: &TcpStream, end: &[u8]) -> Vec<u8> {
        let mut received = Vec::new();
        let mut bytes = BufReader::new(stream).bytes();
        while !received.ends_with(end) {
            received.push(bytes.next().expect("more").expect("a byte"));
        }
        received
    }

    #[test]
    fn a_chunked_body_is_sent_and_a_chunked_answer_is_read() {
        let mut request = Request::post("/x", vec![b'x'; 5000]);
        request.framing = Framing::Chunked;
        let (reply, sent) = exchange(&request, |mut stream| {
            let sent = read_until(&stream, b"0\r\n\r\n");
            let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;a=b\r\nde\r\n0\r\n\r\n";
            stream.write_all(answer).expect("written");
            sent
        });
        assert_eq!(reply.expect("an answer").body, b"abcde");
        let sent = String::from_utf8(sent).expect("text");
        assert!(
            sent.contains("transfer-encoding: chunked\r\n") && !sent.contains("content-length")
        );
        assert!(sent.contains("\r\n\r\n1000\r\n") && sent.contains("\r\n388\r\n"));
    }

    #[test]
    fn an_answer_that_comes_before_the_body_is_sent_is_read() {
        let request = Request::post("/x", vec![b'x'; 64 * 1024 * 1024]);
        let (reply, _) = exchange(&request, |mut stream| {
            let head = read_until(&stream, b"\r\n\r\n");
            let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nno";
            stream.write_all(answer).expect("written");
            // Kept open until the client leaves, so that only the answer can end the request.
            let _ignored = io::copy(&mut stream, &mut io::sink());
            head
        });
        let reply = reply.expect("an answer");
        assert_eq!(
            (reply.status, reply.body.as_slice(), reply.header("x-y")),
            (413, &b"no"[..], Some("z"))
        );
    }

    #[test]
    fn a_truncated_answer_is_an_error() {
        let (reply, _) = exchange(&Request::get("/x"), |mut stream| {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
                .expect("written");
            read_until(&stream, b"\r\n\r\n")
        });
        assert_eq!(
            reply.expect_err("no complete answer").kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
