//! Blocking calls, for programs without an async runtime.
//!
//! There is no separate blocking client: every call of this crate returns a future, and
//! [`Blocking::wait`] returns its result.
//!
//! ```
//! # use svc_client::testing::{Answer, FakeServer};
//! use svc_client::Client;
//! use svc_client::blocking::Blocking;
//!
//! # let server = FakeServer::start([Answer::text(200, r#"{"status":"ok","version":"0.1.0"}"#)]);
//! let client = Client::builder(server.url()).build()?;
//! let blocking = Blocking::new()?;
//! let health = blocking.wait(client.health())?;
//! assert_eq!(health.version, "0.1.0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;

use tokio::runtime::{Builder, Runtime};

/// A runtime on the thread that waits. It runs only during [`Blocking::wait`], and starts threads
/// only for blocking disk operations.
#[derive(Debug)]
pub struct Blocking(Runtime);

impl Blocking {
    /// Creates a runtime. One per program is enough.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be created, for example because no file descriptors are left.
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Waits for a call and returns its result.
    ///
    /// # Panics
    ///
    /// If called on a runtime; use `call.await` there.
    pub fn wait<F: Future>(&self, call: F) -> F::Output {
        self.0.block_on(call)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{Answer, FakeServer};
    use crate::{Outbox, OutboxLimits};

    #[test]
    fn every_method_has_a_blocking_form() {
        let folder = tempfile::tempdir().unwrap();
        let server = FakeServer::start([
            Answer::closed(),
            Answer::text(200, r#"{"status":"ok","version":"0.1.0"}"#),
        ]);
        let client = server.client();
        let blocking = Blocking::new().unwrap();
        assert_eq!(blocking.wait(client.health()).unwrap().version, "0.1.0");
        let outbox = Outbox::open(folder.path().join("outbox"), OutboxLimits::default()).unwrap();
        let drained = blocking.wait(outbox.drain(&client)).unwrap();
        assert_eq!(drained.acknowledged, 0);
    }

    #[test]
    fn a_blocking_call_ends_at_its_timeout() {
        let server = FakeServer::start([Answer::silent()]);
        let client = server.client().with_timeout(Duration::from_millis(20));
        let blocking = Blocking::new().unwrap();
        assert!(blocking.wait(client.health()).is_err());
    }
}
