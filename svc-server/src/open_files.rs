//! How many files and sockets the process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are reserved for everything but connections: the store, git and logs.
pub(crate) const RESERVED: u64 = 256;
/// The limit that the process asks for. It is enough for every connection, for those that are
/// closing, and for the rest.
const WANTED: u64 = 4_096;

/// Raises the soft limit as far as needed and allowed, and returns it.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(raised) = raised(limit.current, limit.maximum) else {
        return limit.current.unwrap_or(u64::MAX);
    };
    let wanted = Rlimit {
        current: Some(raised),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, "server.open_files_not_raised");
            limit.current.unwrap_or(u64::MAX)
        }
    }
}

/// Returns the value to raise a soft limit to, or `None` if it is high enough or cannot be raised.
fn raised(soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    let soft = soft?;
    let raised = hard.map_or(WANTED, |hard| hard.min(WANTED));
    (raised > soft).then_some(raised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_wanted_or_the_hard_limit() {
        assert_eq!(raised(Some(1_024), Some(1_000_000)), Some(WANTED));
        assert_eq!(raised(Some(1_024), None), Some(WANTED));
        assert_eq!(raised(Some(1_024), Some(2_000)), Some(2_000));
        assert_eq!(raised(Some(1_024), Some(1_024)), None);
        assert_eq!(raised(Some(65_536), Some(65_536)), None);
        assert_eq!(raised(None, None), None);
    }
}
