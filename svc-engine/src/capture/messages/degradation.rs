use svc_model::evidence::LeftOut;

/// What was left out of a call, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degradation {
    /// Arguments of tool calls that are no JSON object.
    pub malformed_arguments: u64,
    /// Tool calls and results without an id.
    pub missing_id: u64,
    /// Messages and content of a kind that is not kept: images, files, searches.
    pub unsupported_content: u64,
    /// Reasoning that is encrypted or empty.
    pub opaque_reasoning: u64,
}

impl From<Degradation> for LeftOut {
    fn from(degradation: Degradation) -> Self {
        Self {
            malformed_arguments: degradation.malformed_arguments,
            missing_id: degradation.missing_id,
            unsupported_content: degradation.unsupported_content,
            opaque_reasoning: degradation.opaque_reasoning,
        }
    }
}

impl Degradation {
    /// Returns whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
