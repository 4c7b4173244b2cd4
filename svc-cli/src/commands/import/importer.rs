//! Sends transcripts to the service.

use std::time::Duration;

use svc_client::{Client, Error, ErrorKind};
use svc_engine::clock::Clock;
use svc_model::id::{SessionId, UserId};
use svc_model::ingest::{
    AgentName, CallOrigin, CallOriginKind, CallsReceipt, CallsRequest, ReaderReport,
};
use svc_model::time::Instant;
use svc_transcripts::{Agent, Lost};
use tokio::runtime::{Builder, Runtime};

use super::outcome::{ImportOutcome, Unreadable};
use super::reading::{Advance, Reading, ReadingError};
use super::requests::Requests;
use super::state::StateFolder;
use super::transcript::Transcript;
use crate::commands::service;
use crate::credentials::Role;
use crate::error::CommandError;
use crate::options::ServiceOptions;

/// How long ago the last line of a file was written, if its last answer counts as finished although
/// nothing says so: an hour.
const QUIET_MICROSECONDS: i64 = 3_600_000_000;
/// How long one request may take, repetitions included.
const PATIENCE: Duration = Duration::from_mins(3);

/// Sends transcripts of one agent.
pub(super) struct Importer {
    agent: Agent,
    user_id: Option<UserId>,
    client: Client,
    runtime: Runtime,
    state: StateFolder,
    now: Instant,
    /// Whether every transcript is read from its start.
    full: bool,
    pub(super) outcome: ImportOutcome,
}

/// Why a transcript was not read to its end.
#[derive(Debug, thiserror::Error)]
enum ImportError {
    /// The file cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The service does not have what was sent before.
    #[error("the service does not have the calls that these calls continue")]
    EarlierCallsMissing,
    /// The service refuses the calls.
    #[error(transparent)]
    Refused(Error),
    /// Nothing can be sent.
    #[error(transparent)]
    Stopped(Error),
}

impl From<std::io::Error> for ImportError {
    fn from(error: std::io::Error) -> Self {
        Self::Reading(error.into())
    }
}

impl From<Error> for ImportError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Unwritable | ErrorKind::TooLarge | ErrorKind::Invalid(_) => {
                Self::Refused(error)
            }
            _ => Self::Stopped(error),
        }
    }
}

impl Importer {
    pub(super) fn new(
        agent: Agent,
        options: &ServiceOptions,
        user_id: Option<UserId>,
        full: bool,
    ) -> Result<Self, CommandError> {
        let client = service::client_for(options, Role::Capture)?.with_timeout(PATIENCE);
        Ok(Self {
            agent,
            user_id,
            runtime: Builder::new_current_thread().enable_all().build()?,
            state: StateFolder::of(client.url())?,
            client,
            now: Clock::system().now(),
            full,
            outcome: ImportOutcome::of(agent),
        })
    }

    /// Sends what is new in a transcript.
    pub(super) fn import(
        &mut self,
        transcript: &Transcript,
        cwd: Option<String>,
    ) -> Result<(), CommandError> {
        let Some(_lock) = self.state.try_lock(transcript)? else {
            self.outcome.add_busy(transcript.name());
            return Ok(());
        };
        match self.import_alone(transcript, cwd) {
            Ok(()) => Ok(()),
            Err(ImportError::Stopped(error)) => Err(error.into()),
            Err(error) => {
                let unreadable = Unreadable::new(transcript.name(), &error);
                self.outcome.unreadable.push(unreadable);
                Ok(())
            }
        }
    }

    fn import_alone(
        &mut self,
        transcript: &Transcript,
        cwd: Option<String>,
    ) -> Result<(), ImportError> {
        let state = if self.full {
            None
        } else {
            self.state.load(transcript)
        };
        if state
            .as_ref()
            .is_some_and(|state| state.is_whole(transcript))
        {
            return Ok(());
        }
        let mut reading = Reading::resume(transcript, state.as_ref())?.in_folder(cwd.clone());
        let mut result = self.read(&mut reading);
        if matches!(result, Err(ImportError::EarlierCallsMissing)) {
            reading = Reading::begin(transcript)?.in_folder(cwd.clone());
            result = self.read(&mut reading);
        }
        if matches!(result, Err(ImportError::Reading(ReadingError::Lost(Lost)))) {
            reading = Reading::begin_keeping_everything(transcript)?.in_folder(cwd);
            result = self.read(&mut reading);
        }
        self.outcome.add_tally(transcript.name(), reading.tally());
        result
    }

    /// Reads a transcript to its end, and sends its calls.
    fn read(&mut self, reading: &mut Reading<'_>) -> Result<(), ImportError> {
        self.read_lines(reading)?;
        if self.is_quiet(reading) {
            reading.end();
        }
        self.send(reading)?;
        self.tell_format_changed(reading)?;
        Ok(self.state.save(reading.transcript, &reading.state()?)?)
    }

    fn read_lines(&mut self, reading: &mut Reading<'_>) -> Result<(), ImportError> {
        while reading.advance()? == Advance::Full {
            self.send(reading)?;
            self.state.save(reading.transcript, &reading.state()?)?;
        }
        Ok(())
    }

    /// Returns whether nothing more can come of an open answer. While an agent works, a file may rest
    /// for minutes between two lines of one answer, and what is stored never changes.
    fn is_quiet(&self, reading: &Reading<'_>) -> bool {
        let last = reading
            .last_time()
            .filter(|_| !reading.transcript.is_stored());
        last.is_none_or(|last| {
            let age = self.now.microseconds() - last.microseconds();
            age >= QUIET_MICROSECONDS
        })
    }

    /// Sends the calls that were read.
    fn send(&mut self, reading: &mut Reading<'_>) -> Result<(), ImportError> {
        let calls = reading.take();
        if calls.is_empty() {
            return Ok(());
        }
        let report = reading.report();
        let requests = Requests::new(self.agent, self.user_id.as_ref(), calls, report);
        self.outcome
            .add_too_large(reading.cwd(), requests.too_large);
        for request in &requests.all {
            let receipt = self.deliver(request)?;
            if receipt.lacks_earlier_calls() && reading.is_continued() {
                return Err(ImportError::EarlierCallsMissing);
            }
            let session_id = &request.session_id;
            self.outcome.add(reading.cwd(), session_id, &receipt);
        }
        Ok(())
    }

    fn deliver(&self, request: &CallsRequest) -> Result<CallsReceipt, Error> {
        self.runtime.block_on(self.client.ingest_calls(request))
    }

    /// Tells the service of a file in which nothing is known any more, so no call told it.
    fn tell_format_changed(&mut self, reading: &mut Reading<'_>) -> Result<(), ImportError> {
        if !reading.has_changed_format() {
            return Ok(());
        }
        let name = reading.transcript.name().file_stem();
        let session_id = name.and_then(|name| SessionId::new(name.to_str()?).ok());
        let agent = AgentName::new(self.agent.as_str()).ok();
        if let Some((session_id, agent)) = session_id.zip(agent) {
            let request = request_without_calls(agent, session_id, reading.report());
            self.deliver(&request)?;
        }
        Ok(())
    }
}

fn request_without_calls(
    agent: AgentName,
    session_id: SessionId,
    report: ReaderReport,
) -> CallsRequest {
    CallsRequest {
        source: CallOrigin {
            kind: CallOriginKind::Transcript,
            agent,
            agent_version: None,
        },
        session_id,
        user_id: None,
        continues: None,
        reader: Some(report),
        calls: Vec::new(),
    }
}
