use svc_model::json::NodeBudget;
use svc_model::limit::REQUEST_MEMORY_BYTES_MAX;
use tokio::runtime::{Handle, RuntimeFlavor};

/// A larger body is worked on in a way that does not block other requests.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// The size of a request's body, and the memory that its values may still take.
#[derive(Debug)]
pub struct BodyBudget {
    bytes: usize,
    /// The memory.
    pub memory: NodeBudget,
}

impl BodyBudget {
    /// Returns the budget for a decoded body of this many bytes, before its values are read.
    pub const fn new(bytes: usize) -> Self {
        Self {
            bytes,
            memory: NodeBudget::new(REQUEST_MEMORY_BYTES_MAX),
        }
    }

    /// Works on the body. Other requests continue while a thread works on a large one, unless the
    /// runtime has only one thread.
    pub fn in_place<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.bytes > INLINE_BYTES_MAX && has_threads() {
            tokio::task::block_in_place(work)
        } else {
            work()
        }
    }
}

fn has_threads() -> bool {
    let runtime = Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}
