//! The overviews of much work that were derived last.

use std::sync::{Arc, Mutex, PoisonError};

use svc_engine_store::Revisions;
use svc_model::overview::{Overview, OverviewRequest};
use svc_model::time::Instant;
use uuid::Uuid;

/// An overview of fewer calls is derived for every request.
const CALLS_MIN: u64 = 5_000;
/// How long an overview is given again.
const MICROSECONDS: i64 = 60 * 1_000_000;
/// How many are remembered: a person looks at one after the other.
const REMEMBERED_MAX: usize = 16;

/// The overviews of much work that were derived last.
///
/// Whoever names no moment gets an overview that is up to a minute old, and says of which moment it
/// is. What was hidden or erased since then is in none, and each has the prices in force.
#[derive(Debug)]
pub(in crate::read) struct OverviewMemory {
    calls_min: u64,
    recent: Mutex<Vec<(Recent, Arc<Overview>)>>,
}

/// What a remembered overview is of.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    pub(super) request: OverviewRequest,
    /// When it was derived.
    pub(super) at: Instant,
    pub(super) revisions: Revisions,
    pub(super) price_table_id: Option<Uuid>,
}

impl Recent {
    fn answers(&self, asked: &Self) -> bool {
        let age = asked.at.microseconds() - self.at.microseconds();
        (0..MICROSECONDS).contains(&age)
            && self.revisions == asked.revisions
            && self.price_table_id == asked.price_table_id
            && self.request == asked.request
    }
}

impl Default for OverviewMemory {
    fn default() -> Self {
        Self::of_calls(CALLS_MIN)
    }
}

impl OverviewMemory {
    /// Returns an empty memory for overviews of so many calls or more.
    pub(in crate::read) fn of_calls(calls_min: u64) -> Self {
        Self {
            calls_min,
            recent: Mutex::default(),
        }
    }

    pub(super) fn get(&self, asked: &Recent) -> Option<Arc<Overview>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = recent.iter().rev();
        let (_, overview) = known.find(|(known, _)| known.answers(asked))?;
        Some(Arc::clone(overview))
    }

    pub(super) fn insert(&self, of: Recent, overview: &Overview) {
        if overview.figures.calls < self.calls_min {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(known, _)| known.request != of.request);
        if recent.len() >= REMEMBERED_MAX {
            recent.remove(0);
        }
        recent.push((of, Arc::new(overview.clone())));
    }
}
