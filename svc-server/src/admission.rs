//! Memory before work: a request takes what its body may become from a budget that all share.
//!
//! Three bytes of a body may become a value of 32 and a part of hundreds, but most bodies are text
//! and become a few times their size. So what a body may take is estimated from what it holds, and
//! what it does take is bounded while it is decoded ([`REQUEST_MEMORY_BYTES_MAX`]).

use std::time::Duration;

use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::Problem;
use tokio::time::timeout;

use crate::memory::{Held, MemoryBudget};

/// Bytes of memory that all requests may work in at once.
pub(crate) const WORK_BYTES_MAX: usize = 640 * 1024 * 1024;
/// Bytes of memory that the largest request works in: the values of its body, and as much again for
/// what is written of them.
const REQUEST_WORK_BYTES_MAX: usize = 2 * REQUEST_MEMORY_BYTES_MAX;
/// How long a request waits for its memory. Its sender is told to come back then.
pub(crate) const WAIT: Duration = Duration::from_secs(15);

/// A body of fewer bytes is worked on without asking: it holds no more values than are soon gone.
const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;
/// Bytes that a byte of text takes: in the value that holds it, in the message or record that repeats
/// it, and in the canonical forms of both.
const BYTES_PER_BYTE: usize = 6;
/// Bytes that a value takes beside its text: in a list with room to spare, and in what is made of it.
const BYTES_PER_VALUE: usize = 160;
/// Bytes that a byte of protobuf takes. Its values cannot be counted without reading it.
const BYTES_PER_BYTE_OF_PROTOBUF: usize = 24;

/// How a body is encoded, as far as its values can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// Returns the bytes of memory that a request with this body may work in; none for a small one.
pub(crate) fn estimate(body: &[u8], encoding: Encoding) -> usize {
    if body.len() <= UNCOUNTED_BYTES_MAX {
        return 0;
    }
    let bytes = match encoding {
        Encoding::Json => body.len() * BYTES_PER_BYTE + values(body) * BYTES_PER_VALUE,
        Encoding::Protobuf => body.len() * BYTES_PER_BYTE_OF_PROTOBUF,
    };
    bytes.min(REQUEST_WORK_BYTES_MAX)
}

/// Returns how many values a JSON text holds at most: each but the first follows one of three
/// characters, all of which stand in texts as well.
fn values(body: &[u8]) -> usize {
    // Counted in bytes, as many at a time as a byte can count, the compiler compares many at once.
    let chunks = body.chunks(usize::from(u8::MAX));
    let counts = chunks.map(|chunk| {
        let begins = |byte: &u8| u8::from(matches!(byte, b',' | b'[' | b'{'));
        chunk.iter().map(begins).fold(0_u8, u8::wrapping_add)
    });
    counts.map(usize::from).sum()
}

/// Takes the memory that a request may work in, waiting for it when others have it.
///
/// # Errors
///
/// When it is not free in time.
pub(crate) async fn admit(
    work: &MemoryBudget,
    bytes: usize,
    wait: Duration,
) -> Result<Option<Held>, Problem> {
    if bytes == 0 {
        return Ok(None);
    }
    let held = timeout(wait, work.acquire(bytes.min(work.bytes_max()))).await;
    held.ok().flatten().map(Some).ok_or_else(|| {
        tracing::warn!(bytes, "work.memory_exhausted");
        Problem::CapacityExceeded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn text_is_cheap_and_values_are_not() {
        let text = format!(
            "{{\"text\":\"{}\"}}",
            "the quick brown fox ".repeat(MIB / 20)
        );
        let dense = format!("[{}0]", "[],".repeat(MIB / 3));
        assert!(estimate(text.as_bytes(), Encoding::Json) < 8 * MIB);
        assert!(estimate(dense.as_bytes(), Encoding::Json) > 100 * MIB);
        let large = vec![b','; 25 * MIB];
        assert_eq!(estimate(&large, Encoding::Json), REQUEST_WORK_BYTES_MAX);
        assert_eq!(estimate(&large, Encoding::Protobuf), REQUEST_WORK_BYTES_MAX);
        assert_eq!(estimate(&large[..UNCOUNTED_BYTES_MAX], Encoding::Json), 0);
        assert_eq!(values(&large), large.len());
        assert_eq!(values(b"[1,{\"a\":\"b,c\"}]"), 4);
        const { assert!(2 * REQUEST_WORK_BYTES_MAX < WORK_BYTES_MAX) };
    }

    #[tokio::test]
    async fn who_finds_no_memory_in_time_is_told_to_come_back() {
        let work = MemoryBudget::new(100);
        let first = admit(&work, 80, WAIT).await.unwrap();
        assert!(first.is_some());
        assert!(matches!(admit(&work, 0, Duration::ZERO).await, Ok(None)));
        let second = admit(&work, 30, Duration::ZERO).await;
        assert_eq!(second.unwrap_err(), Problem::CapacityExceeded);
        drop(first);
        let whole = admit(&work, 1_000, Duration::ZERO).await.unwrap();
        assert_eq!(whole.unwrap().bytes(), 100, "all there is");
    }
}
