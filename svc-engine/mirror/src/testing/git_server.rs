//! Servers for repositories: git's own daemon, its HTTP backend, and some hostile ones.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::git;

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(20);

/// `git daemon` for the repositories in a folder. It ends on drop.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    address: SocketAddr,
}

impl Daemon {
    /// Serves a folder.
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    /// Serves a folder with further arguments.
    pub fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        loop {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = free.local_addr().expect("its address");
            drop(free);
            let mut child = Command::new(program("git-daemon"))
                .args(["--reuseaddr", "--export-all", "--listen=127.0.0.1"])
                .arg(format!("--port={}", address.port()))
                .arg(format!("--base-path={}", folder.display()))
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("git daemon starts");
            let start = Instant::now();
            while TcpStream::connect(address).is_err() {
                assert!(start.elapsed() < START_MAX, "git daemon does not listen");
                if child.try_wait().expect("it can be waited for").is_some() {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
            // Another program may have taken the port.
            if child.try_wait().expect("it can be waited for").is_none() {
                return Self { child, address };
            }
        }
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a repository in the folder.
    pub fn url(&self, repository: &str) -> String {
        format!("git://{}/{repository}", self.address)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ignored = self.child.kill();
        let _ignored = self.child.wait();
    }
}

/// Returns the path of one of git's own programs.
fn program(name: &str) -> PathBuf {
    let folder = git::git(Path::new("/"), &["--exec-path"], "");
    Path::new(&folder).join(name)
}

/// A request that an HTTP server received.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method and the path with its query.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What an HTTP server does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Hands the request to `git http-backend` for a folder.
    Git(PathBuf),
    /// Redirects the client.
    Redirect(String),
    /// Requires this `Authorization` header, and then serves the folder.
    Authorized(String, PathBuf),
    /// Answers with these bytes, which include the headers.
    Bytes(Vec<u8>),
    /// Sends nothing for a long time.
    Nothing,
    /// Sends a few bytes again and again, forever, at this interval.
    Endless(Vec<u8>, Duration),
}

/// The certificate of [`Http::start_tls`], for the host `forge.test`. It is self-signed.
pub const CERTIFICATE: &str = include_str!("tls/forge.test.pem");
const KEY: &str = include_str!("tls/forge.test.key.pem");

/// An HTTP server. Its threads end with the process.
#[derive(Debug)]
pub struct Http {
    scheme: &'static str,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Http {
    /// Answers every request in the same way.
    pub fn start(answer: Answer) -> Self {
        Self::serving("http", any_port(), move |stream, kept| {
            serve(stream, &answer, kept)
        })
    }

    /// Answers every request in the same way, at an address that is already known.
    pub fn start_at(address: SocketAddr, answer: Answer) -> Self {
        let listener = TcpListener::bind(address).expect("the port");
        Self::serving("http", listener, move |stream, kept| {
            serve(stream, &answer, kept)
        })
    }

    /// Answers every request in the same way, over TLS with [`CERTIFICATE`].
    pub fn start_tls(answer: Answer) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.expect("a certificate")],
                key.expect("a key"),
            );
        let config = Arc::new(config.expect("a configuration"));
        Self::serving("https", any_port(), move |stream, kept| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).ok()?;
            let mut stream = rustls::StreamOwned::new(connection, stream);
            serve(&mut stream, &answer, kept)?;
            stream.conn.send_close_notify();
            stream.flush().ok()
        })
    }

    fn serving(
        scheme: &'static str,
        listener: TcpListener,
        serve: impl Fn(TcpStream, &Mutex<Vec<Request>>) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("its address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (serve, kept) = (Arc::clone(&serve), Arc::clone(&kept));
                thread::spawn(move || serve(stream, &kept));
            }
        });
        Self {
            scheme,
            address,
            requests,
        }
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a repository.
    pub fn url(&self, repository: &str) -> String {
        format!("{}://{}/{repository}", self.scheme, self.address)
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn any_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

const REFUSED: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\
    Content-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves one request. Ends if the client goes away.
fn serve(stream: impl Read + Write, answer: &Answer, kept: &Mutex<Vec<Request>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (request, body) = read(&mut stream)?;
    let mut writer = stream.into_inner();
    kept.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request.clone());
    match answer {
        Answer::Git(folder) => backend(folder, &request, &body, &mut writer),
        Answer::Authorized(expected, folder) => {
            if request.header("authorization") == Some(expected) {
                backend(folder, &request, &body, &mut writer)
            } else {
                writer.write_all(REFUSED).ok()
            }
        }
        Answer::Redirect(location) => {
            let path = request.line.split(' ').nth(1).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 301 Moved\r\nLocation: {location}{path}\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            );
            writer.write_all(head.as_bytes()).ok()
        }
        Answer::Bytes(bytes) => writer.write_all(bytes).ok(),
        Answer::Nothing => {
            thread::sleep(Duration::from_hours(1));
            None
        }
        Answer::Endless(piece, pause) => loop {
            writer.write_all(piece).ok()?;
            writer.flush().ok()?;
            thread::sleep(*pause);
        },
    }
}

/// Reads a request and its body.
fn read(reader: &mut BufReader<impl Read + Write>) -> Option<(Request, Vec<u8>)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut request = Request {
        line: line.trim_end().to_owned(),
        headers: Vec::new(),
    };
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        request
            .headers
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
    if request.header("expect").is_some() {
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        reader.get_mut().write_all(go_on).ok()?;
    }
    let mut body = Vec::new();
    if request.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        body.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
    }
    Some((request, body))
}

/// Hands a request to `git http-backend`, and the answer to the client.
fn backend(folder: &Path, request: &Request, body: &[u8], writer: &mut impl Write) -> Option<()> {
    let mut words = request.line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut command = git::command(folder);
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", body.len().to_string());
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "HTTP_GIT_PROTOCOL"),
    ] {
        if let Some(value) = request.header(header) {
            command.env(variable, value);
        }
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let body = body.to_vec();
    let writing = thread::spawn(move || stdin.write_all(&body).is_ok());
    let output = child.wait_with_output().ok()?.stdout;
    writing.join().ok()?;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&output[..end]);
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let length = output.len() - end - 4;
    let first = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n");
    writer.write_all(first.as_bytes()).ok()?;
    writer.write_all(&output).ok()
}
