//! How far a clock may differ from the database server's, and the error when it differs more.

use std::fmt;

use svc_model::time::Instant;

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;

/// The largest difference that is no fault.
pub(crate) const APART_MICROSECONDS_MAX: i64 = 60 * SECOND;

/// Why the clock of this server is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFault {
    /// How far it is ahead; negative if it is behind.
    ahead_microseconds: i64,
    against: ClockReference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockReference {
    Database,
    Itself,
}

impl ClockFault {
    /// Returns the fault of a clock that was set by this much while the service ran.
    pub(crate) const fn of_itself(ahead_microseconds: i64) -> Self {
        Self {
            ahead_microseconds,
            against: ClockReference::Itself,
        }
    }
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ahead_microseconds.unsigned_abs() / SECOND.unsigned_abs();
        match (self.against, self.ahead_microseconds > 0) {
            (ClockReference::Database, true) => {
                write!(
                    f,
                    "this clock is {seconds} s ahead of the database server's"
                )
            }
            (ClockReference::Database, false) => {
                write!(f, "this clock is {seconds} s behind the database server's")
            }
            (ClockReference::Itself, true) => {
                write!(
                    f,
                    "this clock was set {seconds} s forward while the service ran"
                )
            }
            (ClockReference::Itself, false) => {
                write!(
                    f,
                    "this clock was set {seconds} s back while the service ran"
                )
            }
        }
    }
}

/// Compares a clock with the database's, if there is an answer, within the accepted difference.
pub(crate) fn compare(now: Instant, database: Option<Instant>) -> Result<(), ClockFault> {
    let Some(database) = database else {
        return Ok(());
    };
    let ahead_microseconds = now.microseconds() - database.microseconds();
    if ahead_microseconds.abs() <= APART_MICROSECONDS_MAX {
        return Ok(());
    }
    Err(ClockFault {
        ahead_microseconds,
        against: ClockReference::Database,
    })
}
