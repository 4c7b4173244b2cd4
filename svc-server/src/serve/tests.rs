//! The server under senders that stall, break off, flood and lie, with limits that are small enough
//! to be reached.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use svc_model::json::Json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;

const OPERATOR: &str = "operator-operator-operator";
const INGEST: &str = "ingest-ingest-ingest-ingest";
const WEBHOOK: &str = "webhook-webhook-webhook-webhook";
/// Longer than anything here may take: what takes as long hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// A time that no test lets pass.
const LONG: Duration = Duration::from_mins(10);
const SHORT: Duration = Duration::from_millis(200);

/// Limits under which nothing ends by its time.
fn patient() -> Limits {
    Limits {
        stranger_for: LONG,
        idle_for: LONG,
        stranger_body_for: LONG,
        body_idle_for: LONG,
        body_idle_when_short_for: LONG,
        body_for: LONG,
        memory_for: LONG,
        reply_idle_for: LONG,
        reply_for: LONG,
        ..Limits::service()
    }
}

struct Server {
    runtime: Runtime,
    running: Option<Running>,
    address: SocketAddr,
    _folder: TempDir,
}

impl Server {
    fn start(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("svc.db").display());
        let tokens = format!(r#"{{"alice":"{INGEST}"}}"#);
        let mut settings = Settings::of(&[
            (crate::env::DATABASE_URL, url.as_str()),
            (crate::env::OPERATOR_TOKEN, OPERATOR),
            (crate::env::INGEST_TOKENS, &tokens),
            (crate::env::FORGE_WEBHOOK_SECRET, WEBHOOK),
            (crate::env::ENABLE_DOCS, "true"),
        ])
        .unwrap();
        settings.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let running = runtime.block_on(start_within(limits, settings)).unwrap();
        Self {
            address: running.address(),
            running: Some(running),
            runtime,
            _folder: folder,
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    /// Sends a whole request and returns its answer.
    fn answer(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer().expect("an answer")
    }

    /// Opens a connection and sends this, which is no whole request.
    fn begin(&self, request: impl AsRef<[u8]>) -> Client {
        let mut client = self.connect();
        client.send(request);
        client
    }

    /// Returns what is stored, as counts.
    fn facts(&self) -> String {
        let get = format!("GET /v1/facts HTTP/1.1\r\nauthorization: Bearer {OPERATOR}\r\n\r\n");
        let answer = self.answer(get);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Returns how often requests of a path were answered with a status.
    fn answered(&self, path: &str, status: u16) -> Option<Json> {
        let get = format!("GET /v1/capture HTTP/1.1\r\nauthorization: Bearer {OPERATOR}\r\n\r\n");
        let counts = Json::parse(self.answer(get).body.as_bytes()).unwrap();
        let answers = counts.as_object()?.get("answers")?.as_object()?;
        answers
            .get(path)?
            .as_object()?
            .get(&status.to_string())
            .cloned()
    }

    /// Stops the server and returns how long it took.
    fn stop(&mut self) -> Duration {
        let running = self.running.take().unwrap();
        let started = Instant::now();
        self.runtime.block_on(running.stop());
        started.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.stop();
        }
    }
}

struct Client(BufReader<TcpStream>);

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    /// Sends bytes. The server may end the connection meanwhile.
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.0.get_mut().write_all(bytes.as_ref()));
    }

    /// Reads one answer; nothing when the connection ends without.
    fn answer(&mut self) -> Option<Answer> {
        self.read(true)
    }

    fn read(&mut self, with_body: bool) -> Option<Answer> {
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
    fn wait_for_the_end(&mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut rest) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it hangs");
        }
    }

    /// Returns whether the server has ended the connection.
    fn has_ended(&mut self) -> bool {
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
}

