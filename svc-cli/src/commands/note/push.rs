//! Pushing notes. Several people push to one ref, so what is there is fetched and joined first
//! whenever a push is refused.

use clap::Args;
use serde::Serialize;

use super::{NOTES, repository};
use crate::error::CommandError;
use crate::output::{Output, escape};

/// Where the notes of others are kept while they are joined. A mirror does not fetch it.
const THEIRS: &str = "refs/notes/svc-of-others";
/// How often it is tried while others push too.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// The remote.
    #[arg(default_value = "origin")]
    remote: String,
}

/// What became of the notes, as a program reads it.
#[derive(Debug, Serialize)]
struct Pushed {
    remote: String,
    /// Whether anything was sent.
    pushed: bool,
}

impl Push {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let pushed = Pushed {
            pushed: push(&self.remote)?,
            remote: self.remote,
        };
        output.value(&pushed, |it| {
            let word = if it.pushed {
                "notes pushed to"
            } else {
                "no new notes for"
            };
            format!("{word} {}\n", escape(&it.remote))
        })
    }
}

fn push(remote: &str) -> Result<bool, CommandError> {
    // What was pushed last stands in the configuration, so that most pushes need no second one. A
    // remote without a name may be a URL with a password in it.
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

/// Joins our notes with those of a remote. Notes on the same commit follow each other.
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
