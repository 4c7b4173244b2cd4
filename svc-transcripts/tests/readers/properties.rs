//! What holds for the files of all agents.

use proptest::collection::vec;
use proptest::prelude::*;
use svc_model::json::{Json, Object};
use svc_transcripts::{Agent, TranscriptCall, TranscriptReader};

use crate::any_transcript;
use crate::support::{FILES, chain, lines, read, read_as_it_grows, reader};

/// Members whose content belongs to the call.
const CONTENT: [&str; 7] = [
    "input",
    "arguments",
    "args",
    "action",
    "output",
    "parts",
    "response",
];

/// Adds a member to all objects of a line that are not the content of a call.
fn extend(value: &mut Json) {
    match value {
        Json::Object(object) => {
            let is_result = object.get("role") == Some(&"toolResult".into());
            for (name, value) in object.iter_mut() {
                let is_content = CONTENT.iter().any(|content| *name == *content);
                let is_content = is_content || (is_result && *name == "content");
                if !is_content {
                    extend(value);
                }
            }
            let news = Object::from_iter([("text", "of the future")]);
            object.insert("future_member", news);
        }
        Json::Array(items) => items.iter_mut().for_each(extend),
        _ => {}
    }
}

fn extended(file: &str) -> String {
    let lines = file.lines().map(|line| {
        let mut line = Json::parse(line.as_bytes()).unwrap();
        extend(&mut line);
        String::from_utf8(line.to_canonical()).unwrap() + "\n"
    });
    lines.collect()
}

fn same(calls: &[TranscriptCall], expected: &[TranscriptCall], what: &str) {
    assert_eq!(chain(calls), chain(expected), "{what}");
    for (call, expected) in calls.iter().zip(expected) {
        assert_eq!(call, expected, "{what}");
    }
}

#[test]
fn a_file_that_grows_line_by_line_has_the_calls_of_the_whole_file() {
    for (agent, file) in FILES {
        let calls = read_as_it_grows(agent, file.as_bytes());
        same(&calls, &read(agent, file).0, agent.as_str());
    }
}

#[test]
fn it_makes_no_difference_when_calls_are_taken() {
    for (agent, file) in FILES {
        let mut reader = reader(agent);
        let mut calls = Vec::new();
        for (offset, line) in lines(file.as_bytes(), 0) {
            reader.line(offset, line).unwrap();
            calls.extend(reader.take());
        }
        reader.end();
        calls.extend(reader.take());
        same(&calls, &read(agent, file).0, agent.as_str());
    }
}

#[test]
fn unknown_members_change_nothing() {
    for (agent, file) in FILES {
        let (calls, reader) = read(agent, &extended(file));
        same(&calls, &read(agent, file).0, agent.as_str());
        assert!(!reader.tally().format_changed, "{agent}");
    }
}

#[test]
fn lines_of_unknown_kinds_change_nothing_wherever_they_stand() {
    let unknown =
        r#"{"type":"future_kind","uuid":"new","parentUuid":"none","payload":{"type":"x"}}"#;
    for (agent, file) in FILES {
        let (expected, plain) = read(agent, file);
        for place in 0..=file.lines().count() {
            let mut lines: Vec<&str> = file.lines().collect();
            lines.insert(place, unknown);
            let (calls, reader) = read(agent, &(lines.join("\n") + "\n"));
            if agent == Agent::Codex {
                // Some ids are places in the file.
                assert_eq!(calls.len(), expected.len(), "{agent} {place}");
            } else {
                same(&calls, &expected, agent.as_str());
            }
            assert_eq!(reader.tally().lines, plain.tally().lines + 1);
            assert_eq!(reader.tally().unknown.get("future_kind"), Some(&1));
        }
    }
}

#[test]
fn a_bookmark_stays_small() {
    for (agent, file) in FILES {
        let mut reader = reader(agent);
        for (offset, line) in lines(file.as_bytes(), 0) {
            reader.line(offset, line).unwrap();
            reader.take();
            let bookmark = reader.bookmark();
            assert!(bookmark.offset <= offset + line.len() as u64 + 1);
            assert!(bookmark.state.len() < 64 * 1024, "{agent}");
            assert!(TranscriptReader::resume(agent, "x".as_ref(), &bookmark).is_some());
        }
    }
}

/// A change of a file: at a place, this many bytes make room for others.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    (
        any::<prop::sample::Index>(),
        0..200_usize,
        vec(any::<u8>(), 0..8),
    )
}

/// The lines of a file, some of them again, left out or elsewhere.
fn shuffled(file: &str, picks: &[prop::sample::Index]) -> String {
    let lines: Vec<&str> = file.lines().collect();
    let picked = picks.iter().map(|pick| *pick.get(&lines));
    picked.map(|line| line.to_owned() + "\n").collect()
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..300)) {
        for agent in Agent::ALL {
            any_transcript::check(agent, &bytes);
        }
    }

    #[test]
    fn damaged_files_are_read(
        file in prop::sample::select(&FILES[..]),
        changes in vec(change(), 1..6),
    ) {
        let (agent, file) = file;
        let mut bytes = file.as_bytes().to_vec();
        for (place, removed, added) in changes {
            let place = place.index(bytes.len() + 1);
            let end = (place + removed).min(bytes.len());
            bytes.splice(place..end, added);
        }
        any_transcript::check(agent, &bytes);
    }

    #[test]
    fn lines_in_any_order_are_read(
        file in prop::sample::select(&FILES[..]),
        picks in vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let (agent, file) = file;
        any_transcript::check(agent, shuffled(file, &picks).as_bytes());
    }

    #[test]
    fn a_file_with_gaps_that_grows_has_the_calls_of_the_whole_file(
        file in prop::sample::select(&FILES[..]),
        kept in vec(prop::bool::weighted(0.8), 60),
    ) {
        let (agent, file) = file;
        let lines = file.lines().zip(kept).filter(|(_, kept)| *kept);
        let file: String = lines.map(|(line, _)| line.to_owned() + "\n").collect();
        let sorted = |mut calls: Vec<TranscriptCall>| {
            calls.sort_by(|a, b| a.call.id().cmp(&b.call.id()));
            calls
        };
        let calls = sorted(read_as_it_grows(agent, file.as_bytes()));
        same(&calls, &sorted(read(agent, &file).0), agent.as_str());
    }

    #[test]
    fn every_call_follows_one_that_was_given_before(
        file in prop::sample::select(&FILES[..]),
        picks in vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let (agent, file) = file;
        let (calls, _) = read(agent, &shuffled(file, &picks));
        for (index, call) in calls.iter().enumerate() {
            let mut earlier = calls[..index].iter();
            let after = call.call.input.after.as_ref();
            prop_assert!(after.is_none_or(|after| earlier.any(|call| call.call.id() == Some(after))));
        }
    }
}