/// Returns how many of these the server has not ended.
fn open(clients: &mut [Client]) -> usize {
    let ended = clients.iter_mut().map(Client::has_ended);
    ended.filter(|ended| !ended).count()
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn post(path: &str, headers: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: svc\r\n{headers}content-length: {length}\r\n\r\n")
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

fn signed(secret: &str, body: &[u8]) -> String {
    let mut code = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    code.update(body);
    let mut digits = String::new();
    for byte in code.finalize().into_bytes() {
        write!(digits, "{byte:02x}").unwrap();
    }
    format!("x-hub-signature-256: sha256={digits}\r\nx-github-event: ping\r\n")
}

/// A body of so many bytes that every route takes which takes any object.
fn padded(bytes: usize) -> Vec<u8> {
    let mut body = b"{}".to_vec();
    body.resize(bytes, b' ');
    body
}

fn webhook(secret: &str, bytes: usize) -> (String, Vec<u8>) {
    let body = padded(bytes);
    let head = post("/ingest/forge", &signed(secret, &body), bytes);
    (head, body)
}

fn call(name: &str) -> String {
    format!(
        r#"{{"id":"{name}","trace_id":"{name}","call_type":"acompletion","model":"m","status":"success","startTime":1767322800.0,"endTime":1767322801.0,"messages":[{{"role":"user","content":"x"}}],"response":{{"choices":[{{"message":{{"role":"assistant","content":"y"}}}}]}},"metadata":{{"requester_metadata":{{"session_id":"s"}}}}}}"#
    )
}

#[test]
fn a_body_that_breaks_off_stores_nothing() {
    let server = Server::start(patient());
    let path = "/ingest/gateway/gateway_a";
    let batch = format!("{}\n{}\n", call("one"), call("two"));
    let before = server.facts();
    let head = post(path, &bearer(INGEST), batch.len());
    let chunked = format!(
        "POST {path} HTTP/1.1\r\n{}transfer-encoding: chunked\r\n\r\n{:x}\r\n{batch}\r\n",
        bearer(INGEST),
        batch.len()
    );
    // After the first payload; at the end of a chunk; within the next chunk's size and bytes.
    let half = call("one").len() + 1;
    for (sent, ending) in [
        (format!("{head}{}", &batch[..half]), ""),
        (chunked.clone(), ""),
        (chunked.clone(), "5"),
        (chunked.clone(), "5\r\n{}"),
        (chunked.clone(), "nonsense\r\n"),
        (chunked.clone(), "0\r\n"),
    ] {
        let mut client = server.begin(format!("{sent}{ending}"));
        client.0.get_mut().shutdown(Shutdown::Write).unwrap();
        if let Some(answer) = client.answer() {
            assert_eq!(answer.status, 400, "{ending:?}: {}", answer.body);
            assert_eq!(answer.body, r#"{"detail":"request body is incomplete"}"#);
        }
        client.wait_for_the_end();
        assert_eq!(server.facts(), before, "{ending:?}");
    }
    let whole = server.answer(format!("{chunked}0\r\n\r\n"));
    assert_eq!(whole.status, 200, "{}", whole.body);
    assert_ne!(server.facts(), before, "the whole batch is stored");
}

#[test]
fn a_body_that_breaks_off_tells_a_stranger_nothing() {
    let server = Server::start(patient());
    let (head, body) = webhook("another-another-another-another", 1_000);
    for request in [
        format!("{}{{", post("/v1/logs", "", 100)),
        format!("{}{{", post("/v1/logs", &bearer("wrong"), 100)),
        format!("{head}{}", &String::from_utf8(body).unwrap()[..500]),
    ] {
        let mut client = server.begin(&request);
        client.0.get_mut().shutdown(Shutdown::Write).unwrap();
        if let Some(answer) = client.answer() {
            assert_eq!(answer.status, 401, "{request}: {}", answer.body);
        }
    }
}

#[test]
fn a_strangers_time_is_short() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        ..patient()
    });
    let mut silent = server.connect();
    let mut half = server.begin("GET /health HTTP/1.1\r\nhost:");
    let mut body = server.begin(format!("{}{{", post("/v1/logs", &bearer("wrong"), 100)));
    let (head, _) = webhook(WEBHOOK, 1_000);
    let mut signer = server.begin(format!("{head}{{"));
    silent.wait_for_the_end();
    half.wait_for_the_end();
    for client in [&mut body, &mut signer] {
        assert_eq!(client.answer().expect("an answer").status, 401);
        client.wait_for_the_end();
    }
}

