use svc_model::json::Json;

/// The description of a call as it came, and what of it repeats from call to call.
#[derive(Clone, Debug, PartialEq)]
pub struct RawPayload {
    /// The description, with credentials redacted.
    pub payload: Json,
    /// What of it repeats, in the order in which it stands there. No segment lies in another. A
    /// segment that is not there is passed over.
    pub segments: Vec<Segment>,
}

/// A payload of which nothing is known to repeat.
impl From<Json> for RawPayload {
    fn from(payload: Json) -> Self {
        Self {
            payload,
            segments: Vec::new(),
        }
    }
}

/// A value of a payload that comes again with other calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it is: the place among the members or items at each level, from the outside in.
    pub place: Vec<usize>,
    /// With which calls it comes again.
    pub repeats: Repeats,
    /// The input message that was read from it, by its place.
    pub message: Option<usize>,
}

/// With which calls a segment comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// With those of the Session.
    InSession,
    /// With those of any Session.
    Everywhere,
}
