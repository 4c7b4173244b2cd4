//! Hides facts from every answer, and shows them again.

mod bulk;
mod change;
mod log;

pub(crate) use self::bulk::Bulk;
pub(crate) use self::change::Change;
pub(crate) use self::log::Log;

use crate::error::CommandError;

/// Returns the client name for changes made from this shell: the system's user.
pub(super) fn client_id() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    match name("USER").or_else(|| name("LOGNAME")) {
        Some(user) => format!("shell ({user})"),
        None => "shell".to_owned(),
    }
}

/// Checks that a reason is not blank. It is kept exactly as written.
pub(super) fn check_reason(reason: &str) -> Result<(), CommandError> {
    if reason.trim().is_empty() {
        return Err(CommandError::argument("--reason", "must not be blank"));
    }
    Ok(())
}
