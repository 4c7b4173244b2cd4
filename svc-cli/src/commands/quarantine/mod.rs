//! Facts that are taken out of every answer, and shown again.

mod bulk;
mod change;
mod log;

pub(crate) use self::bulk::Bulk;
pub(crate) use self::change::Change;
pub(crate) use self::log::Log;

use crate::error::CommandError;

/// Checks that a reason says something. It is kept exactly as it was written.
fn check_reason(reason: &str) -> Result<(), CommandError> {
    if reason.trim().is_empty() {
        return Err(CommandError::argument("--reason", "must not be blank"));
    }
    Ok(())
}