#[test]
fn a_stranger_earns_time_by_sending_and_not_for_ever() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        stranger_bytes_per_second: 1,
        stranger_body_for: SHORT * 5,
        ..patient()
    });
    let started = Instant::now();
    let (head, _) = webhook(WEBHOOK, 10_000);
    let mut signer = server.begin(head);
    signer.send(padded(1_000));
    assert_eq!(signer.answer().expect("an answer").status, 401);
    assert!(
        started.elapsed() >= SHORT * 5,
        "it has earned more than the first"
    );
}

#[test]
fn a_known_senders_body_may_not_stand_still() {
    let server = Server::start(Limits {
        body_idle_for: SHORT,
        ..patient()
    });
    let mut client = server.begin(format!("{}{{", post("/v1/logs", &bearer(INGEST), 100)));
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 408);
    assert_eq!(answer.body, r#"{"detail":"request body took too long"}"#);
    let server = Server::start(Limits {
        body_for: SHORT,
        ..patient()
    });
    let mut client = server.begin(post("/v1/logs", &bearer(INGEST), 10_000));
    while !client.has_ended_or_answered() {
        client.send(" ");
        std::thread::sleep(SHORT / 10);
    }
    assert_eq!(client.answer().expect("an answer").status, 408);
}

impl Client {
    /// Returns whether there is something to read, or the end.
    fn has_ended_or_answered(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }
}

#[test]
fn an_answer_that_is_not_taken_in_ends() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        ..patient()
    });
    let mut client = server.connect();
    let request = "GET /openapi.json HTTP/1.1\r\nhost: svc\r\n\r\n";
    let requests = 2_000;
    client.send(request.repeat(requests));
    // Far more answers than the buffers between the two hold, so the server must end it.
    until("it goes on for ever", || {
        client.0.get_mut().write_all(b"\r\n").is_err()
    });
    let mut received = Vec::new();
    drop(client.0.read_to_end(&mut received));
    let answers = received
        .windows(12)
        .filter(|at| at == b"HTTP/1.1 200")
        .count();
    assert!(answers < requests, "{answers}");
}

#[test]
fn strangers_give_their_places_to_a_sender_who_can_sign() {
    let server = Server::start(Limits {
        connections_max: 8,
        newcomers_min: 4,
        ..patient()
    });
    let mut known = server.connect();
    known.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    assert_eq!(known.answer().expect("an answer").status, 200);
    let mut strangers: Vec<Client> = (0..50)
        .map(|number| match number % 3 {
            0 => server.connect(),
            1 => server.begin("POST /v1/logs HTTP/1.1\r\ncontent-len"),
            _ => server.begin(post("/v1/logs", "", 1_000)),
        })
        .collect();
    let (head, body) = webhook(WEBHOOK, 300_000);
    let mut signer = server.begin(head);
    signer.send(body);
    let answer = signer.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    until("there are more connections than places", || {
        open(&mut strangers) <= 8
    });
    known.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    let again = known.answer().expect("a known sender keeps its place");
    assert_eq!(again.status, 200);
}

#[test]
fn idle_known_senders_leave_places_to_newcomers() {
    let server = Server::start(Limits {
        connections_max: 8,
        newcomers_min: 4,
        ..patient()
    });
    let mut known: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = server.connect();
            client.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
            assert_eq!(client.answer().expect("an answer").status, 200);
            client
        })
        .collect();
    assert!(known[0].has_ended(), "the longest idle gives way");
    assert!(!known[19].has_ended());
}

