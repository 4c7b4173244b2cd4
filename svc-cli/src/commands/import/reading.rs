//! Reads a transcript from where it was left.

use std::io;
use std::mem;

use svc_model::ingest::ReaderReport;
use svc_model::json;
use svc_model::time::Instant;
use svc_model::version::SERVICE_VERSION;
use svc_transcripts::{Agent, Lost, Tally, TranscriptCall, TranscriptReader};

use super::lines::{Line, Lines};
use super::state::{LastLine, ReadState};
use super::transcript::Transcript;

/// The calls that are taken at a time.
const CALLS_MAX: usize = 1_000;
/// The bytes of calls after which no more are taken. Mostly one request has room for them.
const CALLS_BYTES: usize = 7 * 1024 * 1024;

/// A call with its size in bytes.
#[derive(Debug)]
pub(crate) struct SizedCall {
    pub(super) call: TranscriptCall,
    pub(super) bytes: usize,
}

/// A transcript that is being read.
pub(crate) struct Reading<'a> {
    pub(super) transcript: &'a Transcript,
    reader: TranscriptReader,
    lines: Lines,
    /// The size of the file before it was read.
    size: u64,
    /// Whether it began behind the start of the file.
    is_continued: bool,
    last_line: LastLine,
    /// The line after that one which was read last. Its digest is needed only in the end.
    line: Option<(u64, Vec<u8>)>,
    cwd: Option<String>,
    taken: Vec<SizedCall>,
    taken_bytes: usize,
    /// Whether the last answer was finished.
    has_ended: bool,
    /// The bytes that were read.
    bytes: u64,
    reported: ReportedTally,
}

/// What was reported of a reader's tally.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedTally {
    lines: u64,
    unknown: u64,
    format_changed: bool,
}

/// How far a reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// There are as many calls as are taken at a time.
    Full,
    /// All complete lines were read.
    End,
}

