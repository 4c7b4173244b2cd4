use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;
use svc_model::json::{Json, Object};
use svc_transcripts::Agent;

use crate::commands::import::{
    Advance, FolderOptions, Folders, Reading, ReadingError, Requests, StateFolder, Transcript,
};
use crate::commands::one_of::one_of;
use crate::commands::sending::ServiceOutbox;
use crate::error::CommandError;
use crate::options::ServiceOptions;
use crate::output::Output;

/// The agents that have such a hook.
const AGENTS: [Agent; 2] = [Agent::ClaudeCode, Agent::Codex];
/// The maximum size of the input in bytes. It may contain the last answer.
const INPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long the agent may be made to wait for other programs.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long the agent may need to write the end of an answer. The hook returns within 50 ms.
const SETTLING: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub(crate) struct TranscriptHook {
    /// The agent whose hook this is.
    #[arg(value_parser = one_of(&AGENTS, Agent::as_str))]
    agent: Agent,

    #[command(flatten)]
    folders: FolderOptions,

    #[command(flatten)]
    service: ServiceOptions,
}

/// What the input says of a transcript that has grown.
#[derive(Debug, PartialEq, Eq)]
struct HookEvent {
    path: PathBuf,
    cwd: String,
    /// Whether nothing comes after what is in the file.
    has_ended: bool,
    /// The text of the last answer, which the file may not have yet.
    last_answer: Option<String>,
}

impl TranscriptHook {
    /// Keeps what is new. Always succeeds, because evidence must not break the agent.
    pub(crate) fn run(&self, output: &mut Output) {
        if let Err(error) = self.keep() {
            output.caveat(&format!("the transcript waits: {}", error.message()));
        }
    }

    fn keep(&self) -> Result<(), CommandError> {
        let folders = self.folders.chosen()?;
        if matches!(folders, Folders::Unchosen) {
            return Ok(());
        }
        let mut input = Vec::new();
        io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut input)?;
        let event = HookEvent::read(&input)?;
        let Some(event) = event.filter(|event| folders.have(Some(&event.cwd))) else {
            return Ok(());
        };
        let outbox = ServiceOutbox::within(&self.service, PATIENCE)?;
        let state = StateFolder::of(&outbox.url)?;
        let transcript = Transcript::new(self.agent, event.path.clone());
        // If another hook of the Session is at work, it or the next one takes what is new.
        let Some(_lock) = state.try_lock(&transcript)? else {
            return Ok(());
        };
        let beginning = transcript.beginning(&folders)?;
        let cwd = beginning.cwd.or(Some(event.cwd.clone()));
        if !folders.have(cwd.as_deref()) {
            return Ok(());
        }
        let mut kept = KeptTranscript {
            transcript: &transcript,
            state: &state,
            outbox: &outbox,
            is_new: false,
        };
        let result = kept.read(&event);
        if kept.is_new {
            let drained = self.drain();
            return result.and(drained);
        }
        result
    }

    /// Starts a process of its own that sends what is kept.
    fn drain(&self) -> Result<(), CommandError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["outbox", "drain"]);
        if let Some(url) = &self.service.url {
            command.args(["--url", url]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(())
    }
}

/// A transcript whose new calls are put into the outbox.
struct KeptTranscript<'a> {
    transcript: &'a Transcript,
    state: &'a StateFolder,
    outbox: &'a ServiceOutbox,
    /// Whether there was anything new.
    is_new: bool,
}

impl KeptTranscript<'_> {
    fn read(&mut self, event: &HookEvent) -> Result<(), CommandError> {
        let state = self.state.load(self.transcript);
        if state
            .as_ref()
            .is_some_and(|state| state.is_whole(self.transcript))
        {
            return Ok(());
        }
        let reading = Reading::resume(self.transcript, state.as_ref())?;
        match self.read_on(reading, event) {
            Err(KeepingError::Reading(ReadingError::Lost(_))) => {
                let reading = Reading::begin_keeping_everything(self.transcript)?;
                Ok(self.read_on(reading, event)?)
            }
            result => Ok(result?),
        }
    }

    fn read_on(&mut self, mut reading: Reading<'_>, event: &HookEvent) -> Result<(), KeepingError> {
        while reading.advance()? == Advance::Full {
            self.put(&mut reading)?;
        }
        if event.is_whole(reading.last_answer_text().as_deref()) {
            // What the agent notes of its last answer, as its usage, comes just behind it.
            thread::sleep(SETTLING);
            while reading.advance()? == Advance::Full {
                self.put(&mut reading)?;
            }
            // Codex closes an answer by a note of its usage. Without one, it is left for the next time.
            if reading.agent() != Agent::Codex {
                reading.end();
            }
        }
        self.put(&mut reading)
    }

    /// Puts what was read into the outbox. Only then is the state moved.
    fn put(&mut self, reading: &mut Reading<'_>) -> Result<(), KeepingError> {
        let calls = reading.take();
        if !calls.is_empty() {
            let report = reading.report();
            let agent = reading.agent();
            for request in Requests::new(agent, None, calls, report).all {
                self.outbox.keep(request)?;
                self.is_new = true;
            }
        }
        Ok(self.state.save(self.transcript, &reading.state()?)?)
    }
}

