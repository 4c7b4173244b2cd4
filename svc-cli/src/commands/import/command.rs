use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use svc_engine::clock::Clock;
use svc_model::id::UserId;
use svc_model::time::Instant;
use svc_transcripts::Agent;

use super::folders::{FolderOptions, Folders};
use super::importer::Importer;
use super::outcome::{ImportOutcome, Unreadable};
use super::places::Found;
use super::survey::Survey;
use super::transcript::{Beginning, Transcript};
use crate::commands::moment::optional_moment;
use crate::commands::one_of::one_of;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::{Output, positional, quote};

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The agent whose transcripts are read.
    #[arg(value_parser = one_of(&Agent::ALL, Agent::as_str))]
    agent: Agent,

    /// Transcripts, or folders of them; by default the agent's own places.
    paths: Vec<PathBuf>,

    #[command(flatten)]
    folders: FolderOptions,

    /// Only transcripts that were written to at or after this moment.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,

    /// The user who worked with the agent; by default none.
    #[arg(long, value_name = "NAME", value_parser = user)]
    user: Option<UserId>,

    /// Only show what there is, by project. Nothing is sent.
    #[arg(long)]
    dry_run: bool,

    /// Read every transcript from its start again. Nothing is stored twice.
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    service: ServiceOptions,
}

fn user(text: &str) -> Result<UserId, String> {
    UserId::new(text).map_err(|rule| rule.to_string())
}

/// A transcript, with what it begins with.
struct Candidate {
    transcript: Transcript,
    cwd: Option<String>,
    time: Option<Instant>,
}

/// The transcripts that are meant, in order of time.
#[derive(Default)]
struct Candidates {
    meant: Vec<Candidate>,
    unreadable: Vec<Unreadable>,
}

impl Import {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        let now = Clock::system().now();
        let since = optional_moment("--since", self.since.as_deref(), now)?;
        let folders = self.folders.chosen()?;
        let found = if self.paths.is_empty() {
            Found::of_agent(self.agent)
        } else {
            Found::at(self.agent, &self.paths)
        };
        let is_unchosen = matches!(folders, Folders::Unchosen);
        if self.dry_run || is_unchosen {
            // Looking is allowed everywhere.
            let shown = if is_unchosen { &Folders::All } else { &folders };
            let candidates = Candidates::of(self.agent, found, shown, since);
            return self.survey(candidates, is_unchosen, output);
        }
        let candidates = Candidates::of(self.agent, found, &folders, since);
        self.send(candidates, output)
    }

    fn survey(
        &self,
        candidates: Candidates,
        is_unchosen: bool,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        let mut survey = Survey::of(self.agent, candidates.unreadable);
        for (place, candidate) in candidates.meant.iter().enumerate() {
            progress(output, "reading", place, candidates.meant.len());
            survey.add(&candidate.transcript, candidate.cwd.clone());
        }
        progress_ends(output);
        output.value(&survey, Survey::render)?;
        if is_unchosen && !survey.is_empty() {
            let agent = self.agent;
            output.note("nothing was sent: choose the folders whose Sessions may be");
            let folder = survey.busiest().unwrap_or("DIR");
            let mut paths = String::new();
            for path in &self.paths {
                paths.extend([" ", &*positional(&path.to_string_lossy())]);
            }
            let chosen = format!("svc import {agent}{paths} --cwd {}", quote(folder));
            let commands = [chosen, format!("svc import {agent}{paths} --all")];
            output.next(&self.service, &commands);
        }
        Ok(())
    }

    fn send(self, candidates: Candidates, output: &mut Output) -> Result<(), CommandError> {
        let mut importer = Importer::new(self.agent, &self.service, self.user.clone(), self.full)?;
        importer.outcome.unreadable = candidates.unreadable;
        let count = candidates.meant.len();
        let mut stopped = Ok(());
        for (place, candidate) in candidates.meant.into_iter().enumerate() {
            progress(output, "importing", place, count);
            stopped = importer.import(&candidate.transcript, candidate.cwd);
            if stopped.is_err() {
                break;
            }
        }
        progress_ends(output);
        let outcome = importer.outcome;
        output.value(&outcome, ImportOutcome::render)?;
        stopped?;
        if count == 0 {
            output.note(&format!(
                "no transcript of {0} is from these folders; where they are from: svc import {0} --dry-run",
                self.agent
            ));
        } else if outcome.has_calls() {
            output.next(&self.service, &["svc sessions".to_owned()]);
        }
        outcome.check()
    }
}

impl Candidates {
    /// Returns the transcripts whose Sessions worked in the folders, in order of time.
    fn of(agent: Agent, found: Found, folders: &Folders, since: Option<Instant>) -> Self {
        let mut candidates = Self::default();
        for (path, error) in found.unreadable {
            candidates.unreadable.push(Unreadable::new(&path, &error));
        }
        for path in found.files {
            match Transcript::all_at(agent, path.clone()) {
                Err(error) => candidates.unreadable.push(Unreadable::new(&path, &error)),
                Ok(all) => {
                    for transcript in all {
                        candidates.add(transcript, folders, since);
                    }
                }
            }
        }
        // Of a Session and one that copied its beginning, the first is the older file.
        candidates.meant.sort_by_cached_key(|candidate| {
            let transcript = &candidate.transcript;
            let name = transcript.name().to_owned();
            (candidate.time, transcript.created_at(), name)
        });
        candidates
    }

    fn add(&mut self, transcript: Transcript, folders: &Folders, since: Option<Instant>) {
        if is_older(transcript.written_at(), since) {
            return;
        }
        match transcript.beginning(folders) {
            Err(error) => {
                let unreadable = Unreadable::new(transcript.name(), &error);
                self.unreadable.push(unreadable);
            }
            Ok(Beginning { cwd, time }) if folders.have(cwd.as_deref()) => {
                self.meant.push(Candidate {
                    transcript,
                    cwd,
                    time,
                });
            }
            Ok(_) => {}
        }
    }
}

/// Returns whether a file was last written before a moment.
fn is_older(written_at: Option<SystemTime>, since: Option<Instant>) -> bool {
    let Some((written_at, since)) = written_at.zip(since) else {
        return false;
    };
    let since = u64::try_from(since.microseconds()).unwrap_or(0);
    written_at < SystemTime::UNIX_EPOCH + Duration::from_micros(since)
}

/// Returns whether a person watches.
fn is_watched(output: &Output) -> bool {
    output.is_for_people() && io::stderr().is_terminal()
}

/// Shows on a terminal how far the work is.
fn progress(output: &Output, what: &str, done: usize, count: usize) {
    if is_watched(output) {
        let mut terminal = io::stderr().lock();
        // If that fails, nobody is watching.
        drop(write!(terminal, "\r\u{1b}[2K{what}: {done} of {count}"));
        drop(terminal.flush());
    }
}

fn progress_ends(output: &Output) {
    if is_watched(output) {
        drop(write!(io::stderr(), "\r\u{1b}[2K"));
    }
}
