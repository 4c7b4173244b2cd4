//! Search over everything that a caller may read: retrieval policy version 2.

use svc_model::endpoint::Search;
use svc_model::id::SessionId;
use svc_model::search::FilePath;

use super::answer::{AdmissionKind, Answer, ReadContext};
use crate::error::Error;

/// Returns the Sessions that worked on a file.
pub(super) fn sessions_of_file(
    _reading: &mut ReadContext<'_, '_>,
    _file: &FilePath,
) -> Result<Vec<SessionId>, Error> {
    Err(Error::SearchDisabled)
}

impl Answer for Search {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn session(request: &Self::Request) -> Option<&SessionId> {
        request.filters.session_id.as_ref()
    }

    fn answer(
        _reading: &mut ReadContext<'_, '_>,
        _request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        Err(Error::SearchDisabled)
    }
}
