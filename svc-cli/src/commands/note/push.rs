//! Pushes notes. Several people push to the same ref, so whenever a push is rejected, the remote's
//! notes are fetched and merged first.

use clap::Args;
use serde::Serialize;

use super::{NOTES, repository};
use crate::error::CommandError;
use crate::output::{Output, escape};

/// The local ref for the remote's notes while they are merged. Mirrors do not fetch it.
const THEIRS: &str = "refs/notes/svc-of-others";
/// How many attempts are made while others push too.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// The remote.
    #[arg(default_value = "origin")]
    remote: String,
}

/// The result of the push, for programs.
#[derive(Debug, Serialize)]
struct PushResult {
    remote: String,
    /// Whether anything was sent.
    pushed: bool,
}

impl Push {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let pushed = PushResult {
            pushed: push(&self.remote)?,
            remote: self.remote,
        };
        output.value(&pushed, |pushed| {
            let word = if pushed.pushed {
                "notes pushed to"
            } else {
                "no new notes for"
            };
            format!("{word} {}\n", escape(&pushed.remote))
        })
    }
}

fn push(remote: &str) -> Result<bool, CommandError> {
    // The configuration records what was pushed last, so that most pushes need no push of notes.
    // This is not done for a remote without a name, which may be a URL that contains a password.
    let is_named =
        repository::ask(&["config", "--get", &format!("remote.{remote}.url")])?.is_some();
    let known = format!("remote.{remote}.svcPushedNotes");
    let last = if is_named {
        repository::ask(&["config", "--local", "--get", &known])?
    } else {
        None
    };
    let tip = || repository::ask(&["rev-parse", "--verify", "--quiet", NOTES]);
    let Some(mut ours) = tip()? else {
        return Ok(false);
    };
    if last.as_deref() == Some(ours.as_str()) {
        return Ok(false);
    }
    let refspec = format!("{NOTES}:{NOTES}");
    let sending = [
        "push",
        "--quiet",
        "--no-verify",
        "--end-of-options",
        remote,
        &refspec,
    ];
    for attempt in 1.. {
        let Err(refused) = repository::git(&sending) else {
            break;
        };
        if attempt == ATTEMPTS_MAX {
            return Err(refused);
        }
        join(remote).map_err(|_| refused)?;
    }
    if let Some(joined) = tip()? {
        ours = joined;
    }
    if is_named {
        repository::git(&["config", "--local", &known, &ours])?;
    }
    Ok(true)
}

/// Merges our notes with those of a remote. Notes on the same commit are concatenated.
fn join(remote: &str) -> Result<(), CommandError> {
    let refspec = format!("+{NOTES}:{THEIRS}");
    repository::git(&[
        "fetch",
        "--quiet",
        "--no-tags",
        "--end-of-options",
        remote,
        &refspec,
    ])?;
    let notes = format!("--ref={NOTES}");
    let joined = repository::git(&["notes", &notes, "merge", "--quiet", "-s", "union", THEIRS]);
    repository::git(&["update-ref", "-d", THEIRS])?;
    joined.map(drop)
}
