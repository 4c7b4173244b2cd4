//! Runs of CI.

use svc_model::ingest::CiResult;
use svc_model::open::Open;

use crate::surface::Surface;

impl Surface {
    /// Returns a result as an adjective.
    pub fn adjective(self, result: &Open<CiResult>) -> String {
        match result {
            Open::Known(CiResult::TimedOut) => "timed-out".to_owned(),
            Open::Known(CiResult::Error) => "errored".to_owned(),
            other => self.escape(other.as_str()),
        }
    }

    /// Says that some runs are not listed.
    pub fn unlisted(self, result: &Open<CiResult>, count: u64) -> String {
        format!(
            "{} {} {} under this name whose repository cannot be determined",
            self.whole(count),
            self.adjective(result),
            if count == 1 { "run" } else { "runs" }
        )
    }
}
