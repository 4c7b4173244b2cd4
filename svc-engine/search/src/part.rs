//! What the index has of a part: its digest, its kind and the words of its passages.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use svc_model::evidence::Part;
use svc_model::json;
use svc_model::limit::SEARCH_PART_CHARACTERS_MAX;
use svc_model::search::{SearchKind, passages, search_text, words};

/// Tells parts of different content apart. The id of a tool call is no content. Two of a thousand
/// million parts may have the same digest; then a search finds one by the words of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartDigest(pub(crate) i64);

impl PartDigest {
    /// Returns the digest of a part.
    pub fn of(part: &Part) -> Self {
        let mut hash = Sha256::new();
        let mut bytes = Vec::new();
        match part {
            Part::Text { content } => {
                hash.update(b"t");
                hash.update(content.as_bytes());
            }
            Part::Reasoning { content } => {
                hash.update(b"r");
                hash.update(content.as_bytes());
            }
            Part::ToolCall {
                name,
                arguments,
                sent,
                ..
            } => {
                hash.update(b"c");
                name.write_escaped(&mut bytes);
                arguments.write_canonical(&mut bytes);
                if let Some(sent) = sent {
                    sent.write_escaped(&mut bytes);
                }
            }
            Part::ToolCallResponse { result, .. } => {
                hash.update(b"a");
                bytes = result.to_canonical();
            }
        }
        hash.update(&bytes);
        let mut digest = [0; size_of::<i64>()];
        let hash = hash.finalize();
        digest.copy_from_slice(&hash[..size_of::<i64>()]);
        Self(i64::from_le_bytes(digest))
    }
}

/// Returns the kind of a part.
pub const fn kind(part: &Part) -> SearchKind {
    match part {
        Part::Text { .. } => SearchKind::Text,
        Part::Reasoning { .. } => SearchKind::Reasoning,
        Part::ToolCall { .. } => SearchKind::ToolCall,
        Part::ToolCallResponse { .. } => SearchKind::ToolResult,
    }
}

/// How often a word must stand in a passage to be marked as so frequent. The index does not keep
/// the frequency of a word itself, which takes a third of its size.
pub(crate) const LEVELS: [(u32, char); 4] = [
    (2, '\u{e002}'),
    (3, '\u{e003}'),
    (5, '\u{e005}'),
    (8, '\u{e008}'),
];

/// How often a word stands in a passage that has so many of its marks, about.
pub(crate) const FREQUENCIES: [f64; LEVELS.len() + 1] = [1.0, 2.0, 3.5, 6.0, 10.0];

/// The words of one passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassageWords {
    /// Each distinct word once, with its marks, separated by blanks.
    pub(crate) text: String,
    /// The number of words.
    pub(crate) length: u16,
}

/// Calls `each` with the words of every passage of a part, in order.
pub(crate) fn passages_of<E>(
    part: &Part,
    mut each: impl FnMut(PassageWords) -> Result<(), E>,
) -> Result<(), E> {
    let text = search_text(part);
    let text = text.to_string_lossy();
    let end = text.char_indices().nth(SEARCH_PART_CHARACTERS_MAX);
    let text = &text[..end.map_or(text.len(), |(end, _)| end)];
    let mut counter = WordCounter::default();
    for passage in passages(text) {
        each(counter.count(&text[passage]))?;
    }
    Ok(())
}

/// Counts words without an allocation for each.
#[derive(Default)]
struct WordCounter {
    all: String,
    places: Vec<(u32, u32)>,
}

impl WordCounter {
    fn count(&mut self, passage: &str) -> PassageWords {
        let Self { all, places } = self;
        all.clear();
        places.clear();
        words(passage, |word, _| {
            let start = all.len();
            all.push_str(word);
            // A passage has at most 2,000 characters.
            let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
            places.push((place(start), place(all.len())));
        });
        let word = |(start, end): (u32, u32)| &all[start as usize..end as usize];
        places.sort_unstable_by(|a, b| word(*a).cmp(word(*b)));
        let mut text = String::with_capacity(all.len());
        for same in places.chunk_by(|a, b| word(*a) == word(*b)) {
            let found = word(same[0]);
            let _ = write!(text, "{found} ");
            for (least, mark) in LEVELS {
                if same.len() >= least as usize {
                    let _ = write!(text, "{found}{mark} ");
                }
            }
        }
        PassageWords {
            text,
            length: u16::try_from(places.len()).unwrap_or(u16::MAX),
        }
    }
}

