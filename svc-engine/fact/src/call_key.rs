use std::fmt;

use svc_model::id::SessionId;

/// What identifies a call of a model within an organization, whichever source sent it.
///
/// One call may arrive from a gateway, from a client's log, as a span, and from a transcript. The
/// sources that know the same key are about the same call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    /// What kind of id it is.
    pub kind: CallKeyKind,
    /// The id.
    pub id: String,
}

/// The kinds of ids that identify a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKeyKind {
    /// The provider's id of the response.
    Response,
    /// The provider's id of the request.
    Request,
    /// The client's id of the request.
    ClientRequest,
    /// The trace and the span of the call.
    Span,
    /// The Session and the time of a client's event, for clients that know no better id.
    Event,
    /// An agent's own id of the call, within its Session.
    Client,
}

impl CallKeyKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Response,
        Self::Request,
        Self::ClientRequest,
        Self::Span,
        Self::Event,
        Self::Client,
    ];

    /// Returns the word before the id in the written form of a key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Request => "request",
            Self::ClientRequest => "client_request",
            Self::Span => "span",
            Self::Event => "event",
            Self::Client => "call",
        }
    }
}

impl CallKey {
    /// Returns a key.
    pub fn new(kind: CallKeyKind, id: impl Into<String>) -> Self {
        let id = id.into();
        Self { kind, id }
    }

    /// Returns the key of a call that an agent has an id of its own for.
    pub fn client(agent: &str, session_id: &SessionId, id: &str) -> Self {
        Self::new(CallKeyKind::Client, format!("{agent}/{session_id}/{id}"))
    }

    /// Returns the key of a span.
    pub fn span(trace_id: &str, span_id: &str) -> Self {
        Self::new(CallKeyKind::Span, format!("{trace_id}:{span_id}"))
    }
}

/// The written form, such as `response:msg_1`.
impl fmt::Display for CallKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.kind.as_str(), self.id)
    }
}
