//! Shortens ids so that they can still be told apart.

use std::collections::BTreeSet;

use super::escape;

/// The common length of ids that are printed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortIds {
    characters: usize,
}

impl ShortIds {
    /// Chooses the shortest length, but at least `least` characters, at which different ids stay
    /// different.
    pub(crate) fn of<T: AsRef<str>>(least: usize, ids: impl IntoIterator<Item = T>) -> Self {
        let ids: BTreeSet<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        // In sorted order, the ids with the longest common prefix are neighbours.
        let shared = ids.iter().zip(ids.iter().skip(1)).map(|(one, other)| {
            let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
            same.count() + 1
        });
        Self {
            characters: shared.max().unwrap_or_default().max(least),
        }
    }

    /// Returns an escaped id; a shortened one ends with `…`.
    pub(crate) fn short(self, id: &str) -> String {
        match id.char_indices().nth(self.characters) {
            Some((end, _)) => format!("{}…", escape(&id[..end])),
            None => escape(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_shortened_to_where_they_differ() {
        let short = ShortIds::of(4, ["abcdef01", "abcdef01", "abcdeg01", "xyz"]);
        assert_eq!(short.short("abcdef01"), "abcdef…");
        assert_eq!(short.short("abcdeg01"), "abcdeg…");
        assert_eq!(short.short("xyz"), "xyz");
        assert_eq!(ShortIds::of(4, ["abcdef01"]).short("abcdef01"), "abcd…");
        assert_eq!(ShortIds::of(1, ["\u{1b}a"]).short("\u{1b}a"), "\\u{1b}…");
        assert_eq!(ShortIds::of(3, Vec::<String>::new()).short("abcd"), "abc…");
    }

    proptest! {
        #[test]
        fn different_ids_stay_different(ids in prop::collection::btree_set("[ab…]{1,8}", 0..20)) {
            let short = ShortIds::of(2, &ids);
            let printed: BTreeSet<String> = ids.iter().map(|id| short.short(id)).collect();
            prop_assert_eq!(printed.len(), ids.len());
        }
    }
}
