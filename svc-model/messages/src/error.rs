use svc_model::json::OverBudget;

/// Why messages cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagesError {
    /// An identity is too long, or contains NUL or a surrogate.
    InvalidIdentity,
    /// The messages need more memory than one request may use.
    TooLarge,
}

impl From<OverBudget> for MessagesError {
    fn from(OverBudget: OverBudget) -> Self {
        Self::TooLarge
    }
}
