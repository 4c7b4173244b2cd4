//! The words that a word with one typing error may be meant to be.

/// Characters of a word that may have a typing error. A shorter one is too near to too many.
const CHARACTERS_MIN: usize = 4;
const CHARACTERS_MAX: usize = 16;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";

/// Returns the words that differ from a word of ASCII letters and digits by one letter: left out,
/// added, another one, or two neighbours in the wrong order. The first letter counts as right.
pub(crate) fn candidates(word: &str) -> Vec<String> {
    let bytes = word.as_bytes();
    let is_plain = bytes
        .iter()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_number = bytes.iter().all(u8::is_ascii_digit);
    if !is_plain || is_number || !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&bytes.len()) {
        return Vec::new();
    }
    let mut letters = LETTERS.to_vec();
    if bytes.iter().any(u8::is_ascii_digit) {
        letters.extend(DIGITS);
    }
    let mut found = Vec::new();
    let mut add = |head: &str, middle: &[u8], tail: &str| {
        let mut candidate = String::with_capacity(word.len() + 1);
        candidate.push_str(head);
        candidate.extend(middle.iter().map(|byte| char::from(*byte)));
        candidate.push_str(tail);
        if candidate != word {
            found.push(candidate);
        }
    };
    for at in 1..=word.len() {
        let (head, tail) = word.split_at(at);
        for letter in &letters {
            add(head, &[*letter], tail);
        }
        if tail.is_empty() {
            continue;
        }
        add(head, &[], &tail[1..]);
        for letter in &letters {
            add(head, &[*letter], &tail[1..]);
        }
        if let [first, second, ..] = tail.as_bytes() {
            add(head, &[*second, *first], &tail[2..]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_one_letter_away() {
        let found = candidates("kubernte");
        for near in ["kuberntes", "kubernete", "kubernt", "kuberten", "kuberntx"] {
            let is_found = found.iter().any(|candidate| candidate == near);
            assert_eq!(is_found, near != "kuberten", "{near}");
        }
        assert!(found.iter().any(|candidate| candidate == "kubenrte"));
        assert!(!found.iter().any(|candidate| candidate == "kubernte"));
        assert!(candidates("abc").is_empty() && candidates("12345").is_empty());
        assert!(candidates("größe").is_empty());
        assert!(
            candidates("e0502")
                .iter()
                .any(|candidate| candidate == "e0520")
        );
    }
}