#[test]
fn forged_bodies_hold_little_memory_and_delay_nobody() {
    let server = Server::start(Limits {
        stranger_bytes_max: 1024 * 1024,
        ..patient()
    });
    let (forged, part) = webhook("another-another-another-another", 200_000);
    let mut strangers: Vec<Client> = (0..40)
        .map(|_| {
            let mut client = server.begin(&forged);
            client.send(&part[..100_000]);
            client
        })
        .collect();
    // Those that are left hold all that strangers may.
    until("forged bodies hold more than their share", || {
        open(&mut strangers) * 100_000 <= 1024 * 1024
    });
    let (head, body) = webhook(WEBHOOK, 300_000);
    let mut signer = server.begin(head);
    signer.send(body);
    let answer = signer.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn bodies_that_stand_still_give_their_memory_to_those_that_come() {
    let server = Server::start(Limits {
        known_bytes_max: 1024 * 1024,
        body_idle_when_short_for: SHORT,
        ..patient()
    });
    let head = post("/v1/logs", &bearer(INGEST), 300_000);
    let mut stalled: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = server.begin(&head);
            client.send(&padded(300_000)[..200_000]);
            client
        })
        .collect();
    // They are many times what may be held, all at once, and every one comes in the end.
    let mut senders: Vec<Client> = (0..10)
        .map(|_| {
            let mut client = server.begin(&head);
            client.send(padded(300_000));
            client
        })
        .collect();
    for sender in &mut senders {
        let answer = sender.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let open = open(&mut stalled);
    assert!(open < 20, "nobody gave way");
}

#[test]
fn a_body_that_finds_no_memory_is_told_to_come_again() {
    let server = Server::start(Limits {
        known_bytes_max: 100_000,
        memory_for: SHORT,
        ..patient()
    });
    // The oldest goes on beyond what may be held, and stands still there.
    let head = post("/v1/logs", &bearer(INGEST), 300_000);
    let mut oldest = server.begin(&head);
    oldest.send(&padded(300_000)[..200_000]);
    until("the oldest is first", || {
        let mut next = server.begin(&head);
        next.send(padded(300_000));
        let answer = next.answer().expect("an answer");
        answer.status == 503 && answer.head.contains("retry-after: 1")
    });
    oldest.send(&padded(300_000)[200_000..]);
    assert_eq!(oldest.answer().expect("an answer").status, 200);
}

#[test]
fn a_stop_waits_for_no_stranger_and_for_nobody_idle() {
    let mut server = Server::start(patient());
    let mut idle = server.connect();
    idle.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    assert_eq!(idle.answer().expect("an answer").status, 200);
    let (forged, _) = webhook(WEBHOOK, 100_000);
    let mut strangers = [
        server.connect(),
        server.begin("GET /health HTTP/1.1\r\nhost:"),
        server.begin(format!("{}{{", post("/v1/logs", "", 100))),
        server.begin(format!("{forged}{{")),
    ];
    let took = server.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
    for client in strangers.iter_mut().chain([&mut idle]) {
        client.wait_for_the_end();
    }
}

#[test]
fn a_stop_waits_for_a_request_that_was_accepted() {
    let mut server = Server::start(patient());
    let body = padded(1_000);
    let head = post(
        "/v1/logs",
        &format!("{}expect: 100-continue\r\n", bearer(INGEST)),
        1_000,
    );
    let mut client = server.begin(head);
    let go_on = client.read(false).expect("an invitation");
    assert_eq!(
        go_on.status, 100,
        "the sender is known and its body waited for"
    );
    let running = server.running.take().unwrap();
    let stopping = server.runtime.spawn(running.stop());
    until("it still listens", || {
        TcpStream::connect(server.address).is_err()
    });
    assert!(!stopping.is_finished());
    client.send(body);
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    drop(client);
    server.runtime.block_on(stopping).unwrap();
}

