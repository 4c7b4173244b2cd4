//! How the C library keeps freed memory.
//!
//! What has 4 MiB or more goes back to the system when it is freed, and there is one heap for each
//! processor. glibc raises the first bound to whatever was freed before, up to 32 MiB, and has
//! eight heaps for each processor. `docs/decisions/019-memory-budgets.md` has the figures.

/// Allocations of at least this size are returned to the system when they are freed. Nearly all are
/// smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED_BYTES_MIN: libc::c_int = 4 * 1024 * 1024;

/// Makes the allocator keep little freed memory. Must be called before other threads start.
///
/// By default, glibc returns a large allocation to the system only if it is larger than all that
/// were freed before, up to 32 MiB. So a service that received some large bodies would keep
/// hundreds of MiB for good, and reach its memory limit with the next ones. It also keeps eight
/// heaps per processor, each with 64 MiB of address space.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(
        unsafe_code,
        reason = "the C library has no other interface for a running process"
    )
)]
pub(crate) fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let heaps = libc::c_int::try_from(processors.max(2)).unwrap_or(libc::c_int::MAX);
        // SAFETY: each call sets one number in the allocator, under the allocator's lock. A value
        // that the allocator refuses changes nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED_BYTES_MIN);
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }
}
