//! The load: connections that each send the next request as soon as the last one is answered.
//!
//! Each thread drives its share of the connections on one single-threaded runtime, so that one
//! wake-up serves all sockets that became ready. Requests come from a [`Player`], which only
//! patches bytes.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;
use crate::http::{Request, expect_stored, reply_head};
use crate::payload::SingleCall;
use crate::session::SessionCalls;

/// The endless requests of one connection.
pub(crate) trait Player: Send {
    /// Prepares the next request.
    fn next(&mut self) -> Request<'_>;

    /// Checks the answer to the request.
    fn expect(&self, status: u16, body: &[u8]) -> Result<(), Failure> {
        expect_stored(status, body)
    }
}

/// Numbers that no two sessions and no two calls of the program share.
#[derive(Debug)]
pub(crate) struct Numbers {
    sessions: AtomicU64,
    calls: AtomicU64,
}

/// How many numbers each load has for itself, which is more than it can send.
const NUMBERS_PER_LOAD: u64 = 1 << 36;

impl Default for Numbers {
    /// Returns the numbers for one more load, because several may be sent to one server.
    fn default() -> Self {
        static LOADS: AtomicU64 = AtomicU64::new(0);
        let first = LOADS.fetch_add(1, Ordering::Relaxed) * NUMBERS_PER_LOAD;
        Self {
            sessions: AtomicU64::new(first),
            calls: AtomicU64::new(first),
        }
    }
}

impl Numbers {
    pub(crate) fn session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }
}

/// The sessions of one sender, one after the other, each with the same number of calls.
#[derive(Debug)]
pub(crate) struct SessionNumbers {
    calls_each: u64,
    session: u64,
    left: u64,
}

impl SessionNumbers {
    pub(crate) const fn of_calls(calls_each: u64) -> Self {
        Self {
            calls_each,
            session: 0,
            left: 0,
        }
    }

    /// Returns the session of the next call.
    pub(crate) fn next(&mut self, numbers: &Numbers) -> u64 {
        if self.left == 0 {
            self.session = numbers.session();
            self.left = self.calls_each;
        }
        self.left -= 1;
        self.session
    }
}

/// Plays calls that are one template each.
#[derive(Debug)]
pub(crate) struct SinglePlayer {
    templates: Vec<SingleCall>,
    next: usize,
    sessions: SessionNumbers,
    numbers: Arc<Numbers>,
}

impl SinglePlayer {
    /// Plays sessions of this many calls.
    pub(crate) const fn new(
        templates: Vec<SingleCall>,
        calls_of_session: u64,
        numbers: Arc<Numbers>,
    ) -> Self {
        Self {
            templates,
            next: 0,
            sessions: SessionNumbers::of_calls(calls_of_session),
            numbers,
        }
    }
}

impl Player for SinglePlayer {
    fn next(&mut self) -> Request<'_> {
        self.next = (self.next + 1) % self.templates.len();
        let session = self.sessions.next(&self.numbers);
        self.templates[self.next].request(session, self.numbers.call())
    }

    fn expect(&self, status: u16, body: &[u8]) -> Result<(), Failure> {
        self.templates[self.next].expect(status, body)
    }
}

/// Plays session after session, each from its first call to its last.
#[derive(Debug)]
pub(crate) struct SessionPlayer {
    pub(crate) calls: SessionCalls,
    /// The turn to send next. Connections begin at different turns, as agents do, so that the mean
    /// body size is the same throughout the run.
    pub(crate) next: usize,
    pub(crate) begun: bool,
    pub(crate) numbers: Arc<Numbers>,
}

impl Player for SessionPlayer {
    fn next(&mut self) -> Request<'_> {
        let index = self.next;
        if index == 0 || !self.begun {
            self.begun = true;
            self.calls.begin_session(self.numbers.session());
        }
        self.next = (index + 1) % self.calls.call_count();
        self.calls.request(index, self.numbers.call())
    }
}

/// When a run measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

/// What the connections counted inside the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowCounts {
    /// The latencies of all replies in microseconds, sorted.
    pub(crate) latencies: Vec<u32>,
    pub(crate) body_bytes: u64,
    /// Requests and body bytes before, in and after the window.
    pub(crate) all_requests: u64,
    pub(crate) all_body_bytes: u64,
}

