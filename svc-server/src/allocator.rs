//! How the C library keeps memory for the next allocation.

/// Allocations of at least this size go back to the system when they are freed. Nearly all are smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED_BYTES_MIN: libc::c_int = 4 * 1024 * 1024;

/// Lets the allocator keep little. It must be called before other threads start.
///
/// By default, glibc returns a large allocation to the system only if it is larger than all that were
/// freed before, up to 32 MiB. So a service that was sent some large bodies would keep hundreds of MiB
/// for good, and reach its bound on memory with the next ones. And it keeps eight heaps for each
/// processor, each with 64 MiB of address space.
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
        // SAFETY: each call sets one number of the allocator, under its lock. A value that the allocator
        // refuses changes nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED_BYTES_MIN);
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }
}
