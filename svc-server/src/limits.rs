//! How much time and memory of the server a connection may use.
//!
//! A connection belongs to a stranger until its request has shown a valid token or signature.
//! Strangers get little time, earn more by sending, and are the first to give way when places or
//! memory run short. These limits are not settings. `docs/reference/limits.md` lists them, and tests
//! use smaller ones.

use std::time::Duration;

/// The limits of the connections of one address.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The maximum number of open connections. It is lower if the process may not open as many
    /// files.
    pub(crate) connections_max: usize,
    /// How many of the connections are kept for newcomers. Idle known senders give way to them up
    /// to this number.
    pub(crate) newcomers_min: usize,
    /// The maximum bytes of a request's head.
    pub(crate) head_bytes_max: usize,
    /// How long a stranger may take to send a head, and to receive an answer.
    pub(crate) stranger_for: Duration,
    /// How long the connection of a known sender may be idle between requests.
    pub(crate) idle_for: Duration,
    /// The minimum rate of a stranger's body in bytes per second, after [`Limits::stranger_for`].
    pub(crate) stranger_bytes_per_second: u64,
    /// The maximum time for a stranger's body, whatever its rate.
    pub(crate) stranger_body_for: Duration,
    /// How long a known sender's body may stall.
    pub(crate) body_idle_for: Duration,
    /// How long a known sender's body may stall while others wait for memory.
    pub(crate) body_idle_when_short_for: Duration,
    /// The maximum time for a known sender's body.
    pub(crate) body_for: Duration,
    /// How long a body may wait for memory that other bodies hold.
    pub(crate) memory_for: Duration,
    /// How long a known caller may take in nothing of its answer.
    pub(crate) reply_idle_for: Duration,
    /// The maximum time for a known caller to receive its answer.
    pub(crate) reply_for: Duration,
    /// How long a sender that was answered early may continue to send.
    pub(crate) linger_for: Duration,
    /// The maximum bytes of known senders' bodies in memory. The oldest unfinished body may exceed
    /// it, so that one of them can always continue.
    pub(crate) known_bytes_max: usize,
    /// The maximum bytes of strangers' bodies in memory.
    pub(crate) stranger_bytes_max: usize,
    /// How long a signed body may still take after the server begins to stop.
    pub(crate) stop_strangers_for: Duration,
    /// How long accepted requests may take to finish after the server begins to stop.
    pub(crate) stop_requests_for: Duration,
    /// The maximum time for the whole stop.
    pub(crate) stop_for: Duration,
}

impl Limits {
    /// The limits of the service's address.
    pub(crate) const fn service() -> Self {
        Self {
            connections_max: 2_048,
            newcomers_min: 512,
            head_bytes_max: 32 * 1024,
            stranger_for: Duration::from_secs(10),
            idle_for: Duration::from_secs(75),
            stranger_bytes_per_second: 64 * 1024,
            stranger_body_for: Duration::from_secs(30),
            body_idle_for: Duration::from_secs(30),
            body_idle_when_short_for: Duration::from_secs(5),
            body_for: Duration::from_mins(10),
            memory_for: Duration::from_secs(20),
            reply_idle_for: Duration::from_secs(30),
            reply_for: Duration::from_mins(5),
            linger_for: Duration::from_secs(5),
            known_bytes_max: 128 * 1024 * 1024,
            stranger_bytes_max: 32 * 1024 * 1024,
            stop_strangers_for: Duration::from_millis(500),
            stop_requests_for: Duration::from_secs(18),
            stop_for: Duration::from_secs(24),
        }
    }

    /// The limits of the metrics address, which has few callers, none of them known.
    pub(crate) const fn metrics() -> Self {
        Self {
            connections_max: 32,
            newcomers_min: 32,
            ..Self::service()
        }
    }

    /// Returns the time that a stranger earns by sending.
    pub(crate) fn earned(&self, bytes: u64) -> Duration {
        let rate = self.stranger_bytes_per_second.max(1);
        Duration::from_micros(bytes.saturating_mul(1_000_000) / rate)
    }

    /// Allows fewer connections if the process may not open as many files.
    pub(crate) fn within_open_files(mut self, open_files_max: u64) -> Self {
        let left = open_files_max.saturating_sub(crate::open_files::RESERVED);
        let left = usize::try_from(left).unwrap_or(usize::MAX).max(8);
        self.connections_max = self.connections_max.min(left);
        self.newcomers_min = self.newcomers_min.min(self.connections_max / 4);
        self
    }
}
