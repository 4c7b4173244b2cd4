use svc_model::endpoint::{
    CiFailuresQuery, CiOutcomeQuery, CiRunsQuery, CommitQuery, SessionQuery, SessionsQuery,
};
use svc_model::id::SessionId;
use svc_model::query::{
    CiFailures, CiFailuresRequest, CiOutcomeRecord, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitLink, CommitRequest, SessionDossier, SessionDossierRequest, SessionList,
    SessionSummary, SessionsRequest,
};

use crate::error::Failure;
use crate::{Client, Error, ErrorKind, Pages};

/// Investigation: from a failed run to its commit ([`CiOutcomeRecord::commit_query`],
/// [`Client::commit_at`]), and from a commit to its Sessions ([`Client::session_dossier`]). It
/// requires an operator token.
impl Client {
    /// Returns the outcome of one run; nothing if no such run is stored and visible.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_outcome(
        &self,
        request: &CiOutcomeRequest,
    ) -> Result<Option<CiOutcomeRecord>, Error> {
        Ok(self.call::<CiOutcomeQuery>(request).await?.outcome)
    }

    /// Returns the runs that have an id or a URL, in any CI system, and what was delivered with
    /// their commit.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_runs(&self, request: &CiRunsRequest) -> Result<CiRuns, Error> {
        self.call::<CiRunsQuery>(request).await
    }

    /// Returns one page of a repository's outcomes with one result, latest first.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn ci_failures_page(&self, request: &CiFailuresRequest) -> Result<CiFailures, Error> {
        self.call::<CiFailuresQuery>(request).await
    }

    /// Returns a stream of a repository's outcomes with one result, latest first, which reads page
    /// after page.
    ///
    /// Every page has the same boundary, so facts that are captured in the meantime do not appear.
    /// If a fact is quarantined or released between two pages, the stream ends with
    /// [`QueryFault::CursorMismatch`](svc_model::problem::QueryFault), because the remaining pages
    /// would not be consistent with the earlier ones.
    ///
    /// ```no_run
    /// # async fn failures(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::{query::*, repository::RepositoryName, time::Instant};
    ///
    /// let mut failures = client.ci_failures(CiFailuresRequest::new(
    ///     RepositorySelector::named(RepositoryName::new("acme/shop").ok_or("no name")?),
    ///     Instant::parse("2026-11-01T00:00:00Z")?,
    ///     Instant::parse("2026-12-01T00:00:00Z")?,
    /// ));
    /// while let Some(failure) = failures.next().await {
    ///     let commit = client.commit_at(&failure?.commit_query).await?;
    ///     println!("{}: {}", commit.commit_sha, commit.attributed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ci_failures(&self, request: CiFailuresRequest) -> Pages<CiOutcomeRecord> {
        let client = self.clone();
        Pages::of(request, move |request| {
            let client = client.clone();
            async move {
                let page = client.ci_failures_page(&request).await?;
                let next = page.next_cursor.map(|cursor| CiFailuresRequest {
                    cursor: Some(cursor),
                    ..request
                });
                Ok((page.outcomes, next))
            }
        })
    }

    /// Returns one page of Sessions, latest first. It may have fewer than requested, even none, and
    /// still have a cursor for the next page.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn sessions_page(&self, request: &SessionsRequest) -> Result<SessionList, Error> {
        self.call::<SessionsQuery>(request).await
    }

    /// Returns a stream of Sessions, latest first, which reads page after page.
    ///
    /// Sessions are ordered by when their first fact was captured, so an active Session is neither
    /// missed nor returned twice. If a fact is quarantined or released between two pages, the
    /// stream ends with [`QueryFault::SessionCursorMismatch`](svc_model::problem::QueryFault).
    ///
    /// ```no_run
    /// # async fn follow(client: svc_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_client::model::{query::*, repository::RepositoryName};
    ///
    /// let shop = RepositoryName::new("acme/shop").ok_or("no name")?;
    /// let mut sessions = client.sessions(SessionsRequest {
    ///     repository: RepositorySelector::named(shop),
    ///     ..SessionsRequest::default()
    /// });
    /// while let Some(session) = sessions.next().await {
    ///     let session = session?;
    ///     println!("{}: {:?}", session.session_id, session.models);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sessions(&self, request: SessionsRequest) -> Pages<SessionSummary> {
        let client = self.clone();
        Pages::of(request, move |request| {
            let client = client.clone();
            async move {
                let page = client.sessions_page(&request).await?;
                let next = page.next_cursor.map(|cursor| SessionsRequest {
                    cursor: Some(cursor),
                    ..request
                });
                Ok((page.sessions, next))
            }
        })
    }

    /// Returns everything that was captured of a Session, as metadata, with the files of its events
    /// and the pushes and CI outcomes of its commits; nothing if no fact names the Session.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn session_dossier(
        &self,
        session_id: &SessionId,
    ) -> Result<Option<SessionDossier>, Error> {
        let request = SessionDossierRequest::new(session_id.clone());
        Ok(self.call::<SessionQuery>(&request).await?.dossier())
    }

    /// Returns the Sessions, calls and CI outcomes of a commit, by repository. The calls are
    /// inferred from what they wrote, and are separate from the observed Sessions. If calls were
    /// not searched for, `inference_skipped` has the reason.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`].
    pub async fn commit(&self, request: &CommitRequest) -> Result<CommitEvidence, Error> {
        self.call::<CommitQuery>(request).await
    }

    /// Follows the link of an outcome to its commit, with the boundary of the reply that contains
    /// the outcome.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unaddressable`] if the link has parameters that this version does not know;
    /// otherwise see [`ErrorKind`].
    pub async fn commit_at(&self, link: &CommitLink) -> Result<CommitEvidence, Error> {
        let request = link
            .request()
            .ok_or_else(|| Failure::new(ErrorKind::Unaddressable).after(0))?;
        let explained = CommitRequest {
            explain: true,
            ..request
        };
        self.commit(&explained).await
    }
}
