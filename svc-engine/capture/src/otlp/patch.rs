//! The files in the patches of Codex's `apply_patch`.

use std::collections::HashSet;

use svc_model::id::is_trimmed;
use svc_model::ingest::LogSkip;

use super::logged::path;

/// The starts of the lines that name a file.
const HEADERS: [&[u8]; 4] = [
    b"*** Update File: ",
    b"*** Add File: ",
    b"*** Delete File: ",
    b"*** Move to: ",
];

/// Returns the files that a patch names, each once, in order. A path that cannot be stored is an
/// error and does not affect the others.
///
/// The patch is somebody's source code, in generalised UTF-8.
pub(super) fn files(patch: &[u8]) -> Vec<Result<String, LogSkip>> {
    let mut seen = HashSet::new();
    lines(patch)
        .filter_map(|line| {
            let rest = HEADERS
                .iter()
                .find_map(|header| line.strip_prefix(*header))?;
            let file = str::from_utf8(rest).map(|file| file.trim_matches(is_trimmed));
            let new = file != Ok("") && seen.insert(file.map_or(rest, str::as_bytes));
            new.then(|| path(file.map_err(|_| LogSkip::InvalidFact)?))
        })
        .collect()
}

/// Splits a text into lines, which may have any of these endings: LF, CR, VT, FF, FS, GS, RS, NEL,
/// LS or PS. CR LF gives an additional empty line, which names nothing.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (line, after) = match text.iter().enumerate().find_map(|(at, _)| {
            let length = line_end(&text[at..])?;
            Some((at, length))
        }) {
            Some((at, length)) => (&text[..at], Some(&text[at + length..])),
            None => (text, None),
        };
        rest = after;
        Some(line)
    })
}

/// Returns the length in bytes of the line ending at the start of a text.
fn line_end(text: &[u8]) -> Option<usize> {
    match text {
        [b'\n' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1e, ..] => Some(1),
        [0xc2, 0x85, ..] => Some(2),
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(patch: &str) -> Vec<String> {
        files(patch.as_bytes())
            .into_iter()
            .map(Result::unwrap)
            .collect()
    }

    #[test]
    fn each_kind_of_patch_header_names_a_file() {
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File:  b c.rs \n+z\n\
                     *** Delete File: d\n*** Update File: old\n*** Move to: new\n*** End Patch\n";
        assert_eq!(named(patch), ["src/a.rs", "b c.rs", "d", "old", "new"]);
    }

    #[test]
    fn a_file_is_listed_once_and_a_header_starts_its_line() {
        let patch = "*** Update File: a\n *** Update File: indented\n+*** Add File: quoted\n*** Update File: a \n\
                     *** Update File:\n*** Update File:   \n*** update File: b\n*** Rename File: c\n";
        assert_eq!(named(patch), ["a"]);
        assert!(files(b"").is_empty());
    }

    #[test]
    fn every_line_ending_is_recognised() {
        for end in [
            "\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}",
            "\u{2028}", "\u{2029}",
        ] {
            let patch = ["*** Add File: a", "*** Add File: b\u{2026}", "+c"].join(end);
            assert_eq!(named(&patch), ["a", "b\u{2026}"], "{end:?}");
        }
    }

    #[test]
    fn an_invalid_path_does_not_hide_the_others() {
        let long = format!("*** Add File: {}\n", "x".repeat(4_097));
        let patch = [
            b"*** Add File: a\n*** Add File: b\0\n*** Add File: \xed\xa0\x80\n",
            long.as_bytes(),
            b"*** Add File: c",
        ]
        .concat();
        let invalid = || Err(LogSkip::InvalidFact);
        assert_eq!(
            files(&patch),
            [
                Ok("a".to_owned()),
                invalid(),
                invalid(),
                invalid(),
                Ok("c".to_owned())
            ]
        );
    }
}
