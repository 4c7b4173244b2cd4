use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Answer;
use super::answer::Body;
use crate::{Client, RetryPolicy};

/// The token of [`FakeServer::client`].
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A fake service in this process. It gives scripted answers, one for each connection. After the
/// last answer, it closes connections without one.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// One request that a [`FakeServer`] received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path and query, unchanged.
    pub target: String,
    /// The headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the first header with this name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
struct Shared {
    script: Mutex<VecDeque<Answer>>,
    received: Mutex<Vec<Received>>,
    ending: AtomicBool,
}

impl FakeServer {
    /// Starts a server that gives these answers in order.
    ///
    /// # Panics
    ///
    /// If this machine has no free port.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into_iter().collect()),
            ..Shared::default()
        });
        let listener = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.listen(&listener))
        };
        Self {
            address,
            shared,
            listener: Some(listener),
        }
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a client of the server, with a token. It retries almost without pauses.
    ///
    /// # Panics
    ///
    /// If the HTTP client cannot be created.
    pub fn client(&self) -> Client {
        let moment = Duration::from_millis(1);
        Client::builder(self.url())
            .token(TOKEN)
            .retry(RetryPolicy::default().pauses(moment, moment))
            .build()
            .expect("a client of this machine")
    }

    /// Replaces the answers that are left with these.
    pub fn answer(&self, script: impl IntoIterator<Item = Answer>) {
        *hold(&self.shared.script) = script.into_iter().collect();
    }

    /// Returns the received requests, in order.
    pub fn received(&self) -> Vec<Received> {
        hold(&self.shared.received).clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        // The listener waits for a connection; this is the last one.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

impl Shared {
    fn listen(&self, listener: &TcpListener) {
        let mut connections = Vec::new();
        thread::scope(|scope| {
            for stream in listener.incoming().flatten() {
                if self.is_ending() {
                    break;
                }
                let stream = Arc::new(stream);
                connections.push(Arc::downgrade(&stream));
                scope.spawn(move || {
                    // A client may leave at any moment. What it sent has been recorded by then.
                    drop(self.serve(&stream));
                    end(&stream);
                });
            }
            // Some may be waiting for a client that has stopped reading, or that never leaves.
            for stream in connections.iter().filter_map(Weak::upgrade) {
                end(&stream);
            }
        });
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let request = read_request(stream)?;
        hold(&self.received).push(request.clone());
        let Some(answer) = hold(&self.script).pop_front() else {
            return Ok(());
        };
        if matches!(answer.body, Body::Silent) {
            return io::copy(&mut stream, &mut io::sink()).map(drop);
        }
        answer.write(stream, &request)
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}

fn end(stream: &TcpStream) {
    // This fails if the client has already closed the connection.
    drop(stream.shutdown(Shutdown::Both));
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_request(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = || -> io::Result<String> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Received {
        method,
        target,
        headers,
        body,
    })
}
