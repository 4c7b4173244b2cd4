use std::collections::BTreeMap;

/// What a reader met in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The lines.
    pub lines: u64,
    /// Those that are no JSON object, or are longer than 64 MiB.
    pub malformed_lines: u64,
    /// Lines and blocks of kinds that are not known, by kind. A kind whose name has more than 64
    /// characters counts as `other`.
    pub unknown: BTreeMap<String, u64>,
    /// Whether the agent has changed its format: a file of ten or more lines without any of a known
    /// kind, or with an answer of a model but no call.
    pub format_changed: bool,
}
