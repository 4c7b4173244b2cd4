use super::Access;
use crate::capture::CaptureCounts;
use crate::request::NoParameters;

endpoint! {
    Capture: GET "/v1/capture" as "capture" for Access::Operator,
    NoParameters => CaptureCounts,
    "Count what was captured, skipped and rejected, by source and reason, and this server's answers."
}