/// Returns the files that a tool call names: values of arguments that are paths, and the files of
/// a patch.
pub(crate) fn files(part: &Part) -> Vec<String> {
    /// Arguments by which agents' tools name a file.
    const NAMES: [&str; 9] = [
        "file_path",
        "path",
        "filePath",
        "file",
        "filename",
        "notebook_path",
        "absolute_path",
        "target_file",
        "relative_path",
    ];
    const PATCHED: [&str; 4] = [
        "*** Update File: ",
        "*** Add File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    /// Bytes of a path that is kept.
    const BYTES_MAX: usize = 1_024;
    let Part::ToolCall {
        arguments, sent, ..
    } = part
    else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    let mut of_patch = |text: &str| {
        let paths = text
            .lines()
            .filter_map(|line| PATCHED.iter().find_map(|begin| line.strip_prefix(begin)));
        found.extend(paths.map(|path| path.trim().to_owned()));
    };
    if let Some(sent) = sent {
        of_patch(&sent.to_string_lossy());
    }
    for (_, value) in arguments {
        if let Some(text) = value.as_str().filter(|text| text.contains("*** ")) {
            of_patch(text);
        }
    }
    for name in NAMES {
        found.extend(
            arguments
                .get(name)
                .and_then(json::Json::as_str)
                .map(str::to_owned),
        );
    }
    found.retain(|path| !path.is_empty() && path.len() <= BYTES_MAX && !path.contains('\n'));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn part(text: &str) -> Part {
        json::from_slice(text.as_bytes()).unwrap()
    }

    fn words_of(part: &Part) -> Vec<PassageWords> {
        let mut found = Vec::new();
        let done: Result<(), Infallible> = passages_of(part, |passage| {
            found.push(passage);
            Ok(())
        });
        done.unwrap();
        found
    }

    #[test]
    fn words_are_kept_once_with_marks_of_their_frequency() {
        let text = part(r#"{"type":"text","content":"queue, queue; a Queue of queues and jobs"}"#);
        let [passage] = words_of(&text).try_into().unwrap();
        assert_eq!(passage.length, 8);
        assert_eq!(passage.text, "a and job of queu queu\u{e002} queu\u{e003} ");
        assert_eq!(words_of(&part(r#"{"type":"text","content":""}"#)), []);
    }

    #[test]
    fn the_id_of_a_tool_call_is_no_content() {
        let call = |id: &str, count: &str| {
            let text = format!(
                r#"{{"type":"tool_call","id":"{id}","name":"Read","arguments":{{"n":{count}}}}}"#
            );
            PartDigest::of(&part(&text))
        };
        assert_eq!(call("a", "1"), call("b", "1"));
        assert_ne!(call("a", "1"), call("a", "1.0"));
        let text =
            |kind: &str| PartDigest::of(&part(&format!(r#"{{"type":"{kind}","content":"x"}}"#)));
        assert_ne!(text("text"), text("reasoning"));
    }

    #[test]
    fn a_tool_call_names_files() {
        let call = |arguments: &str| {
            files(&part(&format!(
                r#"{{"type":"tool_call","id":"t","name":"Edit","arguments":{arguments}}}"#
            )))
        };
        assert_eq!(
            call(r#"{"file_path":"/w/a.rs","path":"","old":"x"}"#),
            ["/w/a.rs"]
        );
        assert_eq!(
            call(
                r#"{"input":"*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n"}"#
            ),
            ["src/a.rs", "src/b.rs"]
        );
        assert!(call(r#"{"command":"ls"}"#).is_empty());
    }
}