#[test]
fn a_stop_gives_up_a_request_that_does_not_come() {
    let mut server = Server::start(Limits {
        stop_requests_for: SHORT,
        ..patient()
    });
    let head = post(
        "/v1/logs",
        &format!("{}expect: 100-continue\r\n", bearer(INGEST)),
        1_000,
    );
    let mut client = server.begin(head);
    assert_eq!(client.read(false).expect("an invitation").status, 100);
    assert!(server.stop() < Duration::from_secs(5));
    client.wait_for_the_end();
}

#[test]
fn every_refusal_has_a_body_in_json() {
    let server = Server::start(patient());
    let long = "x".repeat(40_000);
    let auth = bearer(INGEST);
    for (request, status, detail) in [
        ("nonsense\r\n\r\n".to_owned(), 400, "Malformed request"),
        (
            "GET /health HTTP/1.1\r\nbad header\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            "GET /health HTTP/9.9\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            format!("GET /health HTTP/1.1\r\nx: {long}\r\n\r\n"),
            431,
            "request head too large",
        ),
        (
            format!("GET /v1/me HTTP/1.1\r\n{auth}{auth}\r\n"),
            400,
            "Malformed request",
        ),
        (
            "GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            format!(
                "POST /v1/logs HTTP/1.1\r\n{auth}transfer-encoding: gzip, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
            400,
            "Malformed request",
        ),
        (
            format!("POST /v1/logs HTTP/1.1\r\n{auth}transfer-encoding: gzip\r\n\r\n"),
            400,
            "Malformed request",
        ),
        ("GET /nothing HTTP/1.1\r\n\r\n".to_owned(), 404, "Not Found"),
        (
            "POST /docs HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            405,
            "Method Not Allowed",
        ),
    ] {
        // Also after a request that was answered, on the same connection.
        for before in ["", "GET /health HTTP/1.1\r\n\r\n"] {
            let mut client = server.connect();
            if !before.is_empty() {
                client.send(before);
                assert_eq!(client.answer().expect("an answer").status, 200);
            }
            client.send(&request);
            let answer = client.answer().expect("an answer");
            let shown = &request[..request.len().min(60)];
            assert_eq!(answer.status, status, "{shown}: {}", answer.body);
            assert_eq!(
                answer.body,
                format!(r#"{{"detail":"{detail}"}}"#),
                "{shown}"
            );
            assert!(
                answer.head.contains("content-type: application/json"),
                "{shown}"
            );
        }
    }
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::start(patient());
    for path in ["/health", "/v1/me", "/v1/facts", "/docs"] {
        let request =
            |method: &str| format!("{method} {path} HTTP/1.1\r\n{}\r\n", bearer(OPERATOR));
        let got = server.answer(request("GET"));
        let mut client = server.connect();
        client.send(request("HEAD"));
        let head = client.read(false).expect("an answer");
        assert_eq!(head.status, 200, "{path}");
        assert!(
            head.head
                .contains(&format!("\r\ncontent-length: {}\r\n", got.body.len())),
            "{path}"
        );
        // The next answer comes right after the head.
        client.send(request("GET"));
        assert_eq!(client.answer().expect("an answer").body, got.body);
    }
}

#[test]
fn what_no_route_answers_is_observed_as_all_else() {
    let server = Server::start(patient());
    let missing = server.answer("GET /nothing HTTP/1.1\r\nx-request-id: own-1\r\n\r\n");
    assert_eq!(missing.status, 404);
    assert!(
        missing.head.contains("\r\nx-request-id: own-1\r\n"),
        "{}",
        missing.head
    );
    let wrong = server.answer("PUT /v1/facts HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(wrong.status, 405);
    assert!(
        wrong.head.contains("\r\nallow: get, head\r\n"),
        "{}",
        wrong.head
    );
    assert!(wrong.head.contains("\r\nx-request-id: "), "{}", wrong.head);
    assert_eq!(server.answered("none", 404), Some(Json::from(1_i64)));
    assert_eq!(server.answered("/v1/facts", 405), Some(Json::from(1_i64)));
}
