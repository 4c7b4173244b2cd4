//! What an import would send, by project. No connection is opened.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use svc_model::time::Instant;
use svc_transcripts::{Agent, Tally};

use super::outcome::{UnknownKinds, Unreadable, changed, count, malformed, rows, shown_cwd};
use super::reading::{Advance, Reading, ReadingError};
use super::transcript::Transcript;
use crate::output::{Table, shown_bytes};

/// What the transcripts of an agent have.
#[derive(Debug, Serialize)]
pub(super) struct Survey {
    agent: &'static str,
    #[serde(serialize_with = "rows")]
    projects: BTreeMap<Option<String>, Project>,
    malformed_lines: u64,
    /// The files in which nothing that is known is left.
    format_changed: Vec<String>,
    unreadable: Vec<Unreadable>,
}

/// What the transcripts of a project have.
#[derive(Debug, Default, Serialize)]
struct Project {
    files: u64,
    #[serde(serialize_with = "count")]
    sessions: BTreeSet<String>,
    calls: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
    unknown: UnknownKinds,
    format_changed: u64,
}

impl Survey {
    pub(super) fn of(agent: Agent, unreadable: Vec<Unreadable>) -> Self {
        Self {
            agent: agent.as_str(),
            projects: BTreeMap::new(),
            malformed_lines: 0,
            format_changed: Vec::new(),
            unreadable,
        }
    }

    /// Reads a transcript.
    pub(super) fn add(&mut self, transcript: &Transcript, cwd: Option<String>) {
        let mut project = Project::default();
        let read = Reading::begin(transcript)
            .map_err(ReadingError::from)
            .and_then(|reading| project.read(reading.in_folder(cwd.clone())));
        let read = match read {
            Err(ReadingError::Lost(_)) => {
                project = Project::default();
                Reading::begin_keeping_everything(transcript)
                    .map_err(ReadingError::from)
                    .and_then(|reading| project.read(reading.in_folder(cwd)))
            }
            read => read,
        };
        match read {
            Err(error) => {
                let unreadable = Unreadable::new(transcript.name(), &error);
                self.unreadable.push(unreadable);
            }
            Ok((cwd, tally)) => {
                project.files = 1;
                project.unknown.add(&tally);
                project.format_changed = u64::from(tally.format_changed);
                self.malformed_lines += tally.malformed_lines;
                if tally.format_changed {
                    let path = transcript.name().display();
                    self.format_changed.push(path.to_string());
                }
                self.projects.entry(cwd).or_default().merge(project, &tally);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.projects.is_empty()
    }

    /// Returns the project with the most calls.
    pub(super) fn busiest(&self) -> Option<&str> {
        let known = self.projects.iter();
        let known = known.filter_map(|(cwd, project)| Some((project.calls, cwd.as_deref()?)));
        known.max().map(|(_, cwd)| cwd)
    }

    /// Returns the survey for people.
    pub(super) fn render(&self) -> String {
        if self.is_empty() && self.unreadable.is_empty() {
            return format!("there are no transcripts of {}\n", self.agent);
        }
        let headings = [
            "project", "files", "sessions", "calls", "first", "last", "size", "unknown", "changed",
        ];
        let mut table = Table::new(headings).numbers(&[1, 2, 3, 6, 7, 8]);
        let day = |at: Option<Instant>| {
            at.map_or_else(|| "-".to_owned(), |at| at.to_string()[..10].to_owned())
        };
        let mut lines = Vec::new();
        for (cwd, project) in &self.projects {
            let shown = shown_cwd(cwd.as_deref());
            let kinds = project.unknown.line();
            if !kinds.is_empty() {
                lines.push(format!("{shown}: {kinds}"));
            }
            table.row([
                shown,
                project.files.to_string(),
                project.sessions.len().to_string(),
                project.calls.to_string(),
                day(project.first),
                day(project.last),
                shown_bytes(project.bytes),
                project.unknown.total().to_string(),
                project.format_changed.to_string(),
            ]);
        }
        lines.extend(malformed(self.malformed_lines));
        lines.extend(self.format_changed.iter().map(|path| changed(path)));
        let unreadable = self.unreadable.iter();
        lines.extend(unreadable.map(|file| format!("unreadable: {}", file.line())));
        table.render() + &lines.concat()
    }
}

impl Project {
    /// Counts the calls of a transcript.
    fn read(&mut self, mut reading: Reading<'_>) -> Result<(Option<String>, Tally), ReadingError> {
        while reading.advance()? == Advance::Full {
            self.count(&mut reading);
        }
        reading.end();
        self.count(&mut reading);
        self.bytes = reading.bytes();
        let cwd = reading.cwd().map(str::to_owned);
        Ok((cwd, reading.tally().clone()))
    }

    fn count(&mut self, reading: &mut Reading<'_>) {
        for sized in reading.take() {
            let ended_at = Some(sized.call.call.ended_at);
            self.calls += 1;
            self.sessions.insert(sized.call.session_id.to_string());
            self.first = self.first.min(ended_at).or(ended_at);
            self.last = self.last.max(ended_at);
        }
    }

    fn merge(&mut self, other: Self, tally: &Tally) {
        self.files += other.files;
        self.sessions.extend(other.sessions);
        self.calls += other.calls;
        let firsts = self.first.into_iter().chain(other.first);
        self.first = firsts.min();
        self.last = self.last.max(other.last);
        self.bytes += other.bytes;
        self.unknown.add(tally);
        self.format_changed += other.format_changed;
    }
}
