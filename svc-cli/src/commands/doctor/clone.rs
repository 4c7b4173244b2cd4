//! Checks whether commits in the current clone are stamped.

use super::DoctorCheck;
use crate::commands::git_hooks::{Fault, HooksFolder};
use crate::commands::note::{NOTES, repository};

pub(super) fn checks() -> Vec<DoctorCheck> {
    match repository::is_work_tree() {
        Ok(true) => vec![hooks(), notes()],
        Ok(false) => vec![DoctorCheck::absent(
            "clone",
            "this folder is not a git repository",
        )],
        Err(error) => vec![DoctorCheck::failed("git", error.message(), "install git")],
    }
}

fn hooks() -> DoctorCheck {
    match HooksFolder::find().map(|place| (place.faults(), place)) {
        Ok((faults, _)) if faults.is_empty() => DoctorCheck::ok("hooks", "commits are stamped"),
        Ok((faults, place)) => DoctorCheck::warning("hooks", found(&faults), place.mend()),
        Err(error) => DoctorCheck::failed("hooks", error.message(), "svc install git-hooks"),
    }
}

/// Describes what is wrong with the hooks. Hooks with the same fault are listed together.
fn found(faults: &[(&str, Fault)]) -> String {
    let mut kinds: Vec<&Fault> = Vec::new();
    for (_, fault) in faults {
        if !kinds.contains(&fault) {
            kinds.push(fault);
        }
    }
    let sentences = kinds.into_iter().map(|kind| {
        let of_kind = faults.iter().filter(|(_, fault)| fault == kind);
        let names = of_kind.map(|(name, _)| *name).collect::<Vec<_>>();
        let names = names.join(", ");
        match kind {
            Fault::Missing => format!("not installed in this clone: {names}"),
            Fault::Older => format!("of an older form that needs svc on PATH: {names}"),
            Fault::ProgramGone(program) => {
                format!(
                    "there is no program {} any more: {names}",
                    program.display()
                )
            }
        }
    });
    sentences.collect::<Vec<_>>().join("; ")
}

fn notes() -> DoctorCheck {
    let listed = repository::ask(&["notes", &format!("--ref={NOTES}"), "list"]);
    match listed.map(|notes| notes.unwrap_or_default().lines().count()) {
        Ok(0) => DoctorCheck::warning(
            "notes",
            "no commit in this clone has a note",
            "svc note stamp",
        ),
        Ok(count) => DoctorCheck::ok("notes", format!("{count} commits have a note in {NOTES}")),
        Err(error) => DoctorCheck::failed("notes", error.message(), "git notes list"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_fault_of_both_hooks_is_reported_once() {
        let gone = |path: &str| Fault::ProgramGone(PathBuf::from(path));
        for (first, second, expected) in [
            (
                Fault::Missing,
                Fault::Missing,
                "not installed in this clone: post-commit, pre-push",
            ),
            (
                Fault::Older,
                Fault::Missing,
                "of an older form that needs svc on PATH: post-commit; not installed in this \
                 clone: pre-push",
            ),
            (
                gone("/a b/svc"),
                gone("/a b/svc"),
                "there is no program /a b/svc any more: post-commit, pre-push",
            ),
        ] {
            let faults = [("post-commit", first), ("pre-push", second)];
            assert_eq!(found(&faults), expected);
        }
    }
}
