/// The limits of an [`Outbox`](super::Outbox). Refused deliveries count too.
///
/// A delivery that would exceed a limit fails with [`OutboxError::Full`](super::OutboxError::Full).
/// Older deliveries are never removed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// The maximum number of deliveries.
    pub deliveries: u64,
    /// The maximum total size of their files in bytes.
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
