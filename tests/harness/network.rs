//! A network between a service and its database that can fall silent.
//!
//! What is silent closes nothing and says nothing: connections stay open, new ones are taken, and no
//! byte passes. So does a database server that hangs.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a silent network looks whether it may speak again.
const LOOK: Duration = Duration::from_millis(5);

/// A network in front of one address. It lasts as long as the process of the tests.
#[derive(Debug)]
pub struct Network {
    address: SocketAddr,
    is_silent: Arc<AtomicBool>,
}

impl Network {
    /// Opens a network in front of an address.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub fn before(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = Arc::clone(&is_silent);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(target) else {
                    continue;
                };
                for (from, to) in [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))] {
                    let silent = Arc::clone(&silent);
                    if let (Ok(from), Ok(to)) = (from, to) {
                        thread::spawn(move || relay(from, to, &silent));
                    }
                }
            }
        });
        Ok(Self { address, is_silent })
    }

    /// Returns where to connect to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets no byte pass from now on.
    pub fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }

    /// Lets pass what was held back, and everything after it.
    pub fn speak(&self) {
        self.is_silent.store(false, Ordering::SeqCst);
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream, is_silent: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        while is_silent.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            // Whichever end went first, the other learns of it.
            drop(to.shutdown(std::net::Shutdown::Both));
            drop(from.shutdown(std::net::Shutdown::Both));
            return;
        }
    }
}
