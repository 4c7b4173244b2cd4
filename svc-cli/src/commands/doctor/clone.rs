//! The current clone: whether its commits are stamped.

use super::Check;
use crate::commands::git_hooks;
use crate::commands::note::{NOTES, repository};

pub(super) fn checks() -> Vec<Check> {
    match repository::is_work_tree() {
        Ok(true) => vec![hooks(), notes()],
        Ok(false) => vec![Check::absent(
            "clone",
            "this folder is not a git repository",
        )],
        Err(error) => vec![Check::failed("git", error.message(), "install git")],
    }
}

fn hooks() -> Check {
    match git_hooks::missing() {
        Ok(missing) if missing.is_empty() => Check::ok("hooks", "commits are stamped"),
        Ok(missing) => Check::warning(
            "hooks",
            format!("not installed in this clone: {}", missing.join(", ")),
            "svc install git-hooks",
        ),
        Err(error) => Check::failed("hooks", error.message(), "svc install git-hooks"),
    }
}

fn notes() -> Check {
    let listed = repository::ask(&["notes", &format!("--ref={NOTES}"), "list"]);
    match listed.map(|notes| notes.unwrap_or_default().lines().count()) {
        Ok(0) => Check::warning(
            "notes",
            "no commit in this clone has a note",
            "svc note stamp",
        ),
        Ok(count) => Check::ok("notes", format!("{count} commits have a note in {NOTES}")),
        Err(error) => Check::failed("notes", error.message(), "git notes list"),
    }
}
