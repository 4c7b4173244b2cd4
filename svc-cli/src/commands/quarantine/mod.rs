//! Facts that are taken out of every answer, and shown again.

mod bulk;
mod change;
mod log;

pub(crate) use self::bulk::Bulk;
pub(crate) use self::change::Change;
pub(crate) use self::log::Log;

use crate::error::CommandError;

/// Returns who changes a store at this shell: the user, as the system calls them.
pub(super) fn client_id() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    match name("USER").or_else(|| name("LOGNAME")) {
        Some(user) => format!("shell ({user})"),
        None => "shell".to_owned(),
    }
}

/// Checks that a reason says something. It is kept exactly as it was written.
pub(super) fn check_reason(reason: &str) -> Result<(), CommandError> {
    if reason.trim().is_empty() {
        return Err(CommandError::argument("--reason", "must not be blank"));
    }
    Ok(())
}
