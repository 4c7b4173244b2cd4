//! A network between a service and its database that can go silent, lose one answer, or lead
//! elsewhere.
//!
//! A silent network closes nothing and passes no byte: connections stay open and new ones are
//! accepted. A database server that hangs behaves the same. A lost answer ends its connection: the
//! request was carried out, but the sender never learns of it.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a silent network checks whether it may pass bytes again.
const LOOK: Duration = Duration::from_millis(5);

/// A network in front of one address. It lasts as long as the test process.
#[derive(Debug)]
pub struct Network {
    address: SocketAddr,
    faults: Arc<Faults>,
}

/// What goes wrong in a network.
#[derive(Debug)]
struct Faults {
    /// Where new connections lead.
    target: Mutex<SocketAddr>,
    is_silent: AtomicBool,
    /// The text that makes a connection lose the answer to its next commit.
    unlucky: Mutex<Option<&'static str>>,
}

/// The state of one connection.
#[derive(Debug, Default)]
struct Connection {
    /// The text that makes a connection lose an answer has passed on this one.
    is_unlucky: AtomicBool,
    /// The next answer is lost.
    loses_answer: AtomicBool,
}

impl Network {
    /// Opens a network in front of an address.
    ///
    /// # Errors
    ///
    /// If it cannot listen on a port.
    pub fn before(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let faults = Arc::new(Faults {
            target: Mutex::new(target),
            is_silent: AtomicBool::new(false),
            unlucky: Mutex::default(),
        });
        let shared = Arc::clone(&faults);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(*locked(&shared.target)) else {
                    continue;
                };
                let connection = Arc::new(Connection::default());
                let ways = [
                    (near.try_clone(), far.try_clone(), Way::There),
                    (Ok(far), Ok(near), Way::Back),
                ];
                for (from, to, way) in ways {
                    let (faults, connection) = (Arc::clone(&shared), Arc::clone(&connection));
                    if let (Ok(from), Ok(to)) = (from, to) {
                        thread::spawn(move || relay(from, to, way, &faults, &connection));
                    }
                }
            }
        });
        Ok(Self { address, faults })
    }

    /// Returns where to connect to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leads new connections to another address, as a moved name or address would.
    pub fn lead_to(&self, target: SocketAddr) {
        *locked(&self.faults.target) = target;
    }

    /// Lets no byte pass from now on.
    pub fn fall_silent(&self) {
        self.faults.is_silent.store(true, Ordering::SeqCst);
    }

    /// Passes what was held back, and everything after it.
    pub fn speak(&self) {
        self.faults.is_silent.store(false, Ordering::SeqCst);
    }

    /// Loses the answer to the commit of the first transaction that contains this text.
    pub fn lose_answer_to_commit_of(&self, text: &'static str) {
        *locked(&self.faults.unlucky) = Some(text);
    }

    /// Returns whether an answer is still to be lost.
    pub fn is_to_lose_answer(&self) -> bool {
        locked(&self.faults.unlucky).is_some()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

fn relay(
    mut from: TcpStream,
    mut to: TcpStream,
    way: Way,
    faults: &Faults,
    connection: &Connection,
) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        while faults.is_silent.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
        }
        let passing = &bytes[..count];
        let is_lost = match way {
            Way::There => {
                look(passing, faults, connection);
                false
            }
            Way::Back => connection.loses_answer.load(Ordering::SeqCst),
        };
        if is_lost || count == 0 || to.write_all(passing).is_err() {
            // When either end is gone, the other is told.
            drop(to.shutdown(std::net::Shutdown::Both));
            drop(from.shutdown(std::net::Shutdown::Both));
            return;
        }
    }
}

/// Looks for the text that makes a connection lose an answer, and for the commit after it.
fn look(passing: &[u8], faults: &Faults, connection: &Connection) {
    let has = |text: &str| {
        passing
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    if connection.is_unlucky.load(Ordering::SeqCst) {
        if has("COMMIT") {
            connection.loses_answer.store(true, Ordering::SeqCst);
        }
        return;
    }
    let mut unlucky = locked(&faults.unlucky);
    if unlucky.is_some_and(has) {
        *unlucky = None;
        connection.is_unlucky.store(true, Ordering::SeqCst);
    }
}
