//! Hides facts from every answer, and shows them again.

mod bulk;
mod change;
mod log;

pub(crate) use self::bulk::Bulk;
pub(crate) use self::change::QuarantineChange;
pub(crate) use self::log::Log;

use crate::error::CommandError;

/// Returns the client name for changes made from this shell: the account that runs it, as the
/// system knows it.
pub(super) fn client_id() -> String {
    match whoami::username() {
        Ok(user) if !user.is_empty() => format!("shell ({user})"),
        _ => "shell".to_owned(),
    }
}

/// Checks that a reason is not blank. The reason is kept exactly as written.
pub(super) fn check_reason(reason: &str) -> Result<(), CommandError> {
    if reason.trim().is_empty() {
        return Err(CommandError::argument("--reason", "must not be blank"));
    }
    Ok(())
}
