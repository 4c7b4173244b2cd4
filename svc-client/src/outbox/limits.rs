/// How much an [`Outbox`](super::Outbox) may hold, what the service refused included.
///
/// Whoever reaches a limit is told so by [`OutboxError::Full`](super::OutboxError::Full); nothing
/// makes room for itself by removing something older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// Deliveries, at most.
    pub deliveries: u64,
    /// Bytes of their files, at most.
    pub bytes: u64,
}

impl Default for OutboxLimits {
    /// 10,000 deliveries, 1 GiB.
    fn default() -> Self {
        Self {
            deliveries: 10_000,
            bytes: 1024 * 1024 * 1024,
        }
    }
}
