//! Which repository each fact of a report belongs to.

use std::sync::Arc;

use svc_engine_derive::observed;
use svc_engine_derive::repository::{Mention, Repositories};
use svc_engine_fact::{Lifetime, Push};
use svc_engine_store::{ObservationRow, OutcomePlace, Snapshot};
use svc_model::problem::{Decline, ReportBound};
use svc_model::repository::RepositoryDecline;
use svc_model::time::Instant;

use crate::error::Error;
use crate::read::repository::{TouchedRepositories, of_observation, of_push, touch};

/// The names and identities that a report touches, and what facts say about them. Touching more of
/// them later does not change earlier answers.
#[derive(Debug, Default)]
pub(super) struct Resolving {
    touched: TouchedRepositories,
    repositories: Arc<Repositories>,
}

impl Resolving {
    pub(super) fn touch(&mut self, mention: Mention<'_>) {
        self.touched.add(mention);
    }

    pub(super) fn touch_push(&mut self, push: &Push) {
        self.touch(of_push(push));
    }

    pub(super) fn touch_observed(&mut self, observed: &ObservationRow) {
        touch(&mut self.touched, observed);
    }

    /// Reads what facts say about everything touched.
    pub(super) fn read(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        boundary: Instant,
    ) -> Result<(), Error> {
        self.repositories = match self.touched.read(snapshot, boundary) {
            Err(Error::Declined(Decline::RepositoryEvidenceLimit)) => {
                return Err(ReportBound::Evidence.into());
            }
            repositories => Arc::new(repositories?),
        };
        Ok(())
    }

    pub(super) fn repositories(&self) -> &Repositories {
        &self.repositories
    }

    /// Returns what is known now; later reads do not change it.
    pub(super) fn known(&self) -> Arc<Repositories> {
        Arc::clone(&self.repositories)
    }

    pub(super) fn of(&self, mention: Mention<'_>) -> Result<Lifetime, RepositoryDecline> {
        self.repositories.of(mention)
    }

    pub(super) fn of_push(&self, push: &Push) -> Result<Lifetime, RepositoryDecline> {
        self.of(of_push(push))
    }

    pub(super) fn observed(&self, observed: &ObservationRow) -> observed::ObservedCommit {
        observed::ObservedCommit {
            observation_id: observed.observation_id,
            session_id: observed.session_id.clone(),
            repository: of_observation(&self.repositories, observed),
            commit_sha: observed.commit_sha.clone(),
        }
    }
}

/// Returns what the outcomes at a place say about their repository.
pub(super) fn of_place(place: &OutcomePlace) -> Mention<'_> {
    Mention {
        name: &place.repo,
        identity: place.repository.as_ref(),
    }
}