/// Why a transcript cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadingError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It must be read from its start.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl<'a> Reading<'a> {
    /// Goes on where a transcript was left, or begins at its start.
    pub(crate) fn resume(
        transcript: &'a Transcript,
        state: Option<&ReadState>,
    ) -> io::Result<Self> {
        let resumed = state.and_then(|state| {
            let bookmark = &state.bookmark;
            let reader = TranscriptReader::resume(transcript.agent, transcript.name(), bookmark);
            reader.map(|reader| (reader, state))
        });
        let Some((reader, state)) = resumed else {
            return Self::begin(transcript);
        };
        Ok(Self {
            transcript,
            reader,
            size: transcript.bytes().unwrap_or(0),
            lines: transcript.lines(state.bookmark.offset)?,
            is_continued: true,
            last_line: state.last_line.clone(),
            line: None,
            cwd: state.cwd.clone(),
            taken: Vec::new(),
            taken_bytes: 0,
            has_ended: false,
            bytes: 0,
            reported: ReportedTally {
                format_changed: state.told_format_changed,
                ..ReportedTally::default()
            },
        })
    }

    /// Begins at the start of a transcript.
    pub(crate) fn begin(transcript: &'a Transcript) -> io::Result<Self> {
        let reader = TranscriptReader::new(transcript.agent, transcript.name());
        Ok(Self {
            transcript,
            reader,
            size: transcript.bytes().unwrap_or(0),
            lines: transcript.lines(0)?,
            is_continued: false,
            last_line: LastLine::new(0, b""),
            line: None,
            cwd: None,
            taken: Vec::new(),
            taken_bytes: 0,
            has_ended: false,
            bytes: 0,
            reported: ReportedTally::default(),
        })
    }

    /// Begins at the start and keeps everything, so that no line is lost.
    pub(crate) fn begin_keeping_everything(transcript: &'a Transcript) -> io::Result<Self> {
        let begun = Self::begin(transcript)?;
        Ok(Self {
            reader: begun.reader.keeping_everything(),
            ..begun
        })
    }

    /// Sets the working directory that was found elsewhere.
    #[must_use]
    pub(crate) fn in_folder(mut self, cwd: Option<String>) -> Self {
        self.cwd = self.cwd.or(cwd);
        self
    }

    /// Reads on.
    pub(crate) fn advance(&mut self) -> Result<Advance, ReadingError> {
        while let Some(line) = self.lines.next()? {
            self.has_ended = false;
            match line {
                Line::Whole { offset, bytes } => {
                    self.bytes += bytes.len() as u64;
                    self.reader.line(offset, &bytes)?;
                    self.line = Some((offset, bytes));
                }
                Line::TooLong { offset } => {
                    self.line = Some((offset, Vec::new()));
                    self.reader.skipped_line(offset);
                }
            }
            self.collect();
            if self.taken.len() >= CALLS_MAX || self.taken_bytes >= CALLS_BYTES {
                return Ok(Advance::Full);
            }
        }
        Ok(Advance::End)
    }

    /// Finishes an open answer.
    pub(crate) fn end(&mut self) {
        self.reader.end();
        self.has_ended = true;
        self.collect();
    }

    fn collect(&mut self) {
        for call in self.reader.take() {
            // A number that JSON cannot write is found when the request is written.
            let bytes = json::to_vec(&call.call, usize::MAX).map_or(0, |call| call.len());
            self.taken_bytes += bytes;
            self.taken.push(SizedCall { call, bytes });
        }
    }

    /// Returns the calls since this was called last.
    pub(crate) fn take(&mut self) -> Vec<SizedCall> {
        self.taken_bytes = 0;
        mem::take(&mut self.taken)
    }

    /// Returns the agent.
    pub(crate) fn agent(&self) -> Agent {
        self.transcript.agent
    }

    /// Returns the texts of the last answer.
    pub(crate) fn last_answer_text(&self) -> Option<String> {
        self.reader.last_answer_text()
    }

    /// Returns the time of the last line, if the file has times.
    pub(super) fn last_time(&self) -> Option<Instant> {
        self.reader.last_time()
    }

    /// Returns what the reader met since this was called last.
    pub(crate) fn report(&mut self) -> ReaderReport {
        let tally = self.reader.tally();
        let now = ReportedTally {
            lines: tally.lines,
            unknown: tally.unknown.values().sum(),
            format_changed: tally.format_changed,
        };
        let before = mem::replace(&mut self.reported, now);
        ReaderReport {
            version: Some(SERVICE_VERSION.to_owned()),
            lines: now.lines.saturating_sub(before.lines),
            unknown: now.unknown.saturating_sub(before.unknown),
            format_changed: u64::from(now.format_changed && !before.format_changed),
        }
    }

    /// Returns whether the format has changed, and that was not reported.
    pub(super) fn has_changed_format(&self) -> bool {
        self.reader.tally().format_changed && !self.reported.format_changed
    }

    pub(super) fn tally(&self) -> &Tally {
        self.reader.tally()
    }

    /// Returns the size of the transcript in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.transcript.bytes().unwrap_or(self.bytes)
    }

    /// Returns whether it began behind the start of the file.
    pub(super) fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Returns the working directory.
    pub(super) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref().or_else(|| self.reader.cwd())
    }

    /// Returns from where a later reading goes on.
    pub(crate) fn state(&self) -> io::Result<ReadState> {
        let cwd = self.cwd().map(str::to_owned);
        let bookmark = self.reader.bookmark();
        let line = self.line.as_ref();
        let last_line = line.map(|(offset, line)| LastLine::new(*offset, line));
        let last_line = last_line.unwrap_or_else(|| self.last_line.clone());
        let mut state = ReadState::new(self.transcript, self.size, last_line, cwd, bookmark)?;
        state.has_ended = self.has_ended;
        state.told_format_changed = self.reported.format_changed;
        Ok(state)
    }
}