impl WindowCounts {
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.body_bytes += other.body_bytes;
        self.all_requests += other.all_requests;
        self.all_body_bytes += other.all_body_bytes;
    }

    /// Returns the latency that this share of the replies did not exceed.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let rank = (self.latencies.len() as f64 * share).ceil() as usize;
        let index = rank.clamp(1, self.latencies.len().max(1)) - 1;
        Duration::from_micros(self.latencies.get(index).copied().unwrap_or(0).into())
    }
}

/// Plays to a server until the window ends.
///
/// `at_edge` is called on the calling thread when the window begins and when it ends.
pub(crate) fn play(
    address: SocketAddr,
    players: Vec<Box<dyn Player>>,
    threads: usize,
    window: Window,
    mut at_edge: impl FnMut() -> Result<(), Failure>,
) -> Result<WindowCounts, Failure> {
    let mut shares: Vec<Vec<Box<dyn Player>>> = (0..threads.max(1)).map(|_| Vec::new()).collect();
    for (index, player) in players.into_iter().enumerate() {
        shares[index % threads.max(1)].push(player);
    }
    thread::scope(|scope| {
        let running: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || play_share(address, share, window)))
            .collect();
        for edge in [window.begin, window.end] {
            while Instant::now() < edge && running.iter().all(|thread| !thread.is_finished()) {
                thread::sleep(
                    edge.saturating_duration_since(Instant::now())
                        .min(Duration::from_millis(20)),
                );
            }
            at_edge()?;
        }
        let mut counts = WindowCounts::default();
        for thread in running {
            counts.add(thread.join().map_err(|_| "a generator thread panicked")??);
        }
        counts.latencies.sort_unstable();
        Ok(counts)
    })
}

fn play_share(
    address: SocketAddr,
    players: Vec<Box<dyn Player>>,
    window: Window,
) -> Result<WindowCounts, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connections = tokio::task::JoinSet::new();
        for player in players {
            connections.spawn(play_connection(address, player, window));
        }
        let patience =
            window.end.saturating_duration_since(Instant::now()) + Duration::from_secs(30);
        tokio::time::timeout(patience, async {
            let mut counts = WindowCounts::default();
            while let Some(done) = connections.join_next().await {
                counts.add(done??);
            }
            Ok(counts)
        })
        .await
        .unwrap_or_else(|_| Err("a reply did not come within 30 seconds of the end".into()))
    })
}

async fn play_connection(
    address: SocketAddr,
    mut player: Box<dyn Player>,
    window: Window,
) -> Result<WindowCounts, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 8_192];
    let mut counts = WindowCounts::default();
    loop {
        let request = player.next();
        let body_length = request.body_length as u64;
        let begin = Instant::now();
        write_request(&mut stream, request).await?;
        let mut filled = 0;
        let head = loop {
            let count = stream.read(&mut buffer[filled..]).await?;
            if count == 0 {
                return Err("the server closed a connection".into());
            }
            filled += count;
            match reply_head(&buffer[..filled])? {
                Some(head) if head.end > buffer.len() => {
                    return Err("a reply is longer than 8 KiB".into());
                }
                Some(head) if filled >= head.end => break head,
                Some(_) | None => {}
            }
        };
        let end = Instant::now();
        player.expect(head.status, &buffer[head.body_start..head.end])?;
        counts.all_requests += 1;
        counts.all_body_bytes += body_length;
        if end >= window.begin && end < window.end {
            counts
                .latencies
                .push(u32::try_from((end - begin).as_micros()).unwrap_or(u32::MAX));
            counts.body_bytes += body_length;
        }
        if end >= window.end {
            return Ok(counts);
        }
    }
}

async fn write_request(stream: &mut TcpStream, request: Request<'_>) -> Result<(), Failure> {
    let mut slices = request.pieces.map(IoSlice::new);
    let mut rest = &mut slices[..];
    let mut missing = request.length();
    while missing > 0 {
        let written = stream.write_vectored(rest).await?;
        if written == 0 {
            return Err("the server takes no more bytes".into());
        }
        missing -= written;
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}
