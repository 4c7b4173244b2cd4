//! The marks that clients leave where they cut the results of tools.

/// The mark of Gemini CLI, which has no count.
const WITHOUT_COUNT: &str = "... [CONTENT TRUNCATED] ...";

/// What may be counted in a mark.
const UNITS: [&str; 6] = ["bytes", "characters", "chars", "lines", "tokens", "words"];

/// Returns whether a text has such a mark: `[120 lines truncated]`, `…812 tokens truncated…` or
/// `[... omitted 40 of 290 lines ...]`.
pub(crate) fn is_marked(text: &str) -> bool {
    let before = |word| text.match_indices(word).map(|(place, _)| &text[..place]);
    let after = |word| {
        text.match_indices(word)
            .map(move |(place, word)| &text[place + word.len()..])
    };
    before(" truncated")
        .chain(before(" omitted"))
        .any(ends_with_count)
        || after("omitted ").any(begins_with_count)
        || text.contains(WITHOUT_COUNT)
}

fn ends_with_count(text: &str) -> bool {
    let mut words = text.rsplit(' ');
    let unit = words.next();
    let number = words.next().unwrap_or_default();
    unit.is_some_and(|unit| UNITS.contains(&unit))
        && number.ends_with(|last: char| last.is_ascii_digit())
}

fn begins_with_count(text: &str) -> bool {
    let mut words = text.split(' ').take(4);
    let number = words.next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && words.next() == Some("of")
        && words.nth(1).is_some_and(|unit| UNITS.contains(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_count() {
        for text in [
            "a\n... [120 lines truncated] ...\nb",
            "a\u{2026}812 tokens truncated\u{2026}b",
            "[... omitted 40 of 290 lines ...]",
            "... 1234 characters omitted ...",
            "a\n... [CONTENT TRUNCATED] ...\nb",
        ] {
            assert!(is_marked(text), "{text}");
        }
        for text in [
            "",
            "the table was truncated",
            "lines truncated",
            "omitted 5 tests",
            "5 tests omitted",
            "omitted ",
            " truncated",
        ] {
            assert!(!is_marked(text), "{text}");
        }
    }
}
