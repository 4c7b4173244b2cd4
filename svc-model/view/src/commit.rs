//! One commit.

use svc_model::open::Open;
use svc_model::query::{CommitRepository, InferenceSkip, ObservationSource};

use crate::surface::Surface;

/// Returns why calls were not searched for in a commit, or not in all of it.
pub const fn reason(skip: InferenceSkip) -> &'static str {
    match skip {
        InferenceSkip::CommitDiffUnavailable => {
            "the mirror lacks the commit or cannot read its diff"
        }
        InferenceSkip::ContentErased => "the content of a call that may have written it was erased",
        InferenceSkip::MalformedDiffSection => "part of the diff is malformed",
        InferenceSkip::MirrorAbsent => "the repository has no mirror",
        InferenceSkip::MirrorUnreadable => "the mirror cannot be opened",
        InferenceSkip::PushUnknown => "it is unknown which push first brought the commit",
        InferenceSkip::UnsupportedDiffSection => {
            "part of the diff is not text, such as a binary file"
        }
    }
}

impl Surface {
    /// Returns how often a Session was observed at a commit, and from what if it was no note.
    pub fn observed(self, times: usize, source: Option<&Open<ObservationSource>>) -> String {
        let times = self.whole(times as u64);
        source.map_or_else(|| times.clone(), |source| format!("{times} from {source}"))
    }

    /// Returns the other names under which a repository was observed, if there are any.
    pub fn other_names(self, of: &CommitRepository) -> Option<String> {
        let others = of.observed_repo_slugs.iter().map(String::as_str);
        let mut others = others.filter(|name| *name != of.repo).peekable();
        others.peek()?;
        Some(self.list(others))
    }
}
