use super::{Access, Explanation, Faults, Repeat};
use crate::limit;
use crate::problem::{Problem, QueryFault};
use crate::quarantine::{
    QuarantineLog, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

/// Why a page of a log is not returned.
pub(super) const FEWER_ROWS: Explanation = Explanation {
    description: "The reply would be too large: ask for fewer rows.",
    problems: &[("size", Problem::ReplyTooLarge)],
};

/// Declares a route that appends a row about one fact to the quarantine log.
macro_rules! quarantine_change {
    ($endpoint:ident, $path:literal, $name:literal, $summary:literal) => {
        endpoint! {
            $endpoint: POST $path as $name for Access::Operator,
            QuarantineRequest => QuarantineReceipt,
            $summary {
                const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
                // Repeating the request would append another row to the log.
                const REPEAT: Repeat = Repeat::Never;
                const FAULTS: Faults = &[
                    ("absent", QueryFault::TargetAbsent),
                    ("ambiguous", QueryFault::TargetAmbiguous),
                ];
            }
        }
    };
}

quarantine_change! {
    Quarantine, "/v1/quarantine", "quarantine",
    "Quarantine a fact: hide it from every answer. The fact itself is never changed."
}

quarantine_change! {
    Release, "/v1/release", "release",
    "Release a quarantined fact, so that it is visible again."
}

endpoint! {
    QuarantineLogPage: GET "/v1/quarantine-log" as "quarantineLog" for Access::Operator,
    QuarantineLogRequest => QuarantineLog,
    "List what was quarantined and released, by whom and why." {
        const CONFLICT: Option<Explanation> = Some(FEWER_ROWS);
    }
}
