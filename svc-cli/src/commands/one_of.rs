//! Arguments whose value is one word of a closed set.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the parser of such an argument: the words of all values, which its help lists.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |value| word(*value))).try_map(move |given| {
        let mut values = all.iter().copied();
        values
            .find(|value| word(*value) == given)
            .ok_or("no such value")
    })
}
