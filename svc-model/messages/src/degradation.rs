use std::ops::AddAssign;

use svc_model::evidence::LeftOut;

/// Counts of what was left out of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degradation {
    /// Arguments of tool calls that are not JSON objects.
    pub malformed_arguments: u64,
    /// Tool calls and results without an id.
    pub missing_id: u64,
    /// Messages and content of a kind that is not kept, such as images, files and searches.
    pub unsupported_content: u64,
    /// Reasoning that is encrypted or empty.
    pub opaque_reasoning: u64,
    /// Parts that the client cut.
    pub truncated: u64,
}

impl From<Degradation> for LeftOut {
    fn from(degradation: Degradation) -> Self {
        Self {
            malformed_arguments: degradation.malformed_arguments,
            missing_id: degradation.missing_id,
            unsupported_content: degradation.unsupported_content,
            opaque_reasoning: degradation.opaque_reasoning,
            truncated: degradation.truncated,
        }
    }
}

impl AddAssign for Degradation {
    fn add_assign(&mut self, other: Self) {
        self.malformed_arguments += other.malformed_arguments;
        self.missing_id += other.missing_id;
        self.unsupported_content += other.unsupported_content;
        self.opaque_reasoning += other.opaque_reasoning;
        self.truncated += other.truncated;
    }
}

impl Degradation {
    /// Returns whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
