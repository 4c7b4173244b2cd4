//! The order that no compiler keeps: which folder of the store may use which, and how the events of
//! the log are named.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the store. Each may use itself and those before it.
const FOLDERS: [&str; 6] = ["sql", "pack", "table", "read", "write", "backup"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the product code of a file: what stands before its tests.
fn product(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a text");
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_folder_of_the_store_uses_only_itself_and_those_beneath() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../svc-engine/store/src");
    let mut wrong = Vec::new();
    for (place, folder) in FOLDERS.into_iter().enumerate() {
        let mut all = Vec::new();
        files(&source.join(folder), &mut all);
        assert!(all.len() > 5, "{folder}");
        for file in all {
            let code = product(&file);
            for above in &FOLDERS[place + 1..] {
                if code.contains(&format!("crate::{above}::")) {
                    wrong.push(format!("{} uses {above}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The names of events that the interface gives.
const KNOWN_EVENTS: [&str; 14] = [
    "attributions_derived",
    "ci_outcome_stored",
    "fact_redacted",
    "gateway_ingest_invalid_payload",
    "gateway_ingest_skipped_no_session",
    "inference_messages_degraded",
    "otlp_logs_received",
    "pull_request_merge_stored",
    "pull_request_revision_stored",
    "push_missing_repo",
    "push_stored",
    "repository_identity_declined",
    "repository_rename_stored",
    "session_commit_observations_captured",
];

/// Returns the messages of the events in some code: of each, the last string.
fn messages(code: &str) -> Vec<&str> {
    let levels = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];
    let starts = levels.iter().flat_map(|level| code.match_indices(level));
    let own =
        |at: usize| !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    let events = starts.filter(|(at, _)| own(*at));
    events
        .filter_map(|(at, level)| message(&code[at + level.len()..]))
        .collect()
}

/// Returns the last string of the arguments that a text begins with.
fn message(arguments: &str) -> Option<&str> {
    let (mut depth, mut start, mut last, mut is_escaped) = (1, None, None, false);
    for (at, byte) in arguments.bytes().enumerate() {
        match (start, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(from), b'"') => (start, last) = (None, Some(&arguments[from..at])),
            (None, b'"') => start = Some(at + 1),
            (None, b'(') => depth += 1,
            (None, b')') if depth == 1 => return last,
            (None, b')') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a message is `object.event`, or a placeholder for one of the known names.
fn is_event(message: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'))
    };
    KNOWN_EVENTS.contains(&message)
        || message == "{line}"
        || message
            .split_once('.')
            .is_some_and(|(object, event)| is_word(object) && is_word(event))
}

#[test]
fn an_event_of_the_log_is_named_by_its_object_and_what_became_of_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut all, mut events, mut wrong) = (Vec::new(), 0, Vec::new());
    for part in [
        "svc-client/src",
        "svc-engine",
        "svc-mcp/src",
        "svc-server/src",
    ] {
        files(&root.join(part), &mut all);
    }
    for file in all.iter().filter(|file| !file.ends_with("tests.rs")) {
        for message in messages(&product(file)) {
            events += 1;
            if !is_event(message) {
                wrong.push(format!("{message:?} in {}", file.display()));
            }
        }
    }
    assert!(events > 90, "{events}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