/// Why a transcript cannot be kept.
#[derive(Debug)]
enum KeepingError {
    Reading(ReadingError),
    Command(CommandError),
}

impl From<ReadingError> for KeepingError {
    fn from(error: ReadingError) -> Self {
        Self::Reading(error)
    }
}

impl From<io::Error> for KeepingError {
    fn from(error: io::Error) -> Self {
        Self::Command(error.into())
    }
}

impl From<CommandError> for KeepingError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<KeepingError> for CommandError {
    fn from(error: KeepingError) -> Self {
        match error {
            KeepingError::Command(error) => error,
            KeepingError::Reading(error) => {
                Self::refused("unreadable_transcript", error.to_string())
            }
        }
    }
}

impl HookEvent {
    /// Reads the input of a hook. `None` if the event does not say that a transcript has grown.
    fn read(input: &[u8]) -> Result<Option<Self>, CommandError> {
        let input = Json::parse(input).ok().and_then(Json::into_object);
        let input = input.ok_or_else(|| unreadable("is not a JSON object"))?;
        let path = match text(&input, "hook_event_name") {
            Some("Stop" | "SessionEnd") => "transcript_path",
            Some("SubagentStop") => "agent_transcript_path",
            _ => return Ok(None),
        };
        // Codex has none if it keeps no transcript.
        let Some(path) = text(&input, path) else {
            return Ok(None);
        };
        let cwd = text(&input, "cwd").ok_or_else(|| unreadable("has no cwd"))?;
        Ok(Some(Self {
            path: PathBuf::from(path),
            cwd: cwd.to_owned(),
            has_ended: text(&input, "hook_event_name") == Some("SessionEnd"),
            last_answer: text(&input, "last_assistant_message").map(str::to_owned),
        }))
    }

    /// Returns whether the last answer of the file is the last one that the agent had. The agent
    /// writes the file after it has called the hook.
    fn is_whole(&self, last_answer: Option<&str>) -> bool {
        let is_that = |text: &str| {
            let there = last_answer.unwrap_or_default().trim();
            !text.trim().is_empty() && there.ends_with(text.trim())
        };
        self.has_ended || self.last_answer.as_deref().is_some_and(is_that)
    }
}

fn text<'a>(input: &'a Object, name: &str) -> Option<&'a str> {
    let text = input.get(name).and_then(Json::as_str);
    text.filter(|text| !text.is_empty())
}

fn unreadable(why: &str) -> CommandError {
    CommandError::refused("unreadable_hook", format!("the input of the hook {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: &str = r#"{"session_id":"s","transcript_path":"/t/s.jsonl","cwd":"/work/app",
        "hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Done.\n"}"#;

    fn read(input: &str) -> Option<HookEvent> {
        HookEvent::read(input.as_bytes()).unwrap()
    }

    #[test]
    fn the_input_names_the_transcript() {
        let stop = HookEvent {
            path: "/t/s.jsonl".into(),
            cwd: "/work/app".to_owned(),
            has_ended: false,
            last_answer: Some("Done.\n".to_owned()),
        };
        assert_eq!(read(STOP), Some(stop));
        let end = read(&STOP.replace("\"Stop\"", "\"SessionEnd\"")).unwrap();
        assert!(end.has_ended);
        let subagent = STOP.replace("\"Stop\"", "\"SubagentStop\"");
        assert_eq!(read(&subagent), None, "the main transcript is not its own");
        let subagent = subagent.replace("\"session_id\"", "\"agent_transcript_path\"");
        assert_eq!(read(&subagent).unwrap().path, PathBuf::from("s"));
    }

    #[test]
    fn other_events_say_nothing() {
        for input in [
            "{}".to_owned(),
            STOP.replace("\"Stop\"", "\"PreToolUse\""),
            STOP.replace("\"/t/s.jsonl\"", "null"),
        ] {
            assert_eq!(read(&input), None, "{input}");
        }
        assert!(HookEvent::read(b"[]").is_err() && HookEvent::read(b"").is_err());
        let nowhere = STOP.replace("\"cwd\"", "\"pwd\"");
        assert!(HookEvent::read(nowhere.as_bytes()).is_err());
    }

    #[test]
    fn an_answer_that_is_not_written_yet_is_left() {
        let stop = read(STOP).unwrap();
        assert!(stop.is_whole(Some("Done.")));
        assert!(stop.is_whole(Some("First.\nDone. ")));
        assert!(!stop.is_whole(Some("Let me look.")) && !stop.is_whole(None));
        let silent = HookEvent {
            last_answer: None,
            ..stop
        };
        assert!(!silent.is_whole(Some("Done.")), "it may not be the last");
        let ended = HookEvent {
            has_ended: true,
            ..silent
        };
        assert!(ended.is_whole(None));
    }
}
