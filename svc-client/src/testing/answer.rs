use std::io::{self, Write as _};
use std::net::TcpStream;

use svc_model::endpoint::{Endpoint, IngestCalls, IngestCi, IngestGateway, Logs, Traces};
use svc_model::json::{self, Json};
use svc_model::problem::Problem;

use super::Received;

/// One answer of a [`FakeServer`](super::FakeServer).
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The whole body, with its length.
    Whole(Vec<u8>),
    /// A body in chunks, without a length, which is repeated until the client has enough.
    Endless,
    /// A body that ends before its announced length.
    Broken(Vec<u8>),
    /// The receipt for a stored delivery, as the requested route gives it.
    Stored,
    /// No answer: the connection ends after the request.
    Closed,
    /// No answer: the connection stays open until the client leaves.
    Silent,
}

impl Answer {
    /// Returns an answer with a status and a body.
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Whole(body.into()),
        }
    }

    /// Returns the reply of a route.
    ///
    /// # Panics
    ///
    /// If the reply contains a number that is not finite.
    pub fn reply<E: Endpoint>(reply: &E::Reply) -> Self {
        let body = json::to_vec(reply, usize::MAX).expect("a reply of finite numbers");
        Self::text(200, body)
    }

    /// Returns a problem in the service's form, with this status.
    ///
    /// # Panics
    ///
    /// Never: problems contain no numbers that are not finite.
    pub fn problem(status: u16, problem: &Problem) -> Self {
        let body = json::to_vec(&problem.body(), usize::MAX).expect("a problem is finite");
        Self::text(status, body)
    }

    /// Returns the receipt for a stored delivery, as the requested route gives it.
    pub fn stored() -> Self {
        Self {
            body: Body::Stored,
            ..Self::text(200, "")
        }
    }

    /// Returns a success with an endless body.
    pub fn endless() -> Self {
        Self {
            body: Body::Endless,
            ..Self::text(200, "")
        }
    }

    /// Returns a success whose body is cut off after these bytes.
    pub fn broken(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: Body::Broken(body.into()),
            ..Self::text(200, "")
        }
    }

    /// Gives no answer: the connection is closed after the request.
    pub fn closed() -> Self {
        Self {
            body: Body::Closed,
            ..Self::text(200, "")
        }
    }

    /// Gives no answer: the connection stays open until the client leaves.
    pub fn silent() -> Self {
        Self {
            body: Body::Silent,
            ..Self::text(200, "")
        }
    }

    /// Sets the status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the answer to a request. An error means that the client has disconnected, which it
    /// may.
    pub(super) fn write(&self, mut stream: &TcpStream, request: &Received) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        match &self.body {
            Body::Whole(body) => {
                write!(stream, "{head}content-length: {}\r\n\r\n", body.len())?;
                stream.write_all(body)
            }
            Body::Stored => {
                let body = receipt(request);
                write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())
            }
            Body::Broken(body) => {
                write!(stream, "{head}content-length: {}\r\n\r\n", body.len() + 1)?;
                stream.write_all(body)
            }
            Body::Endless => {
                write!(stream, "{head}transfer-encoding: chunked\r\n\r\n")?;
                loop {
                    stream.write_all(b"400\r\n")?;
                    stream.write_all(&[b' '; 0x400])?;
                    stream.write_all(b"\r\n")?;
                }
            }
            Body::Closed | Body::Silent => Ok(()),
        }
    }
}

/// Returns the receipt of the ingest route that a request is for.
fn receipt(request: &Received) -> String {
    match &*request.target {
        Logs::PATH | Traces::PATH => "{}".to_owned(),
        IngestGateway::PATH | IngestCi::PATH => {
            r#"{"fact_id":"531f97ae-8872-41e7-8b99-d5840ab3cd2f","stored":true}"#.to_owned()
        }
        target => {
            let stored = match target {
                IngestCalls::PATH => calls(&request.body),
                _ => payloads(&request.body),
            };
            format!(r#"{{"stored":{stored},"duplicates":0,"skipped":{{}},"rejected":{{}}}}"#)
        }
    }
}

/// Returns the number of calls in a request.
fn calls(body: &[u8]) -> usize {
    let body = Json::parse(body).ok().and_then(Json::into_object);
    let calls = body.and_then(|mut body| body.remove("calls")?.into_array());
    calls.map_or(0, |calls| calls.len())
}

/// Returns the number of payloads in a batch: one object, an array, or NDJSON.
fn payloads(body: &[u8]) -> usize {
    match Json::parse(body) {
        Ok(Json::Array(items)) => items.len(),
        Ok(_) => 1,
        Err(_) => {
            let lines = body.split(|byte| *byte == b'\n');
            lines.filter(|line| !line.trim_ascii().is_empty()).count()
        }
    }
}
