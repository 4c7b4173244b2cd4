//! What became of an import, by project.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

use serde::{Serialize, Serializer};
use svc_model::id::SessionId;
use svc_model::ingest::{CallsReceipt, SkippedCall};
use svc_model::open::Open;
use svc_transcripts::{Agent, Tally};

use crate::error::{CommandError, chain};
use crate::output::{Table, escape};

/// The unknown kinds that are shown.
const KINDS_SHOWN: usize = 20;
/// The word for a call that no request can have.
const TOO_LARGE: &str = "too_large";

/// What became of an import.
#[derive(Debug, Serialize)]
pub(super) struct ImportOutcome {
    agent: &'static str,
    #[serde(serialize_with = "rows")]
    projects: BTreeMap<Option<String>, ProjectOutcome>,
    unknown: UnknownKinds,
    malformed_lines: u64,
    /// The files in which nothing that is known is left.
    format_changed: Vec<String>,
    /// The files that another program was reading.
    busy: Vec<String>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// What became of the calls of a project.
#[derive(Debug, Default, Serialize)]
struct ProjectOutcome {
    #[serde(serialize_with = "count")]
    sessions: BTreeSet<String>,
    stored: u64,
    duplicates: u64,
    copied: u64,
    rejected: BTreeMap<String, u64>,
}

/// A file that could not be read or sent, and why.
#[derive(Debug, Serialize)]
pub(super) struct Unreadable {
    path: String,
    error: String,
}

/// Kinds that are not known, and how often they were met.
#[derive(Debug, Default, Serialize)]
pub(super) struct UnknownKinds(BTreeMap<String, u64>);

/// A row of a list of projects, for programs.
#[derive(Serialize)]
struct Row<'a, T> {
    cwd: &'a Option<String>,
    #[serde(flatten)]
    project: &'a T,
}

pub(super) fn count<S: Serializer>(
    sessions: &BTreeSet<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    sessions.len().serialize(serializer)
}

pub(super) fn rows<T: Serialize, S: Serializer>(
    projects: &BTreeMap<Option<String>, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let rows = projects.iter();
    serializer.collect_seq(rows.map(|(cwd, project)| Row { cwd, project }))
}

/// Returns a working directory for people.
pub(super) fn shown_cwd(cwd: Option<&str>) -> String {
    cwd.map_or_else(|| "(unknown)".to_owned(), escape)
}

/// Returns the line about lines that are no JSON.
pub(super) fn malformed(lines: u64) -> Option<String> {
    (lines > 0).then(|| format!("malformed lines: {lines}\n"))
}

/// Returns the line about a file in which nothing known is left.
pub(super) fn changed(path: &str) -> String {
    format!("format changed: {}\n", escape(path))
}

impl Unreadable {
    pub(super) fn new(path: &Path, error: &dyn Error) -> Self {
        Self {
            path: path.display().to_string(),
            error: chain(error),
        }
    }

    pub(super) fn line(&self) -> String {
        let (path, error) = (escape(&self.path), escape(&self.error));
        format!("{path}: {error}\n")
    }
}

impl UnknownKinds {
    pub(super) fn add(&mut self, tally: &Tally) {
        for (kind, count) in &tally.unknown {
            *self.0.entry(kind.clone()).or_default() += count;
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the most frequent kinds.
    pub(super) fn line(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(**count), *kind));
        let left = kinds.len().saturating_sub(KINDS_SHOWN);
        let kinds = kinds.into_iter().take(KINDS_SHOWN);
        let kinds = kinds.map(|(kind, count)| format!("{} {count}", escape(kind)));
        let more = (left > 0).then(|| format!("and {left} more"));
        let kinds: Vec<_> = kinds.chain(more).collect();
        format!("unknown kinds: {}\n", kinds.join(", "))
    }
}

