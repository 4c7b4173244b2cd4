//! Which calls a report covers.

use std::ops::Range;

use svc_engine_derive::attribution_share::Window;
use svc_engine_store::{Snapshot, StoreError};
use svc_model::reports::ReportScope;
use svc_model::time::Instant;

use super::just_after;

/// The calls that a report covers, and the boundary of its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// When the calls were observed.
    pub(super) observed: Range<Instant>,
    /// Facts received later do not count.
    pub(super) as_of: Instant,
    /// The length in days; `None` for all history, which includes Sessions without calls.
    pub(super) since_days: Option<u64>,
}

impl Extent {
    /// Returns all history up to a moment, inclusive.
    pub fn all_until(as_of: Instant) -> Self {
        Self {
            observed: first()..just_after(as_of),
            as_of,
            since_days: None,
        }
    }

    /// Returns the calls of `days` days before a moment, exclusive.
    pub fn days_before(as_of: Instant, days: u32) -> Self {
        Self {
            observed: Window::days_before(as_of, i64::from(days)).start..as_of,
            as_of,
            since_days: Some(u64::from(days)),
        }
    }

    /// Returns the calls that were observed in a range of time.
    pub fn within(observed: Range<Instant>, as_of: Instant) -> Self {
        let microseconds = observed.end.microseconds() - observed.start.microseconds();
        let days = microseconds / (24 * 60 * 60 * 1_000_000);
        Self {
            observed,
            as_of,
            since_days: Some(u64::try_from(days).unwrap_or(0).max(1)),
        }
    }

    /// Returns the range of time in which the calls were observed.
    pub fn observed(&self) -> Range<Instant> {
        self.observed.clone()
    }

    /// Returns the same calls, with the boundary that a question up to `now` means: see
    /// [`Snapshot::bound`].
    ///
    /// # Errors
    ///
    /// If the store gives no answer before the deadline.
    pub fn bounded(&self, snapshot: &mut Snapshot<'_>, now: Instant) -> Result<Self, StoreError> {
        Ok(Self {
            as_of: snapshot.bound(self.as_of, now)?,
            ..self.clone()
        })
    }

    /// Returns an extent without calls, for reports that are not about calls.
    pub(super) const fn nothing_until(as_of: Instant) -> Self {
        Self {
            observed: as_of..as_of,
            as_of,
            since_days: Some(0),
        }
    }

    /// Returns whether it covers all history.
    pub const fn is_all(&self) -> bool {
        self.since_days.is_none()
    }
}

impl From<&ReportScope> for Extent {
    fn from(scope: &ReportScope) -> Self {
        Self {
            observed: scope.cohort_start..scope.cohort_end,
            as_of: scope.as_of,
            since_days: Some(scope.since_days()),
        }
    }
}

/// Returns the first moment.
pub(super) fn first() -> Instant {
    Instant::from_microseconds(0).expect("the first moment is one")
}
