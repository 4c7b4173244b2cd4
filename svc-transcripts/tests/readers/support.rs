//! What the tests of all agents share.

use std::path::Path;

use svc_model::evidence::Message;
use svc_model::id::ForeignId;
use svc_model::json::{Json, to_value};
use svc_transcripts::{Agent, Bookmark, Lost, TranscriptCall, TranscriptReader};

/// The files of all agents.
pub(crate) const FILES: [(Agent, &str); 9] = [
    (Agent::ClaudeCode, include_str!("files/claude-code.jsonl")),
    (Agent::Codex, include_str!("files/codex-counts.jsonl")),
    (Agent::Codex, include_str!("files/codex-records.jsonl")),
    (Agent::Codex, include_str!("files/codex-runs.jsonl")),
    (Agent::Codex, include_str!("files/codex-fork.jsonl")),
    (Agent::Pi, include_str!("files/pi.jsonl")),
    (Agent::Gemini, include_str!("files/gemini.jsonl")),
    (Agent::CopilotCli, include_str!("files/copilot-cli.jsonl")),
    (Agent::OpenCode, include_str!("files/opencode.jsonl")),
];

/// Returns the file of an agent that has only one.
pub(crate) fn file_of(agent: Agent) -> &'static str {
    FILES.iter().find(|(of, _)| *of == agent).unwrap().1
}

pub(crate) fn reader(agent: Agent) -> TranscriptReader {
    TranscriptReader::new(agent, Path::new("/home/dev/transcript.jsonl"))
}

/// Returns the lines of a file with their offsets, from an offset.
pub(crate) fn lines(file: &[u8], from: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let from = usize::try_from(from).unwrap().min(file.len());
    let mut offset = from as u64;
    file[from..]
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let begin = offset;
            offset += line.len() as u64;
            (begin, line.strip_suffix(b"\n").unwrap_or(line))
        })
}

/// Gives a reader the rest of a file.
pub(crate) fn feed(reader: &mut TranscriptReader, file: &[u8], from: u64) -> Result<(), Lost> {
    lines(file, from).try_for_each(|(offset, line)| reader.line(offset, line))
}

/// Reads a file whose Session has ended.
pub(crate) fn read(agent: Agent, file: &str) -> (Vec<TranscriptCall>, TranscriptReader) {
    let mut reader = reader(agent);
    feed(&mut reader, file.as_bytes(), 0).unwrap();
    reader.end();
    (reader.take(), reader)
}

/// Reads a file that grows line by line, each time from the last bookmark.
pub(crate) fn read_as_it_grows(agent: Agent, file: &[u8]) -> Vec<TranscriptCall> {
    let mut bookmark: Option<Bookmark> = None;
    let mut calls: Vec<TranscriptCall> = Vec::new();
    let ends = file
        .split_inclusive(|byte| *byte == b'\n')
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
    let ends: Vec<usize> = ends.collect();
    for (index, end) in ends.iter().enumerate() {
        let name = Path::new("/home/dev/transcript.jsonl");
        let resumed = bookmark.as_ref().map(|bookmark| {
            let resumed = TranscriptReader::resume(agent, name, bookmark);
            (resumed.unwrap(), bookmark.offset)
        });
        let (mut next, from) = resumed.unwrap_or_else(|| (reader(agent), 0));
        if feed(&mut next, &file[..*end], from) == Err(Lost) {
            next = reader(agent).keeping_everything();
            feed(&mut next, &file[..*end], 0).unwrap();
        }
        if index + 1 == ends.len() {
            next.end();
        }
        for call in next.take() {
            if !calls.iter().any(|known| known.call.id() == call.call.id()) {
                calls.push(call);
            }
        }
        bookmark = Some(next.bookmark());
    }
    calls
}

/// Returns the ids of calls, and by which earlier call the input of each begins.
pub(crate) fn chain(calls: &[TranscriptCall]) -> Vec<(&str, Option<&str>)> {
    calls
        .iter()
        .map(|call| {
            let id = call.call.id().map(ForeignId::as_str);
            let after = call.call.input.after.as_ref().map(ForeignId::as_str);
            (id.unwrap_or_default(), after)
        })
        .collect()
}

/// Returns messages as short text: the role of each, and its parts.
pub(crate) fn said(messages: &[Message]) -> Vec<String> {
    messages.iter().map(message).collect()
}

fn message(message: &Message) -> String {
    let parts = to_value(&message.parts).unwrap();
    let parts = parts
        .as_array()
        .unwrap()
        .iter()
        .map(part)
        .collect::<Vec<_>>();
    format!("{}: {}", message.role, parts.join(" | "))
}

fn part(part: &Json) -> String {
    let part = part.as_object().unwrap();
    let member = |name: &str| {
        let value = part.get(name).unwrap();
        match value {
            Json::String(text) => text.to_string(),
            _ => String::from_utf8(value.to_canonical()).unwrap(),
        }
    };
    match &*member("type") {
        "text" => member("content"),
        "reasoning" => format!("({})", member("content")),
        "tool_call" => format!("{} {}{}", member("id"), member("name"), member("arguments")),
        _ => format!("{} = {}", member("id"), member("result")),
    }
}