impl ImportOutcome {
    pub(super) fn of(agent: Agent) -> Self {
        Self {
            agent: agent.as_str(),
            projects: BTreeMap::new(),
            unknown: UnknownKinds::default(),
            malformed_lines: 0,
            format_changed: Vec::new(),
            busy: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    fn project(&mut self, cwd: Option<&str>) -> &mut ProjectOutcome {
        self.projects.entry(cwd.map(str::to_owned)).or_default()
    }

    /// Adds the receipt for calls of a Session.
    pub(super) fn add(&mut self, cwd: Option<&str>, session: &SessionId, receipt: &CallsReceipt) {
        let project = self.project(cwd);
        project.sessions.insert(session.to_string());
        project.stored += receipt.stored;
        project.duplicates += receipt.duplicates;
        for (reason, count) in &receipt.skipped {
            if matches!(reason, Open::Known(SkippedCall::Copied)) {
                project.copied += count;
            } else {
                *project.rejected.entry(reason.to_string()).or_default() += count;
            }
        }
        for (reason, count) in &receipt.rejected {
            *project.rejected.entry(reason.to_string()).or_default() += count;
        }
    }

    /// Adds calls that no request can have.
    pub(super) fn add_too_large(&mut self, cwd: Option<&str>, calls: u64) {
        if calls > 0 {
            let rejected = &mut self.project(cwd).rejected;
            *rejected.entry(TOO_LARGE.to_owned()).or_default() += calls;
        }
    }

    /// Adds what was met in a file.
    pub(super) fn add_tally(&mut self, path: &Path, tally: &Tally) {
        self.unknown.add(tally);
        self.malformed_lines += tally.malformed_lines;
        if tally.format_changed {
            self.format_changed.push(path.display().to_string());
        }
    }

    /// Adds a file that another program is reading.
    pub(super) fn add_busy(&mut self, path: &Path) {
        self.busy.push(path.display().to_string());
    }

    /// Returns whether calls were sent.
    pub(super) fn has_calls(&self) -> bool {
        !self.projects.is_empty()
    }

    /// Returns the outcome for people.
    pub(super) fn render(&self) -> String {
        let mut lines = vec![if self.projects.is_empty() {
            "nothing new\n".to_owned()
        } else {
            self.table()
        }];
        lines.push(self.unknown.line());
        lines.extend(malformed(self.malformed_lines));
        lines.extend(self.format_changed.iter().map(|path| changed(path)));
        let busy = |path: &String| format!("being read by another program: {}\n", escape(path));
        lines.extend(self.busy.iter().map(busy));
        let unreadable = self.unreadable.iter();
        lines.extend(unreadable.map(|file| format!("not imported: {}", file.line())));
        lines.concat()
    }

    fn table(&self) -> String {
        let headings = [
            "project",
            "sessions",
            "stored",
            "duplicates",
            "copied",
            "rejected",
        ];
        let mut table = Table::new(headings).numbers(&[1, 2, 3, 4]);
        for (cwd, project) in &self.projects {
            let rejected = project.rejected.iter();
            let rejected = rejected.map(|(word, count)| format!("{} {count}", escape(word)));
            let rejected = rejected.collect::<Vec<_>>().join(", ");
            table.row([
                shown_cwd(cwd.as_deref()),
                project.sessions.len().to_string(),
                project.stored.to_string(),
                project.duplicates.to_string(),
                project.copied.to_string(),
                if rejected.is_empty() {
                    "0".to_owned()
                } else {
                    rejected
                },
            ]);
        }
        table.render()
    }

    /// Returns an error if a file could not be read or a call was rejected.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let mut rejected = self.projects.values();
        if rejected.any(|project| !project.rejected.is_empty()) {
            return Err(CommandError::refused(
                "calls_rejected",
                "not every call was stored",
            ));
        }
        if self.unreadable.is_empty() {
            return Ok(());
        }
        let message = "not every transcript could be read";
        Err(CommandError::refused("unreadable_transcript", message))
    }
}
