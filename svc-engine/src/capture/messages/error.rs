use svc_model::json::OverBudget;

/// Why messages cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::capture) enum MessagesError {
    /// An identity in them is over its bound, or holds NUL or a surrogate.
    InvalidIdentity,
    /// They take more memory than those of one request may.
    TooLarge,
}

impl From<OverBudget> for MessagesError {
    fn from(OverBudget: OverBudget) -> Self {
        Self::TooLarge
    }
}
