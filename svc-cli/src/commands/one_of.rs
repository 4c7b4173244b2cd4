//! Arguments whose value is a word of a closed set.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the parser for such an argument. The help lists the words of all values.
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
