use svc_model::json::Json;

/// The payload of a call, and the segments of it that repeat from call to call.
#[derive(Clone, Debug, PartialEq)]
pub struct RawPayload {
    /// The payload, with credentials redacted.
    pub payload: Json,
    /// The repeated segments, in the order of the payload. They do not overlap. A segment that is
    /// absent from the payload is ignored.
    pub segments: Vec<Segment>,
}

/// A payload without known repetitions.
impl From<Json> for RawPayload {
    fn from(payload: Json) -> Self {
        Self {
            payload,
            segments: Vec::new(),
        }
    }
}

/// A value in a payload that occurs in other calls too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its position: the index among the members or items of each level, from the outside in.
    pub place: Vec<usize>,
    /// The calls in which it occurs again.
    pub repeats: Repeats,
    /// The index of the input message that was read from it.
    pub message: Option<usize>,
}

/// The calls in which a segment occurs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Calls of the same Session.
    InSession,
    /// Calls of any Session.
    Everywhere,
}
