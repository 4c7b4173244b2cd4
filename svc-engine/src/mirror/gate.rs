use super::failure::MirrorFailure;
use crate::store::{Store, StoreError, WaitingPush};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    Declined(Decline),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decline {
    SourceAbsent,
}

impl Decline {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::SourceAbsent => "repository_source_absent",
        }
    }

    pub(super) const fn failure(self) -> Option<MirrorFailure> {
        match self {
            Self::SourceAbsent => None,
        }
    }
}

pub(super) fn admit(_: &Store, waiting: &[WaitingPush]) -> Result<Vec<Admission>, StoreError> {
    Ok(waiting
        .iter()
        .map(|it| {
            if it.visible {
                Admission::Admitted
            } else {
                Admission::Declined(Decline::SourceAbsent)
            }
        })
        .collect())
}
