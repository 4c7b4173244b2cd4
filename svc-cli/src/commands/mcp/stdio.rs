//! Reads an agent's lines as messages of the protocol.
//!
//! The library's own transport does not answer text that is not JSON, or a last line without a line
//! break, so an agent that sends either waits forever. It also writes no `id` with the error for
//! something that is not a message. This transport answers them as `/mcp` does.

use std::io::{self, BufRead, Read as _, Write};
use std::thread::{self, JoinHandle};

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The maximum bytes of a line, the same as the library's.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many lines may be queued in each direction.
const LINES_MAX: usize = 16;

/// A line from the agent, or `None` if it is too long.
type Line = Option<Vec<u8>>;
type Message = RxJsonRpcMessage<RoleServer>;

/// The agent at the other end of two streams.
#[derive(Debug)]
pub(super) struct Stdio {
    lines: Receiver<Line>,
    answers: Sender<Vec<u8>>,
    /// The refusal of the previous line, while it is still to be sent. It is kept here because
    /// [`Transport::receive`] may be cancelled at any time and called again.
    refusal: Option<LineRefusal>,
}

/// The thread that writes to the agent.
#[derive(Debug)]
pub(super) struct WriterThread(JoinHandle<io::Result<()>>);

/// Why a line is not a message, as a code and a text of the protocol.
type LineRefusal = (i32, &'static str);

const NOT_JSON: LineRefusal = (-32_700, "not JSON");
const NO_MESSAGE: LineRefusal = (-32_600, "not one message of the protocol");
const TOO_LONG: LineRefusal = (-32_600, "too long");

impl Stdio {
    /// Starts reading and writing. A separate thread waits for the agent, so that the program can
    /// end while the agent is silent.
    pub(super) fn new(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> (Self, WriterThread) {
        let (read, lines) = mpsc::channel(LINES_MAX);
        let (answers, written) = mpsc::channel(LINES_MAX);
        thread::spawn(move || read_all(input, &read));
        let writing = thread::spawn(move || write_all(output, written));
        let stdio = Self {
            lines,
            answers,
            refusal: None,
        };
        (stdio, WriterThread(writing))
    }
}

impl WriterThread {
    /// Waits until everything has been written.
    pub(super) fn end(self) -> io::Result<()> {
        self.0
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answers = self.answers.clone();
        async move {
            let answer = serde_json::to_vec(&item)?;
            let sent = answers.send(answer).await;
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some((code, message)) = self.refusal {
                let place = self.answers.reserve().await.ok()?;
                let error = serde_json::json!({
                    "jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message},
                });
                place.send(error.to_string().into_bytes());
                self.refusal = None;
            }
            match read(self.lines.recv().await?) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => self.refusal = Some(refusal),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses a line. `None` if it needs no answer.
fn read(line: Line) -> Result<Option<Message>, LineRefusal> {
    /// A message that asks for no answer. Unknown ones are ignored.
    #[derive(Deserialize)]
    struct Notification {
        jsonrpc: String,
        #[serde(rename = "method")]
        _method: String,
        // A null id counts as present, although it is not allowed.
        #[serde(default, rename = "id", deserialize_with = "given")]
        has_id: bool,
    }

    fn given<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(value).map(|_| true)
    }

    let line = line.ok_or(TOO_LONG)?;
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Ok(Some(message));
    }
    match serde_json::from_slice::<Notification>(line) {
        Ok(notification) if notification.jsonrpc == "2.0" && !notification.has_id => Ok(None),
        _ => {
            // `IgnoredAny` also ignores bytes that are not text, so those are checked here.
            let text = std::str::from_utf8(line).map(serde_json::from_str::<IgnoredAny>);
            Err(if let Ok(Ok(_)) = text {
                NO_MESSAGE
            } else {
                NOT_JSON
            })
        }
    }
}

/// Reads lines until the agent is gone or nobody wants more. The last line needs no line break.
fn read_all(mut input: impl BufRead, lines: &Sender<Line>) {
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut input).take(LINE_BYTES_MAX as u64 + 1);
        let is_read = bounded.read_until(b'\n', &mut line);
        if is_read.is_err() || line.is_empty() {
            return;
        }
        let fits = line.len() <= LINE_BYTES_MAX;
        if !fits && line.last() != Some(&b'\n') && input.skip_until(b'\n').is_err() {
            return;
        }
        if lines.blocking_send(fits.then_some(line)).is_err() {
            return;
        }
    }
}

fn write_all(mut output: impl Write, mut answers: Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut answer) = answers.blocking_recv() {
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::Sink;

    /// Returns how many messages these bytes contain, and the errors that answer the rest.
    fn received(input: impl Into<Vec<u8>>) -> (usize, Vec<Value>) {
        let output = Sink::default();
        let (mut stdio, writing) = Stdio::new(io::Cursor::new(input.into()), output.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut messages = 0;
        while runtime.block_on(stdio.receive()).is_some() {
            messages += 1;
        }
        drop(stdio);
        writing.end().unwrap();
        let written = output.text();
        let errors = written
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (messages, errors.collect())
    }

    #[test]
    fn a_malformed_message_is_answered_without_an_id() {
        let unclosed = "[".repeat(100_000);
        let deep = format!("{unclosed}{}", "]".repeat(100_000));
        let long = format!("\"{}\"", "x".repeat(LINE_BYTES_MAX));
        for (line, code) in [
            ("{", -32_700),
            ("not json", -32_700),
            (&*unclosed, -32_700),
            (&*deep, -32_600),
            ("[]", -32_600),
            ("5", -32_600),
            (r#"{"id":1,"method":"ping"}"#, -32_600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32_600),
            (r#"{"jsonrpc":"2.0"}"#, -32_600),
            (&*long, -32_600),
        ] {
            let shown = &line[..line.len().min(50)];
            let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            let (messages, errors) = received(format!("{line}\n{ping}\n"));
            assert_eq!(messages, 1, "{shown}: the next is read");
            let [error] = &*errors else {
                panic!("{shown}: {errors:?}");
            };
            assert_eq!(error["error"]["code"], code, "{shown}");
            assert_eq!(error.get("id"), Some(&Value::Null), "{shown}");
            assert_eq!(error["jsonrpc"], "2.0", "{shown}");
        }
        let (_, errors) = received(b"\"\xff\"\n");
        assert_eq!(errors[0]["error"]["code"], -32_700);
    }

    #[test]
    fn the_last_line_needs_no_line_break() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(received(format!("{ping}\r\n{ping}")), (2, Vec::new()));
        assert_eq!(received("{").1.len(), 1);
        assert_eq!(received(""), (0, Vec::new()));
    }

    #[test]
    fn blank_lines_and_unknown_notifications_are_passed_over() {
        let known = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let (messages, errors) = received(format!("\n \r\n\u{feff}{known}\n"));
        assert_eq!((messages, errors), (1, Vec::new()));
        let (_, errors) =
            received("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":5}\n");
        assert_eq!(errors, Vec::<Value>::new());
    }
}
