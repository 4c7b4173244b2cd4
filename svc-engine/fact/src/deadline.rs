//! Deadlines, and the cancellation of work before its deadline.
//!
//! Everything that waits takes a [`Deadline`]: a statement, a place in the pool, a program, the
//! resolution of a name. It is created once, where work is accepted, and passed on as it is or
//! shortened, so no step can take longer than the whole. Cancelled work ends at its next check;
//! nothing has to be sent to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stands for never, if a sum of times exceeds what the clock can hold.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// Why work must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Passed {
    /// The time has passed.
    #[error("the deadline has passed")]
    Time,
    /// Somebody cancelled it.
    #[error("it was cancelled")]
    Cancelled,
}

/// Ends work for good. Clones are handles to the same switch.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    cancelled: AtomicBool,
    parent: Option<Cancellation>,
}

impl Cancellation {
    /// Cancels all work under this switch and its children.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Returns whether this switch or one of its parents is cancelled.
    pub fn is_cancelled(&self) -> bool {
        let mut next = Some(self);
        while let Some(Self(switch)) = next {
            if switch.cancelled.load(Ordering::Acquire) {
                return true;
            }
            next = switch.parent.as_ref();
        }
        false
    }

    /// Returns a child, which is cancelled with this switch, but not the other way round.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Switch {
            cancelled: AtomicBool::new(false),
            parent: Some(self.clone()),
        }))
    }
}

/// The time by which work must end, and a switch that ends it earlier. Clones share the switch.
#[derive(Clone, Debug)]
pub struct Deadline {
    at: Instant,
    cancellation: Cancellation,
}

impl Deadline {
    /// Returns a deadline after this time, with its own switch.
    pub fn after(time: Duration) -> Self {
        let now = Instant::now();
        Self::at(now.checked_add(time).unwrap_or(now + NEVER))
    }

    /// Returns a deadline at this time, with its own switch.
    pub fn at(instant: Instant) -> Self {
        Self {
            at: instant,
            cancellation: Cancellation::default(),
        }
    }

    /// Returns the same deadline with this switch instead of its own.
    #[must_use]
    pub fn cancelled_by(self, cancellation: &Cancellation) -> Self {
        Self {
            cancellation: cancellation.clone(),
            ..self
        }
    }

    /// Returns the time. It does not show a cancellation.
    pub fn instant(&self) -> Instant {
        self.at
    }

    /// Returns the remaining time: never zero, and nothing once the deadline has passed or was
    /// cancelled.
    pub fn remaining(&self) -> Option<Duration> {
        if self.is_cancelled() {
            return None;
        }
        let remaining = self.at.saturating_duration_since(Instant::now());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Checks that the work may continue.
    ///
    /// # Errors
    ///
    /// If the deadline has passed or was cancelled.
    pub fn check(&self) -> Result<(), Passed> {
        match self.remaining() {
            Some(_) => Ok(()),
            None if self.is_cancelled() => Err(Passed::Cancelled),
            None => Err(Passed::Time),
        }
    }

    /// Returns a deadline after at most this time, and no later than this one, with the same
    /// switch.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        Self {
            at: self.at.min(Self::after(time).at),
            cancellation: self.cancellation.clone(),
        }
    }

    /// Returns the same deadline with a child of its switch: it is cancelled with this one, but not
    /// the other way round.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            at: self.at,
            cancellation: self.cancellation.child(),
        }
    }

    /// Returns the switch that ends the work.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Cancels this deadline, its clones and its children.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    /// Returns whether the work was cancelled, here or by a parent.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(10);

    #[test]
    fn a_passed_deadline_stays_passed() {
        let long = Deadline::after(LONG);
        assert_eq!(long.check(), Ok(()));
        assert!(long.remaining().is_some_and(|left| left <= LONG));
        let passed = Deadline::after(Duration::ZERO);
        assert_eq!(passed.check(), Err(Passed::Time));
        assert_eq!(passed.remaining(), None);
        assert_eq!(Deadline::at(passed.instant()).check(), Err(Passed::Time));
        assert_eq!(Deadline::after(Duration::MAX).check(), Ok(()));
    }

    #[test]
    fn a_clone_is_cancelled_with_its_original() {
        let deadline = Deadline::after(LONG);
        let clones = [deadline.clone(), deadline.within(Duration::from_secs(30))];
        assert!(clones.iter().all(|clone| clone.check().is_ok()));
        clones[0].cancel();
        for cancelled in clones.iter().chain([&deadline]) {
            assert_eq!(cancelled.check(), Err(Passed::Cancelled));
            assert_eq!(cancelled.remaining(), None);
        }
    }

    #[test]
    fn a_child_is_cancelled_with_its_parent_and_not_the_other_way_round() {
        let parent = Deadline::after(LONG);
        let (child, sibling) = (parent.child(), parent.child());
        let grandchild = child.child();
        child.cancel();
        assert!(child.is_cancelled() && grandchild.is_cancelled());
        assert!(!parent.is_cancelled() && !sibling.is_cancelled());
        parent.cancel();
        assert_eq!(sibling.check(), Err(Passed::Cancelled));
    }

    #[test]
    fn one_cancellation_ends_several_deadlines() {
        let stop = Cancellation::default();
        let first = Deadline::after(LONG).cancelled_by(&stop);
        let second = Deadline::after(LONG).cancelled_by(&stop.child());
        stop.cancel();
        assert!(first.is_cancelled() && second.is_cancelled());
    }

    #[test]
    fn a_limit_within_a_deadline_never_extends_it() {
        let deadline = Deadline::after(LONG);
        assert!(deadline.within(Duration::from_secs(5)).instant() < deadline.instant());
        assert_eq!(deadline.within(LONG * 2).instant(), deadline.instant());
    }
}
