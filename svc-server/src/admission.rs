//! Memory before work: a request reserves the memory that its parsed body may need from a budget
//! that all requests share.
//!
//! Three bytes of a body may become a value of 32 bytes and a part of hundreds, but most bodies are
//! text and become a few times their size. So a body's need is estimated from its bytes, and its
//! actual use is bounded while it is parsed ([`REQUEST_MEMORY_BYTES_MAX`]).

use std::time::Duration;

use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use svc_model::problem::Problem;
use tokio::time::timeout;

use crate::memory::{MemoryBudget, ReservedBytes};

/// Bytes of memory for the work on all requests together.
pub(crate) const WORK_BYTES_MAX: usize = 640 * 1024 * 1024;
/// Bytes of memory for the largest request: for the values of its body, and as much again for what
/// is written from them.
const REQUEST_WORK_BYTES_MAX: usize = 2 * REQUEST_MEMORY_BYTES_MAX;
/// How long a request waits for memory before its sender is asked to come back.
pub(crate) const WAIT: Duration = Duration::from_secs(15);

/// A smaller body is parsed without a reservation, because its values take little memory for a
/// short time.
const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;
/// Bytes of memory per byte of text: in its value, in the message or record that repeats it, and in
/// the canonical forms of both.
const BYTES_PER_BYTE: usize = 6;
/// Bytes of memory per value besides its text: in a list with spare capacity, and in the result.
const BYTES_PER_VALUE: usize = 160;
/// Bytes of memory per byte of protobuf, whose values cannot be counted without parsing it.
const BYTES_PER_BYTE_OF_PROTOBUF: usize = 24;

/// The encodings of a body, as far as they matter for counting its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// Returns the bytes of memory that a request with this body may need; 0 for a small one.
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

/// Returns the maximum number of values in a JSON text. Each value but the first follows one of
/// three characters, which may also occur inside texts.
fn values(body: &[u8]) -> usize {
    // The counts of a chunk fit into a byte, so the compiler can compare many bytes at once.
    let chunks = body.chunks(usize::from(u8::MAX));
    let counts = chunks.map(|chunk| {
        let begins = |byte: &u8| u8::from(matches!(byte, b',' | b'[' | b'{'));
        chunk.iter().map(begins).fold(0_u8, u8::wrapping_add)
    });
    counts.map(usize::from).sum()
}

/// Reserves the memory for a request, and waits for it if necessary.
///
/// # Errors
///
/// If the memory is not free in time.
pub(crate) async fn admit(
    work: &MemoryBudget,
    bytes: usize,
    wait: Duration,
) -> Result<Option<ReservedBytes>, Problem> {
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
    fn many_small_values_need_more_memory_than_text() {
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
    async fn a_request_without_memory_in_time_is_refused_as_over_capacity() {
        let work = MemoryBudget::new(100);
        let first = admit(&work, 80, WAIT).await.unwrap();
        assert!(first.is_some());
        assert!(matches!(admit(&work, 0, Duration::ZERO).await, Ok(None)));
        let second = admit(&work, 30, Duration::ZERO).await;
        assert_eq!(second.unwrap_err(), Problem::CapacityExceeded);
        drop(first);
        let whole = admit(&work, 1_000, Duration::ZERO).await.unwrap();
        assert_eq!(whole.unwrap().bytes(), 100, "all memory");
    }
}
